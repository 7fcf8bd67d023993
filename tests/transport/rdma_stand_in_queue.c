/* The stand-in's completion queues and the channels that tell of them. See rdma_stand_in_private.h. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rdma_stand_in_private.h"

_Atomic bool stand_in_mute;

void stand_in_complete(struct ibv_cq *base, struct ibv_wc wc)
{
    struct cq *cq = (struct cq *)base;

    MUST(cq->count < base->cqe); /* the queue ran over: a device would break it */
    cq->wcs[(cq->first + cq->count) % base->cqe] = wc;
    cq->count++;
    if (cq->armed) {
        struct channel *channel = (struct channel *)base->channel;
        cq->armed = false;
        MUST(channel->count < MOST_QPS);
        channel->fired[channel->count++] = cq;
        stand_in_signal(channel->base.fd);
    }
}

struct ibv_comp_channel *stand_in_create_comp_channel(struct ibv_context *context)
{
    struct channel *channel = calloc(1, sizeof(*channel));

    channel->base.context = context;
    channel->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    pthread_mutex_lock(&stand_in_lock);
    stand_in_counters.channels++;
    pthread_mutex_unlock(&stand_in_lock);
    return &channel->base;
}

int stand_in_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    MUST(channel->refcnt == 0);
    pthread_mutex_lock(&stand_in_lock);
    stand_in_counters.channels--;
    pthread_mutex_unlock(&stand_in_lock);
    close(channel->fd);
    free(channel);
    return 0;
}

struct ibv_cq *stand_in_create_cq(struct ibv_context *context, int cqe, void *user, struct ibv_comp_channel *channel,
                                  int vector)
{
    struct cq *cq = calloc(1, sizeof(*cq));
    (void)vector;

    cq->base = (struct ibv_cq){.context = context, .channel = channel, .cq_context = user, .cqe = cqe};
    cq->wcs = calloc((size_t)cqe, sizeof(*cq->wcs));
    pthread_mutex_lock(&stand_in_lock);
    channel->refcnt++;
    stand_in_counters.cqs++;
    pthread_mutex_unlock(&stand_in_lock);
    return &cq->base;
}

int stand_in_destroy_cq(struct ibv_cq *base)
{
    struct cq *cq = (struct cq *)base;
    struct channel *channel = (struct channel *)base->channel;

    pthread_mutex_lock(&stand_in_lock);
    MUST(cq->unacknowledged == 0); /* a device would wait for ever */
    for (struct qp *qp = stand_in_qps; qp; qp = qp->next)
        MUST(qp->base.send_cq != base && qp->base.recv_cq != base);
    for (int i = 0; i < channel->count;)
        if (channel->fired[i] == cq) {
            memmove(channel->fired + i, channel->fired + i + 1, sizeof(struct cq *) * (size_t)(--channel->count - i));
            MUST(stand_in_take_signal(channel->base.fd));
        } else {
            i++;
        }
    channel->base.refcnt--;
    stand_in_counters.cqs--;
    pthread_mutex_unlock(&stand_in_lock);
    free(cq->wcs);
    free(cq);
    return 0;
}

int stand_in_get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **cq_p, void **user_p)
{
    struct channel *channel = (struct channel *)base;

    if (!stand_in_take_signal(base->fd))
        return -1;
    pthread_mutex_lock(&stand_in_lock);
    struct cq *cq = channel->fired[0];
    memmove(channel->fired, channel->fired + 1, sizeof(struct cq *) * (size_t)--channel->count);
    cq->unacknowledged++;
    pthread_mutex_unlock(&stand_in_lock);
    *cq_p = &cq->base;
    *user_p = cq->base.cq_context;
    return 0;
}

void stand_in_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    pthread_mutex_lock(&stand_in_lock);
    ((struct cq *)cq)->unacknowledged -= (int)count;
    pthread_mutex_unlock(&stand_in_lock);
}

int stand_in_poll_cq(struct ibv_cq *base, int most, struct ibv_wc *wc_p)
{
    struct cq *cq = (struct cq *)base;
    int taken = 0;

    if (cq->count == 0)
        return 0;
    pthread_mutex_lock(&stand_in_lock);
    for (; taken < most && cq->count > 0; taken++, cq->count--) {
        wc_p[taken] = cq->wcs[cq->first];
        cq->first = (cq->first + 1) % base->cqe;
    }
    pthread_mutex_unlock(&stand_in_lock);
    return taken;
}

int stand_in_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    MUST(!solicited_only);
    if (stand_in_mute)
        return EIO;
    pthread_mutex_lock(&stand_in_lock);
    ((struct cq *)cq)->armed = true;
    pthread_mutex_unlock(&stand_in_lock);
    return 0;
}
