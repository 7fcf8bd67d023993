/* The choice of rails: see devices.h. A survey examines every port of every device and keeps the reason for each
 * rejection, so gyre-info shows the same survey that a world makes. */
#include "transport/rdma/devices.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/mem.h"
#include "core/topology.h"
#include "transport/rdma/registration_cache.h"

#define MOST_PORTS 64 /* examined */
#define MOST_READS 16 /* requested or answered concurrently, per queue pair */

static const char not_integral[] = "GYRE_INTEGRITY asks for what a device that writes into memory does not do";

/* One port of the machine. */
struct candidate {
    struct ibv_device *device;
    char name[GY_RDMA_NAME];
    char why[128]; /* not empty: rejected */
    uint8_t port;
    struct ibv_port_attr attr;
    struct ibv_device_attr limits;
    struct ibv_gid_entry gid;
    uint64_t rate; /* lanes times speed, in the standard's units */
    int distance;
};

struct survey {
    const struct gy_verbs *verbs;
    struct ibv_device **devices;
    struct candidate *candidates;
    int count, chosen;
    struct gy_rdma_fabrics fabrics;
};

/* ---- one port ---- */

/* True if the list names this device, or this port of it ("mlx5_0" or "mlx5_0:1"). */
static bool listed(const char *list, const char *device, int port)
{
    char with_port[GY_RDMA_NAME];

    snprintf(with_port, sizeof(with_port), "%s:%d", device, port);
    while (*list) {
        size_t length = strcspn(list, ",");

        if ((length == strlen(device) && !strncmp(list, device, length)) ||
            (length == strlen(with_port) && !strncmp(list, with_port, length)))
            return true;
        list += length + (list[length] == ',');
    }
    return false;
}

static bool is_zero(const union ibv_gid *gid)
{
    return gid->global.interface_id == 0 && gid->global.subnet_prefix == 0;
}

static bool is_mapped(const union ibv_gid *gid) /* ::ffff:a.b.c.d */
{
    static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

    return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

static bool is_link_local(const union ibv_gid *gid)
{
    return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/* Higher is better, 0: unusable. Only RoCE v2 is routed, and only from routable addresses. */
static int worth(const struct ibv_gid_entry *gid)
{
    if (gid->gid_type != IBV_GID_TYPE_ROCE_V2 || is_zero(&gid->gid) || is_link_local(&gid->gid))
        return 0;
    return is_mapped(&gid->gid) ? 2 : 1;
}

static void choose_gid(const struct gy_verbs *verbs, struct ibv_context *context, const struct gy_config *config,
                       struct candidate *it)
{
    bool ethernet = it->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    int best = 0;

    if (config->rdma_gid_index >= 0 || !ethernet) {
        uint32_t index = config->rdma_gid_index >= 0 ? (uint32_t)config->rdma_gid_index : 0;

        if (verbs->query_gid(context, it->port, index, &it->gid) != 0 || is_zero(&it->gid.gid))
            snprintf(it->why, sizeof(it->why), "it has no GID %u", index);
        return;
    }
    for (uint32_t index = 0; index < (uint32_t)it->attr.gid_tbl_len; index++) {
        struct ibv_gid_entry gid;

        if (verbs->query_gid(context, it->port, index, &gid) == 0 && worth(&gid) > best) {
            best = worth(&gid);
            it->gid = gid;
        }
    }
    if (best == 0)
        snprintf(it->why, sizeof(it->why),
                 "it has no GID of RoCE v2 over an address that routes (GYRE_RDMA_GID_INDEX insists)");
}

static const char *state_name(enum ibv_port_state state)
{
    static const char *const names[] = {"unknown", "down", "initialising", "armed", "active", "deferred"};

    return (unsigned)state < GY_ARRAY_LENGTH(names) ? names[state] : "unknown";
}

static void read_port(const struct gy_verbs *verbs, struct ibv_context *context, const struct gy_config *config,
                      struct candidate *it)
{
    static const uint8_t lanes[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};

    if (verbs->query_port(context, it->port, &it->attr) != 0) {
        snprintf(it->why, sizeof(it->why), "its state cannot be read: %s", strerror(errno));
        return;
    }
    it->rate = (uint64_t)it->attr.active_speed *
               (it->attr.active_width < sizeof(lanes) ? lanes[it->attr.active_width] : 1);
    if (it->attr.state != IBV_PORT_ACTIVE)
        snprintf(it->why, sizeof(it->why), "the port is %s", state_name(it->attr.state));
    else
        choose_gid(verbs, context, config, it);
}

static void read_device(struct survey *survey, struct ibv_device *device, const struct gy_config *config)
{
    const struct gy_verbs *verbs = survey->verbs;
    const char *name = verbs->get_device_name(device);
    struct ibv_context *context = verbs->open_device(device);
    struct ibv_device_attr limits = {.phys_port_cnt = 1};
    int errnum = context ? verbs->query_device(context, &limits) : errno;

    for (int port = 1; port <= limits.phys_port_cnt && survey->count < MOST_PORTS; port++) {
        struct candidate *it = &survey->candidates[survey->count++];

        *it = (struct candidate){.device = device, .port = (uint8_t)port, .limits = limits};
        snprintf(it->name, sizeof(it->name), "%.60s port %d", name, port);
        if (config->rdma_devices[0] && !listed(config->rdma_devices, name, port))
            snprintf(it->why, sizeof(it->why), "GYRE_RDMA_DEVICES does not name it");
        else if (errnum)
            snprintf(it->why, sizeof(it->why), "it cannot be opened: %s", strerror(errnum));
        else
            read_port(verbs, context, config, it);
    }
    if (context)
        verbs->close_device(context);
}

/* ---- all of them ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct candidate *)a)->name, ((const struct candidate *)b)->name);
}

/* Among the remaining ports: one kind of link, the nearest, the fastest, not too many. A list of devices overrides
 * locality. */
static void compare(struct survey *survey, const struct gy_config *config)
{
    const struct candidate *best = NULL;
    const char *names[MOST_PORTS];
    int distances[MOST_PORTS], left = 0;

    for (int i = 0; i < survey->count; i++)
        if (!survey->candidates[i].why[0])
            names[left++] = survey->verbs->get_device_name(survey->candidates[i].device);
    if (left > 1 && !config->rdma_devices[0])
        gy_topology_device_distances(names, left, distances);
    else
        memset(distances, 0, sizeof(distances));
    left = 0;
    for (int i = 0; i < survey->count; i++) {
        struct candidate *it = &survey->candidates[i];

        if (it->why[0])
            continue;
        it->distance = distances[left++];
        if (!best || it->distance < best->distance || (it->distance == best->distance && it->rate > best->rate))
            best = it;
    }
    for (int i = 0; i < survey->count; i++) {
        struct candidate *it = &survey->candidates[i];

        if (it->why[0])
            continue;
        if (it->attr.link_layer != best->attr.link_layer)
            snprintf(it->why, sizeof(it->why), "its link is of another kind than that of %s", best->name);
        else if (it->distance > best->distance)
            snprintf(it->why, sizeof(it->why), "%s is nearer to this rank", best->name);
        else if (it->rate < best->rate)
            snprintf(it->why, sizeof(it->why), "%s is faster", best->name);
        else if (survey->chosen == GY_RDMA_RAILS)
            snprintf(it->why, sizeof(it->why), "%d are enough", GY_RDMA_RAILS);
        else
            survey->chosen++;
    }
}

/* Returns the name of a setting that excludes all ports; it replaces reasons that matter only without it. NULL: none
 * does. */
static const char *ruled_out(const struct gy_config *config)
{
    if (!gy_transport_wanted(config->transports, "rdma"))
        return "GYRE_TRANSPORT does not name rdma";
    return config->integrity >= GY_INTEGRITY_MAC ? not_integral : NULL;
}

static void pass_over_all(struct survey *survey, const char *why)
{
    for (int i = 0; i < survey->count; i++)
        if (!survey->candidates[i].why[0])
            snprintf(survey->candidates[i].why, sizeof(survey->candidates[i].why), "%s", why);
}

static uint32_t kind_of(const struct candidate *it)
{
    return it->attr.link_layer == IBV_LINK_LAYER_ETHERNET ? GY_FABRIC_ROCE : GY_FABRIC_INFINIBAND;
}

static void keep_to_kind(struct survey *survey, uint32_t fabrics)
{
    for (int i = 0; i < survey->count; i++)
        if (!survey->candidates[i].why[0] && !(kind_of(&survey->candidates[i]) & fabrics))
            snprintf(survey->candidates[i].why, sizeof(survey->candidates[i].why),
                     "its link is of another kind than was said in the meeting");
}

/* Rejects the chosen ports if the limit of locked memory does not allow one link. Whether it allows more links is
 * checked by the world, which knows their number (rdma.c). */
static void measure(struct survey *survey, const struct gy_config *config)
{
    bool asked = config->rdma_devices[0] || !gy_transport_wanted(config->transports, "tcp");
    size_t lockable = gy_rdma_lockable();
    size_t link_bytes = (2 * config->rdma_ring + GY_RDMA_WORDS) *
                        (size_t)survey->chosen; /* staging included, for each device */

    survey->fabrics = (struct gy_rdma_fabrics){.links = INT_MAX, .link_bytes = link_bytes};
    if (asked || link_bytes == 0 || lockable == SIZE_MAX)
        return;
    survey->fabrics.links = (int)gy_min_size(lockable / link_bytes, INT_MAX);
    for (int i = 0; i < survey->count && survey->fabrics.links == 0; i++)
        if (!survey->candidates[i].why[0])
            snprintf(survey->candidates[i].why, sizeof(survey->candidates[i].why),
                     "the limit of locked memory is %zu KiB, and %zu KiB are needed per link (ulimit -l)",
                     lockable / 1024, (link_bytes + 1023) / 1024);
}

static void conclude(struct survey *survey)
{
    for (int i = 0; i < survey->count; i++)
        if (!survey->candidates[i].why[0])
            survey->fabrics.bits |= kind_of(&survey->candidates[i]);
}

/* NULL in survey_p->candidates: `why` says the reason. `fabrics`: permitted kinds; 0: any, as nothing has been
 * published. `out`: the reason to reject all ports, or NULL. */
static void survey_make(const struct gy_config *config, uint32_t fabrics, const char *out, struct survey *survey_p,
                        char *why, size_t why_bytes)
{
    int devices = 0;

    *survey_p = (struct survey){.verbs = gy_verbs_get(why, why_bytes), .fabrics.links = INT_MAX};
    if (!survey_p->verbs || !gy_verbs_survive_fork(survey_p->verbs, why, why_bytes))
        return;
    survey_p->devices = survey_p->verbs->get_device_list(&devices);
    if (!survey_p->devices || devices == 0) {
        snprintf(why, why_bytes, "libibverbs knows no device here%s%s", survey_p->devices ? "" : ": ",
                 survey_p->devices ? " (is the provider's library installed?)" : strerror(errno));
        return;
    }
    survey_p->candidates = gy_alloc_zero(MOST_PORTS, sizeof(*survey_p->candidates));
    if (!survey_p->candidates) {
        snprintf(why, why_bytes, "no memory for a list of devices");
        return;
    }
    for (int i = 0; i < devices; i++)
        read_device(survey_p, survey_p->devices[i], config);
    qsort(survey_p->candidates, (size_t)survey_p->count, sizeof(*survey_p->candidates), by_name);
    if (out)
        pass_over_all(survey_p, out);
    if (fabrics)
        keep_to_kind(survey_p, fabrics);
    compare(survey_p, config);
    if (!fabrics)
        measure(survey_p, config);
    conclude(survey_p);
}

static void survey_end(struct survey *survey)
{
    if (survey->devices)
        survey->verbs->free_device_list(survey->devices);
    gy_free(survey->candidates);
}

/* "soft0 port 1, soft1 port 1"; truncated to the buffer. */
static void name_all(const struct survey *survey, char *text_p, size_t bytes)
{
    size_t used = 0;

    snprintf(text_p, bytes, "none");
    for (int i = 0; i < survey->count && used < bytes; i++)
        used += (size_t)snprintf(text_p + used, bytes - used, "%s%s", i > 0 ? ", " : "", survey->candidates[i].name);
}

/* Fails if a list names a device that was not found. `why`: the reason if there are no candidates at all. */
static gyre_status check_list(const struct survey *survey, const struct gy_config *config, const char *why,
                              struct gy_error *error)
{
    for (const char *at = config->rdma_devices; *at;) {
        int length = (int)strcspn(at, ",");
        char item[GY_RDMA_NAME], all[320];
        bool found = false;

        snprintf(item, sizeof(item), "%.*s", length, at);
        for (int i = 0; i < survey->count && !found; i++)
            found = listed(item, survey->verbs->get_device_name(survey->candidates[i].device),
                           survey->candidates[i].port);
        name_all(survey, all, sizeof(all));
        if (!found)
            return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                                "GYRE_RDMA_DEVICES names %s, which this machine has not; it has: %s%s%s%s", item, all,
                                survey->candidates ? "" : " (", survey->candidates ? "" : why,
                                survey->candidates ? "" : ")");
        at += length + (at[length] == ',');
    }
    return GYRE_SUCCESS;
}

/* ---- rails ---- */

static uint8_t reads_of(const struct ibv_device_attr *limits)
{
    int reads = limits->max_qp_rd_atom < limits->max_qp_init_rd_atom ? limits->max_qp_rd_atom
                                                                     : limits->max_qp_init_rd_atom;

    return (uint8_t)(reads < 1 ? 1 : reads > MOST_READS ? MOST_READS : reads);
}

static gyre_status rail_open(const struct survey *survey, const struct candidate *it, struct gy_rdma_rail *rail_p,
                             struct gy_error *error)
{
    const struct gy_verbs *verbs = survey->verbs;
    struct gy_rdma_rail rail = {
        .verbs = verbs,
        .completions.fd = -1,
        .events.fd = -1,
        .port = it->port,
        .gid_index = it->gid.gid_index,
        .gid = it->gid.gid,
        .lid = it->attr.lid,
        .mtu = it->attr.active_mtu,
        .ethernet = it->attr.link_layer == IBV_LINK_LAYER_ETHERNET,
        .most_reads = reads_of(&it->limits),
        .vendor = it->limits.vendor_id,
        .most_requests = it->limits.max_qp_wr,
        .most_completions = it->limits.max_cqe,
    };
    snprintf(rail.name, sizeof(rail.name), "%s", it->name);
    const char *what = "open";
    rail.context = verbs->open_device(it->device);
    if (!rail.context)
        goto fail;
    what = "make a protection domain on";
    rail.pd = verbs->alloc_pd(rail.context);
    if (!rail.pd)
        goto close_device;
    what = "make a completion channel on";
    rail.channel = verbs->create_comp_channel(rail.context);
    if (!rail.channel)
        goto dealloc_pd;
    if (fcntl(rail.context->async_fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(rail.channel->fd, F_SETFL, O_NONBLOCK) < 0)
        goto destroy_channel;
    *rail_p = rail;
    return GYRE_SUCCESS;

destroy_channel:
    verbs->destroy_comp_channel(rail.channel);
dealloc_pd:
    verbs->dealloc_pd(rail.pd);
close_device:
    verbs->close_device(rail.context);
fail:
    return gy_error_system(error, errno, "cannot %s RDMA device %s", what, it->name);
}

/* Returns the first reason among rejected ports, if any was examined. */
static void first_reason(const struct survey *survey, char *why, size_t why_bytes)
{
    for (int i = 0; i < survey->count; i++)
        if (survey->candidates[i].why[0]) {
            snprintf(why, why_bytes, "%.71s: %.120s", survey->candidates[i].name, survey->candidates[i].why);
            return;
        }
}

gyre_status gy_rdma_rails_open(const struct gy_config *config, uint32_t fabrics,
                               struct gy_rdma_rail rails_p[GY_RDMA_RAILS], int *count_p, char *why, size_t why_bytes,
                               struct gy_error *error)
{
    struct survey survey;
    int count = 0;

    survey_make(config, fabrics, NULL, &survey, why, why_bytes);
    gyre_status status = check_list(&survey, config, why, error);
    for (int i = 0; i < survey.count && status == GYRE_SUCCESS; i++)
        if (!survey.candidates[i].why[0]) {
            status = rail_open(&survey, &survey.candidates[i], &rails_p[count], error);
            count += status == GYRE_SUCCESS;
        }
    first_reason(&survey, why, why_bytes);
    survey_end(&survey);
    if (status != GYRE_SUCCESS)
        gy_rdma_rails_close(rails_p, count, false);
    else
        *count_p = count;
    return status;
}

void gy_rdma_rails_close(struct gy_rdma_rail *rails, int count, bool forked)
{
    for (int i = 0; i < count; i++) {
        if (forked) {
            close(rails[i].channel->fd);
            close(rails[i].context->async_fd);
            close(rails[i].context->cmd_fd);
            continue;
        }
        rails[i].verbs->destroy_comp_channel(rails[i].channel);
        rails[i].verbs->dealloc_pd(rails[i].pd);
        rails[i].verbs->close_device(rails[i].context);
    }
}

gyre_status gy_rdma_survey(const struct gy_config *config, struct gy_rdma_fabrics *fabrics_p, char *why,
                           size_t why_bytes, struct gy_error *error)
{
    struct survey survey;

    if (config->integrity >= GY_INTEGRITY_MAC) {
        snprintf(why, why_bytes, "%s", not_integral);
        *fabrics_p = (struct gy_rdma_fabrics){.links = INT_MAX};
        return GYRE_SUCCESS;
    }
    survey_make(config, 0, NULL, &survey, why, why_bytes);
    gyre_status status = check_list(&survey, config, why, error);
    if (survey.fabrics.bits == 0)
        first_reason(&survey, why, why_bytes);
    if (status == GYRE_SUCCESS)
        *fabrics_p = survey.fabrics;
    survey_end(&survey);
    return status;
}

static void describe_port(const struct gy_config *config, const struct candidate *it, char *line, size_t bytes)
{
    char gid[INET6_ADDRSTRLEN] = "?";
    const char *kind = it->attr.link_layer != IBV_LINK_LAYER_ETHERNET ? "InfiniBand"
                       : it->gid.gid_type == IBV_GID_TYPE_ROCE_V2     ? "RoCE v2"
                                                                      : "RoCE v1";

    inet_ntop(AF_INET6, it->gid.gid.raw, gid, sizeof(gid));
    if (it->why[0])
        snprintf(line, bytes, "  %s: passed over: %s", it->name, it->why);
    else
        snprintf(line, bytes, "  %s: chosen: %s, GID %u %s, MTU %d, service level %d, traffic class %d", it->name, kind,
                 it->gid.gid_index, gid, 128 << it->attr.active_mtu, config->rdma_service_level,
                 config->rdma_traffic_class);
}

void gy_rdma_describe(const struct gy_config *config, gyre_print_func print, void *user)
{
    struct survey survey;
    struct gy_error error = {.quiet = true};
    const char *out = ruled_out(config);
    char line[sizeof(error.text) + 64], why[160] = "";

    survey_make(config, 0, out, &survey, why, sizeof(why));
    bool misnamed = !out && check_list(&survey, config, why, &error) != GYRE_SUCCESS;
    if (!survey.candidates) {
        snprintf(line, sizeof(line), "  rdma is not used: %s", why);
        print(user, line);
    }
    for (int i = 0; survey.candidates && i < survey.count; i++) {
        describe_port(config, &survey.candidates[i], line, sizeof(line));
        print(user, line);
    }
    if (misnamed) {
        snprintf(line, sizeof(line), "  rdma: no world can be made: %s", error.text);
        print(user, line);
    }
    if (survey.fabrics.bits && survey.fabrics.links != INT_MAX) {
        snprintf(line, sizeof(line), "  rdma: the limit of locked memory, %zu KiB, allows links to %d other ranks",
                 gy_rdma_lockable() / 1024, survey.fabrics.links);
        print(user, line);
    }
    survey_end(&survey);
}
