/* A hash set of pointers and their kinds in static memory, without locks: open addressing over at most PROBES entries.
 *
 *   EMPTY ──add──▶ handle ──remove──▶ GONE ──add──▶ another handle
 *
 * An entry never becomes EMPTY again, so a search ends at the first EMPTY one, or after PROBES. Only the thread that
 * adds a handle knows it, and no thread may use a handle while it is removed. So readers need only each entry's own
 * atomicity. Untouched pages are zero pages, so a program pays for as many as it has handles. */
#include "handle.h"

#include <stdatomic.h>

#define PLACES 32768u /* a power of two */
#define PROBES 64u

#define EMPTY ((uintptr_t)0)
#define GONE ((uintptr_t)1)

static _Atomic uintptr_t places[PLACES];
static _Atomic long strangers; /* handles that live and found no room */

static uintptr_t word_of(const void *handle, enum gy_handle_kind kind)
{
    return (uintptr_t)handle | (uintptr_t)kind;
}

/* Fibonacci hashing of the address, whose low bits carry no information. */
static unsigned first_place(uintptr_t word)
{
    return (unsigned)((uint64_t)(word >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 49);
}

void gy_handle_add(const void *handle, enum gy_handle_kind kind)
{
    uintptr_t word = word_of(handle, kind);
    unsigned first = first_place(word);
    for (unsigned i = 0; i < PROBES; i++) {
        _Atomic uintptr_t *place = &places[(first + i) % PLACES];
        uintptr_t found = atomic_load_explicit(place, memory_order_relaxed);
        if (found <= GONE &&
            atomic_compare_exchange_strong_explicit(place, &found, word, memory_order_release, memory_order_relaxed))
            return;
    }
    atomic_fetch_add(&strangers, 1);
}

static _Atomic uintptr_t *find(uintptr_t word)
{
    unsigned first = first_place(word);
    for (unsigned i = 0; i < PROBES; i++) {
        _Atomic uintptr_t *place = &places[(first + i) % PLACES];
        uintptr_t found = atomic_load_explicit(place, memory_order_acquire);
        if (found == word)
            return place;
        if (found == EMPTY)
            return NULL;
    }
    return NULL;
}

void gy_handle_remove(const void *handle, enum gy_handle_kind kind)
{
    _Atomic uintptr_t *place = find(word_of(handle, kind));
    if (place)
        atomic_store_explicit(place, GONE, memory_order_release);
    else
        atomic_fetch_sub(&strangers, 1);
}

/* Out of line, so that the check of the first entry is inlined. */
static __attribute__((noinline)) bool is_known(uintptr_t word)
{
    return find(word) || atomic_load_explicit(&strangers, memory_order_relaxed) > 0;
}

bool gy_handle_lives(const void *handle, enum gy_handle_kind kind)
{
    uintptr_t word = word_of(handle, kind);
    if (!handle || (uintptr_t)handle % 8 != 0)
        return false;
    return atomic_load_explicit(&places[first_place(word)], memory_order_acquire) == word || is_known(word);
}
