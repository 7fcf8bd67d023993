/* When a receiver may sleep while frames come silently (src/transport/rdma/polled_write.c), as a model for spin: no
 * receiver sleeps while a frame is there, or on its way, of which no completion tells it.
 *
 * The sender sends CHUNKS chunks, silently where the receiver polls, else with a completion. The receiver polls or
 * not at any time, and sleeps when it may. What is posted waits in the queue of its queue pair for any time and is
 * executed in order by the devices: in the receiver's memory (silent), as a completion there (loud), in the sender's
 * memory (polls), or as a read of it (of `begun`). The sender may stop between any two of its steps.
 *
 * Checked where nothing can happen any more: every chunk has been consumed.
 *
 * The defects that tests/models/check.sh puts in, each of which must be found:
 *   -DLATE       the sender says that it has begun after it has seen whether it is polled for
 *   -DUNREAD     the receiver sleeps as soon as the device has written that it does not poll any more
 *   -DAHEAD      the read overtakes the write
 *   -DUNSEEN     what was begun need not be here before the sleep */
#ifndef CHUNKS
#define CHUNKS 3
#endif
#ifndef SLEEPS
#define SLEEPS 2 /* times that the receiver stops to look */
#endif

mtype = { SILENT, LOUD };

chan out = [CHUNKS] of { mtype }; /* the sender's queue pair */
bool looks;                       /* the sender's words */
byte begun;
byte memory; /* chunks that are in the receiver's memory */
byte told;   /* chunks up to here have been told by a completion */
byte taken;
byte asked;  /* the receiver's requests: 1 both are posted, 2 the write is done, 3 the read too */
byte theirs; /* what was read */

active proctype sender()
{
    byte n = 0;
    bool silent;
    do
    :: n == CHUNKS -> break
    :: else ->
        silent = looks;
#ifndef LATE
        if
        :: silent -> begun = n + 1; silent = looks
        :: else
        fi;
#else
        if
        :: silent -> begun = n + 1
        :: else
        fi;
#endif
        if
        :: silent -> out ! SILENT
        :: else -> out ! LOUD
        fi;
        n++
    od
}

active proctype sender_device()
{
end:
    do
    :: out ? SILENT -> memory++
    :: out ? LOUD -> atomic { memory++; told = memory }
    od
}

active proctype receiver_device()
{
end:
    do
#ifdef AHEAD
    :: asked == 1 -> theirs = begun; looks = false; asked = 3
#else
    :: asked == 1 -> looks = false; asked = 2
    :: asked == 2 -> theirs = begun; asked = 3
#endif
    od
}

#ifdef UNREAD
#define ANSWERED (asked >= 2)
#define MISSING false
#elif defined(UNSEEN)
#define ANSWERED (asked == 3)
#define MISSING false
#else
#define ANSWERED (asked == 3)
#define MISSING (taken < theirs)
#endif

active proctype receiver()
{
    byte sleeps = 0;
    bool looking = false;
    do
    :: taken == CHUNKS -> break
    :: looking && taken < memory -> taken = memory
    :: looking && asked == 0 -> asked = 1
    :: looking && asked > 0 && ANSWERED ->
        taken = memory;
        if
        :: MISSING -> (taken < memory) /* stays awake until it is there */
        :: else -> looking = false; asked = 0; sleeps++
        fi
    :: !looking && sleeps < SLEEPS && taken < CHUNKS -> looks = true; looking = true
    :: !looking && taken < CHUNKS -> (told > taken); taken = memory /* sleeps: only a completion wakes it */
    od
}
