/* The first error wins; system errors are mapped and explained; long error messages are cut, not overrun. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "core/error.h"

Test(error, the_first_sentence_stays)
{
    struct gy_error error = {0};

    gy_error_clear(&error);
    cr_assert_eq(error.status, GYRE_SUCCESS);
    cr_assert_eq(error.rank, -1);
    cr_assert_str_empty(error.text);
    cr_assert_eq(gy_error_set(&error, GYRE_PEER_DEAD, 3, "rank %d died", 3), GYRE_PEER_DEAD);
    cr_assert_eq(gy_error_set(&error, GYRE_ABORTED, 5, "aborted"), GYRE_ABORTED);
    cr_assert_eq(gy_error_system(&error, EPIPE, "send"), GYRE_SYSTEM);
    cr_assert_eq(error.status, GYRE_PEER_DEAD);
    cr_assert_eq(error.rank, 3);
    cr_assert_str_eq(error.text, "rank 3 died");
    gy_error_clear(&error);
    gy_error_set(&error, GYRE_ABORTED, -1, "again");
    cr_assert_str_eq(error.text, "again");
}

Test(error, system_errors_are_mapped)
{
    static const struct {
        int errnum;
        gyre_status status;
    } cases[] = {{EMFILE, GYRE_NO_DESCRIPTORS}, {ENFILE, GYRE_NO_MEMORY}, {ENOMEM, GYRE_NO_MEMORY}, {EIO, GYRE_SYSTEM}};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(cases); i++) {
        struct gy_error error = {0};

        gy_error_clear(&error);
        cr_assert_eq(gy_error_system(&error, cases[i].errnum, "cannot open %s", "x"), cases[i].status);
        cr_assert_eq(error.status, cases[i].status);
        cr_assert_eq(strncmp(error.text, "cannot open x: ", 15), 0);
        cr_assert_not_null(strstr(error.text, strerror(cases[i].errnum)), "%s", error.text);
    }
}

/* accept and socket say "too many open files in system" where the kernel has no memory for a socket, too. */
Test(error, files_are_out_where_the_host_has_no_more)
{
    cr_assert(gy_error_files_are_out("1000\t0\t1000\n"));
    cr_assert(gy_error_files_are_out("960\t0\t1000\n"));
    cr_assert_not(gy_error_files_are_out("744\t0\t2466170\n"));
    cr_assert(gy_error_files_are_out("744"));
    cr_assert(gy_error_files_are_out(""));
}

Test(error, long_sentences_are_cut)
{
    struct gy_error error = {0};
    char longer[3 * GY_ERROR_TEXT];

    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    gy_error_clear(&error);
    gy_error_set(&error, GYRE_INTERNAL, -1, "%s", longer);
    cr_assert_eq(strlen(error.text), GY_ERROR_TEXT - 1);
    gy_error_clear(&error);
    gy_error_system(&error, EIO, "%s", longer);
    cr_assert_eq(strlen(error.text), GY_ERROR_TEXT - 1);
}

Test(error, none_to_write_to)
{
    cr_assert_eq(gy_error_set(NULL, GYRE_NO_MEMORY, -1, "no memory"), GYRE_NO_MEMORY);
}
