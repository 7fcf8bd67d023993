/* One rank of a launch: pin, meet, then for each collective and size fill, warm up, measure, check, and let rank 0
 * print a JSON object.
 *
 * Every rank reads the clock right after the harness's barrier and right after the call. It writes to memory that no
 * other rank reads until the loop is over. The cost of two reads and of the way out of the barrier is measured in the
 * same way, with no call in between, and printed as `empty_us`. Every figure contains it; it is not subtracted.
 * `barrier_us`, the barrier's own time before each size, tells how far apart the ranks' cores were then: a
 * hypervisor moves them. Where ranks share cores they change places in the barrier. `line_us` is the round trip of a
 * cache line between rank 0 and rank 1; 0: there is one core. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "collective.h"
#include "driver.h"
#include "options.h"
#include "pace.h"
#include "samples.h"
#include "traffic.h"

#define EXIT_NOT_OFFERED 77
#define WARM_UP_CALLS 2
#define TRIAL_CALLS 5
/* A call that takes more of its size's budget than this has been tried once it has been made twice. */
#define LONG_SHARE 0.05
#define EMPTY_CALLS 301
/* What a process manager or a keep-alive may send beside a library that uses shared memory. */
#define STRAY_BYTES 65536
/* What an RDMA packet may carry. */
#define PACKET_BYTES 4096

struct measure {
    struct gy_options options;
    struct gy_arena arena;
    struct gy_world world;
    int cores;
    enum gy_kind kind; /* of the moment */
    struct gy_call call;
    float *input;
};

static struct measure self;

void gy_die(const char *format, ...)
{
    va_list arguments;
    char text[1024];
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: rank %d: %s\n", gy_driver.name, self.world.rank, text);
    _exit(1);
}

const char *gy_store(void)
{
    return self.options.store;
}

const struct gy_arena *gy_launch_arena(void)
{
    return &self.arena;
}

static int number_from_environment(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long value = text ? strtol(text, &end, 10) : -1;
    if (!text || *end || value < 0 || value >= self.options.ranks)
        gy_die("%s is '%s', no rank of %d", name, text ? text : "", self.options.ranks);
    return (int)value;
}

static struct gy_stamps *mine(void)
{
    return &self.arena.stamps[self.world.rank];
}

static void nothing(const struct gy_call *call)
{
    (void)call;
}

static void isolated(void (*function)(const struct gy_call *), size_t calls)
{
    struct gy_stamps *stamps = mine();
    for (size_t i = 0; i < calls; i++) {
        gy_arena_barrier(&self.arena);
        stamps->start[i] = gy_now();
        function(&self.call);
        stamps->end[i] = gy_now();
    }
}

/* One sample: all calls. */
static void streaming(void (*function)(const struct gy_call *), size_t calls)
{
    struct gy_stamps *stamps = mine();
    gy_arena_barrier(&self.arena);
    stamps->start[0] = gy_now();
    for (size_t i = 0; i < calls; i++)
        function(&self.call);
    stamps->end[0] = gy_now();
}

static void as_osu(void (*function)(const struct gy_call *), size_t calls)
{
    struct gy_stamps *stamps = mine();
    for (size_t i = 0; i < calls; i++) {
        stamps->start[i] = gy_now();
        function(&self.call);
        stamps->end[i] = gy_now();
        gy_driver.call[GY_BARRIER](&self.call);
    }
}

static struct gy_samples streaming_mean(const struct gy_stamps *stamps, int ranks, size_t calls)
{
    double us = gy_samples_make(stamps, ranks, 1).median_us / (double)calls;
    return (struct gy_samples){us, us, us, us, us, us};
}

/* The figures of this size; every rank gets the same ones. */
static struct gy_samples run(void (*function)(const struct gy_call *), size_t calls)
{
    static const struct {
        void (*loop)(void (*)(const struct gy_call *), size_t);
        struct gy_samples (*make)(const struct gy_stamps *, int, size_t);
    } modes[] = {
        [GY_ISOLATED] = {isolated, gy_samples_make},
        [GY_STREAMING] = {streaming, streaming_mean},
        [GY_OSU] = {as_osu, gy_samples_make_osu},
    };
    gy_arena_barrier(&self.arena);
    modes[self.options.mode].loop(function, calls);
    gy_arena_barrier(&self.arena);
    struct gy_samples result = modes[self.options.mode].make(self.arena.stamps, self.world.size, calls);
    gy_arena_barrier(&self.arena);
    return result;
}

/* Returns the number of calls for which the budget has room, from the wall time of a few; rank 0 decides. The first
 * call sets up what the size needs; every rank gets the same figures of the second one. */
static size_t choose_calls(void (*function)(const struct gy_call *))
{
    run(function, 1);
    struct gy_samples trial = run(function, 1);
    if (trial.wall_us < LONG_SHARE * self.options.budget_ms * 1e3) {
        run(function, WARM_UP_CALLS);
        trial = run(function, TRIAL_CALLS);
    }
    if (self.world.rank == 0) {
        double calls = self.options.budget_ms * 1e3 / (trial.wall_us > 0.01 ? trial.wall_us : 0.01);
        double least = (double)self.options.calls_least, most = (double)self.options.calls_most;
        atomic_store(self.arena.shared, (int64_t)(calls < least ? least : calls > most ? most : calls));
    }
    gy_arena_barrier(&self.arena);
    return (size_t)atomic_load(self.arena.shared);
}

/* Bytes that all ranks have sent over TCP. */
static double sent_by_all(void)
{
    double sum = 0;
    mine()->tcp_bytes = gy_traffic_sent();
    gy_arena_barrier(&self.arena);
    for (int rank = 0; rank < self.world.size; rank++)
        sum += (double)self.arena.stamps[rank].tcp_bytes;
    gy_arena_barrier(&self.arena);
    return sum;
}

static void check_transport(double sent, double packets, size_t calls, size_t bytes)
{
    double vectors = gy_collectives[self.kind].sent(self.world.size) * (double)calls;
    double floor = vectors * (double)(bytes ? bytes : 1);
    if (self.world.size > 1 && self.options.wire == GY_TCP && sent < 0.99 * floor)
        gy_die("was to use TCP, but sent %.0f of at least %.0f bytes over it", sent, floor);
    if (self.options.wire != GY_TCP && sent > STRAY_BYTES + 0.01 * floor)
        gy_die("was to use %s, but sent %.0f bytes over TCP", gy_options_wire(self.options.wire), sent);
    if (self.world.size > 1 && self.options.wire == GY_RDMA && packets < 0.99 * floor / PACKET_BYTES)
        gy_die("was to use RDMA, but its devices sent %.0f packets for at least %.0f bytes", packets, floor);
}

static void fill(void)
{
    size_t inputs = gy_collective_input(self.kind, self.call.count, self.world.size);
    size_t outputs = gy_collective_output(self.kind, self.call.count, self.world.size);
    for (size_t i = 0; i < inputs; i++)
        self.input[i] = gy_collective_value(self.world.rank, i);
    for (size_t i = 0; i < outputs; i++)
        self.call.output[i] = self.kind == GY_BROADCAST && self.world.rank == 0 ? self.input[i] : -1;
}

/* What there is without the library, right before a size. */
struct surroundings {
    struct gy_samples empty; /* calls of nothing */
    double barrier_us, line_us;
    struct gy_pace pace; /* of the slowest core while the others compute, too, before or after */
};

static double greater(double a, double b)
{
    return a > b ? a : b;
}

/* Of ranks with cores of their own, all at once. */
static void look_at_pace(struct gy_pace *slowest)
{
    if (self.world.size > self.cores)
        return;
    const struct gy_pace pace = gy_pace_measure();
    mine()->chain_ns = pace.chain_ns;
    mine()->work_ns = pace.work_ns;
    gy_arena_barrier(&self.arena);
    for (int rank = 0; rank < self.world.size; rank++) {
        slowest->chain_ns = greater(slowest->chain_ns, self.arena.stamps[rank].chain_ns);
        slowest->work_ns = greater(slowest->work_ns, self.arena.stamps[rank].work_ns);
    }
    gy_arena_barrier(&self.arena);
}

static struct surroundings look_around(void)
{
    gy_arena_barrier(&self.arena);
    isolated(nothing, EMPTY_CALLS);
    gy_arena_barrier(&self.arena);
    struct surroundings found = {
        gy_samples_make(self.arena.stamps, self.world.size, EMPTY_CALLS),
        gy_samples_period(self.arena.stamps, self.world.size, EMPTY_CALLS),
        0,
        {0, 0},
    };
    gy_arena_barrier(&self.arena);
    if (self.cores > 1 && self.world.size > 1 && self.world.rank < 2)
        found.line_us = gy_arena_round_trip(&self.arena);
    gy_arena_barrier(&self.arena);
    look_at_pace(&found.pace);
    return found;
}

static void print_row(size_t bytes, size_t calls, struct gy_samples samples, struct surroundings around, double sent)
{
    const struct gy_options *options = &self.options;
    double factor = gy_collectives[self.kind].bus_factor(self.world.size);
    printf("{\"library\": \"%s\", \"collective\": \"%s\", \"mode\": \"%s\", \"ranks\": %d, \"transport\": \"%s\", ",
           gy_driver.name, gy_collectives[self.kind].name, gy_options_mode(options->mode), self.world.size,
           gy_options_wire(options->wire));
    printf("\"memory\": \"%s\", \"bytes\": %zu, \"calls\": %zu, ", options->own_memory ? "own" : "private", bytes,
           calls);
    printf("\"median_us\": %.4f, \"low_us\": %.4f, \"high_us\": %.4f, \"least_us\": %.4f, \"mean_us\": %.4f, ",
           samples.median_us, samples.low_us, samples.high_us, samples.least_us, samples.mean_us);
    printf("\"wall_us\": %.4f, \"busbw_gbs\": %.5f, \"tcp_bytes_per_call\": %.0f, ", samples.wall_us,
           factor * (double)bytes / samples.median_us / 1e3, sent / (double)calls);
    printf("\"empty_us\": %.4f, \"barrier_us\": %.4f, \"line_us\": %.4f, ", around.empty.median_us, around.barrier_us,
           around.line_us);
    printf("\"chain_ns\": %.4f, \"work_ns\": %.4f}\n", around.pace.chain_ns, around.pace.work_ns);
    fflush(stdout);
}

static void measure_size(size_t count)
{
    void (*function)(const struct gy_call *) = gy_driver.call[self.kind];
    size_t bytes = gy_collective_bytes(self.kind, count, self.world.size);
    self.call.count = count;
    fill();
    struct surroundings around = look_around();
    size_t calls = choose_calls(function);
    double sent = sent_by_all(), packets = (double)gy_traffic_rdma();
    struct gy_samples samples = run(function, calls);
    sent = sent_by_all() - sent;
    packets = (double)gy_traffic_rdma() - packets;
    look_at_pace(&around.pace);
    check_transport(sent, packets, calls, bytes);
    if (self.kind != GY_BARRIER && gy_collective_wrong(self.kind, &self.call, self.world))
        gy_die("%zu bytes: the result is wrong", bytes);
    if (self.world.rank == 0)
        print_row(bytes, calls, samples, around, sent);
}

static float *allocate(size_t elements)
{
    size_t bytes = (elements * sizeof(float) + 4095) / 4096 * 4096 + 4096;
    void *memory = self.options.own_memory ? gy_driver.alloc(bytes) : aligned_alloc(4096, bytes);
    if (!memory)
        gy_die("no memory for %zu bytes", bytes);
    return memset(memory, 0, bytes);
}

static void join(void)
{
    self.world = (struct gy_world){.rank = number_from_environment(gy_driver.rank_variable),
                                   .size = self.options.ranks};
    self.cores = gy_arena_pin(self.world.rank);
    gy_arena_open(&self.arena, self.options.arena, self.world.rank, self.options.ranks,
                  self.options.ranks > self.cores);
    struct gy_world found = gy_driver.init(self.world);
    if (found.rank != self.world.rank || found.size != self.world.size)
        gy_die("the library says rank %d of %d instead of %d of %d", found.rank, found.size, self.world.rank,
               self.world.size);
    if (self.world.rank == 0)
        printf("{\"library\": \"%s\", \"version\": \"%s\"}\n", gy_driver.name, gy_driver.version());
}

static bool is_offered(enum gy_kind kind)
{
    return gy_driver.call[kind] != NULL;
}

/* The largest that any of the collectives needs; one launch, one pair of buffers. */
static void allocate_both(const struct gy_options *options)
{
    size_t inputs = 0, outputs = 0;
    for (size_t k = 0; k < options->kinds_count; k++) {
        enum gy_kind kind = options->kinds[k];
        size_t count = gy_collective_count(kind, options->most, options->ranks);
        size_t input = gy_collective_input(kind, count, options->ranks);
        size_t output = gy_collective_output(kind, count, options->ranks);
        inputs = input > inputs ? input : inputs;
        outputs = output > outputs ? output : outputs;
    }
    self.input = allocate(inputs);
    self.call.input = self.input;
    self.call.output = allocate(outputs);
}

static void measure_collective(const struct gy_options *options)
{
    for (size_t bytes = options->least; bytes <= options->most; bytes *= options->factor) {
        measure_size(gy_collective_count(self.kind, bytes, options->ranks));
        if (self.kind == GY_BARRIER)
            return;
    }
}

int main(int argc, char **argv)
{
    struct gy_options *options = &self.options;
    size_t offered = 0;
    gy_options_parse(argc, argv, options);
    for (size_t k = 0; k < options->kinds_count; k++)
        if (is_offered(options->kinds[k]))
            options->kinds[offered++] = options->kinds[k];
    options->kinds_count = offered;
    if (offered == 0 || (options->own_memory && !gy_driver.alloc) ||
        (options->mode == GY_OSU && !is_offered(GY_BARRIER)))
        return EXIT_NOT_OFFERED;
    join();
    allocate_both(options);

    for (size_t k = 0; k < offered; k++) {
        self.kind = options->kinds[k];
        measure_collective(options);
    }
    gy_arena_barrier(&self.arena);
    gy_driver.finish();
    return 0;
}
