/* What a process shares on its devices: see share.h. */
#include "cuda/share.h"

#include <stdio.h>

#include "core/mem.h"

struct device_share {
    struct gy_share share; /* first: what users hold */
    struct device_share *next;
    const struct gy_driver *driver;
    int number; /* of the device */
    unsigned users;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and of users */
static struct device_share *shares;

static void free_share(struct device_share *of)
{
    gy_share_exports_free(of->share.exports);
    gy_share_mappings_free(of->share.mappings);
    gy_free(of);
}

static struct device_share *make_share(const struct gy_device *device)
{
    struct device_share *made = gy_alloc_zero(1, sizeof(*made));

    if (!made)
        return NULL;
    made->driver = device->driver;
    made->number = device->number;
    made->share.exports = gy_share_exports_new(device);
    made->share.mappings = gy_share_mappings_new(device, GY_SHARE_MAPPINGS);
    if (made->share.exports && made->share.mappings)
        return made;
    free_share(made);
    return NULL;
}

static struct device_share *find_share(const struct gy_device *device)
{
    struct device_share *found = shares;

    while (found && (found->driver != device->driver || found->number != device->number))
        found = found->next;
    return found;
}

struct gy_share *gy_share_get(const struct gy_device *device, char *why, size_t why_bytes)
{
    pthread_mutex_lock(&lock);
    struct device_share *of = find_share(device);
    if (!of && (of = make_share(device)) != NULL) {
        of->next = shares;
        shares = of;
    }
    if (of)
        of->users++;
    else
        snprintf(why, why_bytes, "no memory for what processes share on a GPU");
    pthread_mutex_unlock(&lock);
    return of ? &of->share : NULL;
}

void gy_share_put(struct gy_share *share)
{
    pthread_mutex_lock(&lock);
    for (struct device_share **link = &shares; share && *link; link = &(*link)->next) {
        struct device_share *of = *link;
        if (&of->share != share)
            continue;
        if (--of->users == 0) {
            *link = of->next;
            free_share(of);
        }
        break;
    }
    pthread_mutex_unlock(&lock);
}
