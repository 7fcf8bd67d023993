/* Selects the payloads between sockets of one host that are sent by non-temporal copy (zero_copy_pool.c): those for
 * which both ends' timings are lower.
 *
 * A plain send copies a payload to recently used kernel pages, whose cache lines the reader still holds. If its core
 * shares no last-level cache with the sender's, writing each line again takes as long as a memory access, two or
 * three times as long as all else. A non-temporal write does not wait. With a common cache plain sends are faster.
 * So both ends time the kernel's copies, separately for payloads of about one length: occasionally for a few
 * consecutive frames of either method, for long ones always; a flag in the frame says so. The reader's timings
 * return in its frames, for the size class that arrived last, and every frame reports how much it has read. */
#include <string.h>

#include "core/clock.h"
#include "core/dtype.h"
#include "transport/tcp/internal.h"

#define TRIAL_FRAMES 8u  /* half of them by the other method */
#define TRIAL_EVERY 128u /* a trial per this many frames; at first also at powers of two */
#define LONG_FIRST 16u   /* long payloads: every so many'th uses the other method, */
#define LONG_TRIED_FIRST 4u
#define LONG_TRIED_LATER 64u /* and of later ones */
#define FIGURES_LEAST 2
#define SORT_BITS ((GY_TCP_SORTS - 1) << GY_TCP_FRAME_CLASS_SHIFT)

_Static_assert((GY_TCP_SORTS & (GY_TCP_SORTS - 1)) == 0, "they fill their bits");
_Static_assert(GY_TCP_ZERO_COPY_LEAST << (GY_TCP_SORTS - 1) == GY_TCP_ZERO_COPY_LONG,
               "the last sort is that of long ones");

static bool stays_plain(const struct tcp_link *link)
{
    return !link->same_machine || link->rails || link->envelopes;
}

struct tcp_sort *gy_tcp_zero_copy_sort(struct tcp_link *link, size_t payload)
{
    unsigned sort = 0;
    if (payload < GY_TCP_ZERO_COPY_LEAST || stays_plain(link))
        return NULL;
    while (sort + 1 < GY_TCP_SORTS && payload >= (size_t)GY_TCP_ZERO_COPY_LEAST << (sort + 1))
        sort++;
    return &link->policy.sort[sort];
}

/* Plain sends vary with the kernel's pages, and a thread may be preempted in a call: the mean without the highest
 * quarter. */
static uint16_t mean_of(const struct tcp_pace *pace)
{
    unsigned highest[2] = {0}, left_out = pace->count / 4, sum = 0;
    if (pace->count < FIGURES_LEAST)
        return 0;
    for (unsigned i = 0; i < pace->count; i++) {
        unsigned figure = pace->figure[i];
        sum += figure;
        if (figure > highest[0]) {
            highest[1] = highest[0];
            highest[0] = figure;
        } else if (figure > highest[1]) {
            highest[1] = figure;
        }
    }
    for (unsigned i = 0; i < left_out; i++)
        sum -= highest[i];
    return (uint16_t)(sum / (pace->count - left_out));
}

void gy_tcp_zero_copy_timed(struct tcp_pace *pace, size_t payload, size_t bytes, int64_t ns)
{
    pace->bytes += bytes;
    pace->ns += ns;
    if (pace->bytes < gy_min_size(payload, GY_TCP_ZERO_COPY_LONG))
        return;
    int64_t each = pace->ns * 1024 / (int64_t)pace->bytes;
    pace->figure[pace->next] = (uint16_t)(each < 1 ? 1 : each > UINT16_MAX ? UINT16_MAX : each);
    pace->next = (uint8_t)((pace->next + 1) % GY_TCP_FIGURES);
    pace->count = (uint8_t)(pace->count + (pace->count < GY_TCP_FIGURES));
    pace->mean = mean_of(pace);
    pace->bytes = 0;
    pace->ns = 0;
}

/* ---- the reader ---- */

void gy_tcp_zero_copy_read(struct tcp_link *link, size_t bytes, int64_t ns)
{
    struct tcp_policy *policy = &link->policy;
    if (link->base.inbound.active) {
        size_t payload = link->base.inbound.frame.bytes;
        gy_tcp_zero_copy_timed(&gy_tcp_zero_copy_sort(link, payload)->reads[policy->nt], payload, bytes, ns);
    } else {
        policy->unnamed += bytes;
        policy->unnamed_ns += ns;
    }
}

void gy_tcp_zero_copy_begin(struct tcp_link *link, const struct gy_frame *header)
{
    struct tcp_policy *policy = &link->policy;
    if (header->bytes == 0)
        return;
    struct tcp_sort *sort = header->bytes < GY_TCP_ZERO_COPY_LEAST ? NULL : gy_tcp_zero_copy_sort(link, header->bytes);
    policy->tells = sort != NULL;
    policy->reading_timed = sort && policy->timed;
    if (!sort)
        return;
    policy->said = (unsigned)(sort - policy->sort);
    if (policy->unnamed >= header->bytes)
        gy_tcp_zero_copy_timed(&sort->reads[policy->nt], header->bytes, policy->unnamed, policy->unnamed_ns);
    policy->unnamed = 0;
    policy->unnamed_ns = 0;
}

/* ---- the sender ---- */

/* Started if it saves a tenth, continued while it saves anything. */
static void choose(struct tcp_sort *sort)
{
    unsigned cost[2];
    for (int way = 0; way < 2; way++) {
        unsigned mine = sort->sends[way].mean;
        if (mine == 0 || sort->theirs[way] == 0)
            return;
        cost[way] = mine + sort->theirs[way];
    }
    sort->pays = sort->pays ? cost[1] < cost[0] : cost[1] * 10 < cost[0] * 9;
}

/* Some frames by one method and then some by the other, consecutively. */
static unsigned flags_of_short(struct tcp_sort *sort)
{
    unsigned number = sort->frames++, trial = number / TRIAL_FRAMES;
    bool timed = trial % TRIAL_EVERY == 0 || (trial < TRIAL_EVERY && (trial & (trial - 1)) == 0);
    if (!timed)
        choose(sort);
    bool other = timed && number % TRIAL_FRAMES >= TRIAL_FRAMES / 2;
    return (sort->pays != other ? GY_TCP_FRAME_NT : 0) | (timed ? GY_TCP_FRAME_TIMED : 0);
}

/* Programs send few long payloads, for which two clock reads are negligible. All are timed, and the choice is made
 * anew each time. The first plain sends use pages not in the reader's cache, and are faster than later ones. */
static unsigned flags_of_long(struct tcp_sort *sort)
{
    unsigned number = sort->frames++, of = number < LONG_FIRST ? LONG_TRIED_FIRST : LONG_TRIED_LATER;
    choose(sort);
    bool other = number % of == of - 1;
    return (sort->pays != other ? GY_TCP_FRAME_NT : 0) | GY_TCP_FRAME_TIMED;
}

void gy_tcp_zero_copy_mark(struct tcp_link *link, struct gy_frame *header)
{
    struct tcp_policy *policy = &link->policy;
    if (stays_plain(link))
        return;
    unsigned flags = header->flags & GY_FRAME_EAGER;
    header->taken = gy_tcp_position(&link->in);
    header->pace[0] = header->pace[1] = 0;
    if (policy->tells) {
        for (int way = 0; way < 2; way++)
            header->pace[way] = policy->sort[policy->said].reads[way].mean;
        flags |= policy->said << GY_TCP_FRAME_CLASS_SHIFT;
    }
    if (header->kind == GY_FRAME_DATA && header->bytes >= GY_TCP_ZERO_COPY_LEAST && !link->tcp->pool.refused)
        flags |= (header->bytes < GY_TCP_ZERO_COPY_LONG ? flags_of_short
                                                        : flags_of_long)(gy_tcp_zero_copy_sort(link, header->bytes));
    header->flags = (uint8_t)flags;
}

void gy_tcp_zero_copy_heard(struct tcp_link *link, struct gy_frame *header)
{
    struct tcp_policy *policy = &link->policy;
    policy->nt = header->flags & GY_TCP_FRAME_NT;
    policy->timed = header->flags & GY_TCP_FRAME_TIMED;
    for (int way = 0; way < 2; way++)
        if (header->pace[way] > 0)
            policy->sort[(header->flags & SORT_BITS) >> GY_TCP_FRAME_CLASS_SHIFT].theirs[way] = header->pace[way];
    if (policy->taken < header->taken) /* a grant may have overtaken this frame */
        policy->taken = header->taken;
    header->flags &= GY_FRAME_EAGER;
}
