/* One rank of the tests of collectives on device memory, with the CUDA driver that is installed as libcuda.so.1.
 * Results are compared bit for bit with the reference.
 *
 *   calls      blocking, as requests, as persistent requests and on streams; alone and in groups
 *   operands   in device memory, in pinned and in plain host memory
 *
 *   ranks_test ROUNDS [mixed]     mixed: odd ranks are attached to no device
 *   ranks_test ROUNDS threads N   N ranks are threads of this process */
#include <pthread.h>

#include "cuda/driver.h"
#include "support/rank.h"
#include "system/trial.h"

enum { MOST_DEVICES = 8, STREAMS = 2, GROUP = 5 };

static const struct gy_driver *cu;
static _Thread_local gyre_comm *comm;
static _Thread_local int rank, size, devices, own_device;
static _Thread_local gy_cu_context contexts[MOST_DEVICES];
static _Thread_local gy_cu_stream streams[STREAMS]; /* streams of this rank's device */
static _Thread_local uint64_t common, own;
static uint64_t count_most = 30000; /* 4000 if the stand-in executes kernels, on fibres */

#define CU(call) CHECK((call) == GY_CU_SUCCESS)

/* ---- Memory ---- */

enum place { PLAIN, PINNED, ON_DEVICE };

/* A copy of one side of a trial in memory of some place. */
struct mirror {
    enum place place;
    gy_cu_address address;
    void *host;
    int device;
};

static void enter(int device)
{
    CU(cu->context_push(contexts[device]));
}

static void leave(void)
{
    gy_cu_context gone;
    CU(cu->context_pop(&gone));
}

static struct mirror make_mirror(size_t bytes)
{
    struct mirror made = {.place = PLAIN, .device = own_device};
    uint64_t drawn = trial_below(&own, 6);
    if (own_device >= 0)
        made.place = drawn < 4 ? ON_DEVICE : drawn == 4 ? PINNED : PLAIN;
    if (made.place == PLAIN) {
        made.host = malloc(bytes);
        CHECK(made.host != NULL);
        return made;
    }
    if (made.place == ON_DEVICE && drawn == 3)
        made.device = (int)trial_below(&own, (uint64_t)devices);
    enter(made.device);
    if (made.place == PINNED)
        CU(cu->host_alloc(&made.host, bytes, 0));
    else
        CU(cu->mem_alloc(&made.address, bytes));
    leave();
    return made;
}

static uintptr_t base(const struct mirror *mirror)
{
    return mirror->place == ON_DEVICE ? (uintptr_t)mirror->address : (uintptr_t)mirror->host;
}

static void free_mirror(const struct mirror *mirror)
{
    if (mirror->place == PLAIN) {
        free(mirror->host);
        return;
    }
    enter(mirror->device);
    if (mirror->place == PINNED)
        CU(cu->host_free(mirror->host));
    else
        CU(cu->mem_free(mirror->address));
    leave();
}

/* ---- Trials ---- */

struct pass {
    struct trial trial;  /* on plain memory, where the result is checked */
    struct trial placed; /* the same call on the mirrors */
    struct mirror mirrors[2];
    gy_cu_stream stream;
};

static uintptr_t placed(const struct pass *pass, const void *operand, int side)
{
    const struct trial *it = &pass->trial;
    int from = it->in_place ? 1 : side;
    return base(&pass->mirrors[from]) + (uintptr_t)((const unsigned char *)operand - it->memory[from]);
}

/* `like`: a trial whose type and count are used; NULL: none. */
static void make_pass(struct pass *pass, enum trial_kind kind, uint64_t salt, const struct trial *like)
{
    static const gyre_op operations[] = {GYRE_SUM, GYRE_MIN, GYRE_MAX, GYRE_AVERAGE};
    struct trial *it = &pass->trial;
    *it = (struct trial){.kind = kind, .comm = comm, .rank = rank, .size = size};
    it->dtype = (gyre_dtype)trial_below(&common, 12);
    it->op = operations[trial_below(&common, 4)];
    it->count = trial_below(&common, 4) ? trial_below(&common, 300) : trial_below(&common, count_most);
    it->root = (int)trial_below(&common, (uint64_t)size);
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            it->counts[i][j] = trial_below(&common, 500);
    if (like) {
        it->dtype = like->dtype;
        it->count = like->count;
    }
    if (kind == TRIAL_SEND)
        it->root = (rank + 1) % size;
    if (kind == TRIAL_RECV)
        it->root = (rank + size - 1) % size;
    it->in_place = trial_below(&own, 2);
    it->layout = (enum trial_layout)trial_below(&own, 3);
    it->shift = (unsigned)trial_below(&own, 8);
    trial_make(it, &own);
    trial_fill(it, salt);
    for (int side = 0; side < 2; side++)
        pass->mirrors[side] = make_mirror(trial_bytes(it, side));
    pass->placed = *it;
    if (it->input)
        pass->placed.input = (const void *)placed(pass, it->input, 0);
    if (it->output)
        pass->placed.output = (void *)placed(pass, it->output, 1);
    pass->stream = streams[trial_below(&own, STREAMS)];
    pass->placed.stream = pass->stream;
}

/* Copies both sides between plain memory and the mirrors, on the stream where there is one. */
static void copy_sides(const struct pass *pass, bool out)
{
    for (int side = 0; side < 2; side++) {
        uintptr_t plain = (uintptr_t)pass->trial.memory[side], mirror = base(&pass->mirrors[side]);
        size_t bytes = trial_bytes(&pass->trial, side);
        if (own_device < 0)
            memcpy(out ? (void *)plain : (void *)mirror, out ? (void *)mirror : (void *)plain, bytes);
        else
            CU(cu->copy_async(out ? plain : mirror, out ? mirror : plain, bytes, pass->stream));
    }
}

static void synchronize(const struct pass *pass)
{
    if (own_device >= 0)
        CU(cu->stream_synchronize(pass->stream));
}

static void end_pass(struct pass *pass)
{
    const char *wrong = trial_wrong(&pass->trial);
    if (wrong)
        rank_fail("%s; input in place %d, output in place %d", wrong, (int)pass->mirrors[0].place,
                  (int)pass->mirrors[1].place);
    free_mirror(&pass->mirrors[0]);
    free_mirror(&pass->mirrors[1]);
    trial_free(&pass->trial);
}

static void refill(struct pass *pass, uint64_t salt)
{
    trial_fill(&pass->trial, salt);
    copy_sides(pass, false);
    synchronize(pass);
}

/* ---- Rounds ---- */

enum how { BLOCKING, REQUEST, PERSISTENT, ON_STREAM, HOWS };

static void run_plain(struct pass *pass, enum how how, uint64_t salt)
{
    gyre_request *request = NULL;
    synchronize(pass);
    if (how == BLOCKING) {
        OK(comm, trial_call(&pass->placed));
    } else if (how == REQUEST) {
        OK(comm, trial_start(&pass->placed, &request));
        OK(comm, gyre_wait(&request));
    } else {
        OK(comm, trial_init(&pass->placed, &request));
        OK(comm, gyre_wait(&request)); /* the request is inactive: nothing is copied */
        for (int start = 0; start < 2; start++) {
            refill(pass, salt + (uint64_t)start);
            OK(comm, gyre_start(request));
            OK(comm, gyre_wait(&request));
        }
        OK(comm, gyre_request_free(&request));
    }
}

static void run_one(enum trial_kind kind, enum how how, uint64_t salt)
{
    struct pass pass;
    make_pass(&pass, kind, salt, NULL);
    enter(own_device < 0 ? 0 : own_device);
    copy_sides(&pass, false);
    if (how == ON_STREAM)
        OK(comm, trial_call_on(&pass.placed));
    else
        run_plain(&pass, how, salt);
    copy_sides(&pass, true);
    synchronize(&pass);
    leave();
    end_pass(&pass);
}

/* A group of messages along a ring and collectives. */
static void run_group(uint64_t salt)
{
    struct pass passes[GROUP];
    bool on_streams = trial_below(&common, 2);
    for (int i = 0; i < GROUP; i++)
        make_pass(&passes[i],
                  i == 0   ? TRIAL_SEND
                  : i == 1 ? TRIAL_RECV
                           : (enum trial_kind)trial_below(&common, TRIAL_SEND),
                  salt, i == 1 ? &passes[0].trial : NULL);
    enter(own_device < 0 ? 0 : own_device);
    for (int i = 0; i < GROUP; i++)
        copy_sides(&passes[i], false);
    for (int i = 0; i < GROUP && !on_streams; i++)
        synchronize(&passes[i]);
    OK(comm, gyre_group_begin());
    for (int i = 0; i < GROUP; i++)
        OK(comm, on_streams ? trial_call_on(&passes[i].placed) : trial_call(&passes[i].placed));
    OK(comm, gyre_group_end());
    for (int i = 0; i < GROUP; i++)
        copy_sides(&passes[i], true);
    for (int i = 0; i < GROUP; i++)
        synchronize(&passes[i]);
    leave();
    for (int i = 0; i < GROUP; i++)
        end_pass(&passes[i]);
}

/* Attaches `comm`, which exists, and creates streams. */
static void begin(bool mixed)
{
    char why[300] = "";
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    common = 11;
    own = 77 + (uint64_t)rank;
    cu = gy_driver_get(why, sizeof(why));
    if (!cu)
        rank_fail("no driver: %s", why);
    OK(NULL, gyre_cuda_available(&devices));
    own_device = mixed && rank % 2 ? GYRE_CUDA_NONE : rank % devices;
    for (int d = 0; d < devices && d < MOST_DEVICES; d++) {
        gy_cu_device handle;
        CU(cu->device_get(&handle, d));
        CU(cu->context_retain(&contexts[d], handle));
    }
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_barrier_on(comm, NULL)); /* not attached yet */
    OK(comm, gyre_cuda_attach(comm, own_device));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_cuda_attach(comm, own_device));
    if (own_device < 0)
        return;
    enter(own_device);
    for (int s = 0; s < STREAMS; s++)
        CU(cu->stream_create(&streams[s], s == 0 ? 0 : GY_CU_STREAM_NON_BLOCKING));
    leave();
}

static void run_rounds(int rounds)
{
    for (int round = 0; round < rounds; round++) {
        enum trial_kind kind = (enum trial_kind)trial_below(&common, TRIAL_SEND);
        enum how how = (enum how)trial_below(&common, HOWS);
        if (round % 8 == 7)
            run_group(1 + (uint64_t)round);
        else
            run_one(kind, how, 1 + (uint64_t)round);
        OK(comm, gyre_cuda_status(comm));
    }
    OK(comm, gyre_comm_destroy(comm));
}

/* ---- Ranks that are threads ---- */

struct thread {
    gyre_config config;
    pthread_t thread;
    int rounds;
};

static void *run_thread(void *argument)
{
    const struct thread *it = argument;
    OK(NULL, gyre_comm_create(&it->config, &comm));
    begin(false);
    run_rounds(it->rounds);
    return NULL;
}

static void run_threads(int rounds, int ranks)
{
    struct thread threads[TRIAL_RANKS];
    char folder[] = "/tmp/gyre-cuda-ranks-XXXXXX", address[64];
    CHECK(ranks > 0 && ranks <= TRIAL_RANKS && mkdtemp(folder));
    snprintf(address, sizeof(address), "file://%s/meet", folder);
    for (int r = 0; r < ranks; r++) {
        threads[r] = (struct thread){.rounds = rounds};
        threads[r].config = (gyre_config){.size = sizeof(gyre_config),
                                          .rank = r,
                                          .world_size = ranks,
                                          .address = address,
                                          .secret = "a secret of ranks that are threads"};
        CHECK(pthread_create(&threads[r].thread, NULL, run_thread, &threads[r]) == 0);
    }
    for (int r = 0; r < ranks; r++)
        CHECK(pthread_join(threads[r].thread, NULL) == 0);
    rmdir(folder);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 50;
    if (argc > 3) {
        alarm(120);
        count_most = 4000;
        run_threads(rounds, atoi(argv[3]));
        return 0;
    }
    comm = rank_begin(120);
    begin(argc > 2);
    run_rounds(rounds);
    return 0;
}
