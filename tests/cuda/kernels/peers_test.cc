/* Kernels that wait for each other, on fibres: one shot and two shot with 2 to 8 ranks, each on its own GPU. Every type
 * and operation is compared with the CPU bit for bit, with streams and GPUs of different speeds.
 *
 * A stream writes the input before each kernel; after the kernel it reads the output and overwrites the input, as a
 * caller may. A kernel that begins too early or ends too early therefore gives a wrong result.
 *
 * Further tests: a rank that launches no kernel, an abort, and ranks that share a GPU without room for both. argv[1]:
 * the first seed. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cuda/kernels/one_shot.cuh"
#include "emu.h"
#include "pairs.h"
#include "reference.h"

namespace
{
enum { RANKS = 8, BLOCKS = 2, THREADS = 16, ROUNDS = 3, ELEMENTS = 150, ROOM = ELEMENTS * 8 + 16 };
int failures, launches;
uint64_t state;
uint32_t stop;

unsigned below(unsigned n)
{
    return (unsigned)(reference_random(&state) % n);
}

/* The memory of a rank on its GPU, which is kept between launches. */
struct rank_memory {
    uint32_t step, finished, arrived[RANKS * BLOCKS * 2];
    gy_line inbox[2 * RANKS * ROOM / 8];
    alignas(16) char in[ROUNDS][ROOM], out[ROUNDS][ROOM], inputs[ROUNDS][ROOM], results[ROUNDS][ROOM], scalar[8];
};
rank_memory memory[RANKS];
unsigned char expected[ROUNDS][ROOM];

/* Writes the input before a kernel. */
struct gy_write_input {
    const char *inputs;
    char *in;
    size_t bytes;
};
GY_KERNEL(write_input, gy_write_input)
{
    for (size_t i = gy_thread(); i < a.bytes; i += gy_threads())
        gy_store<uint8_t>(a.in + i, gy_load<uint8_t>(a.inputs + i));
}

/* Reads the output after a kernel, and overwrites the input. */
struct gy_read_output {
    char *out, *results, *in;
    size_t bytes;
};
GY_KERNEL(read_output, gy_read_output)
{
    for (size_t i = gy_thread(); i < a.bytes; i += gy_threads()) {
        gy_store<uint8_t>(a.results + i, gy_load<uint8_t>(a.out + i));
        gy_store<uint8_t>(a.in + i, 0xdd);
    }
}

gy_peer_sync sync_of(int rank, int ranks)
{
    gy_peer_sync m = {};
    m.abort = &stop;
    m.step = &memory[rank].step;
    m.finished = &memory[rank].finished;
    m.rank = (uint16_t)rank;
    m.ranks = (uint16_t)ranks;
    for (int r = 0; r < ranks; r++)
        m.arrived[r] = memory[r].arrived;
    return m;
}

/* A case, the same in all rounds. Offsets decide whether pointers are equal modulo 16. */
struct shape {
    int ranks, type, op, divisor;
    bool canonical, in_place;
    size_t count, size;
    unsigned in_offset[RANKS], out_offset[RANKS];
    char *in(int r, int round) const { return memory[r].in[round] + in_offset[r]; }
    char *out(int r, int round) const { return in_place ? in(r, round) : memory[r].out[round] + out_offset[r]; }
};

gy_one_shot one_shot_of(const shape &s, int rank, int round)
{
    gy_one_shot a = {};
    a.sync = sync_of(rank, s.ranks);
    a.capacity = ROOM / 8;
    a.count = (uint32_t)s.count;
    a.divisor = s.divisor;
    for (int r = 0; r < s.ranks; r++)
        a.inbox[r] = memory[r].inbox;
    a.in = s.in(rank, round);
    a.out = s.out(rank, round);
    a.scalar = memory[rank].scalar;
    return a;
}

gy_two_shot two_shot_of(const shape &s, int rank, int round)
{
    gy_two_shot a = {};
    gy_kernel_piece &p = a.piece[0];
    a.sync = sync_of(rank, s.ranks);
    a.pieces = 1;
    p.first = s.count * (size_t)rank / (size_t)s.ranks;
    p.count = s.count * (size_t)(rank + 1) / (size_t)s.ranks;
    p.nsrc = p.ndst = (uint16_t)s.ranks;
    p.divisor = s.divisor;
    for (int r = 0; r < s.ranks; r++) {
        p.src[r] = s.in(r, round);
        p.dst[r] = s.out(r, round);
        p.scalar[r] = memory[r].scalar;
    }
    return a;
}

uint64_t submit(const char *name, void (*kernel)(const void *), const void *a, size_t bytes, int device, uint64_t after)
{
    const emu_launch l = {name, kernel, a, bytes, device, BLOCKS, THREADS, after};
    launches++;
    return emu_submit(&l);
}

void expect(const shape &s, int round)
{
    std::vector<std::vector<char>> scaled;
    const void *from[RANKS];
    for (int r = 0; r < s.ranks; r++) {
        scaled.emplace_back(s.in(r, round), s.in(r, round) + s.count * s.size);
        if (s.op == GYRE_PREMUL_SUM)
            reference_multiply(scaled.back().data(), s.in(r, round), memory[r].scalar, s.count, s.type);
    }
    for (int r = 0; r < s.ranks; r++)
        from[r] = scaled[(size_t)r].data();
    reference_reduce(expected[round], from, s.ranks, s.count, s.type, s.op, s.canonical);
}

void prepare(const shape &s)
{
    memset(memory, 0, sizeof(memory));
    for (int r = 0; r < s.ranks; r++) {
        reference_fill(memory[r].scalar, 1, s.type, &state);
        for (int k = 0; k < ROUNDS; k++)
            reference_fill(s.in(r, k), s.count, s.type, &state);
    }
    const uint32_t step = below(4) ? 0 : UINT32_MAX - 1; /* sometimes the step is about to wrap */
    for (int r = 0; r < s.ranks; r++) {
        memory[r].step = step;
        for (auto &word : memory[r].arrived)
            word = step;
    }
    for (int k = 0; k < ROUNDS; k++)
        expect(s, k);
    for (int r = 0; r < s.ranks; r++)
        for (int k = 0; k < ROUNDS; k++) {
            memcpy(memory[r].inputs[k], s.in(r, k), s.count * s.size);
            memset(s.in(r, k), 0xcc, s.count * s.size);
        }
}

shape random_shape(int type, int op, bool canonical)
{
    shape s = {};
    s.ranks = 2 + (int)below(3) + (below(4) ? 0 : 4);
    s.type = type;
    s.op = op;
    s.divisor = op == GYRE_AVERAGE ? s.ranks : 0;
    s.canonical = canonical;
    s.in_place = below(2);
    s.count = 1 + below(ELEMENTS);
    s.size = gyre_dtype_size((gyre_dtype)type);
    const bool agree = below(2);
    for (int r = 0; r < s.ranks; r++) {
        s.in_offset[r] = agree ? 0 : below(16);
        s.out_offset[r] = agree ? 0 : below(16);
    }
    return s;
}

void finish(const shape &s, const char *what)
{
    if (emu_run(UINT64_MAX) != EMU_IDLE) {
        printf("%s: does not end\n%.2000s", what, emu_report());
        emu_drop();
        failures++;
        return;
    }
    for (int r = 0; r < s.ranks; r++)
        for (int k = 0; k < ROUNDS; k++)
            if (memcmp(memory[r].results[k], expected[k], s.count * s.size) != 0) {
                printf("%s %s %s: %d ranks, %zu elements%s%s, rank %d, round %d: wrong\n", what,
                       gyre_dtype_name((gyre_dtype)s.type), gyre_op_name((gyre_op)s.op), s.ranks, s.count,
                       s.in_place ? ", in place" : "", s.canonical ? ", canonical" : "", r, k);
                failures++;
                return;
            }
}

/* Submits the kernels of all rounds of a rank, each between write_input and read_output. */
template <typename arguments>
void submit_rank(const shape &s, const char *name, void (*kernel)(const void *), int rank,
                 arguments (*arguments_of)(const shape &, int, int))
{
    uint64_t last = 0;
    for (int k = 0; k < ROUNDS; k++) {
        const gy_write_input g = {memory[rank].inputs[k], s.in(rank, k), s.count * s.size};
        const emu_launch before = {"write_input", write_input, &g, sizeof(g), rank, 1, THREADS, last};
        const arguments a = arguments_of(s, rank, k);
        last = submit(name, kernel, &a, sizeof(a), rank, emu_submit(&before));
        const gy_read_output t = {s.out(rank, k), memory[rank].results[k], s.in(rank, k), s.count * s.size};
        const emu_launch l = {"read_output", read_output, &t, sizeof(t), rank, 1, THREADS, last};
        last = emu_submit(&l);
    }
}

template <int type, int op, bool canonical> void one_shot(const void *a)
{
    gy_one_shot_run<gy_work<type, op, canonical>>(*(const gy_one_shot *)a);
}
template <int type, int op, bool canonical> void two_shot(const void *a)
{
    gy_two_shot_run<gy_work<type, op, canonical>>(*(const gy_two_shot *)a);
}

struct check {
    template <int type, int op, bool canonical> void order()
    {
        for (int k = 0; k < 2; k++) {
            const shape s = random_shape(type, op, canonical);
            prepare(s);
            emu_lag(below(2) ? (int)below((unsigned)s.ranks) : -1);
            for (int r = 0; r < s.ranks; r++)
                if (k == 0)
                    submit_rank(s, "one_shot", one_shot<type, op, canonical>, r, one_shot_of);
                else
                    submit_rank(s, "two_shot", two_shot<type, op, canonical>, r, two_shot_of);
            finish(s, k == 0 ? "one_shot" : "two_shot");
        }
    }
    template <int type, int op> void pair()
    {
        order<type, op, false>();
        order<type, op, true>();
    }
};

void require(bool holds, const char *what)
{
    if (holds)
        return;
    printf("does not hold: %s\n", what);
    failures++;
}

/* Three of four ranks launch: their kernels wait until the abort word is set. */
template <typename arguments>
void lost_rank(const char *name, void (*kernel)(const void *), arguments (*arguments_of)(const shape &, int, int))
{
    shape s = random_shape(GYRE_FLOAT32, GYRE_SUM, false);
    s.ranks = 4;
    s.count = 40;
    prepare(s);
    for (int r = 0; r < 3; r++) {
        const arguments a = arguments_of(s, r, 0);
        submit(name, kernel, &a, sizeof(a), r, 0);
    }
    require(emu_run(UINT64_MAX) == EMU_STUCK, "kernels of three ranks of four wait");
    require(strstr(emu_report(), "peer") != nullptr, "the report names what they wait for");
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    require(emu_run(UINT64_MAX) == EMU_IDLE, "they end when the abort word is set");
    __atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
    emu_drop();
}

/* Two ranks on a GPU that has room for the blocks of one. */
void no_room()
{
    shape s = random_shape(GYRE_FLOAT32, GYRE_SUM, false);
    s.ranks = 2;
    prepare(s);
    emu_room(0, BLOCKS);
    for (int r = 0; r < 2; r++) {
        const gy_two_shot a = two_shot_of(s, r, 0);
        submit("two_shot", two_shot<GYRE_FLOAT32, GYRE_SUM, false>, &a, sizeof(a), 0, 0);
    }
    require(emu_run(UINT64_MAX) == EMU_STUCK, "ranks that share a GPU without room wait for ever");
    require(strstr(emu_report(), "wait for room") != nullptr, "the report names the missing room");
    emu_drop();
}
} // namespace

int main(int argc, char **argv)
{
    const uint64_t seed = argc > 1 ? strtoull(argv[1], nullptr, 0) : 1;
    check all;

    for (int d = 0; d < RANKS; d++)
        emu_room(d, BLOCKS);
    for (uint64_t k = seed; k < seed + 2; k++) {
        state = k * 0x9E3779B97F4A7C15u + 1;
        emu_seed(k);
        for_pairs(all);
    }
    emu_lag(-1);
    lost_rank("one_shot", one_shot<GYRE_FLOAT32, GYRE_SUM, false>, one_shot_of);
    lost_rank("two_shot", two_shot<GYRE_FLOAT32, GYRE_SUM, false>, two_shot_of);
    no_room();
    printf("%d launches from seed %llu on, %d failures, %u divergent barriers\n", launches, (unsigned long long)seed,
           failures, emu_divergent());
    return failures != 0 || emu_divergent() != 0;
}
