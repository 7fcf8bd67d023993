/* The agreement by itself: several of them in one process, over an overlay and a clock of this file. Messages wait
 * in one queue until they are delivered, so that a test chooses which are lost, and which a rank receives before it
 * dies. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/world.h"
#include "core/clock.h"
#include "core/mem.h"
#include "membership/agreement_internal.h"

#define RANKS 4
#define COMM 7u
#define MESSAGES 4096

struct node {
    int rank;
    bool dead;
    bool gone; /* it lives and hears, but steps no more */
    struct gy_world world;
    struct gy_agreement *agreement;
    struct gy_failed_rank failures[RANKS];
    int heard; /* messages */
};

static struct node nodes[RANKS];
static struct gy_config config = {.stall_timeout_ns = 30 * GY_SECOND};
static struct message {
    int from, to;
    size_t bytes;
    uint8_t body[1024];
} queue[MESSAGES];
static int queued;
static int64_t now;
static uint8_t kind; /* of all words */
static uint32_t comm;

/* ---- the overlay and the clock ---- */

static struct node *node_of(const struct gy_overlay *overlay)
{
    return (struct node *)(uintptr_t)overlay;
}

int64_t __wrap_gy_now(void);
const struct gy_failed_rank *__wrap_gy_overlay_failure(const struct gy_overlay *overlay, int rank);
void __wrap_gy_overlay_declare_failed(struct gy_overlay *overlay, int rank, gyre_status status, const char *why);
int64_t __wrap_gy_overlay_failures_changed(const struct gy_overlay *overlay);
bool __wrap_gy_overlay_ensure_connected(struct gy_overlay *overlay, int rank);
bool __wrap_gy_overlay_send(struct gy_overlay *overlay, int rank, const void *body, size_t bytes);
const struct gy_error *__wrap_gy_overlay_deaf(const struct gy_overlay *overlay);
void __wrap_gy_overlay_on_message(struct gy_overlay *overlay, gy_overlay_message_func *func, void *user, size_t most);

int64_t __wrap_gy_now(void)
{
    return now;
}

const struct gy_failed_rank *__wrap_gy_overlay_failure(const struct gy_overlay *overlay, int rank)
{
    return &node_of(overlay)->failures[rank];
}

void __wrap_gy_overlay_declare_failed(struct gy_overlay *overlay, int rank, gyre_status status, const char *why)
{
    struct gy_failed_rank *failure = &node_of(overlay)->failures[rank];

    (void)why;
    if (failure->status == GYRE_SUCCESS)
        *failure = (struct gy_failed_rank){.status = status, .when = now};
}

int64_t __wrap_gy_overlay_failures_changed(const struct gy_overlay *overlay)
{
    (void)overlay;
    return 0;
}

bool __wrap_gy_overlay_ensure_connected(struct gy_overlay *overlay, int rank)
{
    (void)overlay;
    return !nodes[rank].dead;
}

bool __wrap_gy_overlay_send(struct gy_overlay *overlay, int rank, const void *body, size_t bytes)
{
    struct message *message = &queue[queued];

    cr_assert(queued < MESSAGES && bytes <= sizeof(message->body) && rank != node_of(overlay)->rank);
    message->from = node_of(overlay)->rank;
    message->to = rank;
    message->bytes = bytes;
    memcpy(message->body, body, bytes);
    queued++;
    return true;
}

const struct gy_error *__wrap_gy_overlay_deaf(const struct gy_overlay *overlay)
{
    (void)overlay;
    return NULL;
}

void __wrap_gy_overlay_on_message(struct gy_overlay *overlay, gy_overlay_message_func *func, void *user, size_t most)
{
    (void)overlay, (void)func, (void)user, (void)most;
}

/* ---- what happens ---- */

static void begin(void)
{
    now = 1000 * GY_SECOND;
    kind = GY_AGREEMENT_AGREE;
    comm = COMM;
    queued = 0;
    memset(nodes, 0, sizeof(nodes));
    for (int i = 0; i < RANKS; i++) {
        nodes[i].rank = i;
        nodes[i].world = (struct gy_world){.rank = i, .size = RANKS, .config = &config};
        nodes[i].agreement = gy_agreement_make((struct gy_overlay *)(uintptr_t)&nodes[i], &nodes[i].world);
        cr_assert_not_null(nodes[i].agreement);
    }
}

static void end(void)
{
    for (int i = 0; i < RANKS; i++)
        gy_agreement_free(nodes[i].agreement);
}

static gyre_status enter(int rank, int members, uint64_t bits)
{
    static const int all[RANKS] = {0, 1, 2, 3};
    struct gy_agreement_input input = {.kind = kind, .bits = bits};
    struct gy_error error = {.rank = -1, .quiet = true};

    return gy_agreement_enter(nodes[rank].agreement, comm, 1, all, members, &input, 600 * GY_SECOND, &error);
}

static gyre_status step(int rank, uint64_t *bits_p)
{
    struct gy_outcome outcome;
    struct gy_error error = {.rank = -1, .quiet = true};
    gyre_status status = gy_agreement_step(nodes[rank].agreement, comm, 1, &outcome, &error);

    if (status == GYRE_SUCCESS) {
        *bits_p = outcome.bits;
        gy_outcome_free(&outcome);
    }
    return status;
}

/* Everything that is on its way, but to and from the dead, and what is said to that. */
static void deliver(void)
{
    for (int i = 0; i < queued; i++) {
        struct message message = queue[i];

        if (nodes[message.to].dead)
            continue;
        nodes[message.to].heard++;
        gy_agreement_receive(nodes[message.to].agreement, message.from, message.body, message.bytes);
    }
    queued = 0;
}

static void die(int rank)
{
    nodes[rank].dead = true;
    for (int i = 0; i < RANKS; i++)
        nodes[i].failures[rank] = (struct gy_failed_rank){.status = GYRE_PEER_DEAD, .proved = true, .when = now};
}

/* Steps all of first .. last that live until each has ended, 20 ms apart; a minute at most. */
static void run(int first, int last, gyre_status status_p[RANKS], uint64_t bits_p[RANKS])
{
    int left = 0;
    int64_t limit = now + 60 * GY_SECOND;

    for (int i = 0; i < RANKS; i++)
        status_p[i] = GYRE_IN_PROGRESS;
    for (int i = first; i <= last; i++)
        left += !nodes[i].dead && !nodes[i].gone;
    while (left > 0 && now < limit) {
        for (int i = first; i <= last; i++) {
            if (nodes[i].dead || nodes[i].gone || status_p[i] != GYRE_IN_PROGRESS)
                continue;
            status_p[i] = step(i, &bits_p[i]);
            left -= status_p[i] != GYRE_IN_PROGRESS;
        }
        deliver();
        now += 20 * GY_MILLISECOND;
    }
}

static void tell(int from, int to, enum gy_agreement_type type, int coordinator, const void *blob, size_t bytes)
{
    struct gy_agreement_message message = {.type = (uint8_t)type,
                                           .comm = comm,
                                           .number = 1,
                                           .coordinator = coordinator,
                                           .part = GY_PART_TAKES,
                                           .accepted = type == GY_AGREEMENT_JOIN ? 0 : GY_NOBODY,
                                           .input.kind = GY_AGREEMENT_AGREE,
                                           .blob = blob,
                                           .blob_bytes = bytes};
    uint8_t body[1024];

    gy_agreement_receive(nodes[to].agreement, from, body, gy_agreement_encode(&message, body, sizeof(body)));
}

/* An outcome of one rank. */
static size_t outcome_of(int rank, uint8_t blob_p[256])
{
    struct gy_agreement_input input = {0};
    const struct gy_agreement_input *words[] = {&input};
    struct gy_outcome outcome = {.bits = 99, .ranks = 1, .rank = &rank};

    return gy_outcome_encode(&outcome, words, blob_p, 256);
}

/* ---- tests ---- */

Test(agreement, members_agree_and_nobody_else_hears_of_it)
{
    gyre_status status[RANKS];
    uint64_t bits[RANKS];

    begin();
    for (int i = 0; i < RANKS - 1; i++)
        cr_assert(enter(i, RANKS - 1, ~(UINT64_C(1) << i)) == GYRE_SUCCESS);
    run(0, RANKS - 2, status, bits);
    for (int i = 0; i < RANKS - 1; i++)
        cr_assert(status[i] == GYRE_SUCCESS && bits[i] == ~UINT64_C(7), "rank %d: %d", i, status[i]);
    cr_assert(nodes[RANKS - 1].heard == 0, "who is no member heard %d messages", nodes[RANKS - 1].heard);
    end();
}

/* A coordinator that has ended alone lives, is connected and answers. */
Test(agreement, a_coordinator_that_quits_is_not_waited_for)
{
    gyre_status status[RANKS];
    uint64_t bits[RANKS];
    int64_t began;

    for (int late = 0; late < 2; late++) { /* it quits before, or after, the others come */
        begin();
        cr_assert(enter(0, RANKS, 1) == GYRE_SUCCESS);
        if (late == 0)
            gy_agreement_quit(nodes[0].agreement, COMM, 1);
        for (int i = 1; i < RANKS; i++)
            cr_assert(enter(i, RANKS, 3) == GYRE_SUCCESS);
        for (int i = 0; late == 1 && i < RANKS; i++)
            cr_assert(step(i, bits) == GYRE_IN_PROGRESS);
        if (late == 1)
            gy_agreement_quit(nodes[0].agreement, COMM, 1);
        began = now;
        run(1, RANKS - 1, status, bits);
        for (int i = 1; i < RANKS; i++) {
            cr_assert(status[i] == GYRE_SUCCESS && bits[i] == 3, "rank %d: %d", i, status[i]);
            cr_assert(nodes[i].failures[0].status == GYRE_PEER_LATE && !nodes[i].failures[0].proved);
        }
        cr_assert(now - began < 2 * GY_SECOND);
        end();
    }
}

/* A whole agreement of `rank`, which is PARTITIONED. */
static void be_parted(int rank, uint32_t number)
{
    static const int all[RANKS] = {0, 1, 2, 3};
    struct gy_agreement_input input = {.kind = GY_AGREEMENT_AGREE};
    struct gy_error error = {.rank = -1, .quiet = true};
    struct gy_agreement *agreement = nodes[rank].agreement;
    struct gy_outcome outcome;
    gyre_status status;

    cr_assert(gy_agreement_enter(agreement, comm, number, all, RANKS, &input, 600 * GY_SECOND, &error) == GYRE_SUCCESS);
    do {
        status = gy_agreement_step(agreement, comm, number, &outcome, &error);
        now += 20 * GY_MILLISECOND;
    } while (status == GYRE_IN_PROGRESS);
    cr_assert(status == GYRE_PARTITIONED, "%d", status);
    gy_agreement_quit(agreement, comm, number);
}

/* All but `quits` agree without it, within so long. */
static void expect_left_out(int quits, int64_t ns, const char *how)
{
    gyre_status status[RANKS];
    uint64_t bits[RANKS];
    int64_t began = now;

    nodes[quits].gone = true;
    run(0, RANKS - 1, status, bits);
    cr_assert(now - began <= ns, "rank %d, %s: %lld ms", quits, how, (long long)((now - began) / GY_MILLISECOND));
    for (int i = 0; i < RANKS; i++) {
        if (i == quits)
            continue;
        cr_assert(status[i] == GYRE_SUCCESS && bits[i] == 3, "rank %d, %s, of %d: %d", quits, how, i, status[i]);
        cr_assert(nodes[i].failures[quits].status == GYRE_PEER_LATE && !nodes[i].failures[quits].proved);
    }
}

/* A rank that quits is not waited for: as coordinator or not, whether or not the others have entered when QUIT
 * arrives, and also if QUIT does not arrive by itself because a connection is missing. */
Test(agreement, who_quits_is_not_waited_for_whichever_comes_first)
{
    static const char *const how[] = {"heard before", "heard after", "not heard"};
    static const uint8_t kinds[] = {GY_AGREEMENT_AGREE, GY_AGREEMENT_UNIFORM};

    for (int quits = 0; quits < RANKS; quits++) {
        for (int i = 0; i < 6; i++) {
            int what = i % 3;

            begin();
            kind = kinds[i / 3];
            cr_assert(enter(quits, RANKS, 1) == GYRE_SUCCESS);
            gy_agreement_quit(nodes[quits].agreement, COMM, 1);
            if (what == 0)
                deliver();
            for (int rank = 0; rank < RANKS; rank++)
                cr_assert(rank == quits || enter(rank, RANKS, 3) == GYRE_SUCCESS);
            if (what == 2)
                queued = 0;
            expect_left_out(quits, what == 2 ? 2 * GY_SECOND : 200 * GY_MILLISECOND, how[what]); /* asked, told */
            end();
        }
    }
}

/* A rank that cannot take part in agreements on how operations end, and has entered none, is not waited for. That
 * holds whether or not it is the coordinator, and whether or not it had heard of the agreement before. Later
 * messages need no memory of it. */
Test(agreement, who_is_outside_is_missed_in_no_agreement_on_ends)
{
    static const char *const how[] = {"before the others", "after it has heard of them", "unheard, after them"};
    uint64_t bits;

    for (int quits = 0; quits < RANKS; quits++) {
        for (int what = 0; what < 3; what++) {
            begin();
            kind = GY_AGREEMENT_UNIFORM;
            comm = GY_AGREEMENT_OF_UNIFORM | COMM;
            if (what == 0)
                gy_agreement_quit_uniform(nodes[quits].agreement);
            for (int rank = 0; rank < RANKS; rank++)
                cr_assert(rank == quits || enter(rank, RANKS, 3) == GYRE_SUCCESS);
            for (int i = 0; what > 0 && i < 100; i++) {
                for (int rank = 0; rank < RANKS; rank++)
                    cr_assert(rank == quits || step(rank, &bits) == GYRE_IN_PROGRESS);
                nodes[quits].dead = what == 2; /* nothing reaches it yet */
                deliver();
                nodes[quits].dead = false;
                now += 20 * GY_MILLISECOND;
            }
            if (what > 0)
                gy_agreement_quit_uniform(nodes[quits].agreement);
            expect_left_out(quits, what == 1 ? 200 * GY_MILLISECOND : 2 * GY_SECOND, how[what]); /* told, asks */
            cr_assert(what == 1 || !nodes[quits].agreement->instances, "it keeps what it has no part in");
            end();
        }
    }
}

/* What it does not take part in it is told of, too, and answers once: two of that kind would go on for ever. Agreements
 * that a program asks for are its own. */
Test(agreement, who_is_outside_answers_questions_alone)
{
    uint8_t blob[256];
    size_t bytes = outcome_of(0, blob);

    begin();
    for (int i = 0; i < 2; i++)
        gy_agreement_quit_uniform(nodes[i].agreement);
    comm = GY_AGREEMENT_OF_UNIFORM | COMM;
    tell(0, 1, GY_AGREEMENT_DECIDE, 0, blob, bytes);
    cr_assert(queued == 0);
    tell(0, 1, GY_AGREEMENT_BEAT, 0, NULL, 0);
    cr_assert(queued == 1);
    deliver();
    cr_assert(queued == 0 && !nodes[0].agreement->instances && !nodes[1].agreement->instances);
    comm = COMM;
    tell(0, 1, GY_AGREEMENT_BEAT, 0, NULL, 0);
    cr_assert(queued == 0 && nodes[1].agreement->instances && !nodes[1].agreement->instances->quit);
    end();
}

/* A rank that finds itself without a quorum, and tries again and again, first forgets instances that it has quit and
 * that were never sent. That also holds if it never came to the instance in which the others wait. */
Test(agreement, who_is_too_few_for_good_is_not_waited_for_whatever_it_has_forgotten)
{
    for (uint32_t tries = 1; tries <= 4; tries++) {
        for (int knows = 0; knows < 2; knows++) {
            uint32_t first = knows ? 1 : 2; /* of its agreements; the others' is the first */

            begin();
            for (int i = 1; i < RANKS; i++)
                nodes[0].failures[i] = (struct gy_failed_rank){.status = GYRE_PEER_UNREACHABLE, .when = now};
            for (uint32_t number = first; number < first + tries; number++)
                be_parted(0, number);
            queued = 0; /* none of what it has said has come */
            for (int rank = 1; rank < RANKS; rank++)
                cr_assert(enter(rank, RANKS, 3) == GYRE_SUCCESS);
            expect_left_out(0, 2 * GY_SECOND, "tries again");
            end();
        }
    }
}

/* A decided instance needs no further member: a rank that enters only then does not blame a rank that has quit. */
Test(agreement, who_quits_is_not_blamed_for_what_has_been_decided)
{
    uint8_t blob[256];
    uint64_t bits;
    size_t bytes = outcome_of(0, blob);

    begin();
    cr_assert(enter(2, RANKS, 3) == GYRE_SUCCESS);
    gy_agreement_quit(nodes[2].agreement, COMM, 1);
    deliver();
    tell(0, 3, GY_AGREEMENT_DECIDE, 0, blob, bytes);
    cr_assert(enter(3, RANKS, 3) == GYRE_SUCCESS && step(3, &bits) == GYRE_EXCLUDED);
    cr_assert(nodes[3].failures[2].status == GYRE_SUCCESS);
    end();
}

/* Answers to what is no question would go on for ever. */
Test(agreement, two_that_have_quit_have_nothing_more_to_say)
{
    begin();
    for (int i = 0; i < 2; i++) {
        cr_assert(enter(i, RANKS, 3) == GYRE_SUCCESS);
        gy_agreement_quit(nodes[i].agreement, COMM, 1);
    }
    deliver(); /* ends where the queue does */
    end();
}

/* Of two only the other is left, which is not enough: it is told so, in time. */
Test(agreement, who_is_too_few_without_the_coordinator_that_quit_ends)
{
    gyre_status status[RANKS];
    uint64_t bits[RANKS];

    begin();
    cr_assert(enter(0, 2, 1) == GYRE_SUCCESS && enter(1, 2, 1) == GYRE_SUCCESS);
    gy_agreement_quit(nodes[0].agreement, COMM, 1);
    run(1, 1, status, bits);
    cr_assert(status[1] == GYRE_PARTITIONED, "%d", status[1]);
    end();
}

/* The death of rank 0 is not confirmed yet when rank 1 is stopped for longer than it would wait for that. It is
 * confirmed when rank 1 resumes. */
Test(agreement, a_proof_is_looked_at_before_its_time_is_over)
{
    gyre_status status[RANKS];
    uint64_t bits[RANKS];

    for (int steps = 1; steps < 3; steps++) {
        begin();
        cr_assert(enter(0, 2, 1) == GYRE_SUCCESS && enter(1, 2, 1) == GYRE_SUCCESS);
        nodes[0].dead = true;
        nodes[1].failures[0] = (struct gy_failed_rank){.status = GYRE_PEER_DEAD, .when = now};
        for (int i = 0; i < steps; i++) {
            cr_assert(step(1, bits) == GYRE_IN_PROGRESS);
            now += 20 * GY_MILLISECOND;
        }
        now += 600 * GY_MILLISECOND;
        cr_assert(step(1, bits) == GYRE_IN_PROGRESS, "it has not looked since");
        nodes[1].failures[0].proved = true;
        run(1, 1, status, bits);
        cr_assert(status[1] == GYRE_SUCCESS, "%d", status[1]);
        end();
    }
}

/* A rank that computes between two polls, and polls every 60 or every 900 ms (gyre_test), is told in the end, too. */
Test(agreement, who_looks_seldom_is_told_that_it_is_too_few)
{
    uint64_t bits[RANKS];

    for (int64_t pause = 60 * GY_MILLISECOND; pause < GY_SECOND; pause *= 15) {
        gyre_status status = GYRE_IN_PROGRESS;

        begin();
        cr_assert(enter(3, RANKS, 1) == GYRE_SUCCESS);
        for (int i = 0; i < 3; i++)
            nodes[3].failures[i] = (struct gy_failed_rank){.status = GYRE_PEER_UNREACHABLE, .when = now};
        for (int i = 0; i < 30 && status == GYRE_IN_PROGRESS; i++) {
            status = step(3, bits);
            now += pause;
        }
        cr_assert(status == GYRE_PARTITIONED, "a look every %lld ms: %d", (long long)(pause / GY_MILLISECOND), status);
        end();
    }
}

/* Ranks 0 and 1, which wait for rank 2, for so long. */
static void wait_for_two(int64_t ns)
{
    uint64_t bits;

    for (int64_t until = now + ns; now < until; now += 20 * GY_MILLISECOND) {
        for (int i = 0; i < 2; i++)
            cr_assert(step(i, &bits) == GYRE_IN_PROGRESS);
        deliver();
    }
}

/* A rank that was stopped for longer than the others wait is not away if these were stopped as well: they have not
 * gone on without it. */
Test(agreement, a_job_that_is_stopped_as_a_whole_is_not_away)
{
    gyre_status status[RANKS];
    uint64_t bits[RANKS];

    for (int waits = 0; waits < 2; waits++) { /* it is decided as soon as they wake, or later */
        begin();
        for (int i = 0; i < 2; i++)
            cr_assert(enter(i, RANKS - 1, 1) == GYRE_SUCCESS);
        wait_for_two(GY_SECOND);
        now += 100 * GY_SECOND;
        wait_for_two(waits ? 8 * GY_SECOND : 20 * GY_MILLISECOND);
        cr_assert(enter(2, RANKS - 1, 1) == GYRE_SUCCESS);
        run(0, RANKS - 2, status, bits);
        for (int i = 0; i < 2; i++) {
            int64_t away = now - gy_agreement_polled(nodes[i].agreement);
            cr_assert(status[i] == GYRE_SUCCESS && (waits ? away < GY_SECOND : away > 90 * GY_SECOND), "rank %d: %lld",
                      i, (long long)away);
        }
        end();
    }
}

Test(agreement, what_is_no_outcome_of_members_is_neither_kept_nor_passed_on)
{
    static const uint8_t garbage[40] = {1, 2, 3};
    uint8_t blob[256];
    uint64_t bits;
    size_t bytes = outcome_of(RANKS - 1, blob); /* of one that is no member */
    gyre_status status[RANKS];
    uint64_t all[RANKS];

    begin();
    cr_assert(enter(1, RANKS - 1, 5) == GYRE_SUCCESS && enter(2, RANKS - 1, 5) == GYRE_SUCCESS);
    for (int which = 0; which < 2; which++) {
        const uint8_t *body = which ? blob : garbage;
        size_t size = which ? bytes : sizeof(garbage);

        queued = 0;
        tell(0, 1, GY_AGREEMENT_PROPOSE, 0, body, size);
        tell(0, 1, GY_AGREEMENT_DECIDE, 0, body, size);
        cr_assert(queued == 0, "%d messages followed from nonsense", queued);
        cr_assert(step(1, &bits) == GYRE_IN_PROGRESS);
    }
    tell(RANKS - 1, 2, GY_AGREEMENT_DECIDE, 0, blob, bytes); /* of a rank that is no member, too */
    cr_assert(step(2, &bits) == GYRE_IN_PROGRESS);
    tell(2, 0, GY_AGREEMENT_DECIDE, 0, blob, bytes); /* before it has entered: an outcome, for all it knows */
    cr_assert(enter(0, RANKS - 1, 5) == GYRE_SUCCESS && step(0, &bits) == GYRE_IN_PROGRESS);
    tell(1, 0, GY_AGREEMENT_JOIN, 0, garbage, sizeof(garbage));
    tell(2, 0, GY_AGREEMENT_JOIN, 0, blob, bytes);
    queued = 0;
    cr_assert(step(0, &bits) == GYRE_IN_PROGRESS);
    run(0, RANKS - 2, status, all);
    for (int i = 0; i < RANKS - 1; i++)
        cr_assert(status[i] == GYRE_SUCCESS && all[i] == 5, "rank %d: %d", i, status[i]);
    end();
}

/* Every allocation fails once, also where the first coordinator has decided, alone, and dies before it has told any
 * rank: the next one then must know what had been accepted, whatever it has no memory for. */
Test(agreement, agreement_without_memory)
{
    gyre_status status[RANKS];
    uint64_t bits[RANKS], first;

    for (int dies = 0; dies < 2; dies++) {
        uint64_t nth = 0, before;

        do {
            begin();
            before = gy_alloc_count();
            gy_alloc_fail_at(++nth);
            for (int i = 0; i < RANKS; i++) {
                gyre_status entered = enter(i, RANKS, ~(UINT64_C(1) << i));

                cr_assert(entered == GYRE_SUCCESS || entered == GYRE_NO_MEMORY);
                cr_assert(entered == GYRE_SUCCESS || enter(i, RANKS, ~(UINT64_C(1) << i)) == GYRE_SUCCESS);
            }
            first = 0;
            for (int i = 0; dies && first == 0 && i < 1000; i++) {
                for (int rank = RANKS - 1; rank >= 0;
                     rank--) /* the coordinator last, whose DECIDE is then in the queue */
                    if (step(rank, &first) != GYRE_IN_PROGRESS)
                        break;
                if (first == 0)
                    deliver();
                now += 20 * GY_MILLISECOND;
            }
            cr_assert(!dies || first == ~UINT64_C(15));
            if (dies) {
                queued = 0;
                die(0);
            }
            run(dies, RANKS - 1, status, bits);
            for (int i = dies; i < RANKS; i++)
                cr_assert(status[i] == GYRE_SUCCESS && bits[i] == ~UINT64_C(15), "allocation %lu, rank %d: %d, %lx",
                          (unsigned long)nth, i, status[i], (unsigned long)bits[i]);
            end();
        } while (gy_alloc_count() - before >= nth);
        gy_alloc_fail_at(0);
        cr_assert(nth > 20, "only %lu allocations", (unsigned long)nth);
    }
}
