/* The parts that all links share: see link.h. */
#include "transport/link.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/log.h"

/* Inserts after `before`; NULL: as the first. */
static void insert(struct gy_link *link, struct gy_frame_out *before, struct gy_frame_out *frame)
{
    assert(frame->header.bytes <= GY_FRAME_MAX && !frame->queued);
    frame->done = false;
    frame->queued = true;
    frame->sent = 0;
    frame->next = before ? before->next : link->first;
    if (before)
        before->next = frame;
    else
        link->first = frame;
    if (!frame->next)
        link->last = frame;
}

void gy_link_push(struct gy_link *link, struct gy_frame_out *frame)
{
    insert(link, link->last, frame);
}

void gy_link_push_ahead(struct gy_link *link, struct gy_frame_out *frame, size_t begun)
{
    struct gy_frame_out *before = NULL;
    for (struct gy_frame_out *at = link->first; at && (begun > 0 || at->header.bytes == 0); at = at->next) {
        before = at;
        begun -= begun > 0;
    }
    insert(link, before, frame);
}

void gy_link_complete_first(struct gy_link *link)
{
    struct gy_frame_out *frame = link->first;
    link->first = frame->next;
    if (!link->first)
        link->last = NULL;
    if (frame == link->kept)
        link->kept = NULL;
    frame->next = NULL;
    frame->queued = false;
    frame->done = true;
}

bool gy_link_inbound_begin(struct gy_link *link, const struct gy_receive_handler *handler, const struct gy_frame *frame)
{
    unsigned char *place = handler->place(handler->user, link->peer, frame);
    if (!place) {
        gy_link_fail(
            link, GYRE_PROTOCOL,
            "rank %d sent a frame of %u bytes (kind %u, communicator %u, operation %llu) that was not asked for",
            link->peer, frame->bytes, frame->kind, frame->comm, (unsigned long long)frame->sequence);
        return false;
    }
    link->inbound.active = true;
    link->inbound.frame = *frame;
    link->inbound.place = place;
    link->inbound.got = 0;
    link->inbound.dropped = false;
    return true;
}

void gy_link_inbound_drop(struct gy_link *link, unsigned char *memory)
{
    if (memory != link->inbound.place)
        memcpy(memory, link->inbound.place, gy_min_size(link->inbound.got, link->inbound.frame.bytes));
    link->inbound.place = memory;
    link->inbound.dropped = true;
}

bool gy_link_inbound_end(struct gy_link *link, const struct gy_receive_handler *handler)
{
    link->inbound.active = false;
    if (link->inbound.dropped)
        return true;
    return gy_link_arrived(link, handler, &link->inbound.frame, link->inbound.place);
}

bool gy_link_arrived(struct gy_link *link, const struct gy_receive_handler *handler, const struct gy_frame *frame,
                     const void *payload)
{
    if (handler->arrived(handler->user, link->peer, frame, payload) == GYRE_SUCCESS)
        return true;
    link->state = GY_LINK_DEAD;
    return false;
}

void gy_link_fail(struct gy_link *link, gyre_status status, const char *format, ...)
{
    if (link->state != GY_LINK_OPEN)
        return;
    link->state = GY_LINK_FAILED;
    link->error.status = status;
    link->error.rank = link->peer;
    va_list args;
    va_start(args, format);
    vsnprintf(link->error.text, sizeof(link->error.text), format, args);
    va_end(args);
    gy_log(GY_LOG_DEBUG, "%s", link->error.text);
}

bool gy_link_report(struct gy_link *link, const struct gy_receive_handler *handler)
{
    if (link->state != GY_LINK_FAILED)
        return false;
    link->state = GY_LINK_DEAD;
    handler->broken(handler->user, link->peer, &link->error);
    return true;
}

bool gy_transport_always_available(char *why, size_t why_bytes)
{
    if (why_bytes)
        why[0] = '\0';
    return true;
}

bool gy_transport_send_no_short(struct gy_link *link, const struct gy_frame *header, const void *payload)
{
    (void)link, (void)header, (void)payload;
    return false;
}

void gy_transport_describe_nothing(const struct gy_link *link, char *text_p, size_t bytes)
{
    (void)link;
    if (bytes)
        text_p[0] = '\0';
}

int64_t gy_transport_round_trip_unknown(const struct gy_link *link)
{
    (void)link;
    return 0;
}

void gy_transport_register_nothing(void *instance, const void *memory, size_t bytes)
{
    (void)instance, (void)memory, (void)bytes;
}

void gy_transport_unregister_nothing(void *instance, const void *memory)
{
    (void)instance, (void)memory;
}

bool gy_transport_register_no_device(void *instance, const void *memory, size_t bytes, int dmabuf, uint64_t offset)
{
    (void)instance, (void)memory, (void)bytes, (void)dmabuf, (void)offset;
    return false;
}

void *gy_transport_expose_nothing(void *instance, void *memory, size_t bytes, struct gy_rma_key *key_p)
{
    (void)instance, (void)memory, (void)bytes, (void)key_p;
    return NULL;
}

void gy_transport_conceal_nothing(void *instance, void *exposed)
{
    (void)instance, (void)exposed;
}

/* Nothing to check: the peer's end is reported otherwise. */
void gy_transport_check_nothing(struct gy_link *link, int64_t timeout)
{
    (void)link, (void)timeout;
}

bool gy_transport_reads_nothing_in_place(const struct gy_link *link, const struct gy_frame_out *frame)
{
    (void)link, (void)frame;
    return false;
}

/* Never called: nothing was exposed through this transport. */
void gy_transport_access_nothing(struct gy_link *link, struct gy_access *access)
{
    (void)access;
    gy_link_fail(link, GYRE_INTERNAL, "the link to rank %d has no one-sided access", link->peer);
}
