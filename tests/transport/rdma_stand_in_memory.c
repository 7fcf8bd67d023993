/* The stand-in's registrations and their access rights. See rdma_stand_in_private.h. */
#include <errno.h>
#include <fcntl.h>

#include "rdma_stand_in_private.h"

struct mr *stand_in_mrs;
bool stand_in_refuses_dmabuf;
static int fail_registration;

void stand_in_fail_registration(int nth)
{
    pthread_mutex_lock(&stand_in_lock);
    fail_registration = nth;
    pthread_mutex_unlock(&stand_in_lock);
}

bool stand_in_covers(uint32_t key, const void *start, size_t bytes, const struct ibv_pd *pd, int access)
{
    for (struct mr *mr = stand_in_mrs; mr; mr = mr->next)
        if (mr->base.lkey == key && mr->base.pd == pd && (mr->access & access) == access &&
            (uintptr_t)start >= (uintptr_t)mr->base.addr &&
            (uintptr_t)start + bytes <= (uintptr_t)mr->base.addr + mr->base.length) {
            stand_in_counters.from_gpu += mr->dmabuf;
            return true;
        }
    return false;
}

struct ibv_pd *stand_in_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = calloc(1, sizeof(*pd));

    pd->context = context;
    pthread_mutex_lock(&stand_in_lock);
    stand_in_counters.pds++;
    pthread_mutex_unlock(&stand_in_lock);
    return pd;
}

int stand_in_dealloc_pd(struct ibv_pd *pd)
{
    pthread_mutex_lock(&stand_in_lock);
    for (struct mr *mr = stand_in_mrs; mr; mr = mr->next)
        MUST(mr->base.pd != pd);
    for (struct qp *qp = stand_in_qps; qp; qp = qp->next)
        MUST(qp->base.pd != pd);
    stand_in_counters.pds--;
    pthread_mutex_unlock(&stand_in_lock);
    free(pd);
    return 0;
}

static struct ibv_mr *register_memory(struct ibv_pd *pd, void *memory, size_t bytes, int access)
{
    pthread_mutex_lock(&stand_in_lock);
    if (fail_registration > 0 && --fail_registration == 0) {
        pthread_mutex_unlock(&stand_in_lock);
        errno = ENOMEM;
        return NULL;
    }
    struct mr *mr = calloc(1, sizeof(*mr));
    mr->base = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = memory, .length = bytes};
    mr->base.lkey = mr->base.rkey = stand_in_number();
    mr->access = access;
    mr->next = stand_in_mrs;
    stand_in_mrs = mr;
    stand_in_counters.mrs++;
    stand_in_counters.registrations++;
    pthread_mutex_unlock(&stand_in_lock);
    return &mr->base;
}

struct ibv_mr *stand_in_reg_mr(struct ibv_pd *pd, void *memory, size_t bytes, int access)
{
    return register_memory(pd, memory, bytes, access);
}

/* Flags that a device may ignore lie above all others. */
struct ibv_mr *stand_in_reg_mr_iova2(struct ibv_pd *pd, void *memory, size_t bytes, uint64_t address, unsigned access)
{
    MUST(address == (uintptr_t)memory);
    /* A read behind what was put tells that it is there: that needs the order. */
    MUST(!(access & IBV_ACCESS_RELAXED_ORDERING) || !(access & IBV_ACCESS_REMOTE_READ));
    struct ibv_mr *mr = register_memory(pd, memory, bytes, (int)(access & (IBV_ACCESS_RELAXED_ORDERING - 1)));
    if (mr)
        ((struct mr *)mr)->relaxed = (access & IBV_ACCESS_RELAXED_ORDERING) != 0;
    return mr;
}

bool stand_in_is_relaxed(uint32_t key)
{
    for (struct mr *mr = stand_in_mrs; mr; mr = mr->next)
        if (mr->base.lkey == key)
            return mr->relaxed;
    return false;
}

/* Device memory is this process's, at the address that it is said to have; its descriptor must be one. */
struct ibv_mr *stand_in_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t address, int fd,
                                      int access)
{
    (void)offset;
    if (stand_in_refuses_dmabuf || fcntl(fd, F_GETFD) < 0) {
        errno = stand_in_refuses_dmabuf ? EOPNOTSUPP : EBADF;
        return NULL;
    }
    pthread_mutex_lock(&stand_in_lock);
    stand_in_counters.dmabufs++;
    pthread_mutex_unlock(&stand_in_lock);
    struct ibv_mr *mr = register_memory(pd, (void *)(uintptr_t)address, bytes, access);
    if (mr)
        ((struct mr *)mr)->dmabuf = true;
    return mr;
}

int stand_in_rights(const struct ibv_mr *mr)
{
    return ((const struct mr *)mr)->access;
}

int stand_in_dereg_mr(struct ibv_mr *base)
{
    pthread_mutex_lock(&stand_in_lock);
    for (struct mr **at = &stand_in_mrs; *at; at = &(*at)->next)
        if (&(*at)->base == base) {
            *at = (*at)->next;
            break;
        }
    stand_in_counters.mrs--;
    pthread_mutex_unlock(&stand_in_lock);
    free(base);
    return 0;
}
