/* A described cluster, as gyre-tune measures it, GYRE_TUNING names it and gyre-sim imagines it: hosts around a switch
 * that is never the bottleneck, each joined to it by one link that carries `bandwidth` each way. All figures are of one
 * kind: what point-to-point transfers and one reduction show.
 *
 *   time of a message of n bytes between hosts, alone:
 *       send_overhead + n/copy + max(0, n − burst)/bandwidth + latency + receive_overhead + n/copy
 *
 * Overheads and copies are work of a rank's one thread: its messages queue for it. Ranks of one host reach each other
 * through memory: `local_latency` and copies at `local_copy`, no link. */
#ifndef GY_CORE_CLUSTER_H
#define GY_CORE_CLUSTER_H

#include "base.h"

struct gy_cluster {
    double hosts, ranks_per_host;           /* imagined ones: of a communicator, its own count */
    double bandwidth;                       /* bytes per second, one way, of payload */
    double latency;                         /* seconds, on top of the overheads */
    double burst;                           /* bytes that leave a host without being slowed down, after a pause */
    double send_overhead, receive_overhead; /* seconds per message */
    double copy;                            /* bytes per second between a rank's memory and the network's */
    double reduce;                          /* bytes per second of a sum's result */
    double local_latency;
    double local_copy; /* bytes per second between a rank's memory and that of its host; 0: as copy */
};

/* Reads lines `name = value`, # comments; a value may end with k, M, G, m, u or n. False: *why_p
 * says what is wrong, until this thread's next call. */
bool gy_cluster_read(const char *path, struct gy_cluster *cluster, const char **why_p);
/* One such setting, "name=value". */
bool gy_cluster_set(struct gy_cluster *cluster, const char *setting, const char **why_p);
/* The default without a description: Ethernet of 10 Gbit/s through the kernel's TCP. */
struct gy_cluster gy_cluster_default(void);

/* The file that GYRE_TUNING names. */
struct gy_tuning {
    char path[256]; /* "": none */
    struct gy_cluster cluster;
    uint64_t digest; /* of the cluster: what all ranks must have the same of, wherever the file is */
};

#endif
