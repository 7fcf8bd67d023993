/* The stand-in's machine: devices, ports, what they tell, and the table of verbs. See rdma_stand_in_private.h. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rdma_stand_in_private.h"

struct stand_in_device stand_in_devices[STAND_IN_DEVICES];
int stand_in_device_count;
uint32_t stand_in_most_inline = 220, stand_in_vendor;
enum ibv_fork_status stand_in_fork_status = IBV_FORK_UNNEEDED;
bool stand_in_refuses_fork;

pthread_mutex_t stand_in_lock = PTHREAD_MUTEX_INITIALIZER;
struct stand_in_counters stand_in_counters;
enum ibv_wc_status stand_in_failing[STAND_IN_DEVICES];
static struct device devices[STAND_IN_DEVICES];
static struct context *contexts;
static uint32_t next_number = 1;

uint32_t stand_in_number(void)
{
    return next_number++;
}

/* ---- the machine ---- */

void stand_in_reset(int count)
{
    memset(stand_in_devices, 0, sizeof(stand_in_devices));
    memset(stand_in_failing, 0, sizeof(stand_in_failing));
    stand_in_device_count = count;
    stand_in_most_inline = 220;
    stand_in_fork_status = IBV_FORK_UNNEEDED;
    stand_in_refuses_fork = stand_in_refuses_dmabuf = false;
    stand_in_mute = false;
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
    pthread_mutex_lock(&stand_in_lock);
    struct stand_in_counters copy = stand_in_counters;
    pthread_mutex_unlock(&stand_in_lock);
    return copy;
}

void stand_in_fail_requests(int device, enum ibv_wc_status status)
{
    pthread_mutex_lock(&stand_in_lock);
    stand_in_failing[device] = status;
    pthread_mutex_unlock(&stand_in_lock);
}

int stand_in_device_of(struct ibv_context *context)
{
    return ((struct context *)context)->device;
}

void stand_in_signal(int fd)
{
    MUST(write(fd, &(uint64_t){1}, 8) == 8);
}

const struct stand_in_port *stand_in_port_of(struct ibv_context *context, uint8_t number)
{
    return &stand_in_devices[stand_in_device_of(context)].port[number - 1];
}

static void tell(struct context *context, struct ibv_async_event event)
{
    MUST(context->event_count < MOST_EVENTS);
    context->events[context->event_count++] = event;
    stand_in_signal(context->base.async_fd);
}

void stand_in_event(int device, enum ibv_event_type type, int port)
{
    pthread_mutex_lock(&stand_in_lock);
    for (struct context *context = contexts; context; context = context->next) {
        struct ibv_async_event event = {.event_type = type, .element.port_num = port};
        if (context->device != device)
            continue;
        if (type <= IBV_EVENT_PATH_MIG_ERR && type != IBV_EVENT_CQ_ERR) {
            struct qp *qp = stand_in_qps;
            while (qp && qp->base.context != &context->base)
                qp = qp->next;
            if (!qp)
                continue;
            event.element.qp = &qp->base;
        }
        tell(context, event);
    }
    pthread_mutex_unlock(&stand_in_lock);
}

void stand_in_event_of(struct ibv_qp *qp, enum ibv_event_type type)
{
    pthread_mutex_lock(&stand_in_lock);
    tell((struct context *)qp->context, (struct ibv_async_event){.event_type = type, .element.qp = qp});
    pthread_mutex_unlock(&stand_in_lock);
}

void stand_in_end(void)
{
    struct stand_in_counters c = stand_in_count();

    if (c.unacknowledged + c.contexts + c.pds + c.mrs + c.cqs + c.qps + c.channels == 0)
        return;
    fprintf(
        stderr,
        "left: %d contexts, %d domains, %d registrations, %d queues, %d queue pairs, %d channels; %d events that were "
        "read and not acknowledged\n",
        c.contexts, c.pds, c.mrs, c.cqs, c.qps, c.channels, c.unacknowledged);
    _Exit(1);
}

bool stand_in_take_signal(int fd)
{
    uint64_t one;
    return read(fd, &one, 8) == 8;
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
    stand_in_start();
    struct context *context = calloc(1, sizeof(*context));
    context->base.device = device;
    context->base.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    context->base.cmd_fd = -1;
    context->device = index;
    pthread_mutex_lock(&stand_in_lock);
    context->next = contexts;
    contexts = context;
    stand_in_counters.contexts++;
    pthread_mutex_unlock(&stand_in_lock);
    return &context->base;
}

static int close_device(struct ibv_context *base)
{
    pthread_mutex_lock(&stand_in_lock);
    for (struct context **at = &contexts; *at; at = &(*at)->next)
        if (&(*at)->base == base) {
            *at = (*at)->next;
            break;
        }
    stand_in_counters.contexts--;
    pthread_mutex_unlock(&stand_in_lock);
    close(base->async_fd);
    free(base);
    return 0;
}

static int query_device(struct ibv_context *context, struct ibv_device_attr *attr_p)
{
    memset(attr_p, 0, sizeof(*attr_p));
    attr_p->phys_port_cnt = (uint8_t)stand_in_devices[stand_in_device_of(context)].ports;
    attr_p->vendor_id = stand_in_vendor;
    attr_p->max_qp_wr = 1024;
    attr_p->max_qp_rd_atom = attr_p->max_qp_init_rd_atom = 16 >> stand_in_device_of(context);
    attr_p->max_cqe = 65536;
    return 0;
}

static int query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr_p)
{
    const struct stand_in_port *port = stand_in_port_of(context, number);

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
    *entry_p = stand_in_port_of(context, port)->gid[index];
    entry_p->gid_index = index;
    entry_p->port_num = port;
    return 0;
}

static int get_async_event(struct ibv_context *base, struct ibv_async_event *event_p)
{
    struct context *context = (struct context *)base;

    if (!stand_in_take_signal(base->async_fd))
        return -1;
    pthread_mutex_lock(&stand_in_lock);
    *event_p = context->events[0];
    memmove(context->events, context->events + 1, sizeof(context->events[0]) * (size_t)--context->event_count);
    stand_in_counters.unacknowledged++;
    pthread_mutex_unlock(&stand_in_lock);
    return 0;
}

static void ack_async_event(struct ibv_async_event *event)
{
    (void)event;
    pthread_mutex_lock(&stand_in_lock);
    stand_in_counters.unacknowledged--;
    pthread_mutex_unlock(&stand_in_lock);
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
    return status == IBV_WC_RETRY_EXC_ERR  ? "transport retry counter exceeded"
           : status == IBV_WC_LOC_PROT_ERR ? "local protection error"
                                           : "some error";
}

/* ---- verbs: forks ---- */

static enum ibv_fork_status is_fork_initialized(void)
{
    return stand_in_fork_status;
}

static int fork_init(void)
{
    if (stand_in_refuses_fork)
        return EINVAL;
    stand_in_fork_status = IBV_FORK_ENABLED;
    return 0;
}

const struct gy_verbs stand_in_verbs = {
    .is_fork_initialized = is_fork_initialized,
    .fork_init = fork_init,
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
    .alloc_pd = stand_in_alloc_pd,
    .dealloc_pd = stand_in_dealloc_pd,
    .reg_mr = stand_in_reg_mr,
    .reg_mr_iova2 = stand_in_reg_mr_iova2,
    .reg_dmabuf_mr = stand_in_reg_dmabuf_mr,
    .dereg_mr = stand_in_dereg_mr,
    .create_comp_channel = stand_in_create_comp_channel,
    .destroy_comp_channel = stand_in_destroy_comp_channel,
    .create_cq = stand_in_create_cq,
    .destroy_cq = stand_in_destroy_cq,
    .get_cq_event = stand_in_get_cq_event,
    .ack_cq_events = stand_in_ack_cq_events,
    .poll_cq = stand_in_poll_cq,
    .req_notify_cq = stand_in_req_notify_cq,
    .create_qp = stand_in_create_qp,
    .modify_qp = stand_in_modify_qp,
    .destroy_qp = stand_in_destroy_qp,
    .post_send = stand_in_post_send,
    .post_recv = stand_in_post_recv,
};
