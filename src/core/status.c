/* Status codes: names and texts come from the one list in gyre.h. */
#include <gyre/gyre.h>

#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)

const char *gyre_version(void)
{
    return STRINGIFY(GYRE_VERSION_MAJOR) "." STRINGIFY(GYRE_VERSION_MINOR) "." STRINGIFY(GYRE_VERSION_PATCH);
}

const char *gyre_status_name(gyre_status status)
{
    switch (status) {
#define STATUS_NAME(code, name, text) \
    case GYRE_##name: return #name;
        GYRE_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
    }
    return "UNKNOWN";
}

const char *gyre_status_text(gyre_status status)
{
    switch (status) {
#define STATUS_TEXT(code, name, text) \
    case GYRE_##name: return text;
        GYRE_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}
