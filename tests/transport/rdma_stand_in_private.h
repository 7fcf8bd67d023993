/* Inside the stand-in: rdma_stand_in.c (the machine: devices, ports, events), rdma_stand_in_memory.c
 * (registrations), rdma_stand_in_queue.c (completions), rdma_stand_in_pair.c (queue pairs, and the thread that is
 * all devices). No other file includes this. Everything shared is guarded by stand_in_lock. */
#ifndef GY_TESTS_TRANSPORT_RDMA_STAND_IN_PRIVATE_H
#define GY_TESTS_TRANSPORT_RDMA_STAND_IN_PRIVATE_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base.h"
#include "rdma_stand_in.h"

#define MOST_QPS 4096
#define MOST_EVENTS 64

#define MUST(condition)                                                                   \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: the stand-in: %s\n", __FILE__, __LINE__, #condition); \
            _Exit(1);                                                                     \
        }                                                                                 \
    } while (0)

struct device {
    struct ibv_device base; /* first: what the list points to */
    int index;
};

struct context {
    struct ibv_context base;
    int device;
    struct ibv_async_event events[MOST_EVENTS];
    int event_count;
    struct context *next;
};

struct cq {
    struct ibv_cq base;
    struct ibv_wc *wcs;
    _Atomic int count; /* read without the lock by a poll that finds nothing */
    int first, unacknowledged;
    bool armed;
};

struct channel {
    struct ibv_comp_channel base;
    struct cq *fired[MOST_QPS];
    int count;
};

struct mr {
    struct ibv_mr base;
    int access;
    bool dmabuf, relaxed;
    struct mr *next;
};

struct request {
    struct ibv_send_wr wr;
    struct ibv_sge sge[2];
    unsigned char *copy; /* of inline data */
    bool begun;          /* a part of it is written */
    struct request *next;
};

struct late { /* a completion that its sender has not been told of */
    struct ibv_wc wc;
    int64_t due;
    struct late *next;
};

struct qp {
    struct ibv_qp base;
    uint32_t peer;
    unsigned access;
    struct ibv_qp_attr init, receive, send; /* what it was given on its way through the states */
    int most_reads;                         /* that it may ask for at once */
    bool stalled;
    uint32_t most_sends, most_receives, sends, receives;
    struct request *first, *last;
    struct late *late; /* in order */
    struct qp *next;
};

extern pthread_mutex_t stand_in_lock;
extern struct stand_in_counters stand_in_counters;
extern enum ibv_wc_status stand_in_failing[STAND_IN_DEVICES];
extern struct qp *stand_in_qps;
extern struct mr *stand_in_mrs;

/* rdma_stand_in.c */
int stand_in_device_of(struct ibv_context *context);
uint32_t stand_in_number(void); /* never given before */
const struct stand_in_port *stand_in_port_of(struct ibv_context *context, uint8_t number);
/* Semaphores that are descriptors. False: nothing was there. */
void stand_in_signal(int fd);
bool stand_in_take_signal(int fd);

/* rdma_stand_in_memory.c, under the lock: does a registration with these rights cover the bytes? May what is written
 * there come in any order? */
bool stand_in_covers(uint32_t key, const void *start, size_t bytes, const struct ibv_pd *pd, int access);
bool stand_in_is_relaxed(uint32_t key);

/* rdma_stand_in_queue.c, under the lock */
void stand_in_complete(struct ibv_cq *cq, struct ibv_wc wc);

/* rdma_stand_in_pair.c: the devices run from now on. */
void stand_in_start(void);

/* ---- the verbs, as libibverbs has them ---- */

struct ibv_pd *stand_in_alloc_pd(struct ibv_context *context);
int stand_in_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *stand_in_reg_mr(struct ibv_pd *pd, void *memory, size_t bytes, int access);
struct ibv_mr *stand_in_reg_mr_iova2(struct ibv_pd *pd, void *memory, size_t bytes, uint64_t address, unsigned access);
struct ibv_mr *stand_in_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t address, int fd,
                                      int access);
int stand_in_dereg_mr(struct ibv_mr *mr);
struct ibv_comp_channel *stand_in_create_comp_channel(struct ibv_context *context);
int stand_in_destroy_comp_channel(struct ibv_comp_channel *channel);
struct ibv_cq *stand_in_create_cq(struct ibv_context *context, int cqe, void *user, struct ibv_comp_channel *channel,
                                  int vector);
int stand_in_destroy_cq(struct ibv_cq *cq);
int stand_in_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq_p, void **user_p);
void stand_in_ack_cq_events(struct ibv_cq *cq, unsigned count);
int stand_in_poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc_p);
int stand_in_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_qp *stand_in_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int stand_in_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int stand_in_destroy_qp(struct ibv_qp *qp);
int stand_in_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_p);
int stand_in_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_p);

#endif
