/* A stand-in for libibverbs and its devices: memory of this process is the network. For ranks that are threads.
 *
 * One thread is all devices: it takes requests from the queue pairs in random turns, in order on each of them, moves
 * the bytes and makes completions and events, some time after they were posted. It is strict where a device is strict:
 * keys, bounds, states, a receiver that is not ready (counted, and an error), a completion queue that runs over (ends
 * the test). Whatever is left over when all should be gone is counted. */
#ifndef GY_TESTS_TRANSPORT_RDMA_STAND_IN_H
#define GY_TESTS_TRANSPORT_RDMA_STAND_IN_H

#include "transport/rdma/verbs_table.h"

#define STAND_IN_DEVICES 6
#define STAND_IN_PORTS 2
#define STAND_IN_GIDS 4

struct stand_in_port {
    enum ibv_port_state state;
    bool infiniband;
    enum ibv_mtu mtu;
    uint8_t width, speed;
    struct ibv_gid_entry gid[STAND_IN_GIDS];
};

struct stand_in_device {
    const char *name;
    int ports;
    bool refuses; /* cannot be opened */
    struct stand_in_port port[STAND_IN_PORTS];
};

/* The machine. Set before anything is open. */
extern struct stand_in_device stand_in_devices[STAND_IN_DEVICES];
extern int stand_in_device_count;
extern uint32_t stand_in_most_inline, stand_in_vendor;
extern enum ibv_fork_status stand_in_fork_status;
extern bool stand_in_refuses_fork, stand_in_refuses_dmabuf;
extern _Atomic bool stand_in_mute; /* no event can be asked for */
/* Senders hear milliseconds late that what they sent has arrived, as where an acknowledgement is lost: the peer may
 * long have answered. */
extern _Atomic bool stand_in_slow;
/* `count` devices "soft0" …, one active RoCE port each, over 10.9.0.1, 10.9.1.1 …; each answers half as many reads at
 * once as the one before it. */
void stand_in_reset(int count);

extern const struct gy_verbs stand_in_verbs;

struct stand_in_counters {
    int contexts, pds, mrs, cqs, qps, channels;    /* alive */
    int unacknowledged;                            /* events that were read */
    uint64_t not_ready;                            /* receivers that were not */
    uint64_t sends, inlines, signalled;            /* requests of any kind */
    uint64_t reads, writes;                        /* of them, those that no receiver notices */
    uint64_t registrations, dmabufs;               /* ever made; of a GPU's memory */
    uint64_t early;                                /* written before what was to come before it */
    uint64_t from_gpu;                             /* pieces that a device took from there */
    uint64_t per_device[STAND_IN_DEVICES];         /* requests */
    int ack_timeout, service_level, traffic_class; /* that the last queue pair was given */
};
struct stand_in_counters stand_in_count(void);

/* From now on every request on a queue pair of `device` fails so; IBV_WC_SUCCESS: no more. */
void stand_in_fail_requests(int device, enum ibv_wc_status status);
/* From now on nothing that is posted on this queue pair goes anywhere, as if its peer were stuck. */
void stand_in_stall(struct ibv_qp *qp);
/* Returns when everything that was posted there has been carried out. */
void stand_in_settle(struct ibv_qp *qp);
/* The n-th registration from now fails with ENOMEM; 0: none. */
void stand_in_fail_registration(int nth);
/* Tells every open context of the device; a QP event tells about one of its queue pairs, others about this port. */
void stand_in_event(int device, enum ibv_event_type type, int port);
/* Tells the context of this queue pair, and no other one. */
void stand_in_event_of(struct ibv_qp *qp, enum ibv_event_type type);
/* Ends the test with status 1 if anything is left of what was made, or an event that was read unacknowledged. */
void stand_in_end(void);
/* What a registration allows: IBV_ACCESS_…. */
int stand_in_rights(const struct ibv_mr *mr);

#endif
