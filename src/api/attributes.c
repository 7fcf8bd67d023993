/* Attributes of a communicator: text in, text out, one row each. A shared attribute is agreed on before it changes:
 * all ranks exchange the hash of key and value, and either all of them change or none. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "api/check.h"
#include "collectives/call/call_cache.h"
#include "collectives/device/attachment.h"
#include "collectives/lifecycle/split.h"
#include "collectives/select/selector.h"
#include "membership/join_address.h"

#define AGREEMENT 3u /* the word's lowest two bits: gyre_comm_sub has 2, duplicate and split have 0 and 1 */

static gyre_status set_name(gyre_comm *comm, const char *value, struct gy_attributes *attributes)
{
    size_t length = strlen(value);
    if (length >= sizeof(attributes->name))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "a name has at most %zu bytes, this one %zu",
                             sizeof(attributes->name) - 1, length);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)value[i] < ' ' || value[i] == 0x7f)
            return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "a name is one line of text: its byte %zu is %d", i,
                                 (unsigned char)value[i]);
    memcpy(attributes->name, value, length + 1);
    memcpy(comm->recorder.page->name, value, length + 1); /* of the same size */
    return GYRE_SUCCESS;
}

static void get_name(const struct gy_attributes *attributes, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", attributes->name);
}

static gyre_status set_order(gyre_comm *comm, const char *value, struct gy_attributes *attributes)
{
    if (strcmp(value, "shape") != 0 && strcmp(value, "canonical") != 0)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "order is \"shape\" or \"canonical\", not \"%.80s\"", value);
    attributes->canonical = value[0] == 'c';
    return GYRE_SUCCESS;
}

static void get_order(const struct gy_attributes *attributes, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", attributes->canonical ? "canonical" : "shape");
}

static gyre_status set_ends(gyre_comm *comm, const char *value, struct gy_attributes *attributes)
{
    if (strcmp(value, "local") != 0 && strcmp(value, "uniform") != 0)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "ends is \"local\" or \"uniform\", not \"%.80s\"", value);
    attributes->uniform = value[0] == 'u';
    return GYRE_SUCCESS;
}

static void get_ends(const struct gy_attributes *attributes, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", attributes->uniform ? "uniform" : "local");
}

static gyre_status set_algorithm(gyre_comm *comm, const char *value, struct gy_attributes *attributes)
{
    struct gy_error error = {.quiet = true};
    if (strlen(value) >= sizeof(attributes->algorithm))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "a list of algorithms has at most %zu bytes",
                             sizeof(attributes->algorithm) - 1);
    if (gy_select_check(value, &error) != GYRE_SUCCESS)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "algorithm: %s", error.text);
    memcpy(attributes->algorithm, value, strlen(value) + 1);
    return GYRE_SUCCESS;
}

static void get_algorithm(const struct gy_attributes *attributes, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", attributes->algorithm);
}

static gyre_status set_timeout(gyre_comm *comm, const char *value, struct gy_attributes *attributes)
{
    int64_t nanoseconds;
    if (!gy_parse_seconds(value, &nanoseconds) || nanoseconds <= 0)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT,
                             "timeout is a time in seconds, such as 30 or 0.5 or 10m, not \"%.80s\"", value);
    attributes->timeout_ns = nanoseconds;
    return GYRE_SUCCESS;
}

static void get_timeout(const struct gy_attributes *attributes, char *text, size_t bytes)
{
    gy_print_seconds(attributes->timeout_ns, text, bytes);
}

static const struct row {
    const char *key;
    bool shared; /* the same on every rank */
    gyre_status (*set)(gyre_comm *comm, const char *value, struct gy_attributes *attributes);
    void (*get)(const struct gy_attributes *attributes, char *text, size_t bytes);
} rows[] = {{"name", false, set_name, get_name},
            {"order", true, set_order, get_order},
            {"ends", true, set_ends, get_ends},
            {"algorithm", true, set_algorithm, get_algorithm},
            {"timeout", false, set_timeout, get_timeout}};

static const struct row *find(gyre_comm *comm, const char *key)
{
    for (size_t i = 0; i < GY_ARRAY_LENGTH(rows); i++)
        if (strcmp(rows[i].key, key) == 0)
            return &rows[i];
    gy_check_fail(
        comm, GYRE_INVALID_ARGUMENT,
        "a communicator has no attribute \"%.80s\"; there are name, order, ends, algorithm and timeout, and to "
        "be read meeting, joined and device",
        key);
    return NULL;
}

/* Every rank calls this, with a valid or an invalid value: the others wait for it. */
static gyre_status agree(gyre_comm *comm, const struct row *row, const char *value, gyre_status good)
{
    struct gyre_comm *none = NULL;
    struct gy_error mine = comm->error;
    uint32_t word = (uint32_t)XXH3_64bits_withSeed(value, strlen(value), (uint64_t)(row - rows) + 1) | AGREEMENT;
    gyre_status status = gy_comm_divide(comm, -1, 0, good == GYRE_SUCCESS ? word : AGREEMENT, &none);
    if (good != GYRE_SUCCESS && (status == GYRE_SUCCESS || status == GYRE_INVALID_ARGUMENT)) {
        comm->error = mine;
        return good;
    }
    if (status == GYRE_INVALID_ARGUMENT)
        return gy_check_fail(comm, status,
                             "%s is not set to \"%.80s\": other ranks gave another value, or one that is wrong",
                             row->key, value);
    return status;
}

static gyre_status set(gyre_comm *comm, const char *key, const char *value)
{
    gyre_status status = gy_check_comm(comm);
    if (status != GYRE_SUCCESS)
        return status;
    const struct row *row = find(comm, key);
    if (!row)
        return GYRE_INVALID_ARGUMENT;
    struct gy_attributes wanted = comm->attributes;
    status = row->set(comm, value, &wanted);
    if (row->shared && !gy_check_ungrouped(comm, "gyre_comm_set of an attribute that all ranks share"))
        return GYRE_INVALID_ARGUMENT;
    if (row->shared)
        status = agree(comm, row, value, status);
    if (status != GYRE_SUCCESS)
        return status;
    comm->attributes = wanted;
    memset(comm->eager, 0, sizeof(comm->eager)); /* choices of algorithms found so far are void */
    gy_call_cache_forget(comm);
    return GYRE_SUCCESS;
}

gyre_status gyre_comm_set(gyre_comm *comm, const char *key, const char *value)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    gy_progress_enter(comm->ctx);
    gyre_status status = key && value ? set(comm, key, value)
                                      : gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_comm_set: %s is NULL",
                                                      key ? "value" : "key");
    gy_progress_leave(comm->ctx);
    return status;
}

/* Writes the address at which joiners find this process, which listens from now on. */
static gyre_status get_meeting(gyre_comm *comm, char text_p[GY_JOIN_ADDRESS_TEXT])
{
    struct gy_world *world = comm->ctx->world;
    struct gy_error error = {.rank = -1};
    if (gy_check_owner(comm) != GYRE_SUCCESS) /* a child cannot answer joiners */
        return GYRE_FORKED;
    if (gy_join_address_open(world, &error) != GYRE_SUCCESS)
        return gy_check_fail(comm, error.status, "meeting: %.900s", error.text);
    gy_join_address_text(world->join_address, text_p);
    return GYRE_SUCCESS;
}

static void get_device(const gyre_comm *comm, char *text, size_t bytes)
{
    if (comm->attachment && comm->attachment->has_device)
        snprintf(text, bytes, "%d", comm->attachment->device.number);
    else
        snprintf(text, bytes, "%s", comm->attachment ? "none" : "");
}

static gyre_status get(gyre_comm *comm, const char *key, char *value_p, size_t value_bytes)
{
    char text[sizeof(struct gy_attributes)];
    gyre_status status = GYRE_SUCCESS;
    const struct row *row = NULL;
    if (strcmp(key, "meeting") == 0)
        status = get_meeting(comm, text);
    else if (strcmp(key, "joined") == 0)
        snprintf(text, sizeof(text), "%s", comm->ctx->config.join ? "yes" : "no");
    else if (strcmp(key, "device") == 0)
        get_device(comm, text, sizeof(text));
    else if ((row = find(comm, key)))
        row->get(&comm->attributes, text, sizeof(text));
    else
        status = GYRE_INVALID_ARGUMENT;
    if (status != GYRE_SUCCESS)
        return status;
    size_t bytes = strlen(text) + 1;
    if (bytes > value_bytes)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%s needs %zu bytes, the buffer has %zu", key, bytes,
                             value_bytes);
    memcpy(value_p, text, bytes);
    return GYRE_SUCCESS;
}

gyre_status gyre_comm_get(gyre_comm *comm, const char *key, char *value_p, size_t value_bytes)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    gy_progress_enter(comm->ctx);
    gyre_status status = key && value_p ? get(comm, key, value_p, value_bytes)
                                        : gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_comm_get: %s is NULL",
                                                        key ? "value_p" : "key");
    gy_progress_leave(comm->ctx);
    return status;
}
