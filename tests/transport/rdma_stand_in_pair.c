/* The stand-in's queue pairs, and the thread that takes from them in random turns what was posted. See
 * rdma_stand_in_private.h. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "rdma_stand_in_private.h"

static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_once_t started = PTHREAD_ONCE_INIT;
struct qp *stand_in_qps;

_Atomic bool stand_in_slow;

#define SLOW_NS 3000000

static void free_request(struct request *request)
{
    free(request->copy);
    free(request);
}

/* ---- what its sender hears late ---- */

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void complete_late(struct qp *qp, struct ibv_wc wc)
{
    struct late *late = calloc(1, sizeof(*late)), **at = &qp->late;
    *late = (struct late){.wc = wc, .due = now() + SLOW_NS};
    while (*at)
        at = &(*at)->next;
    *at = late;
}

/* Those that are due, or all. True: some are left. */
static bool complete_those(struct qp *qp, bool all)
{
    while (qp->late && (all || qp->late->due <= now())) {
        struct late *late = qp->late;
        qp->late = late->next;
        stand_in_complete(qp->base.send_cq, late->wc);
        free(late);
    }
    return qp->late != NULL;
}

/* Everything that is posted comes back flushed. */
static void break_qp(struct qp *qp)
{
    struct ibv_wc flushed = {.status = IBV_WC_WR_FLUSH_ERR, .qp_num = qp->base.qp_num};

    qp->base.state = IBV_QPS_ERR;
    complete_those(qp, true);
    while (qp->first) {
        struct request *request = qp->first;
        qp->first = request->next;
        flushed.wr_id = request->wr.wr_id;
        stand_in_complete(qp->base.send_cq, flushed);
        free_request(request);
    }
    qp->last = NULL;
    if (qp->receives > 0)
        stand_in_complete(qp->base.recv_cq, flushed);
    qp->receives = 0;
}

/* ---- the thread that is all devices ---- */

static struct qp *find_qp(uint32_t number)
{
    struct qp *qp = stand_in_qps;
    while (qp && qp->base.qp_num != number)
        qp = qp->next;
    return qp;
}

/* The bytes of the request's pieces, here; the far end is `far`. */
static enum ibv_wc_status move(const struct qp *from, const struct qp *to, const struct request *request)
{
    bool reads = request->wr.opcode == IBV_WR_RDMA_READ;
    unsigned char *far = (unsigned char *)(uintptr_t)request->wr.wr.rdma.remote_addr;
    const unsigned char *copy = request->copy;
    int right = reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
    size_t bytes = 0;

    for (int i = 0; i < request->wr.num_sge; i++)
        bytes += request->sge[i].length;
    if (request->wr.opcode == IBV_WR_SEND_WITH_IMM)
        MUST(bytes == 0);
    else if (!(to->access & (unsigned)right) ||
             !stand_in_covers(request->wr.wr.rdma.rkey, far, bytes, to->base.pd, right))
        return IBV_WC_REM_ACCESS_ERR;
    for (int i = 0; i < request->wr.num_sge; i++) {
        const struct ibv_sge *sge = &request->sge[i];
        unsigned char *near = (unsigned char *)(uintptr_t)sge->addr;

        if (!copy && !stand_in_covers(sge->lkey, near, sge->length, from->base.pd, reads ? IBV_ACCESS_LOCAL_WRITE : 0))
            return IBV_WC_LOC_PROT_ERR;
        memcpy(reads ? near : far, reads ? far : copy ? copy : near, sge->length);
        far += sge->length;
        copy = copy ? copy + sge->length : NULL;
    }
    return IBV_WC_SUCCESS;
}

/* Packets of `from` reach `to`, which accepts them. Devices do not check that: each end has to have been told right. */
static void must_agree(const struct qp *from, const struct qp *to)
{
    const struct stand_in_port *port = stand_in_port_of(to->base.context, to->init.port_num),
                               *own = stand_in_port_of(from->base.context, from->init.port_num);
    const struct ibv_ah_attr *way = &from->receive.ah_attr, *back = &to->receive.ah_attr;

    MUST(way->port_num == from->init.port_num && way->grh.sgid_index < STAND_IN_GIDS && way->grh.hop_limit > 1);
    MUST(own->infiniband || memcmp(&way->grh.dgid, &port->gid[back->grh.sgid_index].gid, sizeof(way->grh.dgid)) == 0);
    MUST(from->receive.path_mtu <= own->mtu && from->receive.path_mtu == to->receive.path_mtu);
    MUST(from->send.sq_psn == to->receive.rq_psn);
    MUST(from->send.max_rd_atomic <= to->receive.max_dest_rd_atomic);
}

/* With an immediate it takes a receive request of the peer's. */
static bool is_message(const struct request *request)
{
    return request->wr.opcode == IBV_WR_SEND_WITH_IMM || request->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static enum ibv_wc_status attempt(struct qp *qp, struct qp *peer, const struct request *request)
{
    enum ibv_wc_status status = stand_in_failing[stand_in_device_of(qp->base.context)];

    if (status != IBV_WC_SUCCESS)
        return status;
    if (!peer || (peer->base.state != IBV_QPS_RTS && peer->base.state != IBV_QPS_RTR) || peer->peer != qp->base.qp_num)
        return IBV_WC_RETRY_EXC_ERR;
    must_agree(qp, peer);
    if (is_message(request) && peer->receives == 0) {
        stand_in_counters.not_ready++;
        return IBV_WC_RNR_RETRY_EXC_ERR;
    }
    return move(qp, peer, request);
}

static void deliver(struct qp *peer, const struct request *request)
{
    struct ibv_wc wc = {.qp_num = peer->base.qp_num, .wc_flags = IBV_WC_WITH_IMM, .imm_data = request->wr.imm_data};

    wc.opcode = request->wr.opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
    peer->receives--;
    stand_in_complete(peer->base.recv_cq, wc);
}

/* Where the order does not matter, the next message is in memory before this one, without a completion of either. */
static void write_early(const struct qp *qp, const struct qp *peer, const struct request *next)
{
    uint64_t from_gpu = stand_in_counters.from_gpu;

    if (next && peer && next->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM && stand_in_is_relaxed(next->wr.wr.rdma.rkey) &&
        move(qp, peer, next) == IBV_WC_SUCCESS)
        stand_in_counters.early++;
    stand_in_counters.from_gpu = from_gpu; /* it is counted when it is told */
}

/* Where the order does not matter, one part of a write without a completion is in memory before the other: the one
 * from `split` on, or the one before it. True: that is all for now. */
static bool write_in_parts(const struct qp *qp, const struct qp *peer, struct request *request, unsigned dice)
{
    struct request part = *request;
    uint32_t length = request->sge[0].length, split = length > 1 ? dice / 2 % length : 0;

    if (request->begun || split == 0 || !peer || request->wr.opcode != IBV_WR_RDMA_WRITE || request->wr.num_sge != 1 ||
        !stand_in_is_relaxed(request->wr.wr.rdma.rkey))
        return false;
    part.sge[0].length = dice % 2 ? split : length - split;
    if (dice % 2 == 0) {
        part.sge[0].addr += split;
        part.wr.wr.rdma.remote_addr += split;
        part.copy = part.copy ? part.copy + split : NULL;
    }
    request->begun = move(qp, peer, &part) == IBV_WC_SUCCESS;
    return request->begun;
}

static void execute(struct qp *qp, unsigned dice)
{
    struct request *request = qp->first;
    struct qp *peer = find_qp(qp->peer);

    if (write_in_parts(qp, peer, request, dice))
        return;
    write_early(qp, peer, request->next);
    enum ibv_wc_status status = attempt(qp, peer, request);

    qp->first = request->next;
    if (!qp->first)
        qp->last = NULL;
    qp->sends--;
    struct ibv_wc wc = {.wr_id = request->wr.wr_id, .status = status, .qp_num = qp->base.qp_num};
    wc.opcode = request->wr.opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_SEND
                : request->wr.opcode == IBV_WR_RDMA_READ   ? IBV_WC_RDMA_READ
                                                           : IBV_WC_RDMA_WRITE;
    bool answered = wc.opcode == IBV_WC_RDMA_READ || status != IBV_WC_SUCCESS; /* and with it all that went before */
    if (answered)
        complete_those(qp, true);
    if (status != IBV_WC_SUCCESS || request->wr.send_flags & IBV_SEND_SIGNALED) {
        if (stand_in_slow && !answered)
            complete_late(qp, wc);
        else
            stand_in_complete(qp->base.send_cq, wc);
    }
    if (status != IBV_WC_SUCCESS)
        break_qp(qp);
    else if (is_message(request))
        deliver(peer, request);
    free_request(request);
}

static void *run(void *nothing)
{
    unsigned dice = 1;
    (void)nothing;

    pthread_mutex_lock(&stand_in_lock);
    for (;;) {
        struct qp *chosen = NULL;
        int ready = 0;
        bool waiting = false;
        for (struct qp *qp = stand_in_qps; qp; qp = qp->next)
            waiting |= complete_those(qp, !stand_in_slow);
        for (struct qp *qp = stand_in_qps; qp; qp = qp->next)
            if (qp->first && !qp->stalled && qp->base.state == IBV_QPS_RTS &&
                (unsigned)rand_r(&dice) % (unsigned)++ready == 0)
                chosen = qp;
        if (!chosen && !waiting)
            pthread_cond_wait(&work, &stand_in_lock);
        if (!chosen && waiting) {
            pthread_mutex_unlock(&stand_in_lock);
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
            pthread_mutex_lock(&stand_in_lock);
        }
        if (!chosen)
            continue;
        execute(chosen, (unsigned)rand_r(&dice));
        if (rand_r(&dice) % 8 == 0) { /* let posters and pollers in between */
            pthread_mutex_unlock(&stand_in_lock);
            pthread_mutex_lock(&stand_in_lock);
        }
    }
    return NULL;
}

void stand_in_stall(struct ibv_qp *qp)
{
    pthread_mutex_lock(&stand_in_lock);
    ((struct qp *)qp)->stalled = true;
    pthread_mutex_unlock(&stand_in_lock);
}

void stand_in_settle(struct ibv_qp *qp)
{
    for (int tries = 0;; tries++) {
        pthread_mutex_lock(&stand_in_lock);
        bool settled = !((struct qp *)qp)->first;
        pthread_mutex_unlock(&stand_in_lock);
        if (settled)
            return;
        MUST(tries < 10000); /* ten seconds */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void start(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, run, NULL) == 0);
    pthread_detach(thread);
}

void stand_in_start(void)
{
    pthread_once(&started, start);
}

/* ---- verbs ---- */

struct ibv_qp *stand_in_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
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
    pthread_mutex_lock(&stand_in_lock);
    qp->base.qp_num = stand_in_number();
    qp->next = stand_in_qps;
    stand_in_qps = qp;
    stand_in_counters.qps++;
    pthread_mutex_unlock(&stand_in_lock);
    return &qp->base;
}

int stand_in_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
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
    pthread_mutex_lock(&stand_in_lock);
    qp->base.state = attr->qp_state;
    if (attr->qp_state == IBV_QPS_INIT) {
        qp->init = *attr;
        qp->access = attr->qp_access_flags;
    }
    if (attr->qp_state == IBV_QPS_RTR) {
        qp->receive = *attr;
        qp->peer = attr->dest_qp_num;
        stand_in_counters.service_level = attr->ah_attr.sl;
        stand_in_counters.traffic_class = attr->ah_attr.grh.traffic_class;
    }
    if (attr->qp_state == IBV_QPS_RTS) {
        MUST(attr->rnr_retry == 0); /* retries would hide that a receiver was not ready */
        qp->send = *attr;
        qp->most_reads = attr->max_rd_atomic;
        stand_in_counters.ack_timeout = attr->timeout;
    }
    pthread_mutex_unlock(&stand_in_lock);
    return 0;
}

int stand_in_destroy_qp(struct ibv_qp *base)
{
    pthread_mutex_lock(&stand_in_lock);
    struct qp *qp = (struct qp *)base;
    for (struct qp **at = &stand_in_qps; *at; at = &(*at)->next)
        if (*at == qp) {
            *at = qp->next;
            break;
        }
    while (qp->first) {
        struct request *request = qp->first;
        qp->first = request->next;
        free_request(request);
    }
    complete_those(qp, true);
    stand_in_counters.qps--;
    pthread_mutex_unlock(&stand_in_lock);
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
    stand_in_counters.inlines++;
}

int stand_in_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad_p)
{
    struct qp *qp = (struct qp *)base;

    MUST(!wr->next && wr->num_sge <= 2);
    pthread_mutex_lock(&stand_in_lock);
    *bad_p = wr;
    MUST(base->state == IBV_QPS_RTS || base->state == IBV_QPS_ERR);
    MUST(qp->sends < qp->most_sends);
    stand_in_counters.sends++;
    stand_in_counters.reads += wr->opcode == IBV_WR_RDMA_READ;
    stand_in_counters.writes += wr->opcode == IBV_WR_RDMA_WRITE;
    MUST(wr->opcode != IBV_WR_RDMA_READ || qp->most_reads > 0);
    stand_in_counters.per_device[stand_in_device_of(base->context)]++;
    stand_in_counters.signalled += (wr->send_flags & IBV_SEND_SIGNALED) != 0;
    if (base->state == IBV_QPS_ERR) {
        stand_in_complete(base->send_cq,
                          (struct ibv_wc){.status = IBV_WC_WR_FLUSH_ERR, .qp_num = base->qp_num, .wr_id = wr->wr_id});
        pthread_mutex_unlock(&stand_in_lock);
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
    pthread_mutex_unlock(&stand_in_lock);
    return 0;
}

int stand_in_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_p)
{
    struct qp *qp = (struct qp *)base;

    pthread_mutex_lock(&stand_in_lock);
    for (; wr; wr = wr->next) {
        *bad_p = wr;
        MUST(wr->num_sge == 0 && qp->receives < qp->most_receives);
        qp->receives++;
    }
    pthread_mutex_unlock(&stand_in_lock);
    return 0;
}
