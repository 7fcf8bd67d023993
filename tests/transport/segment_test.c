/* The segment, in worlds made by hand whose ranks are threads: layout, heap, no space, unknown processes at the
 * listener, errors of one rank. */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bootstrap/world.h"
#include "core/clock.h"
#include "core/poller.h"
#include "membership/overlay.h"
#include "transport/shm/internal.h"

#define RANKS 7

/* One rank of a hand-made world of `n` on this host. */
struct local {
    struct gy_world world;
    struct gy_config config;
    struct gy_member members[RANKS];
    int locals[RANKS];
    struct gy_segment *segment;
    struct gy_error error;
    gyre_status status;
    int64_t patience;
    bool absent;
};

static struct local ranks[RANKS];
static _Atomic int refusals;       /* of messages, by the kernel */
static _Atomic bool other_structs; /* offers are those of a build whose structs are others */

ssize_t __real_sendmsg(int socket, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int socket, const struct msghdr *message, int flags);

ssize_t __wrap_sendmsg(int socket, const struct msghdr *message, int flags)
{
    struct gy_segment_offer offer;
    if (atomic_load(&other_structs) && message->msg_iov[0].iov_len == sizeof(offer)) {
        memcpy(&offer, message->msg_iov[0].iov_base, sizeof(offer));
        offer.layout.inside++;
        struct iovec changed = {&offer, sizeof(offer)};
        struct msghdr copy = *message;
        copy.msg_iov = &changed;
        return __real_sendmsg(socket, &copy, flags);
    }
    if (atomic_fetch_sub(&refusals, 1) <= 0)
        return __real_sendmsg(socket, message, flags);
    errno = ETOOMANYREFS;
    return -1;
}

static void make_worlds(int n, size_t heap, int64_t patience)
{
    static uint64_t job;
    job += (uint64_t)getpid() << 20 | 1;
    memset(ranks, 0, sizeof(ranks));
    for (int r = 0; r < n; r++) {
        struct local *me = &ranks[r];
        me->config = (struct gy_config){.shm_reserve = heap, .shm_slot = 128u << 10};
        me->patience = patience;
        me->world = (struct gy_world){.rank = r,
                                      .size = n,
                                      .job = job,
                                      .members = me->members,
                                      .hosts = 1,
                                      .locals = me->locals,
                                      .nlocals = n,
                                      .local = r,
                                      .config = &me->config};
        for (int i = 0; i < n; i++) {
            me->locals[i] = i;
            me->members[i] = (struct gy_member){.nonce = 1000 + (uint64_t)i, .local = i};
        }
        cr_assert_eq(gy_poller_create(&me->world.poller, &me->error), GYRE_SUCCESS);
    }
}

static void *create(void *argument)
{
    struct local *me = argument;
    if (!me->absent)
        me->status = gy_segment_create(&me->world, gy_now() + me->patience, &me->segment, &me->error);
    return NULL;
}

static void create_all(int n)
{
    pthread_t threads[RANKS];
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, create, &ranks[i]);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static void free_all(int n)
{
    for (int i = 0; i < n; i++) {
        gy_segment_free(ranks[i].segment);
        gy_poller_free(ranks[i].world.poller);
    }
}

static void create_good(int n, size_t heap)
{
    make_worlds(n, heap, 30 * GY_SECOND);
    create_all(n);
    for (int i = 0; i < n; i++)
        cr_assert_eq(ranks[i].status, GYRE_SUCCESS, "%s", ranks[i].error.text);
}

Test(segment, one_rank_has_none, .timeout = 120)
{
    struct gy_segment *segment = (struct gy_segment *)&ranks;
    make_worlds(1, 1 << 20, GY_SECOND);
    cr_assert_eq(gy_segment_create(&ranks[0].world, 0, &segment, &ranks[0].error), GYRE_SUCCESS);
    cr_assert_null(segment);
    free_all(1);
}

/* As processes of their own would be: here all have one number, and one nonce each. */
static void number_all(int n, bool reads)
{
    for (int r = 0; r < n; r++) {
        ranks[r].config.shm_read = reads;
        for (int i = 0; i < n; i++)
            ranks[r].members[i].pid = (int32_t)getpid();
    }
}

static int reaching(int n)
{
    int count = 0;
    for (int r = 0; r < n; r++)
        count += gy_segment_reads_all(ranks[r].segment);
    return count;
}

Test(segment, private_memory_is_read_when_all_have_found_that_they_can, .timeout = 120)
{
    static const char text[] = "private to this process, and longer than a word";
    char found[sizeof(text)] = "";
    create_good(3, 1 << 20);
    number_all(3, true);
    cr_assert_not(gy_segment_reads_all(ranks[0].segment), "the others have not tried");
    cr_assert_not(gy_segment_reads_all(ranks[1].segment));
    cr_assert(gy_segment_reads_all(ranks[2].segment), "it is the last one");
    cr_assert_eq(reaching(3), 3);
    cr_assert_eq(gy_segment_read_private(ranks[0].segment, 1, (uint64_t)(uintptr_t)text, sizeof(text), found), 0);
    cr_assert_str_eq(found, text);
    cr_assert_eq(gy_segment_read_private(ranks[0].segment, 1, 8, 1, found), EFAULT);
    free_all(3);
}

/* A rank dies, and another process gets its number: here one that has the same memory, but for the word. */
Test(segment, private_memory_of_who_has_the_number_now_is_not_taken_for_the_ranks, .timeout = 120)
{
    static const char text[] = "private";
    char found[sizeof(text)] = "";
    int ends[2];
    create_good(2, 1 << 20);
    number_all(2, true);
    gy_segment_reads_all(ranks[1].segment);
    cr_assert(gy_segment_reads_all(ranks[0].segment));
    cr_assert_eq(pipe(ends), 0);
    uint64_t proof = atomic_load(&gy_segment_rank(ranks[0].segment, 1)->proof);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* or it would hold the output of a test that fails open for ever */
        *(uint64_t *)(uintptr_t)proof += 1;
        _exit(write(ends[1], "1", 1) == 1 && pause() == 0);
    }
    cr_assert_eq(read(ends[0], found, 1), 1);
    ranks[0].members[1].pid = child;
    cr_assert_eq(gy_segment_read_private(ranks[0].segment, 1, (uint64_t)(uintptr_t)text, sizeof(text), found), ESRCH);
    cr_assert_eq(gy_segment_read_private(ranks[0].segment, 1, 8, 1, found), ESRCH, "not the rank's fault");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    cr_assert_eq(gy_segment_read_private(ranks[0].segment, 1, (uint64_t)(uintptr_t)text, sizeof(text), found), ESRCH);
    close(ends[0]);
    close(ends[1]);
    free_all(2);
}

Test(segment, private_memory_is_left_alone_where_one_may_not_or_meets_a_stranger, .timeout = 120)
{
    create_good(3, 1 << 20);
    number_all(3, true);
    ranks[1].config.shm_read = false;
    cr_assert_eq(reaching(3) + reaching(3), 0);
    free_all(3);
    create_good(3, 1 << 20);
    number_all(3, true);
    ranks[2].members[0].nonce++;
    cr_assert_eq(reaching(3) + reaching(3), 0);
    free_all(3);
    create_good(3, 1 << 20);
    number_all(3, true);
    ranks[0].members[1].pid = INT32_MAX;
    cr_assert_eq(reaching(3) + reaching(3), 0);
    free_all(3);
}

/* Areas do not overlap and are the same memory for all ranks. */
Test(segment, everybody_sees_everybodys_areas, .timeout = 120)
{
    create_good(RANKS, 4 << 20);
    for (int r = 0; r < RANKS; r++) {
        struct local *me = &ranks[r];
        cr_assert_eq(gy_segment_region_reserve(me->segment, 3, &me->error), GYRE_SUCCESS, "%s", me->error.text);
        memset(gy_segment_region_data(me->segment, r, 3), r + 1, gy_segment_region_bytes(me->segment));
        atomic_store(&gy_segment_region(me->segment, r, 3)->entered, (uint64_t)r + 100);
        atomic_store(&gy_segment_rank(me->segment, r)->heartbeat, (uint64_t)r + 200);
        for (int to = 0; to < RANKS; to++) {
            void *ring;
            cr_assert_eq(gy_segment_ring(me->segment, r, to, &ring, &me->error), GYRE_SUCCESS);
            memset(ring, 16 * r + to, gy_segment_ring_bytes(me->segment));
        }
    }
    atomic_store(&gy_segment_notice(ranks[0].segment)->word, 77);
    for (int r = 0; r < RANKS; r++) {
        struct gy_segment *segment = ranks[(r + 3) % RANKS].segment;
        unsigned char *data = gy_segment_region_data(segment, r, 3);
        cr_assert_eq(data[0], r + 1);
        cr_assert_eq(data[gy_segment_region_bytes(segment) - 1], r + 1);
        cr_assert_eq(atomic_load(&gy_segment_region(segment, r, 3)->entered), (uint64_t)r + 100);
        cr_assert_eq(atomic_load(&gy_segment_rank(segment, r)->heartbeat), (uint64_t)r + 200);
        cr_assert_eq(atomic_load(&gy_segment_rank(segment, r)->waiting_for), -1);
        for (int to = 0; to < RANKS; to++) {
            void *ring;
            gy_segment_ring(segment, r, to, &ring, &ranks[0].error);
            cr_assert_eq(((unsigned char *)ring)[0], 16 * r + to);
            cr_assert_eq(((unsigned char *)ring)[gy_segment_ring_bytes(segment) - 1], 16 * r + to);
        }
    }
    cr_assert_eq(atomic_load(&gy_segment_notice(ranks[RANKS - 1].segment)->word), 77);
    free_all(RANKS);
}

Test(segment, heap_is_first_fit_zeroed_and_translates, .timeout = 120)
{
    create_good(2, 4 << 20);
    struct gy_segment *mine = ranks[1].segment, *theirs = ranks[0].segment;
    struct gy_error *error = &ranks[1].error;
    void *a, *b, *c, *d;
    uint64_t offset;
    cr_assert_eq(gy_segment_heap_alloc(mine, 10000, &a, error), GYRE_SUCCESS);
    cr_assert_eq(gy_segment_heap_alloc(mine, 0, &b, error), GYRE_SUCCESS);
    cr_assert_eq(gy_segment_heap_alloc(mine, 4096, &c, error), GYRE_SUCCESS);
    cr_assert_eq((uintptr_t)a % 4096, 0);
    cr_assert_eq((char *)b, (char *)a + 12288);
    memset(a, 0xee, 10000);
    ((char *)c)[5] = 42;
    cr_assert(gy_segment_heap_offset(mine, (char *)c + 5, 1, &offset));
    cr_assert_eq(*((char *)gy_segment_heap_at(theirs, 1, offset)), 42);
    cr_assert(gy_segment_heap_holds(mine, a));
    cr_assert_not(gy_segment_heap_holds(mine, (char *)a + 1), "its middle");
    cr_assert(gy_segment_heap_free(mine, a));
    cr_assert_not(gy_segment_heap_holds(mine, a));
    cr_assert_not(gy_segment_heap_free(mine, a), "freed already");
    cr_assert_not(gy_segment_heap_free(mine, (char *)c + 4096), "never given out");
    cr_assert_eq(gy_segment_heap_alloc(mine, 8192, &d, error), GYRE_SUCCESS);
    cr_assert_eq(d, a, "the first gap that fits");
    for (size_t i = 0; i < 8192; i++)
        cr_assert_eq(((unsigned char *)d)[i], 0, "byte %zu", i);
    cr_assert_eq(gy_segment_heap_alloc(mine, 8192, &a, error), GYRE_SUCCESS);
    cr_assert_eq((char *)a, (char *)c + 4096, "the gap of one page is too small");
    free_all(2);
}

/* What a rank withdraws after a failure, the whole block and once. Later stores of a peer are not seen where it has
 * written since, nor by a rank that gets memory later; the rank's own are not seen by the peer. */
Test(segment, memory_that_is_withdrawn_is_its_owners_alone, .timeout = 120)
{
    create_good(2, 4 << 20);
    struct gy_segment *mine = ranks[1].segment, *theirs = ranks[0].segment;
    struct gy_error *error = &ranks[1].error;
    void *memory, *flag, *later;
    uint64_t offset, at;
    int status;
    cr_assert_eq(gy_segment_heap_alloc(mine, 5 * 4096, &memory, error), GYRE_SUCCESS);
    cr_assert_eq(gy_segment_heap_alloc(mine, 1, &flag, error), GYRE_SUCCESS);
    unsigned char *near = memory;
    cr_assert(gy_segment_heap_offset(mine, memory, 5 * 4096, &offset) && gy_segment_heap_offset(mine, flag, 1, &at));
    _Atomic unsigned char *far = gy_segment_heap_at(theirs, 1, offset), *go = gy_segment_heap_at(theirs, 1, at);
    memset(near, 1, 5 * 4096);
    pid_t peer = fork();
    cr_assert_geq(peer, 0);
    if (peer == 0) { /* another process, since the ranks of one share its mapping */
        while (*go == 0)
            sched_yield();
        int seen = far[4096];
        for (size_t i = 0; i < 5 * 4096; i++)
            far[i] = 3;
        _exit(seen);
    }
    cr_assert(gy_segment_heap_withdraw(mine, near + 4096 + 7, 2 * 4096));
    near[4096] = near[2 * 4096 + 5] = 2;
    cr_assert(gy_segment_heap_withdraw(mine, near + 4096, 4096), "another buffer there");
    *(_Atomic unsigned char *)flag = 1; /* what lies in another block is still shared */
    cr_assert_eq(waitpid(peer, &status, 0), peer);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1, "the peer sees what was there before");
    for (size_t i = 4096; i < 3 * 4096; i++) {
        bool written = i == 4096 || i == 2 * 4096 + 5;
        cr_assert_eq(near[i], (written ? 2 : 1), "byte %zu is %d", i, near[i]);
    }
    cr_assert(gy_segment_heap_free(mine, memory) && gy_segment_heap_free(mine, flag));
    for (size_t i = 0; i < 5 * 4096; i++)
        cr_assert_eq(far[i], 3, "a peer that has not heard, and may succeed, finds what it would have found");
    cr_assert_not(gy_segment_heap_holds(mine, memory));
    cr_assert_not(gy_segment_heap_free(mine, memory), "freed already");
    cr_assert_eq(gy_segment_heap_alloc(mine, 1, &later, error), GYRE_SUCCESS);
    cr_assert_geq((char *)later, (char *)memory + 5 * 4096, "given to nobody again");
    cr_assert_not(gy_segment_heap_withdraw(mine, &offset, 8), "not from here");
    cr_assert(gy_segment_heap_spans(mine, 0, 4 << 20) && gy_segment_heap_spans(mine, 4 << 20, 0));
    cr_assert_not(gy_segment_heap_spans(mine, 1, 4 << 20));
    cr_assert_not(gy_segment_heap_spans(mine, UINT64_MAX - 3, 8));
    free_all(2);
}

/* What is exposed keeps its place and its pages when it is freed, until it is exposed no more, however often it was;
 * the world's failure withdraws all of it and nothing else. */
Test(segment, memory_that_is_exposed_is_given_to_nobody, .timeout = 120)
{
    create_good(2, 4 << 20);
    struct gy_segment *mine = ranks[1].segment;
    struct gy_error *error = &ranks[1].error;
    void *block[4], *later;
    uint64_t offset;
    for (int i = 0; i < 4; i++)
        cr_assert_eq(gy_segment_heap_alloc(mine, 2 * 4096, &block[i], error), GYRE_SUCCESS);
    unsigned char *first = block[0], *second = block[1];
    gy_segment_heap_expose(mine, first + 5, 4096);
    gy_segment_heap_expose(mine, second - 1, 2); /* both of them */
    memset(first, 1, 4 * 4096);
    cr_assert(gy_segment_heap_free(mine, first) && gy_segment_heap_free(mine, second));
    cr_assert_not(gy_segment_heap_holds(mine, first) || gy_segment_heap_free(mine, first), "freed already");
    cr_assert_eq(gy_segment_heap_alloc(mine, 1, &later, error), GYRE_SUCCESS);
    cr_assert_gt(later, block[3]);
    gy_segment_heap_conceal(mine, second - 1, 2);
    cr_assert_eq(first[2 * 4096 - 1], 1, "still exposed by the other");
    cr_assert_eq(gy_segment_heap_alloc(mine, 1, &later, error), GYRE_SUCCESS);
    cr_assert_eq(later, second);
    cr_assert_eq(second[1], 0);
    gy_segment_heap_conceal(mine, first + 5, 4096);
    cr_assert_eq(gy_segment_heap_alloc(mine, 1, &later, error), GYRE_SUCCESS);
    cr_assert_eq(later, first);
    cr_assert_eq(first[5], 0);

    gy_segment_heap_expose(mine, block[2], 4096);
    gy_segment_heap_expose(mine, block[3], 0); /* nothing */
    gy_segment_heap_expose(mine, &offset, 8);  /* not from here */
    cr_assert(gy_segment_heap_withdraw_exposed(mine) && gy_segment_heap_withdraw_exposed(mine));
    *(unsigned char *)block[2] = *(unsigned char *)block[3] = 7;
    for (int i = 2; i < 4; i++) {
        unsigned char shared;
        cr_assert(gy_segment_heap_offset(mine, block[i], 1, &offset));
        off_t at = (off_t)(mine->layout.heaps + mine->layout.heap_stride + offset);
        cr_assert_eq(pread(mine->fds.memory, &shared, 1, at), 1);
        cr_assert_eq(shared, i == 2 ? 0 : 7, "block %d", i);
    }
    gy_segment_heap_conceal(mine, block[2], 4096);
    cr_assert(gy_segment_heap_free(mine, block[2]) && gy_segment_heap_free(mine, block[3]));
    cr_assert_eq(gy_segment_heap_alloc(mine, 1, &later, error), GYRE_SUCCESS);
    cr_assert_neq(later, block[2], "withdrawn");
    free_all(2);
}

/* See segment.c: stores to two such places drive each other out of the cache. */
Test(segment, equal_places_are_no_multiple_of_256_MiB_apart, .timeout = 120)
{
    enum { LOCALS = 3 };
    const size_t heaps[] = {256, 254, 126, 128, 1};
    for (size_t i = 0; i < GY_ARRAY_LENGTH(heaps); i++) {
        create_good(LOCALS, heaps[i] << 20);
        for (int a = 0; a < LOCALS; a++)
            for (int b = 0; b < a; b++) {
                char *first = gy_segment_heap_at(ranks[0].segment, b, 0);
                size_t apart = (size_t)((char *)gy_segment_heap_at(ranks[0].segment, a, 0) - first);
                cr_assert_geq(apart, heaps[i] << 20);
                cr_assert_neq(apart % ((size_t)1 << 28), 0, "heaps of %zu MiB, %d and %d", heaps[i], a, b);
            }
        free_all(LOCALS);
    }
}

Test(segment, heap_bounds, .timeout = 120)
{
    create_good(2, 4 << 20);
    struct gy_segment *mine = ranks[0].segment;
    void *all, *more = NULL;
    uint64_t offset;
    struct gy_error error = {0};
    cr_assert_eq(gy_segment_heap_alloc(mine, SIZE_MAX, &more, &error), GYRE_NO_MEMORY);
    cr_assert_not_null(strstr(error.text, "GYRE_SHM_RESERVE"));
    cr_assert_eq(gy_segment_heap_alloc(mine, 4 << 20, &all, &error), GYRE_SUCCESS, "all of it fits");
    cr_assert_eq(gy_segment_heap_alloc(mine, 1, &more, &error), GYRE_NO_MEMORY);
    cr_assert_null(more, "outputs are written only on success");
    cr_assert(gy_segment_heap_offset(mine, all, 4 << 20, &offset) && offset == 0);
    cr_assert_not(gy_segment_heap_offset(mine, all, (4 << 20) + 1, &offset));
    cr_assert_not(gy_segment_heap_offset(mine, (char *)all - 1, 1, &offset));
    cr_assert_not(gy_segment_heap_offset(mine, (char *)all + 1, SIZE_MAX, &offset));
    cr_assert_not(gy_segment_heap_offset(mine, &offset, 8, &offset));
    cr_assert(gy_segment_heap_free(mine, all));
    free_all(2);
}

/* The linker puts this between the library and libc (--wrap=fallocate): a host that is full from the n-th reservation
 * on. */
static int reservations_left = INT_MAX, full_errno;
int __real_fallocate(int fd, int mode, off_t offset, off_t bytes);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    if (mode == 0 && reservations_left-- <= 0) {
        errno = full_errno;
        return -1;
    }
    return __real_fallocate(fd, mode, offset, bytes);
}

static void expect_no_room(gyre_status status, struct gy_error *error)
{
    cr_assert_eq(status, GYRE_NO_MEMORY, "status %d", status);
    cr_assert_not_null(strstr(error->text, "no room for"), "%s", error->text);
    gy_error_clear(error);
}

Test(segment, no_space_is_an_error_and_not_a_signal, .timeout = 120)
{
    struct gy_error error = {0};
    void *memory = NULL;
    create_good(2, 4 << 20);
    struct gy_segment *mine = ranks[0].segment;
    for (int i = 0; i < 2; i++) {
        reservations_left = 0;
        full_errno = i ? ENOMEM : ENOSPC;
        expect_no_room(gy_segment_heap_alloc(mine, 4096, &memory, &error), &error);
        expect_no_room(gy_segment_region_reserve(mine, 0, &error), &error);
        expect_no_room(gy_segment_ring(mine, 0, 1, &memory, &error), &error);
        cr_assert_null(memory);
    }
    reservations_left = INT_MAX; /* and when there is room again, it works again */
    cr_assert_eq(gy_segment_heap_alloc(mine, 4096, &memory, &error), GYRE_SUCCESS);
    cr_assert_eq(gy_segment_region_reserve(mine, 0, &error), GYRE_SUCCESS);
    free_all(2);
}

Test(segment, no_space_for_the_control_pages, .timeout = 120)
{
    make_worlds(3, 4 << 20, 10 * GY_SECOND);
    reservations_left = 0;
    full_errno = ENOSPC;
    create_all(3);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(ranks[i].status, GYRE_NO_MEMORY, "%s", ranks[i].error.text);
    cr_assert_not_null(strstr(ranks[0].error.text, "no room for"));
    free_all(3);
}

Test(segment, settings_must_agree, .timeout = 120)
{
    make_worlds(3, 4 << 20, 30 * GY_SECOND);
    ranks[2].config.shm_slot = 64u << 10;
    create_all(3);
    cr_assert_eq(ranks[2].status, GYRE_BAD_CONFIGURATION);
    cr_assert_not_null(strstr(ranks[2].error.text, "GYRE_SHM_SLOT"));
    free_all(3);
}

Test(segment, structs_must_agree, .timeout = 120)
{
    make_worlds(2, 4 << 20, 30 * GY_SECOND);
    atomic_store(&other_structs, true);
    create_all(2);
    atomic_store(&other_structs, false);
    cr_assert_eq(ranks[1].status, GYRE_PROTOCOL, "%s", ranks[1].error.text);
    cr_assert_not_null(strstr(ranks[1].error.text, "lay out shared memory differently"));
    free_all(2);
}

/* When the first rank cannot make the memory, all know at once, not at the deadline. */
Test(segment, failure_travels_down_the_tree, .timeout = 120)
{
    struct rlimit limit = {1 << 20, 1 << 20};
    make_worlds(4, 4 << 20, 30 * GY_SECOND);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    int64_t start = gy_now();
    create_all(4);
    cr_assert_lt(gy_now() - start, 15 * GY_SECOND);
    for (int i = 0; i < 4; i++) {
        cr_assert_neq(ranks[i].status, GYRE_SUCCESS);
        cr_assert_null(ranks[i].segment);
        cr_assert_gt(strlen(ranks[i].error.text), 20);
        cr_assert(ranks[i].error.rank == (i == 0 ? -1 : 0), "rank %d names rank %d", i, ranks[i].error.rank);
    }
    free_all(4);
}

/* A rank whose wait has timed out tells those below it in the tree at once, whose timeouts are longer. They name the
 * rank that it names, and not it. */
Test(segment, who_waits_for_one_that_is_missing_is_not_named_for_it, .timeout = 120)
{
    make_worlds(4, 4 << 20, 3 * GY_SECOND);
    ranks[0].absent = true;
    ranks[3].patience = 60 * GY_SECOND;
    int64_t start = gy_now();
    create_all(4);
    cr_assert_lt(gy_now() - start, 30 * GY_SECOND);
    for (int i = 1; i < 4; i++) {
        cr_assert_eq(ranks[i].status, GYRE_PEER_UNREACHABLE);
        cr_assert_eq(ranks[i].error.rank, 0, "%s", ranks[i].error.text);
    }
    free_all(4);
}

Test(segment, a_missing_rank_is_named, .timeout = 120)
{
    make_worlds(4, 4 << 20, 3 * GY_SECOND); /* the ranks that are there need a core in this time */
    ranks[2].absent = true;
    create_all(4);
    cr_assert_eq(ranks[0].status, GYRE_PEER_UNREACHABLE);
    cr_assert_eq(ranks[0].error.rank, 2, "%s", ranks[0].error.text);
    cr_assert_eq(ranks[3].status, GYRE_PEER_UNREACHABLE);
    cr_assert_eq(ranks[3].error.rank, 2, "%s", ranks[3].error.text);
    cr_assert_eq(ranks[1].status, GYRE_SUCCESS, "%s", ranks[1].error.text);
    free_all(4);
}

/* Takes rank 0's socket name, and closes the connection of the first that asks: so does rank 0 to a rank that
 * identifies itself slowly. */
static int hang_up_on_one(const struct gy_world *world)
{
    struct sockaddr_un name;
    socklen_t bytes = gy_world_unix_name(world, world->locals[0], "", &name);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), asker;
    cr_assert_eq(bind(listener, (struct sockaddr *)&name, bytes), 0);
    cr_assert_eq(listen(listener, 1), 0);
    asker = accept(listener, NULL, NULL);
    close(asker);
    close(listener);
    return asker;
}

Test(segment, who_was_hung_up_on_asks_again, .timeout = 120)
{
    pthread_t threads[2];
    make_worlds(2, 4 << 20, 10 * GY_SECOND);
    pthread_create(&threads[1], NULL, create, &ranks[1]);
    cr_assert_geq(hang_up_on_one(&ranks[1].world), 0);
    usleep(500000); /* rank 0 comes when it comes */
    pthread_create(&threads[0], NULL, create, &ranks[0]);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(ranks[i].status, GYRE_SUCCESS, "rank %d: %s", i, ranks[i].error.text);
    }
    free_all(2);
}

/* The kernel may refuse to take along a descriptor: too many are under way (ETOOMANYREFS), or it has no memory. */
Test(segment, who_was_given_nothing_asks_again, .timeout = 120)
{
    atomic_store(&refusals, 2);
    create_good(3, 4 << 20);
    cr_assert_lt(atomic_load(&refusals), 1);
    free_all(3);
}

/* The doorbell rings once per sleep, and only for sleepers; it is theirs, whatever other ranks poll. */
Test(segment, doorbell, .timeout = 120)
{
    create_good(2, 4 << 20);
    gy_segment_wake(ranks[0].segment, 1);
    cr_assert_eq(gy_poller_poll(ranks[1].world.poller, 0), 0, "nobody slept");
    gy_segment_sleep(ranks[1].segment);
    gy_segment_wake(ranks[0].segment, 1);
    gy_segment_wake(ranks[0].segment, 1);
    cr_assert_eq(gy_poller_poll(ranks[1].world.poller, GY_SECOND), 1);
    cr_assert_eq(gy_poller_poll(ranks[1].world.poller, 0), 1, "another thread took it: the sleeper would sleep on");
    gy_segment_awake(ranks[1].segment);
    cr_assert_eq(gy_poller_poll(ranks[1].world.poller, 0), 0, "drained");
    free_all(2);
}
