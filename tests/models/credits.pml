/* Credit of eager frames between two ranks (src/collectives/comm/channel.h) as a model for spin: does a collective ever
 * wait for credit that never comes back, and does a receiver ever have to stash more than it has room for?
 *
 *   OPS collectives; in each, both ranks send FRAMES frames to the other one, of one unit or of BIG, on each of LANES
 *   lanes. CREDITS = C units are there for each direction. The oldest collective of a rank may take what is left,
 *   younger ones leave OLDEST. What was consumed is owed, and goes back with the next frame of data, or, from BATCH
 *   units on, by a frame of its own. Rank 0 starts a collective whenever it likes, rank 1 (BLOCKS) when the one before
 *   is complete. Of two lanes (OPS = 1) the receiver takes the frames in turn, lane 1 first; the sender sends either as
 *   soon as it can.
 *
 * Checked where frames come in: they find room. Checked where nothing can happen any more: all collectives are complete
 * on both ranks (termination).
 *
 * The defects that tests/models/check.sh puts in, each of which must be found:
 *   -DOLDEST=3   younger collectives leave less than the longest frame and what is kept back
 *   -DSELFISH    younger collectives leave nothing
 *   -DSILENT     nothing goes back but with data
 *   -DLANES=2    long frames although another lane goes to the same peer */
#ifndef OPS
#define OPS 3
#endif
#ifndef FRAMES
#define FRAMES 2
#endif
#ifndef LANES
#define LANES 1
#endif
#ifndef BIG
#define BIG 2
#endif
#ifndef CREDITS
#define CREDITS 6
#endif
#ifndef OLDEST
#define OLDEST 4
#endif
#ifndef BATCH
#define BATCH 3
#endif
#define EACH (FRAMES * LANES)

byte units[OPS * EACH]; /* of a frame: the same in both directions */
byte left[2];           /* what each rank may send */
byte owed[2];           /* what it has consumed and not given back */
byte stashed[2];        /* units that wait for it to start their collective */
byte started[2], complete[2];
/* frames of a lane: sent, arrived, consumed */
byte sent[2 * OPS * LANES], got[2 * OPS * LANES], taken[2 * OPS * LANES];

/* {operation, lane, credit}; operation OPS: credit alone. */
chan link[2] = [CREDITS + 4] of { byte, byte, byte };

#define AT(rank, op, lane) (((rank) * OPS + (op)) * LANES + (lane))
#define UNITS(op, lane, i) units[(op) * EACH + (i) * LANES + (lane)]
#ifdef SELFISH
#define RESERVE(op) 0
#else
#define RESERVE(op) (op == complete[me] -> 0 : OLDEST)
#endif
#if LANES == 1
#define TURN(op, lane) true
#else /* frame i of lane 0 after frame i of lane 1, and that after frame i - 1 of lane 0 */
#define TURN(op, lane) (lane == 1 -> taken[AT(me, op, 0)] == taken[AT(me, op, 1)] : taken[AT(me, op, 0)] < taken[AT(me, op, 1)])
#endif
#if LANES == 1
#define WHOLE(op) (sent[AT(me, op, 0)] == FRAMES && taken[AT(me, op, 0)] == FRAMES)
#else
#define WHOLE(op)                                                                                                             \
    (sent[AT(me, op, 0)] == FRAMES && taken[AT(me, op, 0)] == FRAMES && sent[AT(me, op, 1)] == FRAMES &&                      \
     taken[AT(me, op, 1)] == FRAMES)
#endif

#define SEND(op, lane)                                                                                                        \
    :: atomic {                                                                                                               \
        op < started[me] && sent[AT(me, op, lane)] < FRAMES &&                                                                \
            left[me] >= RESERVE(op) + UNITS(op, lane, sent[AT(me, op, lane)]) ->                                              \
        left[me] = left[me] - UNITS(op, lane, sent[AT(me, op, lane)]);                                                        \
        link[1 - me]!op, lane, owed[me];                                                                                      \
        owed[me] = 0;                                                                                                         \
        sent[AT(me, op, lane)]++                                                                                              \
        }
#define CONSUME(op, lane)                                                                                                     \
    :: atomic {                                                                                                               \
        op < started[me] && taken[AT(me, op, lane)] < got[AT(me, op, lane)] && TURN(op, lane) ->                              \
        stashed[me] = stashed[me] - UNITS(op, lane, taken[AT(me, op, lane)]);                                                 \
        owed[me] = owed[me] + UNITS(op, lane, taken[AT(me, op, lane)]);                                                       \
        taken[AT(me, op, lane)]++                                                                                             \
        }

proctype rank(byte me; bool blocks)
{
    byte op, lane, credit;
    do
    :: started[me] < OPS && (!blocks || complete[me] == started[me]) -> started[me]++
    :: complete[me] < started[me] && WHOLE(complete[me]) -> complete[me]++
    SEND(0, 0)
    CONSUME(0, 0)
#if OPS > 1
    SEND(1, 0)
    CONSUME(1, 0)
#endif
#if OPS > 2
    SEND(2, 0)
    CONSUME(2, 0)
#endif
#if LANES > 1
    SEND(0, 1)
    CONSUME(0, 1)
#endif
    :: atomic { link[me]?op, lane, credit -> /* what comes */
        left[me] = left[me] + credit;
        assert(left[me] <= CREDITS);
        if
        :: op < OPS ->
            stashed[me] = stashed[me] + UNITS(op, lane, got[AT(me, op, lane)]);
            got[AT(me, op, lane)]++;
            assert(stashed[me] <= CREDITS)
        :: else
        fi;
        op = 0; lane = 0; credit = 0
        }
#ifndef SILENT
    :: atomic { owed[me] >= BATCH -> link[1 - me]!OPS, 0, owed[me]; owed[me] = 0 }
#endif
    :: complete[me] == OPS && complete[1 - me] == OPS -> break
    od
}

init {
    byte i;
    atomic {
        do
        :: i < OPS * EACH ->
            if
            :: units[i] = 1
            :: units[i] = BIG
            fi;
            i++
        :: else -> break
        od;
        left[0] = CREDITS;
        left[1] = CREDITS;
        run rank(0, false);
        run rank(1, true)
    }
}
