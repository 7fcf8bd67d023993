/* libibverbs, opened at run time: see verbs_table.h. Once per process, at the first call; not on a machine without
 * devices. */
#include "transport/rdma/verbs_table.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libibverbs.so.1"
#define CLASS "/sys/class/infiniband"

static _Atomic(const struct gy_verbs *) stand_in;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct gy_verbs library;
static bool loaded;
static char reason[160];

/* What the header makes inline. The fourth is a macro there, which adds the size of the caller's struct. */
static int (*library_query_gid)(struct ibv_context *, uint32_t, uint32_t, struct ibv_gid_entry *, uint32_t, size_t);

static int query_gid(struct ibv_context *context, uint8_t port, uint32_t index, struct ibv_gid_entry *entry_p)
{
    return library_query_gid(context, port, index, entry_p, 0, sizeof(*entry_p));
}

/* The library fills the fields of its first version; the rest is left unset. */
static int (*library_query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr_p)
{
    memset(attr_p, 0, sizeof(*attr_p));
    return library_query_port(context, port, attr_p);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_p)
{
    return qp->context->ops.post_send(qp, wr, bad_p);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_p)
{
    return qp->context->ops.post_recv(qp, wr, bad_p);
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc_p)
{
    return cq->context->ops.poll_cq(cq, most, wc_p);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    return cq->context->ops.req_notify_cq(cq, solicited_only);
}

/* dlsym returns an object pointer for a function; POSIX permits this use of its bytes. */
static bool find(void *handle, const char *name, void *function_p)
{
    void *symbol = dlsym(handle, name);

    if (!symbol) {
        snprintf(reason, sizeof(reason), "%s has no %s: it is too old", LIBRARY, name);
        return false;
    }
    memcpy(function_p, &symbol, sizeof(symbol));
    return true;
}

/* Functions that older libraries lack. */
static void find_optional(void *handle)
{
    void *symbol = dlsym(handle, "ibv_is_fork_initialized");

    memcpy(&library.is_fork_initialized, &symbol, sizeof(symbol));
    symbol = dlsym(handle, "ibv_reg_dmabuf_mr");
    memcpy(&library.reg_dmabuf_mr, &symbol, sizeof(symbol));
    symbol = dlsym(handle, "ibv_reg_mr_iova2");
    memcpy(&library.reg_mr_iova2, &symbol, sizeof(symbol));
}

static bool find_all(void *handle)
{
    const struct {
        const char *name;
        void *function_p;
    } wanted[] = {
        {"ibv_fork_init", &library.fork_init},
        {"ibv_get_device_list", &library.get_device_list},
        {"ibv_free_device_list", &library.free_device_list},
        {"ibv_get_device_name", &library.get_device_name},
        {"ibv_open_device", &library.open_device},
        {"ibv_close_device", &library.close_device},
        {"ibv_query_device", &library.query_device},
        {"ibv_query_port", &library_query_port},
        {"_ibv_query_gid_ex", &library_query_gid},
        {"ibv_get_async_event", &library.get_async_event},
        {"ibv_ack_async_event", &library.ack_async_event},
        {"ibv_event_type_str", &library.event_type_str},
        {"ibv_wc_status_str", &library.wc_status_str},
        {"ibv_alloc_pd", &library.alloc_pd},
        {"ibv_dealloc_pd", &library.dealloc_pd},
        {"ibv_reg_mr", &library.reg_mr},
        {"ibv_dereg_mr", &library.dereg_mr},
        {"ibv_create_comp_channel", &library.create_comp_channel},
        {"ibv_destroy_comp_channel", &library.destroy_comp_channel},
        {"ibv_create_cq", &library.create_cq},
        {"ibv_destroy_cq", &library.destroy_cq},
        {"ibv_get_cq_event", &library.get_cq_event},
        {"ibv_ack_cq_events", &library.ack_cq_events},
        {"ibv_create_qp", &library.create_qp},
        {"ibv_modify_qp", &library.modify_qp},
        {"ibv_destroy_qp", &library.destroy_qp},
    };

    for (size_t i = 0; i < GY_ARRAY_LENGTH(wanted); i++)
        if (!find(handle, wanted[i].name, wanted[i].function_p))
            return false;
    find_optional(handle);
    library.query_port = query_port;
    library.query_gid = query_gid;
    library.post_send = post_send;
    library.post_recv = post_recv;
    library.poll_cq = poll_cq;
    library.req_notify_cq = req_notify_cq;
    return true;
}

static void load(void)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!handle)
        snprintf(reason, sizeof(reason), "%s", dlerror());
    else if (find_all(handle))
        loaded = true;
    else
        dlclose(handle);
}

/* Devices may come and go: checked every time. */
static bool kernel_has_devices(void)
{
    DIR *folder = opendir(CLASS);
    bool found = false;

    for (struct dirent *entry; folder && !found && (entry = readdir(folder));)
        found = entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return found;
}

static enum ibv_fork_status fork_status(const struct gy_verbs *verbs)
{
    return verbs->is_fork_initialized ? verbs->is_fork_initialized() : IBV_FORK_DISABLED;
}

bool gy_verbs_survive_fork(const struct gy_verbs *verbs, char *why, size_t why_bytes)
{
    if (fork_status(verbs) != IBV_FORK_DISABLED)
        return true;
    int errnum = verbs->fork_init();
    if (errnum)
        snprintf(why, why_bytes,
                 "this kernel shares registered pages with forked children, and libibverbs cannot prevent it any more "
                 "(%s): set RDMAV_FORK_SAFE=1",
                 strerror(errnum > 0 ? errnum : errno));
    return errnum == 0;
}

bool gy_verbs_keep_pages(const struct gy_verbs *verbs)
{
    enum ibv_fork_status status = fork_status(verbs);

    return status == IBV_FORK_ENABLED || (status == IBV_FORK_DISABLED && !verbs->is_fork_initialized);
}

const struct gy_verbs *gy_verbs_get(char *why, size_t why_bytes)
{
    const struct gy_verbs *other = atomic_load_explicit(&stand_in, memory_order_acquire);

    if (other)
        return other;
    if (!kernel_has_devices()) {
        snprintf(why, why_bytes, "this kernel knows no RDMA device (%s is empty)", CLASS);
        return NULL;
    }
    pthread_once(&once, load);
    if (loaded)
        return &library;
    snprintf(why, why_bytes, "%s", reason);
    return NULL;
}

void gy_verbs_use(const struct gy_verbs *verbs)
{
    atomic_store_explicit(&stand_in, verbs, memory_order_release);
}
