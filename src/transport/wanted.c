/* The list of GYRE_TRANSPORT. */
#include <string.h>

#include "transport/transport.h"

bool gy_transport_wanted(const char *list, const char *name)
{
    size_t length = strlen(name);

    if (!list[0] || !strcmp(name, "self"))
        return true;
    for (const char *item = list; *item; item += strcspn(item, ","), item += *item == ',')
        if (strcspn(item, ",") == length && !strncmp(item, name, length))
            return true;
    return false;
}
