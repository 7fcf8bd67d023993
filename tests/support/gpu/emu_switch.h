/* The switch of stacks between the scheduler and fibres, and what the sanitizers must be told about it. */
#ifndef GY_TESTS_GPU_EMU_SWITCH_H
#define GY_TESTS_GPU_EMU_SWITCH_H

#include <stddef.h>

struct emu_fibre;

/* The stack of the scheduler's caller. */
struct emu_home {
    void *stack_pointer, *sanitizer;
    const void *stack;
    size_t stack_bytes;
};

/* Where the scheduler runs from now on: called at the start of every run. */
void emu_arrive(emu_home *home);
void emu_prepare(emu_fibre *f, char *stack, size_t bytes, void (*body)(void));
/* From the scheduler to a fibre, and back. */
void emu_enter(emu_home *home, emu_fibre *f);
void emu_leave(emu_home *home, emu_fibre *f, bool for_ever);
/* The first thing on a fibre's stack. */
void emu_entered(emu_home *home, emu_fibre *f);
void emu_forget(emu_fibre *f);
/* What ThreadSanitizer is to take as an order through an address. */
void emu_release(void *p);
void emu_acquire(void *p);

#endif
