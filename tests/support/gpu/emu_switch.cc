#include "emu_switch.h"

#include <stdint.h>
#include <string.h>
#if defined(EMU_TSAN)
#include <sanitizer/tsan_interface.h>
#elif defined(EMU_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#include "emu_fibre.h"

/* Saves the registers that a call preserves on this stack, and goes on with the other. */
extern "C" void emu_stack_switch(void **from_p, void *to);
#if defined(__x86_64__)
__asm__(".text\n.globl emu_stack_switch\n.type emu_stack_switch,@function\nemu_stack_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        ".size emu_stack_switch, .-emu_stack_switch\n");
enum { SAVED_WORDS = 8, RETURN_WORD = 6 };
#elif defined(__aarch64__)
__asm__(".text\n.globl emu_stack_switch\n.type emu_stack_switch,%function\nemu_stack_switch:\n"
        "sub sp, sp, #160\n"
        "stp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\nstp x25, x26, [sp, #48]\n"
        "stp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
        "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
        "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
        "ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
        "add sp, sp, #160\nret\n"
        ".size emu_stack_switch, .-emu_stack_switch\n");
enum { SAVED_WORDS = 20, RETURN_WORD = 11 };
#else
#error "no switch of stacks for this processor"
#endif

enum { STACK_BYTES_LEFT = 64 };

void emu_arrive(emu_home *home)
{
#if defined(EMU_TSAN)
    home->sanitizer = __tsan_get_current_fiber();
#else
    (void)home;
#endif
}

/* The stack looks as if emu_stack_switch had been called from before the body's first instruction. */
void emu_prepare(emu_fibre *f, char *stack, size_t bytes, void (*body)(void))
{
    uintptr_t top = ((uintptr_t)stack + bytes - STACK_BYTES_LEFT) & ~(uintptr_t)15;
    void **at = (void **)top - SAVED_WORDS;

    memset((void *)at, 0, SAVED_WORDS * sizeof(void *));
    memcpy(&at[RETURN_WORD], &body, sizeof(body));
    f->stack_pointer = at;
#if defined(EMU_TSAN)
    f->sanitizer = __tsan_create_fiber(0);
#endif
}

void emu_enter(emu_home *home, emu_fibre *f)
{
#if defined(EMU_TSAN)
    __tsan_switch_to_fiber(f->sanitizer, __tsan_switch_to_fiber_no_sync);
#elif defined(EMU_ASAN)
    void *fake;
    __sanitizer_start_switch_fiber(&fake, f->stack, 64 << 10);
#endif
    emu_stack_switch(&home->stack_pointer, f->stack_pointer);
#if defined(EMU_ASAN)
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void emu_entered(emu_home *home, emu_fibre *f)
{
#if defined(EMU_ASAN)
    __sanitizer_finish_switch_fiber(nullptr, &home->stack, &home->stack_bytes);
#endif
    (void)home;
    emu_acquire(f->order);
}

void emu_leave(emu_home *home, emu_fibre *f, bool for_ever)
{
    if (for_ever)
        emu_release(f->order);
    emu_release(f); /* for emu_drop */
#if defined(EMU_TSAN)
    __tsan_switch_to_fiber(home->sanitizer, __tsan_switch_to_fiber_no_sync);
#elif defined(EMU_ASAN)
    __sanitizer_start_switch_fiber(for_ever ? nullptr : &f->sanitizer, home->stack, home->stack_bytes);
#endif
    emu_stack_switch(&f->stack_pointer, home->stack_pointer);
#if defined(EMU_ASAN)
    __sanitizer_finish_switch_fiber(f->sanitizer, &home->stack, &home->stack_bytes);
#endif
}

void emu_forget(emu_fibre *f)
{
#if defined(EMU_TSAN)
    __tsan_destroy_fiber(f->sanitizer);
#elif defined(EMU_ASAN)
    __asan_unpoison_memory_region(f->stack, 64 << 10);
#endif
    (void)f;
}

void emu_release(void *p)
{
#if defined(EMU_TSAN)
    __tsan_release(p);
#endif
    (void)p;
}

void emu_acquire(void *p)
{
#if defined(EMU_TSAN)
    __tsan_acquire(p);
#endif
    (void)p;
}
