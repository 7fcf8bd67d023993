/* The scheduler of emu.h. Compiled without ThreadSanitizer, whose view of fibres it drives: a switch orders nothing, so
 * that only barriers, acquires, releases and the ends of launches do. */
#include "emu.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>

#include "emu_fibre.h"
#include "emu_switch.h"

enum { STACK_BYTES = 64 << 10, DELAYED_MOST = 8, SPINS_ENOUGH = 4 * 64, SHARED_BYTES = 16 << 10, SHARED_MOST = 16 };

namespace
{
struct launch {
    uint64_t number;
    emu_launch what;
    alignas(16) unsigned char arguments[EMU_ARGUMENT_BYTES];
    unsigned begun = 0, ended = 0; /* blocks */
};
struct shared_memory {
    const char *file;
    int line;
    char *at;
};
} // namespace

struct emu_block {
    launch *of;
    unsigned alive, waiting = 0;
    uint64_t generation = 0;
    bool any = false, any_last = false;
    const char *file = nullptr; /* of the barrier that is being waited at */
    int line = 0;
    std::vector<emu_fibre *> asleep;
    std::vector<emu_delayed> delayed; /* handed over by barriers */
    std::vector<shared_memory> shared;
    std::unique_ptr<char[]> arena; /* of shared memory */
    size_t arena_used = 0;
};

emu_fibre *emu_self;
#if defined(EMU_TSAN)
const bool emu_delays = false;
#else
const bool emu_delays = true;
#endif

static std::deque<std::unique_ptr<launch>> launches; /* not over */
static std::vector<emu_fibre *> runnable, live;
static std::vector<std::unique_ptr<char[]>> stacks; /* unused ones */
static uint64_t launches_made, changes, random_state = 1;
static int lagging = -1;
static void *(*memory_at)(const void *, size_t, int);
static uint64_t faults; /* a bit of each device */
static unsigned room[EMU_DEVICES], resident[EMU_DEVICES], divergent;
static struct emu_home home;

uint64_t emu_random()
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 11;
}

void emu_lag(int device)
{
    lagging = device;
}

void emu_seed(uint64_t seed)
{
    random_state = seed * 0x9E3779B97F4A7C15u + 1;
}

void emu_memory(void *(*at)(const void *, size_t, int))
{
    memory_at = at;
}

uint64_t emu_changes(void)
{
    return changes;
}

int emu_fault(void)
{
    for (int d = 0; d < EMU_DEVICES; d++)
        if (faults >> d & 1) {
            faults &= ~((uint64_t)1 << d);
            return d;
        }
    return -1;
}

void emu_room(int device, unsigned blocks)
{
    room[device] = blocks;
}

unsigned emu_divergent(void)
{
    return divergent;
}

void emu_changed()
{
    changes++;
}

void emu_check_aligned(const void *p, size_t size)
{
    if ((uintptr_t)p % size == 0)
        return;
    fprintf(stderr, "%s: an access of %zu bytes at %p is not aligned\n", emu_self->block->of->what.name, size, p);
    abort();
}

/* ---- Delayed stores ---------------------------------------------------------------------------------------------- */

static bool overlap(const emu_delayed &d, const void *p, unsigned size)
{
    return (uintptr_t)d.at < (uintptr_t)p + size && (uintptr_t)p < (uintptr_t)d.at + d.size;
}

static void publish(const emu_delayed &d)
{
    memcpy(d.at, d.bytes, d.size);
    changes++;
}

static void publish_all(std::vector<emu_delayed> &list)
{
    for (auto &d : list)
        publish(d);
    list.clear();
}

/* Any store may become visible first, but for those to the same bytes. */
static void publish_one(std::vector<emu_delayed> &list)
{
    size_t k = emu_random() % list.size();

    for (size_t i = 0; i < k; i++)
        if (overlap(list[i], list[k].at, list[k].size)) {
            k = i;
            break;
        }
    publish(list[k]);
    list.erase(list.begin() + (ptrdiff_t)k);
}

/* The block's stores come first: its own were made after the barrier that handed those over. */
void emu_flush()
{
    publish_all(emu_self->block->delayed);
    publish_all(emu_self->delayed);
}

void emu_store(void *p, unsigned size, const void *value)
{
    emu_delayed d = {p, size, {}};

    memcpy(d.bytes, p, size); /* faults here, at the store, if it does at all */
    memcpy(d.bytes, value, size);
    for (auto &b : emu_self->block->delayed)
        if (overlap(b, p, size)) {
            publish_all(emu_self->block->delayed);
            break;
        }
    emu_self->delayed.push_back(d);
    if (emu_self->delayed.size() > DELAYED_MOST)
        publish_one(emu_self->delayed);
}

static void overlay(const std::vector<emu_delayed> &list, const void *p, unsigned size, unsigned char *value)
{
    for (auto &d : list)
        for (unsigned k = 0; overlap(d, p, size) && k < d.size; k++) {
            uintptr_t at = (uintptr_t)d.at + k - (uintptr_t)p;
            if (at < size)
                value[at] = d.bytes[k];
        }
}

void emu_load(const void *p, unsigned size, void *value_p)
{
    memcpy(value_p, p, size);
    overlay(emu_self->block->delayed, p, size, (unsigned char *)value_p);
    overlay(emu_self->delayed, p, size, (unsigned char *)value_p);
}

/* ---- Fibres ------------------------------------------------------------------------------------------------------ */

static void run_body(void)
{
    emu_fibre *f = emu_self;

    emu_entered(&home, f);
    f->block->of->what.kernel(f->block->of->arguments);
    f->over = true;
    emu_leave(&home, f, true);
    abort();
}

static void to_scheduler()
{
    emu_leave(&home, emu_self, false);
}

void *emu_at(const void *p, size_t size)
{
    emu_fibre *f = emu_self;
    int device = f->block->of->what.device;
    void *at = memory_at ? memory_at(p, size, device) : (void *)(uintptr_t)p;

    if (at)
        return at;
    faults |= (uint64_t)1 << device;
    f->over = true;
    emu_leave(&home, f, true);
    abort();
}

void emu_touch()
{
    if (emu_random() % 8 == 0) {
        if (!emu_self->delayed.empty() && emu_random() % 4 == 0)
            publish_one(emu_self->delayed);
        to_scheduler();
    }
}

void emu_pause(const uint32_t *word, uint32_t wanted, const char *what)
{
    emu_fibre *f = emu_self;

    f->word = (const uint32_t *)emu_at(word, sizeof(*word));
    f->wanted = wanted;
    f->what = what;
    if (f->changes_seen != changes)
        f->spins = 0;
    f->changes_seen = changes;
    f->spins++;
    to_scheduler();
}

static void wake_block(emu_block *b)
{
    for (emu_fibre *f : b->asleep) {
        f->at_barrier = false;
        runnable.push_back(f);
    }
    b->asleep.clear();
    b->any_last = b->any;
    b->any = false;
    b->waiting = 0;
    b->generation++;
    changes++;
}

bool emu_sync(const char *file, int line, bool any)
{
    emu_fibre *f = emu_self;
    emu_block *b = f->block;

    b->delayed.insert(b->delayed.end(), f->delayed.begin(), f->delayed.end());
    f->delayed.clear();
    if (b->waiting > 0 && (b->line != line || strcmp(b->file, file) != 0))
        divergent++;
    b->file = file;
    b->line = line;
    b->any |= any;
    emu_release(b);
    if (++b->waiting == b->alive) {
        wake_block(b);
        to_scheduler();
    } else {
        f->at_barrier = true;
        b->asleep.push_back(f);
        to_scheduler();
    }
    emu_acquire(b);
    return b->any_last;
}

void *emu_shared(const char *file, int line, size_t size)
{
    emu_block *b = emu_self->block;
    size_t at = (b->arena_used + 15) & ~(size_t)15;

    for (auto &s : b->shared)
        if (s.line == line && strcmp(s.file, file) == 0)
            return s.at;
    if (at + size > SHARED_BYTES || b->shared.size() == SHARED_MOST)
        abort();
    b->arena_used = at + size;
    b->shared.push_back({file, line, b->arena.get() + at});
    return b->arena.get() + at;
}

/* ---- Blocks and launches ----------------------------------------------------------------------------------------- */

uint64_t emu_submit(const struct emu_launch *what)
{
    auto l = std::make_unique<launch>();

    if (what->argument_bytes > sizeof(l->arguments) || what->device < 0 || what->device >= EMU_DEVICES ||
        what->blocks == 0 || what->threads == 0)
        abort();
    l->number = ++launches_made;
    l->what = *what;
    memcpy(l->arguments, what->arguments, what->argument_bytes);
    emu_release(l.get());
    launches.push_back(std::move(l));
    return launches_made;
}

bool emu_over(uint64_t number)
{
    for (auto &l : launches)
        if (l->number == number)
            return false;
    return true;
}

static void start_block(launch *l)
{
    emu_block *b = new emu_block;

    b->of = l;
    b->alive = l->what.threads;
    /* Nothing is allocated on a fibre: to ThreadSanitizer that is a write. */
    b->asleep.reserve(b->alive);
    b->shared.reserve(SHARED_MOST);
    b->arena.reset(new char[SHARED_BYTES]);
    memset(b->arena.get(), 0xa5, SHARED_BYTES);
    runnable.reserve(live.size() + b->alive);
    for (unsigned t = 0; t < l->what.threads; t++) {
        emu_fibre *f = new emu_fibre();
        f->thread = t;
        f->threads = l->what.threads;
        f->block_index = l->begun;
        f->blocks = l->what.blocks;
        f->block = b;
        f->order = l;
        if (stacks.empty())
            stacks.push_back(std::unique_ptr<char[]>(new char[STACK_BYTES]));
        f->stack = stacks.back().release();
        stacks.pop_back();
        emu_prepare(f, f->stack, STACK_BYTES, run_body);
        f->place = live.size();
        live.push_back(f);
        runnable.push_back(f);
    }
    emu_release(l); /* stacks are used again */
    l->begun++;
    resident[l->what.device]++;
    changes++;
}

/* In the order of the launches, as there is room. */
static void start_blocks()
{
    bool behind[EMU_DEVICES] = {};

    for (auto &l : launches) {
        int d = l->what.device;
        if (l->what.after && !emu_over(l->what.after))
            continue;
        while (!behind[d] && l->begun < l->what.blocks && (room[d] == 0 || resident[d] < room[d]))
            start_block(l.get());
        behind[d] |= l->begun < l->what.blocks;
    }
}

static void free_fibre(emu_fibre *f)
{
    emu_forget(f);
    stacks.push_back(std::unique_ptr<char[]>(f->stack));
    delete f;
}

static void end_block(emu_block *b)
{
    launch *l = b->of;

    publish_all(b->delayed);
    resident[l->what.device]--;
    if (++l->ended == l->what.blocks)
        launches.erase(std::find_if(launches.begin(), launches.end(), [l](auto &x) { return x.get() == l; }));
    delete b;
    start_blocks();
}

static void end_fibre(emu_fibre *f)
{
    emu_block *b = f->block;

    emu_acquire(f->order);
    publish_all(b->delayed);
    publish_all(f->delayed);
    changes++;
    live[f->place] = live.back();
    live[f->place]->place = f->place;
    live.pop_back();
    free_fibre(f);
    if (--b->alive == 0)
        end_block(b);
    else if (b->waiting == b->alive)
        wake_block(b);
}

/* A thread of the device that lags is taken one time in 32, unless there is no other. */
static size_t pick()
{
    size_t k = emu_random() % runnable.size();
    for (int n = 0; n < 8 && runnable[k]->block->of->what.device == lagging && emu_random() % 32 > 0; n++)
        k = emu_random() % runnable.size();
    return k;
}

static void run_one()
{
    size_t k = pick();
    emu_fibre *f = runnable[k];

    emu_self = f;
    emu_enter(&home, f);
    emu_self = nullptr;
    if (f->over || f->at_barrier) {
        runnable[k] = runnable.back();
        runnable.pop_back();
    }
    if (faults >> f->block->of->what.device & 1)
        emu_drop_device(f->block->of->what.device);
    else if (f->over)
        end_fibre(f);
}

static void publish_everything()
{
    for (emu_fibre *f : live) {
        publish_all(f->block->delayed);
        publish_all(f->delayed);
    }
}

static bool is_stuck()
{
    for (emu_fibre *f : runnable)
        if (f->changes_seen != changes || f->spins < SPINS_ENOUGH)
            return false;
    uint64_t before = changes;
    publish_everything();
    return changes == before;
}

enum emu_outcome emu_run(uint64_t steps)
{
    emu_arrive(&home);
    for (emu_fibre *f : runnable)
        f->spins = 0; /* the caller may have changed memory */
    start_blocks();
    for (uint64_t n = 0; n < steps; n++) {
        if (launches.empty())
            return EMU_IDLE;
        if (runnable.empty() || (n % 256 == 255 && is_stuck()))
            return EMU_STUCK;
        run_one();
    }
    return launches.empty() ? EMU_IDLE : EMU_MORE;
}

void emu_drop(void)
{
    for (int d = 0; d < EMU_DEVICES; d++)
        emu_drop_device(d);
}

/* What the threads have stored stays where it is, delayed stores are lost. */
void emu_drop_device(int device)
{
    std::vector<emu_fibre *> others;
    std::set<emu_block *> blocks;
    auto is_here = [device](const emu_fibre *f) { return f->block->of->what.device == device; };

    runnable.erase(std::remove_if(runnable.begin(), runnable.end(), is_here), runnable.end());
    for (emu_fibre *f : live) {
        if (!is_here(f)) {
            f->place = others.size();
            others.push_back(f);
            continue;
        }
        blocks.insert(f->block);
        emu_acquire(f);
        free_fibre(f);
    }
    live.swap(others);
    for (emu_block *b : blocks)
        delete b;
    for (size_t k = launches.size(); k-- > 0;)
        if (launches[k]->what.device == device)
            launches.erase(launches.begin() + (ptrdiff_t)k);
    resident[device] = 0;
    changes++;
}

/* ---- Report ------------------------------------------------------------------------------------------------------ */

static std::string describe(const emu_fibre *f)
{
    char line[256];
    const launch *l = f->block->of;
    int n = snprintf(line, sizeof(line), "%s on device %d, block %u, thread %u: ", l->what.name, l->what.device,
                     f->block_index, f->thread);
    char *rest = line + n;
    size_t left = sizeof(line) - (size_t)n;

    if (f->at_barrier)
        snprintf(rest, left, "at a barrier, with %u of %u threads\n", f->block->waiting, f->block->alive);
    else if (f->what)
        snprintf(rest, left, "waits for %s to reach %u; it is %u\n", f->what, f->wanted, f->word ? *f->word : 0);
    else
        snprintf(rest, left, "runs\n");
    return line;
}

const char *emu_report(void)
{
    static std::string text;
    char line[256];

    text.clear();
    for (auto &l : launches)
        if (l->begun < l->what.blocks && (!l->what.after || emu_over(l->what.after))) {
            int d = l->what.device;
            snprintf(line, sizeof(line), "%s on device %d: %u blocks wait for room, %u of %u places are taken\n",
                     l->what.name, d, l->what.blocks - l->begun, resident[d], room[d]);
            text += line;
        }
    for (emu_fibre *f : live)
        text += describe(f);
    return text.c_str();
}
