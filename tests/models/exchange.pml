/* Eager exchanges over slots (src/collectives/shm/eager.h) as a model for spin: with up to A of them published at
 * once, no place is written while a rank has still to read it.
 *
 * N ranks go through EXCHANGES, each at any speed. Any of them may be long, the same for all, and any of three
 * kinds: all wait for all; all wait for rank 0, which does not wait; or rank 0 waits for all, which do not wait.
 * AHEAD = A: a rank publishes exchange k when it has completed k − A, and seen that all have published k − A; a line
 * of flag and payload for each of 2A numbers. A long one has its payload in one of two places, by parity. It is
 * published alone, when all ranks have published the one before.
 *
 * Checked whenever a rank reads what another one has published: it is the exchange that the reader is in, not a
 * later one, nor one that is being written. Checked where nothing can happen any more: all ranks are through
 * (termination).
 *
 * Writing a payload is two steps, in between it is nothing; the ranks of an exchange are read in any order, a step
 * each.
 *
 * The defects that tests/models/check.sh puts in, each of which must be found:
 *   -DSHORT      one place less
 *   -DEAGER      a rank publishes one more than A
 *   -DTOGETHER   what follows a long one is published before that is complete
 *   -DUNSEEN     a rank does not check whether the others have published k − A
 *   -DLONGER     nor, before a long one, whether they have published the one before: k − A is taken for enough */
#ifndef N
#define N 2
#endif
#ifndef AHEAD
#define AHEAD 2
#endif
#ifndef EXCHANGES
#define EXCHANGES 6
#endif
#ifdef SHORT
#define PLACES (2 * AHEAD - 1)
#else
#define PLACES (2 * AHEAD)
#endif
#ifdef EAGER
#define MOST (AHEAD + 1)
#else
#define MOST AHEAD
#endif

byte flag[N * PLACES];
byte line[N * PLACES]; /* payloads: the number of the exchange, 0: being written */
byte vector[N * 2];
/* Of an exchange that some rank is in: chosen by the first rank that publishes it, forgotten when all are through. */
bool chosen[EXCHANGES + 2], long_one[EXCHANGES + 2];
byte kind[EXCHANGES + 2];
byte through[N];
#define FROM_ROOT 1
#define TO_ROOT 2

#define FLAG(rank, k) flag[(rank) * PLACES + (k) % PLACES]
#define LINE(rank, k) line[(rank) * PLACES + (k) % PLACES]
#define VECTOR(rank, k) vector[(rank) * 2 + (k) % 2]

#define ROOM(k) (!long_one[k] || k == done + 1)
#ifdef TOGETHER
#define FREE true
#else
#define FREE (alone <= done)
#endif

/* The ranks that it waits for, a bit for each. */
#define ALL ((1 << N) - 1)
#define AWAITED(k) (kind[k] == 0 || (kind[k] == TO_ROOT && me == 0) -> ALL : (kind[k] == FROM_ROOT && me != 0 -> 1 : 0))

/* How far behind the ranks may be that have not published it. */
#ifdef LONGER
#define BEHIND(k) AHEAD
#else
#define BEHIND(k) (long_one[k] -> 1 : AHEAD)
#endif
#ifdef UNSEEN
#define SEEN(k) true
#else
#define SEEN(k) (k <= BEHIND(k) || (FLAG(0, k - BEHIND(k)) >= k - BEHIND(k) && FLAG(1, k - BEHIND(k)) >= k - BEHIND(k) && \
                                   FLAG(N - 1, k - BEHIND(k)) >= k - BEHIND(k))) /* two ranks or three */
#endif

proctype rank(byte me)
{
    byte shown, done, alone, read, other;
end:
    do
    :: atomic {
            shown < EXCHANGES && !chosen[shown + 1] ->
            if
            :: kind[shown + 1] = FROM_ROOT
            :: kind[shown + 1] = TO_ROOT
            :: skip
            fi;
            if
            :: long_one[shown + 1] = true
            :: skip
            fi;
            chosen[shown + 1] = true
        }
    :: shown < EXCHANGES && chosen[shown + 1] && shown + 1 <= done + MOST && ROOM(shown + 1) && FREE && SEEN(shown + 1) ->
        if
        :: long_one[shown + 1] -> VECTOR(me, shown + 1) = 0; VECTOR(me, shown + 1) = shown + 1; alone = shown + 1
        :: else -> LINE(me, shown + 1) = 0; LINE(me, shown + 1) = shown + 1
        fi;
        d_step { FLAG(me, shown + 1) = shown + 1; shown++ }
    :: done < shown ->
        atomic { /* one of the others that it has not read yet */
            other = 0;
            do
            :: other < N - 1 -> other++
            :: break
            od;
            if
            :: AWAITED(done + 1) & ~read & (1 << other) && FLAG(other, done + 1) >= done + 1 ->
                read = read | (1 << other);
                if
                :: long_one[done + 1] -> assert(VECTOR(other, done + 1) == done + 1)
                :: else -> assert(LINE(other, done + 1) == done + 1)
                fi
            :: else
            fi;
            other = 0
        }
    :: done < shown && read == AWAITED(done + 1) ->
        atomic {
            done++;
            read = 0;
            through[me] = done;
            other = 0;
            do
            :: other < N && through[other] >= done -> other++
            :: else -> break
            od;
            if
            :: other == N -> kind[done] = 0; long_one[done] = false
            :: else
            fi;
            other = 0
        }
    :: done == EXCHANGES -> break
    od;
    assert(done == EXCHANGES)
}

init
{
    byte k;
    atomic {
        k = 0;
        do
        :: k < N -> run rank(k); k++
        :: else -> break
        od
    }
}
