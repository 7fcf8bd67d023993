/* Uniform completion (src/collectives/lifecycle/uniform_completion.h) as a model for spin: all survivors end each
 * operation alike, in any order of events.
 *
 * N ranks, each of which has OPS operations under way at once, whose schedules complete at any time and in any
 * order. At most DEATHS die, at most DOUBTS are declared failed while they live, and at most LEAVES destroy their
 * communicator: between two operations, before or after their last one, or, after a failure, in the midst of them.
 *   LINKS=0   ranks read each other's numbers, also those of the dead
 *   LINKS=1   they spread the minimum by dissemination
 *
 * Checked whenever an operation ends on a rank: what succeeds on any rank, also on one that dies or leaves
 * afterwards, fails on no survivor; its output there is complete; what succeeds was not started after what fails.
 * Checked where nothing can happen any more: on all survivors everything has ended (termination).
 *
 * The agreement is one step here: agreement.pml has what is inside. It needs the inputs of all survivors; ranks that
 * died, left or were declared failed after they had joined may be in it or not. The survivors learn of its outcome
 * later. A rank that learns of a failure joins at once: one that is late, or not inside gyre, learns of it late. A
 * rank with nothing under way joins when a rank that has joined calls it. Reading the numbers one after the other is
 * one step, too: as they only grow, what was enough when it was read still is.
 *
 * A schedule completes whatever the others do: some collectives need little of them, and more freedom only adds
 * states. A schedule that waits for a dead rank is one whose step is not taken: its rank learns of the failure
 * instead.
 *
 * The defects that tests/models/check.sh puts in, each of which must be found:
 *   -DUNCONFIRMED   an operation succeeds when its schedule is complete here
 *   -DMAXIMUM       the agreement is on the largest number
 *   -DTHAWED        numbers grow after a rank has joined
 *   -DGAPS          a number counts an operation although an earlier one is under way
 *   -DUNCALLED      ranks with nothing under way are not called
 *   -DOWN           a rank spreads its own number, not the least that it knows of (links)
 *   -DHASTY         an operation succeeds before the rank's own rounds have left (links) */
#ifndef N
#define N 3
#endif
#ifndef OPS
#define OPS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef DOUBTS
#define DOUBTS 0
#endif
#ifndef LEAVES
#define LEAVES 0
#endif
#ifndef LINKS
#define LINKS 0
#endif
#define ALL ((1 << N) - 1)
#define EVERY ((1 << OPS) - 1)
#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define UNDECIDED 255

byte alive = ALL;
byte gone;  /* have destroyed their communicator, or given up as EXCLUDED */
byte seen;  /* of these: whose going is noticed as a failure */
byte out;   /* taken for failed */
byte lost;  /* of the dead: what they had sent and has not come does not come any more */
byte deaths, doubts, leaves;

byte done[N];   /* operations whose plan is through, as bits; operation n, from 1, is bit n - 1 */
byte ended[N];  /* operations that have ended */
byte joined;    /* ranks that have joined the agreement, */
byte word[N];   /* with this number */
byte party;     /* whose word is in the outcome */
byte agreed = UNDECIDED;
byte succeeded, failed; /* operations, anywhere */

#define LEFT (alive & ~gone & ~out)
#define RUNS(i) (HAS(alive & ~gone, i) && !HAS(joined, i)) /* and knows of no failure */
#define FAILURE (((ALL & ~alive) | seen | out) != 0)
#if OPS > 2
#error "PREFIX is for two operations"
#endif
#ifdef GAPS
#define COMPLETE(i) (done[i] & 2 -> 2 : done[i])
#else
#define COMPLETE(i) (done[i] == 3 -> 2 : done[i] & 1)
#endif

inline succeed(i, n)
{
    assert(HAS(done[i], n - 1));
    assert((failed & ((1 << n) - 1)) == 0);
    succeeded = succeeded | BIT(n - 1);
    ended[i] = ended[i] | BIT(n - 1)
}

inline fail(i, n)
{
    assert((succeeded >> (n - 1)) == 0);
    failed = failed | BIT(n - 1);
    ended[i] = ended[i] | BIT(n - 1)
}

/* ---- all is well: when does a rank know that all have come to n? ---- */

#if LINKS
#if N > 2
#define ROUNDS 2
#else
#define ROUNDS 1
#endif
byte told[N * ROUNDS];  /* [rank, round]: the highest number that has left it */
byte heard[N * ROUNDS]; /* and the highest that has come to it */
#define AFTER(i, k) ((i + BIT(k)) % N)
#define AT(i, k) ((i) * ROUNDS + (k))
#define LESS(a, b) ((a) < (b) -> (a) : (b))
#ifdef OWN
#define VALUE(i, k) COMPLETE(i)
#else
#define VALUE(i, k) ((k) == 0 -> COMPLETE(i) : LESS(COMPLETE(i), heard[AT(i, 0)]))
#endif
/* A rank tells on behalf of an operation that waits: one that has returned from all repeats nothing. */
#define CONFIRMS(i) ((~ended[i] & (BIT(COMPLETE(i)) - 1)) != 0)
#define TELL(k) atomic { RUNS(i) && CONFIRMS(i) && VALUE(i, k) > told[AT(i, k)] -> told[AT(i, k)] = VALUE(i, k) }
#define ARRIVE(k) \
    atomic { !HAS(lost, i) && told[AT(i, k)] > heard[AT(AFTER(i, k), k)] && RUNS(AFTER(i, k)) -> heard[AT(AFTER(i, k), k)]++ }
#ifdef HASTY
#define HAVE_LEFT(i, n) true
#else
#define HAVE_LEFT(i, n) (told[AT(i, 0)] >= n && told[AT(i, ROUNDS - 1)] >= n)
#endif
#define KNOWS(i, n) (heard[AT(i, 0)] >= n && heard[AT(i, ROUNDS - 1)] >= n && HAVE_LEFT(i, n))
#else
#define COME(j, n) ((j) >= N || COMPLETE((j) % N) >= n)
#define KNOWS(i, n) (COME(0, n) && COME(1, n) && COME(2, n) && COME(3, n))
#endif

#ifdef UNCONFIRMED
#define MAY_END(i, n) true
#else
#define MAY_END(i, n) KNOWS(i, n)
#endif
#ifdef THAWED
#define MAY_RUN(i) HAS(alive & ~gone, i)
#else
#define MAY_RUN(i) RUNS(i)
#endif
#ifdef UNCALLED
#define CALLED false
#else
#define CALLED ((joined & LEFT) != 0)
#endif

#define RUN(n) atomic { MAY_RUN(i) && !HAS(done[i], n - 1) -> done[i] = done[i] | BIT(n - 1) }
#define END(n) \
    atomic { RUNS(i) && !HAS(ended[i], n - 1) && COMPLETE(i) >= n && MAY_END(i, n) -> succeed(i, n) }

/* ---- a failure ---- */

/* The inputs are combined: of all survivors, and of some of the others that had joined. */
inline agree()
{
#ifdef MAXIMUM
    agreed = 0;
#else
    agreed = OPS;
#endif
    j = 0;
    do
    :: j < N ->
        if
        :: HAS(joined, j) ->
            party = party | BIT(j);
#ifdef MAXIMUM
            agreed = (word[j] > agreed -> word[j] : agreed)
#else
            agreed = (word[j] < agreed -> word[j] : agreed)
#endif
        :: !HAS(LEFT, j) -> skip
        fi;
        j++
    :: else -> break
    od;
    j = 0
}

proctype rank(byte i)
{
    byte j;
end:
    do
    :: RUN(1)
    :: END(1)
#if OPS > 1
    :: RUN(2)
    :: END(2)
#endif
#if LINKS
    :: TELL(0)
    :: ARRIVE(0)
#if ROUNDS > 1
    :: TELL(1)
    :: ARRIVE(1)
#endif
#endif
    :: atomic { RUNS(i) && FAILURE && (ended[i] != EVERY || CALLED) -> joined = joined | BIT(i); word[i] = COMPLETE(i) }
    :: atomic { HAS(joined & LEFT, i) && agreed == UNDECIDED && (LEFT & ~joined) == 0 -> agree() }
    :: atomic { HAS(joined & alive & ~gone & party, i) && agreed != UNDECIDED && ended[i] != EVERY ->
        j = 1;
        do
        :: j <= OPS ->
            if
            :: HAS(ended[i], j - 1) -> skip
            :: !HAS(ended[i], j - 1) && j <= agreed -> succeed(i, j)
            :: !HAS(ended[i], j - 1) && j > agreed -> fail(i, j)
            fi;
            j++
        :: else -> break
        od;
        j = 0 }
    :: atomic { HAS(joined & alive & ~gone & out, i) -> gone = gone | BIT(i) } /* EXCLUDED: it fails, alone */
    od
}

/* ---- what happens to them ---- */

#define DIES(v) \
    atomic { deaths < DEATHS && v < N && HAS(alive & ~gone, v) -> \
        deaths++; alive = alive & ~BIT(v); if :: skip :: LINKS -> lost = lost | BIT(v) fi }
#define DOUBTED(v) atomic { doubts < DOUBTS && v < N && HAS(LEFT, v) -> doubts++; out = out | BIT(v) }
/* A rank that leaves before its last operation is missed by the others. */
#define GOES(v) \
    atomic { leaves < LEAVES && v < N && HAS(alive & ~gone, v) && (HAS(joined, v) || (done[v] & ~ended[v]) == 0) -> \
        leaves++; gone = gone | BIT(v); \
        if \
        :: ended[v] == EVERY -> skip \
        :: seen = seen | BIT(v) \
        fi }

proctype world()
{
    do
    :: DIES(0)
    :: DIES(1)
#if N > 2
    :: DIES(2)
#endif
#if N > 3
    :: DIES(3)
#endif
#if DOUBTS
    :: DOUBTED(0)
    :: DOUBTED(1)
#endif
#if LEAVES
    :: GOES(0)
    :: GOES(1)
#if N > 2
    :: GOES(2)
#endif
#if N > 3
    :: GOES(3)
#endif
#endif
    :: break
    od
}

proctype checker()
{
    byte i;
    timeout ->
    do
    :: i < N -> assert(!HAS(LEFT, i) || ended[i] == EVERY); i++
    :: else -> break
    od
}

init
{
    atomic {
        byte i;
        do
        :: i < N -> run rank(i); i++
        :: else -> break
        od;
        run world();
        run checker()
    }
}
