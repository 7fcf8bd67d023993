/* The verbs that gyre uses, as a table: filled from libibverbs when it can be opened at run time, or by a test with
 * a stand-in. libgyre.so names no symbol of libibverbs, so that one binary serves machines with and without it; the
 * inline functions of its header that call through the device's own table are wrapped here, the others are looked
 * up.
 *
 * Every function keeps libibverbs' contract: pointers are NULL and errno is set on failure; an int is 0 or an errno,
 * for polls and events as there stated. */
#ifndef GY_TRANSPORT_RDMA_VERBS_TABLE_H
#define GY_TRANSPORT_RDMA_VERBS_TABLE_H

#include <infiniband/verbs.h>

#include "core/base.h"

struct gy_verbs {
    enum ibv_fork_status (*is_fork_initialized)(void); /* NULL: the library lacks it */
    int (*fork_init)(void);
    struct ibv_device **(*get_device_list)(int *count_p);
    void (*free_device_list)(struct ibv_device **list);
    const char *(*get_device_name)(struct ibv_device *device);
    struct ibv_context *(*open_device)(struct ibv_device *device);
    int (*close_device)(struct ibv_context *context);
    int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr_p);
    int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr_p);
    int (*query_gid)(struct ibv_context *context, uint8_t port, uint32_t index, struct ibv_gid_entry *entry_p);
    int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *event_p);
    void (*ack_async_event)(struct ibv_async_event *event);
    const char *(*event_type_str)(enum ibv_event_type type);
    const char *(*wc_status_str)(enum ibv_wc_status status);
    struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
    int (*dealloc_pd)(struct ibv_pd *pd);
    struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *memory, size_t bytes, int access);
    /* The same with flags that a device may ignore, at the address where it lies. */
    struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *pd, void *memory, size_t bytes, uint64_t address, unsigned access);
    struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t address, int fd,
                                    int access); /* NULL: the library lacks it */
    int (*dereg_mr)(struct ibv_mr *mr);
    struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
    int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
    struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe, void *user, struct ibv_comp_channel *channel,
                                int vector);
    int (*destroy_cq)(struct ibv_cq *cq);
    int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq_p, void **user_p);
    void (*ack_cq_events)(struct ibv_cq *cq, unsigned count);
    struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
    int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
    int (*destroy_qp)(struct ibv_qp *qp);
    int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_p);
    int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_p);
    int (*poll_cq)(struct ibv_cq *cq, int most, struct ibv_wc *wc_p);
    int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
};

/* A process may fork at any time (system() does). Then a page that a device writes may become the child's, and the
 * parent would see a copy. Kernels from 5.12 on copy such a page for the child at once. With older ones the library
 * has to keep registered pages from children, before it registers the first. Returns false if it cannot; `why` says
 * what to do. Idempotent. */
bool gy_verbs_survive_fork(const struct gy_verbs *verbs, char *why, size_t why_bytes);
/* True if a forked child has no registered pages: it must neither touch nor free them. */
bool gy_verbs_keep_pages(const struct gy_verbs *verbs);

/* Returns the table, or NULL with the reason in `why` (which may have no bytes). Opens the library at the first
 * call, and never closes it. Thread-safe. */
const struct gy_verbs *gy_verbs_get(char *why, size_t why_bytes);
/* For tests: this table from now on; NULL: libibverbs again. Before anything is open. */
void gy_verbs_use(const struct gy_verbs *verbs);

#endif
