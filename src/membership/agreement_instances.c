/* The instances of an agreement, and their state.
 *
 *   entered      by this rank: its promises and what it has accepted are kept until no member can ask for them any more
 *   unentered    other ranks speak of it; this rank has not entered it yet, or is no member. Their number is
 * bounded. */
#include <string.h>

#include "core/mem.h"
#include "membership/agreement_internal.h"

#define UNENTERED_MOST 64 /* instances that others have begun and this rank has not entered */
#define KEPT 2            /* outcomes kept per communicator, to answer ASK */

void gy_blob_set(struct gy_blob *blob, struct gy_blob to)
{
    gy_free(blob->bytes);
    *blob = to;
}

bool gy_blob_copy(struct gy_blob *blob, const uint8_t *bytes, size_t size)
{
    uint8_t *copy = gy_alloc(size ? size : 1);

    if (!copy)
        return false;
    memcpy(copy, bytes, size);
    gy_blob_set(blob, (struct gy_blob){copy, size});
    return true;
}

static void instance_free(struct gy_instance *instance)
{
    gy_blob_set(&instance->proposal, (struct gy_blob){0});
    gy_blob_set(&instance->best_proposal, (struct gy_blob){0});
    gy_outcome_free(&instance->room);
    gy_free(instance->members);
    gy_free(instance->peers);
    gy_free(instance);
}

void gy_agreement_free(struct gy_agreement *agreement)
{
    while (agreement && agreement->instances) {
        struct gy_instance *next = agreement->instances->next;

        instance_free(agreement->instances);
        agreement->instances = next;
    }
    if (agreement)
        gy_free(agreement->body);
    gy_free(agreement);
}

struct gy_instance *gy_instance_find(struct gy_agreement *agreement, uint32_t comm, uint32_t number)
{
    struct gy_instance *instance = agreement->instances;

    while (instance && (instance->comm != comm || instance->number != number))
        instance = instance->next;
    return instance;
}

/* Forgets the oldest instance that this rank has not entered, as if nothing had been received. Nothing was promised or
 * accepted in it, and on entry this rank asks the ranks that know the outcome. */
static void forget_unentered(struct gy_agreement *agreement)
{
    struct gy_instance **oldest = NULL, *instance;

    for (struct gy_instance **at = &agreement->instances; *at; at = &(*at)->next)
        if (!(*at)->entered)
            oldest = at;
    if (!oldest)
        return;
    instance = *oldest;
    *oldest = instance->next;
    instance_free(instance);
}

struct gy_instance *gy_instance_make(struct gy_agreement *agreement, uint32_t comm, uint32_t number)
{
    struct gy_instance *instance = gy_instance_find(agreement, comm, number);
    int unentered = 0;

    if (instance)
        return instance;
    for (instance = agreement->instances; instance; instance = instance->next)
        unentered += !instance->entered;
    if (!agreement->body)
        agreement->body = gy_alloc(gy_agreement_message_most(agreement->world->size));
    if (unentered >= UNENTERED_MOST)
        forget_unentered(agreement);
    instance = agreement->body ? gy_alloc_zero(1, sizeof(*instance)) : NULL;
    if (!instance)
        return NULL;
    instance->peers = gy_alloc_zero((size_t)agreement->world->size, sizeof(*instance->peers));
    if (!instance->peers) {
        gy_free(instance);
        return NULL;
    }
    instance->comm = comm;
    instance->number = number;
    instance->promised = instance->joined = instance->accepted = instance->best = GY_NOBODY;
    instance->next = agreement->instances;
    agreement->instances = instance;
    return instance;
}

void gy_instances_forget(struct gy_agreement *agreement, uint32_t comm, uint32_t number)
{
    for (struct gy_instance **at = &agreement->instances; *at;) {
        struct gy_instance *instance = *at;

        if (instance->comm != comm || instance->number + KEPT > number) {
            at = &instance->next;
            continue;
        }
        *at = instance->next;
        instance_free(instance);
    }
}
