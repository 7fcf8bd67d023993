/* A team: the caller computes piece 0, and a thread each of the others, once for every generation of work.
 *
 *     caller    lock ─ generation + 1, wake ─ piece 0 ─ wait until left = 0 ─ unlock
 *     thread i         sleep until generation changes ─ piece i ─ left − 1, the last one wakes the caller
 *
 * Pieces do not depend on the thread that computes them, so results depend on the grid and never on time. A child of
 * a fork has no such threads; there the caller computes all pieces. There are no threads until gyre_nn_set_threads
 * starts them. `lock` guards all of the team except `turn`, which a caller holds for the whole of its job. */
#include "backend/thread_pool.h"

#include "backend/openblas.h"
#include "base/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#define MOST 256

static struct team {
    pthread_mutex_t turn, lock;
    pthread_cond_t work, done;
    struct gy_nn_grid grid;
    size_t threads; /* beside the caller */
    pthread_t ids[MOST];
    pid_t owner;
    uint64_t generation;
    size_t left;
    bool stop;
    void (*piece)(const void *user, size_t index);
    const void *user;
} team = {
    .turn = PTHREAD_MUTEX_INITIALIZER,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .work = PTHREAD_COND_INITIALIZER,
    .done = PTHREAD_COND_INITIALIZER,
    .grid = {1, 1},
};

static void *serve(void *argument)
{
    size_t index = (size_t)(uintptr_t)argument;
    uint64_t seen = 0;
    pthread_mutex_lock(&team.lock);
    for (;;) {
        while (team.generation == seen && !team.stop)
            pthread_cond_wait(&team.work, &team.lock);
        if (team.stop)
            break;
        seen = team.generation;
        void (*piece)(const void *, size_t) = team.piece;
        const void *user = team.user;
        pthread_mutex_unlock(&team.lock);
        piece(user, index);
        pthread_mutex_lock(&team.lock);
        if (--team.left == 0)
            pthread_cond_signal(&team.done);
    }
    pthread_mutex_unlock(&team.lock);
    return NULL;
}

struct gy_nn_grid gy_nn_team_grid(void)
{
    return team.grid;
}

void gy_nn_team_run(void (*piece)(const void *user, size_t index), const void *user)
{
    size_t pieces = team.grid.rows * team.grid.cols;
    if (team.threads + 1 != pieces || team.owner != getpid()) {
        for (size_t i = 0; i < pieces; i++)
            piece(user, i);
        return;
    }
    pthread_mutex_lock(&team.turn);
    pthread_mutex_lock(&team.lock);
    team.piece = piece;
    team.user = user;
    team.left = team.threads;
    team.generation++;
    pthread_cond_broadcast(&team.work);
    pthread_mutex_unlock(&team.lock);
    piece(user, 0);
    pthread_mutex_lock(&team.lock);
    while (team.left > 0)
        pthread_cond_wait(&team.done, &team.lock);
    pthread_mutex_unlock(&team.lock);
    pthread_mutex_unlock(&team.turn);
}

static void dismiss(void)
{
    pthread_mutex_lock(&team.lock);
    team.stop = true;
    pthread_cond_broadcast(&team.work);
    pthread_mutex_unlock(&team.lock);
    for (size_t i = 0; i < team.threads && team.owner == getpid(); i++)
        pthread_join(team.ids[i], NULL);
    team.threads = 0;
    team.stop = false;
    team.generation = 0;
    team.grid = (struct gy_nn_grid){1, 1};
}

/* Signals are the caller's threads' business. */
static int hire(size_t index)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int problem = pthread_create(&team.ids[index], NULL, serve, (void *)(uintptr_t)(index + 1));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem;
}

gyre_status gyre_nn_set_threads(size_t samples, size_t neurons)
{
    if (samples == 0 || neurons == 0 || samples > MOST || neurons > MOST || samples * neurons > MOST)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%zu times %zu threads: between 1 and %d are allowed", samples,
                          neurons, MOST);
    int problem = 0;
    pthread_mutex_lock(&team.turn);
    dismiss();
    team.owner = getpid();
    while (problem == 0 && team.threads + 1 < samples * neurons) {
        problem = hire(team.threads);
        team.threads += problem == 0;
    }
    if (problem == 0)
        team.grid = (struct gy_nn_grid){samples, neurons};
    else
        dismiss();
    pthread_mutex_unlock(&team.turn);
    if (problem != 0)
        return gy_nn_fail_system(problem, "cannot start %zu threads", samples * neurons - 1);
    if (samples * neurons > 1)
        gy_nn_blas_threads(1);
    return GYRE_SUCCESS;
}
