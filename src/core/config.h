/* One table of settings {name, default, unit, help, parser, offset}; from it come the environment variables, gyre-info
 * --config and the manual page. A struct gy_config is read once per context. Adding a setting: one row in config.c and
 * one field here. */
#ifndef GY_CORE_CONFIG_H
#define GY_CORE_CONFIG_H

#include "base.h"
#include "clock.h"
#include "cluster.h"
#include "error.h"

/* What protects frames and messages on sockets: net/record_protection.h. Values travel on the wire. */
enum gy_integrity { GY_INTEGRITY_OFF, GY_INTEGRITY_CRC, GY_INTEGRITY_MAC, GY_INTEGRITY_ENCRYPT, GY_INTEGRITIES };

struct gy_config {
    int log_level;            /* GYRE_LOG            error|warn|info|debug, warn */
    int64_t timeout_ns;       /* GYRE_TIMEOUT        arrival clock, s, 1800 */
    int64_t stall_timeout_ns; /* GYRE_STALL_TIMEOUT  stall clock, s, 30 */
    int64_t peer_timeout_ns;  /* GYRE_PEER_TIMEOUT   loss of a host, s, 10 */
    int64_t meet_timeout_ns;  /* GYRE_MEET_TIMEOUT   bootstrap, s, 300 */
    char transports[64];      /* GYRE_TRANSPORT      comma list */
    char algorithm[256];      /* GYRE_ALGORITHM      "all_reduce:ring,broadcast:binary_tree", "" */
    struct gy_tuning tuning;  /* GYRE_TUNING         a file of gyre-tune's, "" */
    bool canonical;           /* GYRE_ORDER          shape|canonical */
    bool uniform;             /* GYRE_ENDS           local|uniform */
    char hierarchy[128];      /* GYRE_HIERARCHY      host|numa|cache|off|sizes, "host" */
    char host_id[128];        /* GYRE_HOST_ID        "" = from the boot id */
    char interface[192];      /* GYRE_INTERFACE      "" = the one that routes to the rendezvous; names between commas */
    char launcher[16];        /* GYRE_LAUNCHER       "" = by the variables that are there */
    char address[256];        /* GYRE_ADDRESS        rendezvous, "" = MASTER_ADDR:MASTER_PORT */
    bool join;                /* GYRE_JOIN           0|1: into a world that is there */
    char secret_file[256];    /* GYRE_SECRET_FILE    "" */
    bool insecure;            /* GYRE_INSECURE       0|1 */
    int integrity;            /* GYRE_INTEGRITY      off|crc|mac|encrypt, off */
    size_t verify;            /* GYRE_VERIFY         results after which their hashes are compared, 0 = never */
    size_t shm_reserve; /* GYRE_SHM_RESERVE    address space per local rank for gyre_mem_alloc, bytes with k/M/G, 16G */
    size_t shm_slot;    /* GYRE_SHM_SLOT       slot of a region, and bytes per frame inside a host, 256k */
    bool shm_read;      /* GYRE_SHM_READ       0|1: ranks of a host read each other's memory through the kernel, 1 */
    size_t tcp_tile;    /* GYRE_TCP_TILE       bytes per frame of any transport between hosts, 256k */
    char tcp_congestion[16]; /* GYRE_TCP_CONGESTION  control of links between machines, "" = the system's */
    int64_t spin_ns;         /* GYRE_SPIN           us a wait spins (or yields) before it sleeps, -1 = by load */
    bool progress_thread;    /* GYRE_PROGRESS_THREAD  a thread drives while no caller does */
    char library[1024]; /* GYRE_LIBRARY        read by bindings, known here so that no tool takes it for a mistake */
    char cuda_kernels[1024]; /* GYRE_CUDA_KERNELS  file of GPU kernels or off */
    int cuda_blocks;         /* GYRE_CUDA_BLOCKS   of a kernel, 0 = as many as multiprocessors */
    char rdma_devices[128];  /* GYRE_RDMA_DEVICES   comma list of device or device:port, "" = by nearness */
    int rdma_gid_index;      /* GYRE_RDMA_GID_INDEX, -1 = the first of RoCE v2 over a routable address */
    int rdma_service_level;  /* GYRE_RDMA_SERVICE_LEVEL */
    int rdma_traffic_class;  /* GYRE_RDMA_TRAFFIC_CLASS */
    int rdma_queue_pairs;    /* GYRE_RDMA_QUEUE_PAIRS  per device and link */
    int rdma_ack_timeout;    /* GYRE_RDMA_ACK_TIMEOUT  4.096 us * 2^n, -1 and 0 = by GYRE_PEER_TIMEOUT */
    size_t rdma_ring;        /* GYRE_RDMA_RING  bytes that a peer may have on its way, a power of two */
    uint32_t fabrics;        /* no setting: what gy_transports_survey found, for bootstrap */
    int fabric_links;        /* no setting: the largest number of other ranks for which that holds */
    bool show_choice;        /* GYRE_SHOW_CHOICE    print the algorithm chosen per shape, once */
};

/* Reads the environment. A bad value is GYRE_BAD_CONFIGURATION naming variable, value and what is allowed. Unknown
 * GYRE_* names (except GYRE_TEST_*) are logged as warnings with the nearest name. */
gyre_status gy_config_read(struct gy_config *config_p, struct gy_error *error);
/* As above but unknown names are errors: for tools. */
gyre_status gy_config_read_strict(struct gy_config *config_p, struct gy_error *error);
void gy_config_describe(gyre_print_func print, void *user);

/* Number of interfaces in GYRE_INTERFACE, at least 1. Over TCP a link has that many connections
 * (transport/tcp/striping.c). */
#define GY_RAILS_MOST 4
int gy_config_rails(const struct gy_config *config);

/* The text that must be the same on every rank: lines of NAME=VALUE, canonical, of the build's rules and of the
 * settings. Returns the length. */
#define GY_CONFIG_SHARED 1024
size_t gy_config_shared(const struct gy_config *config, char text_p[GY_CONFIG_SHARED]);
/* The first setting in which two such texts differ; false: none. Pure; `theirs` may come from anywhere: what is taken
 * from it is bounded and printable. */
struct gy_config_difference {
    char name[40], mine[160], theirs[160];
};
bool gy_config_differs(const char *mine, const char *theirs, struct gy_config_difference *difference_p);

/* The longest time that may be set: a deadline, now + timeout, never overflows. */
#define GY_TIMEOUT_MOST (INT64_C(1000000000) * GY_SECOND)

/* The pure parsers, fuzzed: false when the text is not understood. */
bool gy_parse_bytes(const char *text, size_t *bytes_p);          /* "64k", "16G", "4096" */
bool gy_parse_seconds(const char *text, int64_t *nanoseconds_p); /* "30", "0.5", "10m" */
/* As gy_parse_seconds reads it, to the nanosecond: "1800", "0.5". Returns text_p. */
const char *gy_print_seconds(int64_t nanoseconds, char *text_p, size_t bytes);
/* strtod of the C locale: files and settings have points, whatever the program's own locale has. */
double gy_parse_double(const char *text, char **end_p);

#endif
