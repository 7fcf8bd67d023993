/* The meeting of the calls of ranks of one process: meeting.h. */
#include "collectives/device/meeting.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "collectives/device/launcher.h"
#include "collectives/engine/call_check.h"
#include "core/clock.h"
#include "core/mem.h"

/* A call in which at least one rank has arrived. */
struct gathering {
    struct gathering *next;
    uint64_t number; /* number of a collective, from 1 on; 0: a message */
    int sender, receiver;
    int places, here; /* `places`: all ranks, or 2 for a message; `here`: those that have arrived */
    struct gy_arrival *of[];
};

struct gy_host_meeting {
    struct gy_host_meeting *next;
    uint64_t key;
    unsigned users; /* guarded by list_lock */
    int size;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    struct gathering *open, **last; /* calls without an outcome, ordered by first arrival */
    struct gathering *spare;
    struct gy_error error; /* not GYRE_SUCCESS: the meeting has ended */
    struct gy_launcher launcher;
    struct gy_fused_plan plan;
    struct {
        uint64_t arrived; /* number of collectives in which the rank has arrived */
        bool departed;
    } rank[];
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gy_host_meeting *meetings;
static uint64_t keys;

/* ---- The list of all meetings ---- */

static void open_locks(struct gy_host_meeting *meeting)
{
    pthread_condattr_t monotonic;
    pthread_mutex_init(&meeting->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&meeting->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void free_meeting(struct gy_host_meeting *meeting)
{
    if (gy_device_enter(&meeting->launcher.device) == GY_CU_SUCCESS) {
        gy_launcher_close(&meeting->launcher);
        gy_device_leave(&meeting->launcher.device);
    }
    while (meeting->spare) {
        struct gathering *gone = meeting->spare;
        meeting->spare = gone->next;
        gy_free(gone);
    }
    gy_fused_plan_close(&meeting->plan);
    pthread_mutex_destroy(&meeting->lock);
    pthread_cond_destroy(&meeting->changed);
    gy_free(meeting);
}

static gy_cu_result open_launcher(struct gy_host_meeting *meeting, const struct gy_device *device,
                                  struct gy_image *image, unsigned blocks_most)
{
    gy_cu_result result = gy_device_enter(device);
    meeting->launcher.device = *device;
    meeting->launcher.what = "cuCtxPushCurrent";
    if (result != GY_CU_SUCCESS) {
        gy_image_put(image);
        return result;
    }
    result = gy_launcher_open(&meeting->launcher, device, image, blocks_most);
    gy_device_leave(device);
    return result;
}

struct gy_host_meeting *gy_host_meeting_make(const struct gy_device *device, struct gy_image *image, int size,
                                             unsigned blocks_most, char *why, size_t why_bytes)
{
    struct gy_host_meeting *meeting = gy_alloc_zero(1, sizeof(*meeting) + (size_t)size * sizeof(meeting->rank[0]));
    if (!meeting || !gy_fused_plan_open(&meeting->plan, size)) {
        gy_free(meeting);
        gy_image_put(image);
        snprintf(why, why_bytes, "out of memory for the calls of %d ranks", size);
        return NULL;
    }
    meeting->size = size;
    meeting->last = &meeting->open;
    meeting->users = 1;
    open_locks(meeting);
    gy_cu_result result = open_launcher(meeting, device, image, blocks_most);
    if (result != GY_CU_SUCCESS) {
        gy_driver_sentence(device->driver, result, meeting->launcher.what, why, why_bytes);
        free_meeting(meeting);
        return NULL;
    }
    pthread_mutex_lock(&list_lock);
    meeting->key = ++keys;
    meeting->next = meetings;
    meetings = meeting;
    pthread_mutex_unlock(&list_lock);
    return meeting;
}

uint64_t gy_host_meeting_key(const struct gy_host_meeting *meeting)
{
    return meeting->key;
}

struct gy_host_meeting *gy_host_meeting_find(uint64_t key)
{
    pthread_mutex_lock(&list_lock);
    struct gy_host_meeting *meeting = meetings;
    while (meeting && meeting->key != key)
        meeting = meeting->next;
    if (meeting)
        meeting->users++;
    pthread_mutex_unlock(&list_lock);
    return meeting;
}

void gy_host_meeting_put(struct gy_host_meeting *meeting)
{
    pthread_mutex_lock(&list_lock);
    const bool last = --meeting->users == 0;
    if (last) {
        struct gy_host_meeting **at = &meetings;
        while (*at != meeting)
            at = &(*at)->next;
        *at = meeting->next;
    }
    pthread_mutex_unlock(&list_lock);
    if (last)
        free_meeting(meeting);
}

/* ---- Outcomes ---- */

static void decide(struct gy_arrival *arrival, enum gy_outcome outcome)
{
    atomic_store_explicit(&arrival->outcome, (int)outcome, memory_order_release);
}

static void keep_spare(struct gy_host_meeting *meeting, struct gathering *gathering)
{
    gathering->next = meeting->spare;
    meeting->spare = gathering;
}

/* The caller holds the lock. An arrival must not be accessed after its outcome has been stored: its rank may free
 * it. */
static void end(struct gy_host_meeting *meeting, const struct gy_error *error)
{
    if (meeting->error.status == GYRE_SUCCESS) {
        meeting->error = *error;
        if (error->status != GYRE_PEER_LEFT) /* the world is intact: earlier calls still run */
            gy_launcher_stop(&meeting->launcher);
    }
    while (meeting->open) {
        struct gathering *gone = meeting->open;
        meeting->open = gone->next;
        for (int p = 0; p < gone->places; p++)
            if (gone->of[p])
                decide(gone->of[p], GY_OUTCOME_FAILED);
        keep_spare(meeting, gone);
    }
    meeting->last = &meeting->open;
    pthread_cond_broadcast(&meeting->changed);
}

/* Stores in each arrival a rank with a different call. Returns true if there is one. */
static bool calls_differ(const struct gathering *gathering)
{
    struct gy_arrival *const *of = gathering->of;
    int odd = 1;
    while (odd < gathering->places && gy_shape_equal(&of[odd]->shape, &of[0]->shape))
        odd++;
    if (odd == gathering->places)
        return false;
    for (int r = 0; r < gathering->places; r++) {
        of[r]->other = gy_shape_equal(&of[r]->shape, &of[0]->shape) ? odd : 0;
        of[r]->theirs = of[of[r]->other]->shape;
    }
    return true;
}

/* Returns the outcome of a complete call. If kernels can execute the call, the plan contains it. */
static enum gy_outcome choose(struct gy_host_meeting *meeting, const struct gathering *gathering)
{
    struct gy_arrival *const *of = gathering->of;
    if (gathering->number > 0 && calls_differ(gathering))
        return GY_OUTCOME_DIFFERS;
    for (int p = 0; p < gathering->places; p++)
        if (!of[p]->reachable)
            return GY_OUTCOME_STAGED;
    const int kernel = gy_arrival_kernel(of[0]);
    if (kernel < 0 || !gy_launcher_has(&meeting->launcher, kernel) ||
        !gy_fused_plan_make(&meeting->plan, of, gathering->places))
        return GY_OUTCOME_STAGED;
    return GY_OUTCOME_FUSED;
}

/* The complete calls, from their removal from the list to the launch. */
struct settling {
    struct gy_arrival *decided; /* arrivals of calls to be launched, or of calls after an error */
    unsigned fused;             /* number of arrivals of calls to be launched */
    gy_cu_result result;
};

static gy_cu_result fuse(struct gy_host_meeting *meeting, const struct gathering *gathering, bool first)
{
    struct gy_launcher *launcher = &meeting->launcher;
    gy_cu_result result = first ? gy_launcher_begin(launcher) : GY_CU_SUCCESS;
    for (int p = 0; p < gathering->places && result == GY_CU_SUCCESS; p++)
        result = gy_launcher_wait(launcher, gathering->of[p]->ready);
    return result == GY_CU_SUCCESS ? gy_launcher_add(launcher, &meeting->plan, gathering->of, gathering->places)
                                   : result;
}

static void settle_one(struct gy_host_meeting *meeting, struct gathering *gathering, struct settling *settling)
{
    enum gy_outcome outcome = choose(meeting, gathering);
    if (outcome == GY_OUTCOME_FUSED) {
        settling->result = fuse(meeting, gathering, settling->fused == 0);
        settling->fused += (unsigned)gathering->places;
    }
    for (int p = 0; p < gathering->places; p++) {
        struct gy_arrival *arrival = gathering->of[p];
        if (outcome != GY_OUTCOME_FUSED && settling->result == GY_CU_SUCCESS) {
            decide(arrival, outcome);
        } else {
            arrival->placed = settling->decided;
            settling->decided = arrival;
        }
    }
    keep_spare(meeting, gathering);
}

static void end_after(struct gy_host_meeting *meeting, const struct gy_arrival *last, gy_cu_result result)
{
    const struct gy_launcher *launcher = &meeting->launcher;
    struct gy_error error = {.status = GYRE_SYSTEM, .rank = last->comm->ctx->world->rank};
    char reason[300], what[160];
    gy_driver_sentence(launcher->device.driver, result, launcher->what, reason, sizeof(reason));
    gy_shape_print(&last->shape, what, sizeof(what));
    snprintf(error.text, sizeof(error.text), "rank %d: GPU %d has failed in %s: %s", error.rank,
             launcher->device.number, what, reason);
    end(meeting, &error);
}

/* The caller holds the lock. Launches all calls that are complete. */
static void settle(struct gy_host_meeting *meeting, const struct gy_arrival *last)
{
    struct settling settling = {.result = GY_CU_SUCCESS};
    struct gathering **at = &meeting->open;
    struct gy_launch *launch = NULL;
    while (*at && settling.result == GY_CU_SUCCESS) {
        struct gathering *gathering = *at;
        if (gathering->here < gathering->places) {
            at = &gathering->next;
            continue;
        }
        *at = gathering->next;
        settle_one(meeting, gathering, &settling);
    }
    while (*at)
        at = &(*at)->next;
    meeting->last = at;
    if (settling.fused > 0 && settling.result == GY_CU_SUCCESS)
        settling.result = gy_launcher_end(&meeting->launcher, settling.fused, &launch);
    if (settling.result != GY_CU_SUCCESS)
        end_after(meeting, last, settling.result);
    while (settling.decided) {
        struct gy_arrival *arrival = settling.decided;
        settling.decided = arrival->placed;
        arrival->launch = launch;
        decide(arrival, settling.result == GY_CU_SUCCESS ? GY_OUTCOME_FUSED : GY_OUTCOME_FAILED);
    }
    pthread_cond_broadcast(&meeting->changed);
}

/* ---- Arrivals ---- */

static bool is_message(const struct gy_arrival *arrival)
{
    return gy_is_point_to_point(arrival->call->collective);
}

static struct gathering *find(const struct gy_host_meeting *meeting, const struct gy_arrival *arrival, uint64_t number,
                              int sender, int receiver, int place)
{
    struct gathering *found = meeting->open;
    if (!is_message(arrival)) {
        while (found && found->number != number)
            found = found->next;
        return found;
    }
    while (found && (found->number > 0 || found->sender != sender || found->receiver != receiver || found->of[place]))
        found = found->next;
    return found;
}

/* Appends a call to the list, from the spare ones or newly allocated. Returns NULL if out of memory. */
static struct gathering *open_one(struct gy_host_meeting *meeting)
{
    const int most = meeting->size > 2 ? meeting->size : 2;
    struct gathering *made = meeting->spare;
    if (made)
        meeting->spare = made->next;
    else
        made = gy_alloc(sizeof(*made) + (size_t)most * sizeof(struct gy_arrival *));
    if (!made)
        return NULL;
    memset(made, 0, sizeof(*made) + (size_t)most * sizeof(struct gy_arrival *));
    *meeting->last = made;
    meeting->last = &made->next;
    return made;
}

static bool place(struct gy_host_meeting *meeting, struct gy_arrival *arrival)
{
    const int rank = arrival->comm->rank, peer = arrival->call->root;
    const bool sends = arrival->call->collective == GY_SEND_TO;
    const int sender = sends ? rank : peer, receiver = sends ? peer : rank;
    const bool message = is_message(arrival);
    const int at = !message ? rank : sends ? 0 : 1;
    const uint64_t number = message ? 0 : meeting->rank[rank].arrived + 1;
    struct gathering *gathering = find(meeting, arrival, number, sender, receiver, at);
    if (!gathering) {
        gathering = open_one(meeting);
        if (!gathering)
            return false;
        gathering->number = number;
        gathering->places = message ? 2 : meeting->size;
        gathering->sender = sender;
        gathering->receiver = receiver;
    }
    if (!message)
        meeting->rank[rank].arrived = number;
    arrival->shape.sequence = number;
    gathering->of[at] = arrival;
    gathering->here++;
    return true;
}

/* The caller holds the lock. There is no memory for the call of `placeless`. Ends the meeting, and all arrivals of this
 * thread fail. */
static void end_without_memory(struct gy_host_meeting *meeting, struct gy_arrival *arrivals,
                               const struct gy_arrival *placeless)
{
    struct gy_error error = {.status = GYRE_NO_MEMORY, .rank = placeless->comm->ctx->world->rank};
    char what[160];
    gy_shape_print(&placeless->shape, what, sizeof(what));
    snprintf(error.text, sizeof(error.text), "rank %d is out of memory for %s", error.rank, what);
    end(meeting, &error);
    for (struct gy_arrival *arrival = arrivals; arrival; arrival = arrival->next)
        decide(arrival, GY_OUTCOME_FAILED);
}

void gy_host_meeting_arrive(struct gy_host_meeting *meeting, struct gy_arrival *arrivals)
{
    const struct gy_arrival *last = NULL, *placeless = NULL;
    pthread_mutex_lock(&meeting->lock);
    for (struct gy_arrival *arrival = arrivals; arrival && !placeless; arrival = arrival->next) {
        if (meeting->error.status != GYRE_SUCCESS)
            decide(arrival, GY_OUTCOME_FAILED);
        else if (!place(meeting, arrival))
            placeless = arrival;
        last = arrival;
    }
    if (placeless)
        end_without_memory(meeting, arrivals, placeless);
    else if (last && meeting->error.status == GYRE_SUCCESS)
        settle(meeting, last);
    pthread_mutex_unlock(&meeting->lock);
}

void gy_host_meeting_wait(struct gy_host_meeting *meeting, const struct gy_arrival *arrival, int64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)ns;
    until.tv_sec += until.tv_nsec / GY_SECOND;
    until.tv_nsec %= GY_SECOND;
    pthread_mutex_lock(&meeting->lock);
    if (atomic_load_explicit(&arrival->outcome, memory_order_relaxed) == GY_OUTCOME_NONE)
        pthread_cond_timedwait(&meeting->changed, &meeting->lock, &until);
    pthread_mutex_unlock(&meeting->lock);
}

/* Returns the rank of the communicator to which a place belongs. */
static int rank_of(const struct gathering *gathering, int place)
{
    return gathering->number > 0 ? place : place == 0 ? gathering->sender : gathering->receiver;
}

int gy_host_meeting_missing(struct gy_host_meeting *meeting, const struct gy_arrival *arrival, bool *departed_p)
{
    int missing = -1;
    *departed_p = false;
    pthread_mutex_lock(&meeting->lock);
    for (const struct gathering *gathering = meeting->open; gathering; gathering = gathering->next) {
        bool is_here = false;
        for (int p = 0; p < gathering->places; p++)
            is_here |= gathering->of[p] == arrival;
        for (int p = 0; is_here && p < gathering->places && !*departed_p; p++) {
            if (gathering->of[p])
                continue;
            *departed_p = meeting->rank[rank_of(gathering, p)].departed;
            if (missing < 0 || *departed_p)
                missing = rank_of(gathering, p);
        }
    }
    pthread_mutex_unlock(&meeting->lock);
    return missing;
}

void gy_host_meeting_depart(struct gy_host_meeting *meeting, int rank)
{
    pthread_mutex_lock(&meeting->lock);
    meeting->rank[rank].departed = true;
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->lock);
}

void gy_host_meeting_fail(struct gy_host_meeting *meeting, const struct gy_error *error)
{
    pthread_mutex_lock(&meeting->lock);
    end(meeting, error);
    pthread_mutex_unlock(&meeting->lock);
}

struct gy_error gy_host_meeting_error(struct gy_host_meeting *meeting)
{
    pthread_mutex_lock(&meeting->lock);
    struct gy_error error = meeting->error;
    pthread_mutex_unlock(&meeting->lock);
    return error;
}
