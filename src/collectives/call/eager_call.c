/* Short vectors are exchanged directly (eager.h) instead of by a plan, blocking or not.
 *
 * A blocking call goes from the argument checks straight to the line and back: no request, no allocation, no lock, no
 * system call, and no fence where the flag's pair of lines holds all. The payload leaves first; what else a request does
 * (sequence, arrival, flight recorder) is done while it travels. When a peer keeps the call waiting it becomes a request, in
 * the middle of its exchange, so that clocks and verdicts are the same for all.
 *
 * A start shows its contribution likewise. Where nothing else is under way and the others have been faster, that was all: its
 * request is over before anybody has it. Else it leaves a note in the bundle (eager_queue.h), or, behind anything else, a request that
 * holds nothing but its place in the queue. Whoever has a turn completes as much of that as has come: a start itself, when it needs
 * the place, so that of many in flight the first are over before the last are started; and a wait, all that is there at once. */
#include "collectives/call/call_cache.h"
#include "collectives/call/eager_queue.h"
#include "collectives/call/launch.h"
#include "collectives/call/prepare.h"
#include "collectives/engine/call_check.h"
#include "collectives/engine/progress.h"
#include "collectives/engine/spin.h"
#include "collectives/schedule/reduction_order.h"
#include "collectives/select/selector.h"
#include "collectives/shm/autotune.h"
#include "collectives/shm/eager.h"
#include "collectives/shm/slots.h"
#include "core/clock.h"
#include "core/fence.h"

#define GY_TINY_GATHERED 65536 /* bytes of all contributions that one rank takes: beyond, sharing the work pays */
#define GY_TINY_EXPECTED 3     /* exchanges of many in flight whose lines are asked for before they are looked at */
#define GY_TINY_ROOTED 8192 /* bytes between two ranks: what is longer is used where it lies, see shm_rooted_mapped.c */

/* Is it among those that may be shown before the first of them is complete? See eager.h. */
static inline bool has_its_turn(const struct gy_exchange *it)
{
    const struct gyre_comm *comm = it->comm;
    if (it->kind->bytes > GY_WINDOW_SHORT)
        return it->number == comm->inline_done + 1;
    return it->number <= comm->inline_done + GY_WINDOW_AHEAD && comm->inline_alone <= comm->inline_done;
}

static inline __attribute__((always_inline)) bool may_be_shown(const struct gy_exchange *it)
{
    int peer;
    return has_its_turn(it) && gy_exchange_room(it, &peer) == GY_YES;
}

_Static_assert(GY_CLAIMED_LEAST <= GY_ASKED_LEAST && GY_CLAIMED_LEAST <= GY_WINDOW_SHORT, "below it there is one way");

/* How a vector of its own place is given; a line is given as it is. */
static void decide(struct gy_exchange *it)
{
    enum gy_giving giving = gy_exchange_asks(it)     ? gy_ways_exchanged(it->comm, it->shape, it->kind->bytes)
                            : gy_exchange_claims(it) ? GY_GIVEN_CLAIMED
                                                     : GY_GIVEN_SLOTS;
    it->past = giving == GY_GIVEN_PAST;
    it->claims = giving == GY_GIVEN_CLAIMED;
    it->kept = gy_exchange_keeps(it);
}

static void show(struct gy_exchange *it)
{
    if (it->kind->bytes > GY_WINDOW_INLINE)
        decide(it);
    gy_exchange_publish(it);
    if (it->kind->bytes > GY_WINDOW_SHORT)
        it->comm->inline_alone = it->number;
}

void gy_tiny_show(struct gyre_comm *comm)
{
    bool any = false;
    for (struct gyre_request *r; (r = comm->window_next) && r->tiny; comm->window_next = r->next_window) {
        if (!may_be_shown(&r->exchange))
            break;
        show(&r->exchange);
        r->begun = any = true;
    }
    if (any)
        gy_window_wake(comm);
}

/* The floating-point mode of what it takes. */
static inline uint32_t enter_mode(const struct gy_exchange *it)
{
    return it->kind->kernel ? gy_fp_enter() : 0;
}

static inline void leave_mode(const struct gy_exchange *it, uint32_t saved)
{
    if (it->kind->kernel)
        gy_fp_leave(saved);
}

/* All that it waits for is there. */
static inline void learn(const struct gy_exchange *it)
{
    struct gyre_comm *comm = it->comm;
    if (it->kind->awaited.end > it->kind->awaited.first)
        comm->compared = it->shape->sequence;
    if (it->kind->awaits_all)
        comm->inline_seen = it->number;
}

/* Likewise: what it takes is in the output, and what has been learnt of the peers is noted. In its mode. */
static inline void complete(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical)
{
    learn(it);
    it->kind->take(it, operation, canonical);
    it->comm->inline_done = it->number;
}

/* The same of a pair, whose operands have been looked up before. */
static inline void complete_pair(const struct gy_exchange *it, struct gy_pair pair)
{
    const struct gy_operation operation = gy_exchange_operation(it);
    learn(it);
    it->kind->kernel((char *)it->output, NULL, pair.operand, 2, it->kind->block, 0);
    gy_operation_end(&operation, it->output, it->shape->count, 2);
    it->comm->inline_done = it->number;
}

/* What a request has waited for is there, or a start has found. In its mode. */
static inline void finish(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical)
{
    if (it->kind->pair && !canonical)
        complete_pair(it, gy_exchange_pair(it));
    else
        complete(it, operation, canonical);
}

/* The floating-point mode of those that a turn completes one after the other: reading it takes as long as adding a line up. */
struct mode {
    bool entered;
    uint32_t saved;
};

static inline void leave_once(struct mode *mode)
{
    if (mode->entered)
        gy_fp_leave(mode->saved);
    mode->entered = false;
}

/* For what takes this one. */
static inline void enter_once(struct mode *mode, const struct gy_exchange *it)
{
    if (!it->kind->kernel) {
        leave_once(mode);
    } else if (!mode->entered) {
        mode->saved = gy_fp_enter();
        mode->entered = true;
    }
}

/* Rank p keeps it waiting, or has another one: then it is over. */
static bool miss(struct gyre_request *r, int p, enum gy_answer answer)
{
    gy_request_note_beginning(r);
    r->tiny_next = r->waiting_for = p;
    return answer == GY_NO;
}

/* Looks at what the exchange waits for, from *peer_p on; not YES: that is the one. */
static inline enum gy_answer look_from(const struct gy_exchange *it, int *peer_p)
{
    enum gy_answer answer = GY_YES;
    for (; *peer_p < it->kind->awaited.end; ++*peer_p)
        if (*peer_p != it->comm->rank && (answer = gy_exchange_look(it, *peer_p)) != GY_YES)
            break;
    return answer;
}

/* True: it is over, or has been found to be another one than a peer's. */
static bool advance(struct gyre_request *r, struct mode *mode)
{
    const struct gy_exchange *it = &r->exchange;
    if (!r->begun)
        return gy_exchange_room(it, &r->waiting_for) == GY_NO;
    int peer = r->tiny_next;
    enum gy_answer answer = look_from(it, &peer);
    if (answer != GY_YES)
        return miss(r, peer, answer);
    enter_once(mode, it);
    finish(it, &r->operation, r->canonical);
    if (r->light) {
        gy_request_finish_light(r);
    } else {
        leave_once(mode);
        gy_request_through(r);
    }
    return true;
}

/* The same of those in the bundle, in their order. */
static bool advance_bundle(struct gy_bundle *bundle, struct mode *mode)
{
    bool moved = false;
    for (; bundle->count > 0; moved = true) {
        const struct gy_note *note = gy_bundle_note(bundle, 0);
        const struct gy_exchange *it = &note->exchange;
        int peer = it->kind->awaited.first;
        enum gy_answer answer = look_from(it, &peer);
        if (answer != GY_YES) {
            gy_bundle_miss(bundle, peer);
            return moved || answer == GY_NO;
        }
        enter_once(mode, it);
        const struct gy_operation operation = gy_exchange_operation(it);
        finish(it, &operation, note->canonical);
        gy_bundle_complete(bundle);
    }
    gy_request_leave(&bundle->request);
    return true;
}

bool gy_tiny_advance(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    struct mode mode = {0};
    bool moved = false;
    do {
        if (comm->window_next)
            gy_tiny_show(comm);
        moved |= r->bundle ? advance_bundle(r->bundle, &mode) : advance(r, &mode);
        if (!r->complete)
            break;
        r = comm->window_first;
    } while (r && r->tiny && r->shape.sequence <= comm->arrived && !comm->ctx->closed);
    leave_once(&mode);
    return moved;
}

/* Whatever the size, the choice is one of the direct plans up to it, and the exchange does what they do. What is forced is
 * to be seen: beyond a line it goes by its plan. */
static void find_out(struct gyre_comm *comm, enum gy_collective collective)
{
    size_t blocks = gy_exchange_blocks(comm, collective), least = blocks > 0 ? blocks : 1;
    bool forced = gy_select_forces(comm, collective);
    size_t room = forced ? GY_WINDOW_INLINE : GY_WINDOW_VECTOR;
    bool rooted = collective == GY_BROADCAST || collective == GY_REDUCE_TO;
    if (rooted && comm->size == 2 && !comm->ctx->crowded)
        room = gy_min_size(room, GY_TINY_ROOTED);
    if (collective == GY_ALL_GATHER || collective == GY_GATHER_TO)
        room = gy_min_size(room, GY_TINY_GATHERED / (size_t)comm->size);
    enum gy_algorithm first = GY_ALGORITHMS;
    int32_t most = -1;
    for (size_t bytes = 0; bytes * least <= room; bytes = bytes ? 2 * bytes : 1) {
        enum gy_algorithm choice;
        struct gy_error error = {.quiet = true};
        if (gy_select(comm, collective, false, bytes, &choice, &error) != GYRE_SUCCESS)
            break;
        first = bytes == 0 ? choice : first;
        if (choice != first || !(choice == GY_DIRECT_ONE_SHOT || (choice == GY_DIRECT_TWO_SHOT && !forced)))
            break;
        most = (int32_t)(bytes * least);
    }
    comm->tiny[collective].known = true;
    comm->tiny[collective].algorithm = (uint8_t)first;
    comm->tiny[collective].most = most;
}

/* Bytes of the largest contribution that is exchanged directly. */
static int32_t most_of(struct gyre_comm *comm, enum gy_collective collective)
{
    if (!comm->tiny[collective].known)
        find_out(comm, collective);
    return comm->tiny[collective].most;
}

bool gy_tiny_fits(struct gyre_comm *comm, const struct gy_arrival *shape, size_t element)
{
    if (comm->window < 0 || comm->size < 2 || shape->collective >= GY_SEND_TO || shape->count > GY_WINDOW_VECTOR)
        return false;
    size_t bytes = shape->count * element * gy_exchange_blocks(comm, shape->collective);
    return (int64_t)bytes <= most_of(comm, (enum gy_collective)shape->collective) &&
           shape->algorithm == comm->tiny[shape->collective].algorithm;
}

bool gy_tiny_algorithm(struct gyre_comm *comm, const struct gy_call *call, enum gy_algorithm *algorithm_p)
{
    if (comm->window < 0 || call->varying || gy_is_point_to_point(call->collective))
        return false;
    int32_t most = most_of(comm, call->collective);
    enum gy_algorithm algorithm = (enum gy_algorithm)comm->tiny[call->collective].algorithm;
    struct gy_arrival shape = gy_shape_of(call, algorithm, comm->size);
    if (most < 0 || !gy_tiny_fits(comm, &shape, gyre_dtype_size(call->dtype)))
        return false;
    *algorithm_p = algorithm;
    return true;
}

bool gy_tiny_is_plain(const struct gyre_comm *comm, const struct gy_call *call)
{
    const struct gy_context *ctx = comm->ctx;
    return comm->window_reserved && !call->varying && !call->unforced && call->op < GYRE_PREMUL_SUM && !comm->verify &&
           !comm->attributes.uniform && ctx->idle && !ctx->config.show_choice;
}

/* Is the direct path open? Whatever is unusual takes the general one: a first call, which makes plan, window and request, an
 * operation that needs more than kernels, or a choice that is to be shown. */
static bool is_open(struct gyre_comm *comm, const struct gy_call *call)
{
    enum gy_collective collective = call->collective;
    if (!gy_tiny_is_plain(comm, call) || collective >= GY_SEND_TO || call->count > GY_WINDOW_VECTOR)
        return false;
    return most_of(comm, collective) >= 0 &&
           (comm->plans[collective][comm->tiny[collective].algorithm] ||
            gy_comm_plan(comm, collective, (enum gy_algorithm)comm->tiny[collective].algorithm, 0));
}

static void count_bytes(const struct gy_exchange *it)
{
    it->comm->recorder.page->bytes += it->kind->counted;
    it->comm->recorder.page->window_bytes += it->kind->counted;
}

/* A peer keeps us waiting: the exchange goes on as a request. */
static gyre_status go_on(const struct gy_exchange *it, bool shown, int next)
{
    struct gyre_request *r = gy_request_adopt(it, shown);
    gy_recorder_note(gy_recorder_at(&it->comm->recorder, r->record), gy_now());
    r->tiny_next = next;
    gy_wait(r);
    gyre_status status = r->status;
    gy_request_recycle(r);
    if (gy_exchange_asks(it))
        gy_ways_end(it->comm, status == GYRE_SUCCESS);
    return status;
}

static bool wait_for_room(const struct gy_exchange *it)
{
    int peer;
    enum gy_answer answer = gy_exchange_room(it, &peer);
    struct gy_patience patience = gy_patience_of(it->comm->ctx);
    for (; answer == GY_NOT_YET; answer = gy_exchange_room(it, &peer))
        if (!gy_patient(&patience))
            return false;
    return answer == GY_YES;
}

/* Ranks share cores, the peer runs on another one, and so do all behind it that have not come yet: letting others go first would serve
 * nobody. Those before it have come. */
static bool may_stay(const struct gy_exchange *it, int peer)
{
    const struct gyre_comm *comm = it->comm;
    if (!gy_patience_is_apart(comm, peer))
        return false;
    for (int p = peer + 1; p < it->kind->awaited.end; p++)
        if (p != comm->rank && !gy_cores_apart(comm, p) && !gy_exchange_published(comm, p, it->number))
            return false;
    return true;
}

static bool wait_for(const struct gy_exchange *it, int peer, struct gy_patience *patience)
{
    const struct gyre_comm *comm = it->comm;
    if (gy_exchange_published(comm, peer, it->number))
        return true;
    if (may_stay(it, peer))
        patience->spins = GY_PATIENT_SPINS_APART;
    else if (comm->ctx->crowded && patience->spins > GY_PATIENT_SPINS_CROWDED)
        patience->spins = GY_PATIENT_SPINS_CROWDED;
    const struct gy_span expected = gy_exchange_expected(it, peer);
    while (!gy_exchange_published(comm, peer, it->number)) {
        gy_span_expect(expected);
        if (!gy_patient(patience))
            return false;
    }
    return true;
}

/* Waits for those that it awaits, from `*next_p` on; false: somebody keeps it waiting, or means something else. */
static inline bool wait_for_all(const struct gy_exchange *it, int *next_p)
{
    struct gy_patience patience = gy_patience_of(it->comm->ctx);
    for (; *next_p < it->kind->awaited.end; ++*next_p) {
        if (*next_p == it->comm->rank)
            continue;
        if (!wait_for(it, *next_p, &patience) || gy_exchange_verify(it, *next_p) != GY_YES)
            return false;
    }
    return true;
}

/* How a contribution is shown: in its flag's lines; in a place of its own, as they all are of that length; or as is found out. */
enum form { LINE, PLAIN, ASKED };

static inline enum form form_of(const struct gy_exchange *it)
{
    return it->kind->bytes <= GY_WINDOW_INLINE ? LINE : it->kind->bytes < GY_CLAIMED_LEAST ? PLAIN : ASKED;
}

static inline void show_as(struct gy_exchange *it, const enum form form)
{
    if (form == LINE)
        gy_exchange_publish_line(it);
    else if (form == PLAIN)
        gy_exchange_publish_plain(it);
    else
        show(it);
}

/* Compiled for each form: between two near cores a line's way takes no longer than what the longer ones need beside. */
static inline __attribute__((always_inline)) gyre_status exchange(struct gy_exchange *it, struct gy_arrival *shape,
                                                                  const enum form form)
{
    struct gyre_comm *comm = it->comm;
    const bool asks = form == ASKED && gy_exchange_asks(it);
    it->number = ++comm->inline_started;
    shape->sequence = ++comm->sequence;
    if (asks)
        gy_ways_begin(comm);
    bool room = (form != ASKED && comm->inline_seen + GY_WINDOW_AHEAD >= it->number) || wait_for_room(it);
    if (room) {
        show_as(it, form);
        if (form == LINE)
            gy_exchange_expect_of(comm, it->kind->awaited); /* so that what is there comes meanwhile */
        gy_window_wake(comm);
    }
    struct gyre_page_record *record = gy_recorder_begin_full(&comm->recorder, shape);
    count_bytes(it);
    gy_window_arrive(comm, shape, NULL);
    gy_cores_show(comm);
    int next = it->kind->awaited.first;
    if (!room)
        return go_on(it, false, next);
    if (form != LINE)
        gy_exchange_prepare(it);
    if (form != LINE && gy_exchange_leaves_first(it))
        gy_store_load_fence();
    /* While nothing waits for it: */
    const uint32_t saved = enter_mode(it);
    const bool is_pair = form != ASKED && it->kind->pair, canonical = gy_comm_canonical(comm);
    const struct gy_pair pair = is_pair ? gy_exchange_pair(it) : (struct gy_pair){{0}};
    if (!wait_for_all(it, &next)) {
        leave_mode(it, saved);
        return go_on(it, true, next);
    }
    const struct gy_operation operation = gy_exchange_operation(it);
    if (is_pair && !canonical)
        complete_pair(it, pair);
    else
        complete(it, &operation, canonical);
    leave_mode(it, saved);
    if (asks)
        gy_ways_end(comm, true);
    gy_recorder_done(&comm->recorder, record);
    if ((it->number & (GY_LOOK_EVERY - 1)) == 0)
        gy_look_around(comm->ctx);
    return GYRE_SUCCESS;
}

gyre_status gy_tiny_exchange(struct gy_exchange *it, struct gy_arrival *shape)
{
    switch (form_of(it)) {
    case LINE: return exchange(it, shape, LINE);
    case PLAIN: return exchange(it, shape, PLAIN);
    default: return exchange(it, shape, ASKED);
    }
}

/* Finds out what a call is, for those like it, too; the shape's number is still to come. False: it is no direct exchange. */
static bool find_kind(struct gyre_comm *comm, const struct gy_call *call, struct gy_arrival *shape_p,
                      struct gy_exchange_kind *kind_p)
{
    if (!is_open(comm, call) || !gy_recorder_provide(&comm->recorder))
        return false;
    *shape_p = gy_shape_of(call, (enum gy_algorithm)comm->tiny[call->collective].algorithm, comm->size);
    *kind_p = gy_exchange_kind_of(comm, shape_p, gy_dtype_bytes(call->dtype));
    if ((int64_t)kind_p->bytes > comm->tiny[call->collective].most)
        return false;
    gy_repeat_keep(comm, call, shape_p, kind_p);
    return true;
}

bool gy_tiny_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    struct gy_arrival shape;
    struct gy_exchange_kind kind;
    if (comm->ctx->active_first || !find_kind(comm, call, &shape, &kind))
        return false;
    struct gy_exchange it = gy_exchange_of(comm, &kind, &shape, 0, call->input, call->output);
    *status_p = gy_tiny_exchange(&it, &shape);
    return true;
}

/* Has it come? What is no match is left to the request's turns. */
static inline bool has_come_from(const struct gy_exchange *it, int peer)
{
    gy_span_expect(gy_exchange_expected(it, peer));
    return gy_exchange_look(it, peer) == GY_YES;
}

static __attribute__((noinline)) bool has_come_from_all(const struct gy_exchange *it)
{
    for (int p = it->kind->awaited.first; p < it->kind->awaited.end; p++)
        if (p != it->comm->rank && !has_come_from(it, p))
            return false;
    return true;
}

/* Everything that a start waits for, which has just shown its own part? */
static inline bool has_come(const struct gy_exchange *it)
{
    const struct gy_ranks awaited = it->kind->awaited;
    return gy_ranks_is_one(awaited) ? has_come_from(it, awaited.first) : has_come_from_all(it);
}

/* A start that has nothing before it and nothing to wait for; its request is over. False: it has to wait. */
static inline __attribute__((always_inline)) bool end_at_once(const struct gy_exchange *it, bool canonical,
                                                              struct gyre_page_record *record)
{
    struct gyre_comm *comm = it->comm;
    if (comm->ctx->active_first)
        return false;
    const uint32_t saved = enter_mode(it); /* before it looks: reading the mode waits for what has been looked at */
    if (!has_come(it)) {
        if (it->kind->kernel)
            gy_fp_leave_unused(saved);
        return false;
    }
    const struct gy_operation operation = gy_exchange_operation(it);
    finish(it, &operation, canonical);
    leave_mode(it, saved);
    gy_recorder_done(&comm->recorder, record);
    return true;
}

/* All of a start but its request. True: that was all, it is over. Compiled for each form, as exchange() is. */
static inline __attribute__((always_inline)) bool begin_as(struct gy_exchange *it, struct gy_arrival *shape,
                                                           bool canonical, bool *shown_p, const enum form form)
{
    struct gyre_comm *comm = it->comm;
    /* Those before it may well be over by now, and room is to be made for this one. */
    if (comm->inline_started - comm->inline_done >= GY_WINDOW_AHEAD && comm->window_first && comm->window_first->tiny)
        comm->ctx->up->advance(comm->window_first);
    it->number = ++comm->inline_started;
    shape->sequence = ++comm->sequence;
    bool now = !comm->window_next && may_be_shown(it);
    if (now) {
        show_as(it, form);
        gy_exchange_expect_next(comm, it->kind->awaited, GY_TINY_EXPECTED);
        gy_window_wake(comm);
    }
    struct gyre_page_record *record = gy_recorder_begin_full(&comm->recorder, shape);
    count_bytes(it);
    gy_cores_show(comm);
    if (gy_request_stands_behind(comm))
        gy_window_arrive(comm, shape, NULL);
    *shown_p = now;
    return now && end_at_once(it, canonical, record);
}

static __attribute__((noinline)) bool begin_longer(struct gy_exchange *it, struct gy_arrival *shape, bool canonical,
                                                   bool *shown_p)
{
    return form_of(it) == PLAIN ? begin_as(it, shape, canonical, shown_p, PLAIN)
                                : begin_as(it, shape, canonical, shown_p, ASKED);
}

static inline __attribute__((always_inline)) bool begin(struct gy_exchange *it, struct gy_arrival *shape,
                                                        bool canonical, bool *shown_p)
{
    return form_of(it) == LINE ? begin_as(it, shape, canonical, shown_p, LINE)
                               : begin_longer(it, shape, canonical, shown_p);
}

/* What a start has shown, or could not yet, waits in the queue. */
static void wait_in_queue(struct gyre_request *r)
{
    if (r->comm->arrived < r->shape.sequence)
        gy_request_arrive(r->comm);
    if (!r->previous)
        gy_request_note_beginning(r); /* those behind it when they are the first */
}

static void end_start(const struct gy_exchange *it)
{
    if ((it->number & (GY_LOOK_EVERY - 1)) == 0)
        gy_look_around(it->comm->ctx);
    gy_driver_wake(it->comm->ctx);
}

struct gyre_request *gy_tiny_begin(struct gy_exchange *it, struct gy_arrival *shape)
{
    struct gyre_comm *comm = it->comm;
    struct gyre_request *r;
    bool shown;
    if (begin(it, shape, gy_comm_canonical(comm), &shown)) {
        r = gy_request_ended(comm);
    } else if (shown && gy_bundle_takes(comm)) {
        r = gy_request_opened(comm);
        gy_bundle_add(it, r, gy_comm_canonical(comm));
    } else {
        r = gy_request_adopt(it, shown);
        wait_in_queue(r);
    }
    end_start(it);
    return r;
}

bool gy_tiny_restart(struct gyre_request *r)
{
    const struct gyre_comm *comm = r->comm;
    struct gy_exchange *it = &r->exchange;
    bool shown;
    bool plain = r->operation.op < GYRE_PREMUL_SUM && !comm->verify && !comm->attributes.uniform &&
                 gy_recorder_is_full(&comm->recorder);
    if (!r->tiny || !plain) /* what was one the last time is one */
        return false;
    it->number = comm->inline_started + 1;
    gy_exchange_fetch_owned(it, gy_exchange_owned(it));
    bool over = begin(it, &r->shape, r->canonical, &shown);
    r->record = comm->recorder.page->started;
    if (!over && shown && gy_bundle_takes(comm)) {
        gy_request_open(r);
        gy_bundle_add(it, r, r->canonical);
    } else if (!over) {
        gy_request_queue(r, shown);
        wait_in_queue(r);
    }
    end_start(it);
    return true;
}

bool gy_tiny_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p)
{
    struct gy_arrival shape;
    struct gy_exchange_kind kind;
    if (comm->size < 2 || !find_kind(comm, call, &shape, &kind)) /* alone there is no queue, and nothing to wait for */
        return false;
    struct gy_exchange it = gy_exchange_of(comm, &kind, &shape, 0, call->input, call->output);
    *request_p = gy_tiny_begin(&it, &shape);
    return true;
}
