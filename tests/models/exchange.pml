/* Direct exchanges over windows (src/collectives/exchange.h) as a model for spin: with up to A of them shown at once, is a
 * place ever written while somebody has still to read it?
 *
 *   N ranks go through EXCHANGES, each as fast or as slow as it likes. Any of them may be long, the same for all.
 *   AHEAD = A: a rank shows exchange k when it has completed k - A; a line of flag and payload for each of 2A numbers.
 *   A long one has its payload in one of two places, by parity, and is shown alone.
 *
 * Checked whenever a rank reads what another one has shown: it is the exchange that it is in, not a later one, nor one that
 * is being written. Checked where nothing can happen any more: all ranks are through (termination).
 *
 * Writing a payload is two steps, in between it is nothing; the ranks of an exchange are read in any order, a step each.
 *
 * The defects that tests/models/check.sh puts in, each of which must be found:
 *   -DSHORT      one place less
 *   -DEAGER      a rank shows one more than A
 *   -DHASTY      a rank completes an exchange that one of the others has not shown
 *   -DTOGETHER   what follows a long one is shown before that is complete
 *   -DEARLY      a long one is shown before all before it are complete */
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
bool long_one[EXCHANGES + 1];

#define FLAG(rank, k) flag[(rank) * PLACES + (k) % PLACES]
#define LINE(rank, k) line[(rank) * PLACES + (k) % PLACES]
#define VECTOR(rank, k) vector[(rank) * 2 + (k) % 2]

#ifdef EARLY
#define ROOM(k) (!long_one[k] || k <= done + MOST)
#else
#define ROOM(k) (!long_one[k] || k == done + 1)
#endif
#ifdef TOGETHER
#define FREE true
#else
#define FREE (alone <= done)
#endif

#ifdef HASTY
#define ENOUGH (read != 0)
#else
#define ENOUGH (read == (1 << N) - 1)
#endif

proctype rank(byte me)
{
    byte shown, done, alone, read, other;
end:
    do
    :: shown < EXCHANGES && shown + 1 <= done + MOST && ROOM(shown + 1) && FREE ->
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
            :: !(read & (1 << other)) && FLAG(other, done + 1) >= done + 1 ->
                read = read | (1 << other);
                if
                :: long_one[done + 1] -> assert(VECTOR(other, done + 1) == done + 1)
                :: else -> assert(LINE(other, done + 1) == done + 1)
                fi
            :: else
            fi;
            other = 0
        }
    :: done < shown && ENOUGH -> d_step { done++; read = 0 }
    :: done == EXCHANGES -> break
    od;
    assert(done == EXCHANGES)
}

init
{
    byte k;
    atomic {
        k = 1;
        do
        :: k <= EXCHANGES ->
            if
            :: long_one[k] = true
            :: skip
            fi;
            k++
        :: else -> break
        od;
        k = 0;
        do
        :: k < N -> run rank(k); k++
        :: else -> break
        od
    }
}
