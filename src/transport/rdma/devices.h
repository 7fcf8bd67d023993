/* Rails: the pairs of device and port that this process sends through, chosen among all that the machine has.
 *
 *   every port ──▶ asked for? ──▶ opens, active? ──▶ a GID that routes? ──▶ nearest? ──▶ fastest? ──▶ rail 0, 1, … (by name)
 *                      └──────────────┴──────────────────┴─────────────────┴─────────────┴──▶ passed over, and why
 *
 * Two ranks join rail i of the one to rail i of the other. */
#ifndef GY_TRANSPORT_RDMA_DEVICES_H
#define GY_TRANSPORT_RDMA_DEVICES_H

#include "core/config.h"
#include "core/error.h"
#include "core/poller.h"
#include "transport/rdma/verbs_table.h"
#include "transport/transport.h"

#define GY_RDMA_RAILS 4     /* at most */
#define GY_RDMA_NAME 72     /* "device/port" */
#define GY_RDMA_WHY 200     /* a reason for having none */
#define GY_RDMA_WORDS 4096u /* bytes locked for a link besides its rings: a page */

struct gy_rdma_rail {
    void *owner;
    char name[GY_RDMA_NAME];
    char trouble[80]; /* the last asynchronous event that was bad news, for sentences; empty: none */
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
    uint8_t most_reads; /* that it asks for, and answers, at once on a queue pair; at least 1 */
    uint32_t vendor;
    int most_requests, most_completions; /* per queue pair, per completion queue */
    uint32_t most_inline;                /* bytes that a request can carry itself: known with the first queue pair */
};

/* Opens the rails, of a kind that `reach` names: what was said in the meeting is kept, whatever has come or gone since. None
 * is no error: *count_p is 0 and `why` says the reason. BAD_CONFIGURATION: GYRE_RDMA_DEVICES names what is not there.
 * NO_MEMORY, SYSTEM. */
gyre_status gy_rdma_rails_open(const struct gy_config *config, uint32_t reach,
                               struct gy_rdma_rail rails_p[GY_RDMA_RAILS], int *count_p, char *why, size_t why_bytes,
                               struct gy_error *error);
/* Everything on them must be gone. In a forked child (`forked`) only its copies of the descriptors are closed: what the
 * kernel keeps for them is the parent's. */
void gy_rdma_rails_close(struct gy_rdma_rail *rails, int count, bool forked);
/* What a survey finds, for the meeting. */
struct gy_rdma_reach {
    uint32_t bits; /* of enum gy_reach: could rails be opened? */
    int links;     /* for so many the limit of locked memory is enough; INT_MAX: for any number, or not to be asked */
    size_t link_bytes; /* locked for each */
};
/* Where there are no rails `why` says the reason. RDMA that can be done without (GYRE_TRANSPORT has tcp, too, and no device is
 * named) is left out where the limit of locked memory is too low, and is an error later where it cannot. BAD_CONFIGURATION:
 * as above. */
gyre_status gy_rdma_survey(const struct gy_config *config, struct gy_rdma_reach *reach_p, char *why, size_t why_bytes,
                           struct gy_error *error);
/* One line per port: chosen, with what; or passed over, and why, by a setting too. Then what is wrong with GYRE_RDMA_DEVICES, and to
 * how many ranks a limit of locked memory allows links. */
void gy_rdma_describe(const struct gy_config *config, gyre_print_func print, void *user);

#endif
