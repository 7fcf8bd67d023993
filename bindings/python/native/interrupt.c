#include "interrupt.h"

#include "library.h"
#include "package.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

static struct {
    pthread_mutex_t mutex; /* of `comms` and `count` */
    gyre_comm *comms[GYPY_GUARD_MOST];
    size_t count;
    sem_t pressed;
    bool watched; /* the thread is there */
    struct sigaction before;
} guard = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void abort_all(void)
{
    pthread_mutex_lock(&guard.mutex);
    for (size_t i = 0; i < guard.count; i++)
        gypy_library.comm_abort(guard.comms[i]);
    pthread_mutex_unlock(&guard.mutex);
}

static void *watch(void *unused)
{
    (void)unused;
    for (;;) {
        if (sem_wait(&guard.pressed) == 0)
            abort_all();
    }
    return NULL;
}

/* Every signal goes to the threads of the program. */
static bool start_watching(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_t thread;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, NULL, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

/* A forked child has no thread but the one that forked, which may have done so in an operation of the program's own,
 * and so inside a wait that its parent guards. */
static void begin_anew(void)
{
    pthread_mutex_init(&guard.mutex, NULL);
    guard.count = 0;
    guard.watched = false;
}

static bool is_watched(void)
{
    static bool prepared;
    if (!prepared)
        prepared = pthread_atfork(NULL, NULL, begin_anew) == 0;
    if (prepared && !guard.watched && sem_init(&guard.pressed, 0, 0) == 0)
        guard.watched = start_watching();
    return guard.watched;
}

static void on_interrupt(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    if (guard.before.sa_flags & SA_SIGINFO)
        guard.before.sa_sigaction(number, info, context);
    else if (guard.before.sa_handler != SIG_DFL && guard.before.sa_handler != SIG_IGN)
        guard.before.sa_handler(number);
    sem_post(&guard.pressed);
    errno = saved;
}

/* 1 if Python raises KeyboardInterrupt, else 0; −1 with an exception. */
static int raises_interrupt(void)
{
    PyObject *handler = PyObject_CallFunction(gypy_package.get_handler, "i", SIGINT);
    if (!handler)
        return -1;
    int raises = handler == gypy_package.interrupt;
    Py_DECREF(handler);
    return raises;
}

int gypy_guard_enter(gyre_comm *const *comms, size_t count)
{
    if (PyThread_get_thread_ident() != gypy_package.main || guard.count || !count || !is_watched())
        return 0;
    int raises = raises_interrupt();
    if (raises <= 0)
        return raises;
    struct sigaction action = {.sa_sigaction = on_interrupt, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    pthread_mutex_lock(&guard.mutex);
    guard.count = count < GYPY_GUARD_MOST ? count : GYPY_GUARD_MOST;
    for (size_t i = 0; i < guard.count; i++)
        guard.comms[i] = comms[i];
    pthread_mutex_unlock(&guard.mutex);
    while (sem_trywait(&guard.pressed) == 0) /* of a wait before this one */
        ;
    sigaction(SIGINT, NULL, &guard.before);
    sigaction(SIGINT, &action, NULL);
    if (PyErr_CheckSignals() == 0)
        return 1;
    gypy_guard_leave();
    return -1;
}

void gypy_guard_leave(void)
{
    if (PyThread_get_thread_ident() != gypy_package.main || !guard.count)
        return;
    struct sigaction now;
    sigaction(SIGINT, NULL, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_interrupt)
        sigaction(SIGINT, &guard.before, NULL);
    pthread_mutex_lock(&guard.mutex);
    guard.count = 0;
    pthread_mutex_unlock(&guard.mutex);
}
