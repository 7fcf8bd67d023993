/* Rails: the pairs of device and port that this process uses, selected from all ports of the machine.
 *
 *   every port ──▶ asked for? ──▶ opens, active? ──▶ a GID that routes? ──▶ nearest? ──▶ fastest? ──▶ rail 0, 1, … (by
 *   name)
 *                      └──────────────┴──────────────────┴─────────────────┴─────────────┴──▶ rejected, with reason
 *
 * Rail i of one rank is connected to rail i of the other. */
#ifndef GY_TRANSPORT_RDMA_DEVICES_H
#define GY_TRANSPORT_RDMA_DEVICES_H

#include "core/config.h"
#include "core/error.h"
#include "core/poller.h"
#include "transport/rdma/verbs_table.h"
#include "transport/transport.h"

#define GY_RDMA_RAILS 4     /* at most */
#define GY_RDMA_NAME 72     /* "device/port" */
#define GY_RDMA_WHY 200     /* a reason for having no rails */
#define GY_RDMA_WORDS 4096u /* bytes locked for a link besides its rings: a page */

struct gy_rdma_rail {
    void *owner;
    char name[GY_RDMA_NAME];
    char trouble[80]; /* the last asynchronous error event, for error messages; empty: none */
    const struct gy_verbs *verbs;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct gy_watch completions, events; /* the owner of a rail watches its descriptors */
    uint8_t port;
    uint32_t gid_index;
    union ibv_gid gid;
    uint16_t lid;
    enum ibv_mtu mtu;
    bool ethernet;
    uint8_t most_reads; /* concurrent reads requested and answered on a queue pair; at least 1 */
    uint32_t vendor;
    int most_requests, most_completions; /* per queue pair, per completion queue */
    uint32_t most_inline;                /* bytes of inline data in a request: known with the first queue pair */
};

/* Opens the rails, of a kind that `fabrics` names: the published kinds are kept even if devices have come or gone
 * since. Finding none is no error: *count_p is 0 and `why` says the reason. BAD_CONFIGURATION: GYRE_RDMA_DEVICES
 * names a missing device. NO_MEMORY, SYSTEM. */
gyre_status gy_rdma_rails_open(const struct gy_config *config, uint32_t fabrics,
                               struct gy_rdma_rail rails_p[GY_RDMA_RAILS], int *count_p, char *why, size_t why_bytes,
                               struct gy_error *error);
/* All objects on the rails must be freed. In a forked child (`forked`) only its descriptors are closed: the kernel's
 * objects belong to the parent. */
void gy_rdma_rails_close(struct gy_rdma_rail *rails, int count, bool forked);
/* The result of a survey, for the bootstrap. */
struct gy_rdma_fabrics {
    uint32_t bits;     /* of enum gy_fabric: kinds of rails that could be opened */
    int links;         /* links that the limit of locked memory allows; INT_MAX: any number, or not to be checked */
    size_t link_bytes; /* locked for each */
};
/* If there are no rails `why` says the reason. Optional RDMA (GYRE_TRANSPORT has tcp, too, and no device is named)
 * is omitted if the limit of locked memory is too low; mandatory RDMA then fails later. BAD_CONFIGURATION: as above. */
gyre_status gy_rdma_survey(const struct gy_config *config, struct gy_rdma_fabrics *fabrics_p, char *why,
                           size_t why_bytes, struct gy_error *error);
/* Prints one line per port: chosen, with details; or rejected, and why, settings included. Then errors of
 * GYRE_RDMA_DEVICES, and the number of ranks for which a limit of locked memory allows links. */
void gy_rdma_describe(const struct gy_config *config, gyre_print_func print, void *user);

#endif
