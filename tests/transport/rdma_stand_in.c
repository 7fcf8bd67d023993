#include "rdma_stand_in.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base.h"

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
    _Atomic int count; /* read without the lock by who polls in vain */
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
    bool remote;
    struct mr *next;
};

struct request {
    struct ibv_send_wr wr;
    struct ibv_sge sge[2];
    unsigned char *copy; /* of inline data */
    struct request *next;
};

struct qp {
    struct ibv_qp base;
    uint32_t peer;
    uint32_t most_sends, most_receives, sends, receives;
    struct request *first, *last;
    struct qp *next;
};

struct stand_in_device stand_in_devices[STAND_IN_DEVICES];
int stand_in_device_count;
uint32_t stand_in_most_inline = 220;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_once_t started = PTHREAD_ONCE_INIT;
static struct device devices[STAND_IN_DEVICES];
static struct context *contexts;
static struct mr *mrs;
static struct qp *qps;
static uint32_t next_number = 1;
static struct stand_in_counters counters;
static enum ibv_wc_status failing[STAND_IN_DEVICES];
static int fail_registration;

/* ---- the machine ---- */

void stand_in_reset(int count)
{
    memset(stand_in_devices, 0, sizeof(stand_in_devices));
    memset(failing, 0, sizeof(failing));
    stand_in_device_count = count;
    stand_in_most_inline = 220;
    for (int d = 0; d < count; d++) {
        static const char *const names[] = {"soft0", "soft1", "soft2", "soft3", "soft4", "soft5"};
        struct stand_in_port *port = &stand_in_devices[d].port[0];
        const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 9, [14] = (uint8_t)d, [15] = 1};
        stand_in_devices[d].name = names[d];
        stand_in_devices[d].ports = 1;
        *port = (struct stand_in_port){.state = IBV_PORT_ACTIVE, .mtu = IBV_MTU_1024, .width = 2, .speed = 16};
        port->gid[0].gid_type = IBV_GID_TYPE_ROCE_V2;
        memcpy(port->gid[0].gid.raw, gid, sizeof(gid));
    }
}

struct stand_in_counters stand_in_count(void)
{
    pthread_mutex_lock(&lock);
    struct stand_in_counters copy = counters;
    pthread_mutex_unlock(&lock);
    return copy;
}

void stand_in_fail_requests(int device, enum ibv_wc_status status)
{
    pthread_mutex_lock(&lock);
    failing[device] = status;
    pthread_mutex_unlock(&lock);
}

void stand_in_fail_registration(int nth)
{
    pthread_mutex_lock(&lock);
    fail_registration = nth;
    pthread_mutex_unlock(&lock);
}

static int device_of(struct ibv_context *context)
{
    return ((struct context *)context)->device;
}

static void signal_fd(int fd)
{
    MUST(write(fd, &(uint64_t){1}, 8) == 8);
}

void stand_in_event(int device, enum ibv_event_type type)
{
    pthread_mutex_lock(&lock);
    for (struct context *context = contexts; context; context = context->next) {
        struct ibv_async_event event = {.event_type = type, .element.port_num = 1};
        if (context->device != device)
            continue;
        if (type <= IBV_EVENT_PATH_MIG_ERR && type != IBV_EVENT_CQ_ERR) {
            struct qp *qp = qps;
            while (qp && qp->base.context != &context->base)
                qp = qp->next;
            if (!qp)
                continue;
            event.element.qp = &qp->base;
        }
        MUST(context->event_count < MOST_EVENTS);
        context->events[context->event_count++] = event;
        signal_fd(context->base.async_fd);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- completions ---- */

static void complete(struct ibv_cq *base, struct ibv_wc wc)
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
        signal_fd(channel->base.fd);
    }
}

static void free_request(struct request *request)
{
    free(request->copy);
    free(request);
}

/* Everything that is posted comes back flushed. */
static void break_qp(struct qp *qp)
{
    struct ibv_wc flushed = {.status = IBV_WC_WR_FLUSH_ERR, .qp_num = qp->base.qp_num};

    qp->base.state = IBV_QPS_ERR;
    while (qp->first) {
        struct request *request = qp->first;
        qp->first = request->next;
        flushed.wr_id = request->wr.wr_id;
        complete(qp->base.send_cq, flushed);
        free_request(request);
    }
    qp->last = NULL;
    if (qp->receives > 0)
        complete(qp->base.recv_cq, flushed);
    qp->receives = 0;
}

/* ---- the thread that is all devices ---- */

static struct qp *find_qp(uint32_t number)
{
    struct qp *qp = qps;
    while (qp && qp->base.qp_num != number)
        qp = qp->next;
    return qp;
}

static struct mr *find_mr(uint32_t key, const void *start, size_t bytes, const struct ibv_pd *pd)
{
    for (struct mr *mr = mrs; mr; mr = mr->next)
        if (mr->base.lkey == key && mr->base.pd == pd && (uintptr_t)start >= (uintptr_t)mr->base.addr &&
            (uintptr_t)start + bytes <= (uintptr_t)mr->base.addr + mr->base.length)
            return mr;
    return NULL;
}

static enum ibv_wc_status move(struct qp *from, struct qp *to, struct request *request)
{
    unsigned char *at = (unsigned char *)(uintptr_t)request->wr.wr.rdma.remote_addr;
    size_t bytes = 0;
    const unsigned char *copy = request->copy;

    for (int i = 0; i < request->wr.num_sge; i++)
        bytes += request->sge[i].length;
    if (request->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
        struct mr *mr = find_mr(request->wr.wr.rdma.rkey, at, bytes, to->base.pd);
        if (!mr || !mr->remote)
            return IBV_WC_REM_ACCESS_ERR;
    } else {
        MUST(bytes == 0);
    }
    for (int i = 0; i < request->wr.num_sge; i++) {
        const struct ibv_sge *sge = &request->sge[i];
        const void *source = copy ? (const void *)copy : (const void *)(uintptr_t)sge->addr;
        if (!copy && !find_mr(sge->lkey, source, sge->length, from->base.pd))
            return IBV_WC_LOC_PROT_ERR;
        memcpy(at, source, sge->length);
        at += sge->length;
        copy = copy ? copy + sge->length : NULL;
    }
    return IBV_WC_SUCCESS;
}

static void execute(struct qp *qp)
{
    struct request *request = qp->first;
    struct qp *peer = find_qp(qp->peer);
    enum ibv_wc_status status = failing[device_of(qp->base.context)];

    if (!peer || (peer->base.state != IBV_QPS_RTS && peer->base.state != IBV_QPS_RTR) || peer->peer != qp->base.qp_num)
        status = IBV_WC_RETRY_EXC_ERR;
    if (status == IBV_WC_SUCCESS && peer->receives == 0) {
        counters.not_ready++;
        status = IBV_WC_RNR_RETRY_EXC_ERR;
    }
    if (status == IBV_WC_SUCCESS)
        status = move(qp, peer, request);
    qp->first = request->next;
    if (!qp->first)
        qp->last = NULL;
    qp->sends--;
    struct ibv_wc wc = {.wr_id = request->wr.wr_id, .status = status, .qp_num = qp->base.qp_num};
    wc.opcode = request->wr.opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_SEND : IBV_WC_RDMA_WRITE;
    if (status != IBV_WC_SUCCESS || request->wr.send_flags & IBV_SEND_SIGNALED)
        complete(qp->base.send_cq, wc);
    if (status != IBV_WC_SUCCESS) {
        break_qp(qp);
    } else {
        peer->receives--;
        complete(peer->base.recv_cq,
                 (struct ibv_wc){.status = IBV_WC_SUCCESS,
                                 .qp_num = peer->base.qp_num,
                                 .opcode = request->wr.opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_RECV
                                                                                      : IBV_WC_RECV_RDMA_WITH_IMM,
                                 .wc_flags = IBV_WC_WITH_IMM,
                                 .imm_data = request->wr.imm_data});
    }
    free_request(request);
}

static void *run(void *nothing)
{
    unsigned dice = 1;
    (void)nothing;

    pthread_mutex_lock(&lock);
    for (;;) {
        struct qp *chosen = NULL;
        int ready = 0;
        for (struct qp *qp = qps; qp; qp = qp->next)
            if (qp->first && qp->base.state == IBV_QPS_RTS && (unsigned)rand_r(&dice) % (unsigned)++ready == 0)
                chosen = qp;
        if (!chosen) {
            pthread_cond_wait(&work, &lock);
            continue;
        }
        execute(chosen);
        if (rand_r(&dice) % 8 == 0) { /* let posters and pollers in between */
            pthread_mutex_unlock(&lock);
            pthread_mutex_lock(&lock);
        }
    }
    return NULL;
}

static void start(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, run, NULL) == 0);
    pthread_detach(thread);
}

/* ---- verbs: devices ---- */

static struct ibv_device **get_device_list(int *count_p)
{
    struct ibv_device **list = calloc(STAND_IN_DEVICES + 1, sizeof(struct ibv_device *));

    for (int d = 0; d < stand_in_device_count; d++) {
        devices[d].index = d;
        list[d] = &devices[d].base;
    }
    *count_p = stand_in_device_count;
    return list;
}

static void free_device_list(struct ibv_device **list)
{
    free(list);
}

static const char *get_device_name(struct ibv_device *device)
{
    return stand_in_devices[((struct device *)device)->index].name;
}

static struct ibv_context *open_device(struct ibv_device *device)
{
    int index = ((struct device *)device)->index;

    if (stand_in_devices[index].refuses) {
        errno = EACCES;
        return NULL;
    }
    pthread_once(&started, start);
    struct context *context = calloc(1, sizeof(*context));
    context->base.device = device;
    context->base.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    context->base.cmd_fd = -1;
    context->device = index;
    pthread_mutex_lock(&lock);
    context->next = contexts;
    contexts = context;
    counters.contexts++;
    pthread_mutex_unlock(&lock);
    return &context->base;
}

static int close_device(struct ibv_context *base)
{
    pthread_mutex_lock(&lock);
    for (struct context **at = &contexts; *at; at = &(*at)->next)
        if (&(*at)->base == base) {
            *at = (*at)->next;
            break;
        }
    counters.contexts--;
    pthread_mutex_unlock(&lock);
    close(base->async_fd);
    free(base);
    return 0;
}

static int query_device(struct ibv_context *context, struct ibv_device_attr *attr_p)
{
    memset(attr_p, 0, sizeof(*attr_p));
    attr_p->phys_port_cnt = (uint8_t)stand_in_devices[device_of(context)].ports;
    attr_p->max_qp_wr = 1024;
    attr_p->max_cqe = 65536;
    return 0;
}

static int query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr_p)
{
    const struct stand_in_port *port = &stand_in_devices[device_of(context)].port[number - 1];

    memset(attr_p, 0, sizeof(*attr_p));
    attr_p->state = port->state;
    attr_p->active_mtu = port->mtu;
    attr_p->gid_tbl_len = STAND_IN_GIDS;
    attr_p->lid = port->infiniband ? 7 : 0;
    attr_p->active_width = port->width;
    attr_p->active_speed = port->speed;
    attr_p->link_layer = port->infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
    return 0;
}

static int query_gid(struct ibv_context *context, uint8_t port, uint32_t index, struct ibv_gid_entry *entry_p)
{
    if (index >= STAND_IN_GIDS)
        return EINVAL;
    *entry_p = stand_in_devices[device_of(context)].port[port - 1].gid[index];
    entry_p->gid_index = index;
    entry_p->port_num = port;
    return 0;
}

static bool take_signal(int fd)
{
    uint64_t one;
    return read(fd, &one, 8) == 8;
}

static int get_async_event(struct ibv_context *base, struct ibv_async_event *event_p)
{
    struct context *context = (struct context *)base;

    if (!take_signal(base->async_fd))
        return -1;
    pthread_mutex_lock(&lock);
    *event_p = context->events[0];
    memmove(context->events, context->events + 1, sizeof(context->events[0]) * (size_t)--context->event_count);
    pthread_mutex_unlock(&lock);
    return 0;
}

static void ack_async_event(struct ibv_async_event *event)
{
    (void)event;
}

static const char *event_type_str(enum ibv_event_type type)
{
    return type == IBV_EVENT_PORT_ERR       ? "port error"
           : type == IBV_EVENT_DEVICE_FATAL ? "device fatal"
           : type == IBV_EVENT_QP_FATAL     ? "queue pair fatal"
                                            : "event";
}

static const char *wc_status_str(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "some error";
}

/* ---- verbs: memory ---- */

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = calloc(1, sizeof(*pd));

    pd->context = context;
    pthread_mutex_lock(&lock);
    counters.pds++;
    pthread_mutex_unlock(&lock);
    return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
    pthread_mutex_lock(&lock);
    for (struct mr *mr = mrs; mr; mr = mr->next)
        MUST(mr->base.pd != pd);
    for (struct qp *qp = qps; qp; qp = qp->next)
        MUST(qp->base.pd != pd);
    counters.pds--;
    pthread_mutex_unlock(&lock);
    free(pd);
    return 0;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *memory, size_t bytes, int access)
{
    pthread_mutex_lock(&lock);
    if (fail_registration > 0 && --fail_registration == 0) {
        pthread_mutex_unlock(&lock);
        errno = ENOMEM;
        return NULL;
    }
    struct mr *mr = calloc(1, sizeof(*mr));
    mr->base = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = memory, .length = bytes};
    mr->base.lkey = mr->base.rkey = next_number++;
    mr->remote = access & IBV_ACCESS_REMOTE_WRITE;
    mr->next = mrs;
    mrs = mr;
    counters.mrs++;
    counters.registrations++;
    pthread_mutex_unlock(&lock);
    return &mr->base;
}

static int dereg_mr(struct ibv_mr *base)
{
    pthread_mutex_lock(&lock);
    for (struct mr **at = &mrs; *at; at = &(*at)->next)
        if (&(*at)->base == base) {
            *at = (*at)->next;
            break;
        }
    counters.mrs--;
    pthread_mutex_unlock(&lock);
    free(base);
    return 0;
}

/* ---- verbs: completion queues ---- */

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *context)
{
    struct channel *channel = calloc(1, sizeof(*channel));

    channel->base.context = context;
    channel->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    pthread_mutex_lock(&lock);
    counters.channels++;
    pthread_mutex_unlock(&lock);
    return &channel->base;
}

static int destroy_comp_channel(struct ibv_comp_channel *channel)
{
    MUST(channel->refcnt == 0);
    pthread_mutex_lock(&lock);
    counters.channels--;
    pthread_mutex_unlock(&lock);
    close(channel->fd);
    free(channel);
    return 0;
}

static struct ibv_cq *create_cq(struct ibv_context *context, int cqe, void *user, struct ibv_comp_channel *channel,
                                int vector)
{
    struct cq *cq = calloc(1, sizeof(*cq));
    (void)vector;

    cq->base = (struct ibv_cq){.context = context, .channel = channel, .cq_context = user, .cqe = cqe};
    cq->wcs = calloc((size_t)cqe, sizeof(*cq->wcs));
    pthread_mutex_lock(&lock);
    channel->refcnt++;
    counters.cqs++;
    pthread_mutex_unlock(&lock);
    return &cq->base;
}

static int destroy_cq(struct ibv_cq *base)
{
    struct cq *cq = (struct cq *)base;
    struct channel *channel = (struct channel *)base->channel;

    pthread_mutex_lock(&lock);
    MUST(cq->unacknowledged == 0); /* a device would wait for ever */
    for (struct qp *qp = qps; qp; qp = qp->next)
        MUST(qp->base.send_cq != base && qp->base.recv_cq != base);
    for (int i = 0; i < channel->count;)
        if (channel->fired[i] == cq) {
            memmove(channel->fired + i, channel->fired + i + 1, sizeof(struct cq *) * (size_t)(--channel->count - i));
            MUST(take_signal(channel->base.fd));
        } else {
            i++;
        }
    channel->base.refcnt--;
    counters.cqs--;
    pthread_mutex_unlock(&lock);
    free(cq->wcs);
    free(cq);
    return 0;
}

static int get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **cq_p, void **user_p)
{
    struct channel *channel = (struct channel *)base;

    if (!take_signal(base->fd))
        return -1;
    pthread_mutex_lock(&lock);
    struct cq *cq = channel->fired[0];
    memmove(channel->fired, channel->fired + 1, sizeof(struct cq *) * (size_t)--channel->count);
    cq->unacknowledged++;
    pthread_mutex_unlock(&lock);
    *cq_p = &cq->base;
    *user_p = cq->base.cq_context;
    return 0;
}

static void ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    pthread_mutex_lock(&lock);
    ((struct cq *)cq)->unacknowledged -= (int)count;
    pthread_mutex_unlock(&lock);
}

static int poll_cq(struct ibv_cq *base, int most, struct ibv_wc *wc_p)
{
    struct cq *cq = (struct cq *)base;
    int taken = 0;

    if (cq->count == 0)
        return 0;
    pthread_mutex_lock(&lock);
    for (; taken < most && cq->count > 0; taken++, cq->count--) {
        wc_p[taken] = cq->wcs[cq->first];
        cq->first = (cq->first + 1) % base->cqe;
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    MUST(!solicited_only);
    pthread_mutex_lock(&lock);
    ((struct cq *)cq)->armed = true;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* ---- verbs: queue pairs ---- */

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    if (attr->cap.max_inline_data > stand_in_most_inline) {
        errno = EINVAL;
        return NULL;
    }
    struct qp *qp = calloc(1, sizeof(*qp));
    qp->base = (struct ibv_qp){
        .context = pd->context, .pd = pd, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .state = IBV_QPS_RESET};
    qp->most_sends = attr->cap.max_send_wr;
    qp->most_receives = attr->cap.max_recv_wr;
    pthread_mutex_lock(&lock);
    qp->base.qp_num = next_number++;
    qp->next = qps;
    qps = qp;
    counters.qps++;
    pthread_mutex_unlock(&lock);
    return &qp->base;
}

static int modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
    struct qp *qp = (struct qp *)base;
    static const int needed[] = {
        [IBV_QPS_INIT] = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
        [IBV_QPS_RTR] = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
        [IBV_QPS_RTS] = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC,
    };

    MUST(attr->qp_state <= IBV_QPS_RTS && mask == needed[attr->qp_state] && attr->qp_state == qp->base.state + 1);
    pthread_mutex_lock(&lock);
    qp->base.state = attr->qp_state;
    if (attr->qp_state == IBV_QPS_RTR)
        qp->peer = attr->dest_qp_num;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int destroy_qp(struct ibv_qp *base)
{
    pthread_mutex_lock(&lock);
    struct qp *qp = (struct qp *)base;
    for (struct qp **at = &qps; *at; at = &(*at)->next)
        if (*at == qp) {
            *at = qp->next;
            break;
        }
    while (qp->first) {
        struct request *request = qp->first;
        qp->first = request->next;
        free_request(request);
    }
    counters.qps--;
    pthread_mutex_unlock(&lock);
    free(qp);
    return 0;
}

static void copy_inline(struct request *request)
{
    size_t bytes = 0;

    for (int i = 0; i < request->wr.num_sge; i++)
        bytes += request->sge[i].length;
    MUST(bytes <= stand_in_most_inline);
    request->copy = malloc(bytes ? bytes : 1);
    bytes = 0;
    for (int i = 0; i < request->wr.num_sge; i++) {
        memcpy(request->copy + bytes, (void *)(uintptr_t)request->sge[i].addr, request->sge[i].length);
        bytes += request->sge[i].length;
    }
    counters.inlines++;
}

static int post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad_p)
{
    struct qp *qp = (struct qp *)base;

    MUST(!wr->next && wr->num_sge <= 2);
    pthread_mutex_lock(&lock);
    *bad_p = wr;
    MUST(base->state == IBV_QPS_RTS || base->state == IBV_QPS_ERR);
    MUST(qp->sends < qp->most_sends);
    counters.sends++;
    counters.per_device[device_of(base->context)]++;
    counters.signalled += (wr->send_flags & IBV_SEND_SIGNALED) != 0;
    if (base->state == IBV_QPS_ERR) {
        complete(base->send_cq,
                 (struct ibv_wc){.status = IBV_WC_WR_FLUSH_ERR, .qp_num = base->qp_num, .wr_id = wr->wr_id});
        pthread_mutex_unlock(&lock);
        return 0;
    }
    struct request *request = calloc(1, sizeof(*request));
    request->wr = *wr;
    for (int i = 0; i < wr->num_sge; i++)
        request->sge[i] = wr->sg_list[i];
    if (wr->send_flags & IBV_SEND_INLINE)
        copy_inline(request);
    if (qp->last)
        qp->last->next = request;
    else
        qp->first = request;
    qp->last = request;
    qp->sends++;
    pthread_cond_signal(&work);
    pthread_mutex_unlock(&lock);
    return 0;
}

static int post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_p)
{
    struct qp *qp = (struct qp *)base;

    pthread_mutex_lock(&lock);
    for (; wr; wr = wr->next) {
        *bad_p = wr;
        MUST(wr->num_sge == 0 && qp->receives < qp->most_receives);
        qp->receives++;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

const struct gy_verbs stand_in_verbs = {
    .get_device_list = get_device_list,
    .free_device_list = free_device_list,
    .get_device_name = get_device_name,
    .open_device = open_device,
    .close_device = close_device,
    .query_device = query_device,
    .query_port = query_port,
    .query_gid = query_gid,
    .get_async_event = get_async_event,
    .ack_async_event = ack_async_event,
    .event_type_str = event_type_str,
    .wc_status_str = wc_status_str,
    .alloc_pd = alloc_pd,
    .dealloc_pd = dealloc_pd,
    .reg_mr = reg_mr,
    .dereg_mr = dereg_mr,
    .create_comp_channel = create_comp_channel,
    .destroy_comp_channel = destroy_comp_channel,
    .create_cq = create_cq,
    .destroy_cq = destroy_cq,
    .get_cq_event = get_cq_event,
    .ack_cq_events = ack_cq_events,
    .poll_cq = poll_cq,
    .req_notify_cq = req_notify_cq,
    .create_qp = create_qp,
    .modify_qp = modify_qp,
    .destroy_qp = destroy_qp,
    .post_send = post_send,
    .post_recv = post_recv,
};
