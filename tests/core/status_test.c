/* Names and texts of statuses, and the version. */
#include <criterion/criterion.h>
#include <gyre/gyre.h>
#include <stdio.h>
#include <string.h>

Test(status, every_code_has_its_name_and_text)
{
#define CHECK(code, name, text)                             \
    cr_assert_eq((int)GYRE_##name, code);                   \
    cr_assert_str_eq(gyre_status_name(GYRE_##name), #name); \
    cr_assert_str_eq(gyre_status_text(GYRE_##name), text);
    GYRE_STATUS_MAP(CHECK)
}

Test(status, unknown_codes_are_named_too)
{
    cr_assert_str_eq(gyre_status_name((gyre_status)1234), "UNKNOWN");
    cr_assert_not_null(gyre_status_text((gyre_status)-1));
}

Test(status, version_is_the_header_s)
{
    char text[32];

    snprintf(text, sizeof(text), "%d.%d.%d", GYRE_VERSION_MAJOR, GYRE_VERSION_MINOR, GYRE_VERSION_PATCH);
    cr_assert_str_eq(gyre_version(), text);
}
