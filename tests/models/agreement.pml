/* The agreement of src/membership/agreement.c as a model for spin: the states that ranks can reach, in any order of
 * events.
 *
 * N ranks, of which at most DEATHS die and at most DOUBTS are declared failed while they live (they are stopped, or
 * late). At any moment, or never, the network is cut between the ranks of the set CUT and the others (0: never).
 * Where QUITS is above 0, ranks enter the agreement one by one. At most QUITS of them end it alone with an error,
 * also before they have entered: these send QUIT to all, or, for want of connections, to no rank, and to each rank
 * that asks. No timeout helps the ranks that miss them.
 *
 * Checked in every state: live ranks that have decided have decided the same, and no rank goes on with another
 * outcome (no split brain); no rank is PARTITIONED unless there was a cut or a doubt, or one quit. Checked where
 * nothing can happen any more: every rank that lives has decided, has quit, or is EXCLUDED or PARTITIONED
 * (termination).
 *
 * Messages are bits that are set when sent, and delivered by a step of their own at any later time, or never when a
 * cut comes first; so they have any delay. What a dead rank has sent may still arrive. A proposal is the set of the
 * ranks that take part; it has the number of its coordinator, which proposes once. Names are those of agreement.c.
 *
 * The defects that tests/models/check.sh puts in, each of which must be found:
 *   -DONE_PHASE     the coordinator decides without waiting for ACCEPT
 *   -DUNPROMISED    a member accepts a proposal of a coordinator that it knows as failed
 *   -DHALF          just half is enough without the lowest rank
 *   -DALWAYS        any number is enough
 *   -DSILENT        a rank that has decided does not tell the ranks that ask
 *   -DUNASKED       a coordinator does not ask the members that it misses
 *   -DMUTE          a rank that ends it before it has entered sends nothing to ranks that ask
 *   -DUNKEPT        a QUIT is dropped by a rank that has not entered yet; found where QUIT reaches all (-DTOLD) and no
 *                   rank asks, since asking repairs it later */
#ifndef N
#define N 4
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef DOUBTS
#define DOUBTS 0
#endif
#ifndef CUT
#define CUT 0
#endif
#ifndef QUITS
#define QUITS 0
#endif
#define ALL ((1 << N) - 1)
#define NONE 7
#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)

byte alive = ALL;
byte out;              /* EXCLUDED */
byte parted;           /* PARTITIONED */
byte side;             /* of the cut: this half; 0: none yet */
byte doubts, deaths;

byte failed[N], proved[N];       /* what each rank knows: failure records */
byte promised[N] = NONE, accepted[N] = NONE;
byte join_sent[N], joined[N];    /* [coordinator]: set of members; sent, and delivered */
byte join_accepted[16];          /* [coordinator * N + member]: what it had accepted */
byte proposal[N];                /* [coordinator]: its outcome, 0: none */
byte accept_sent[N], accepts[N]; /* [coordinator]: set of members */
byte decided[N];                 /* the outcome; 0: none */
#if QUITS
byte entered, quit;              /* ranks that have entered; that have ended it with an error */
byte quit_sent[N];               /* [rank that has quit]: ranks that its QUIT is on its way to */
byte told[N];                    /* senders; kept until it enters */
#define ENTERED(i) HAS(entered, i)
#define QUIT quit
#else
#define ENTERED(i) true
#define QUIT 0
#endif

#define UP(i, j) (side == 0 || HAS(side, i) == HAS(side, j))
#define MINE(i) (HAS(side, i) -> side : ALL & ~side)
#define LOWEST(set) ((set) & 1 -> 0 : ((set) & 2 -> 1 : ((set) & 4 -> 2 : ((set) & 8 -> 3 : NONE))))
#define COUNT(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2) + HAS(set, 3))
#define LIVES(i) (ALL & ~failed[i])
#define ELECTORATE(i) (ALL & ~proved[i])
#define CHAIR(i) LOWEST(LIVES(i))
#if defined(ALWAYS)
#define ENOUGH(i) true
#elif defined(HALF)
#define ENOUGH(i) (2 * COUNT(LIVES(i)) >= COUNT(ELECTORATE(i)))
#else
#define ENOUGH(i)                                         \
    (2 * COUNT(LIVES(i)) > COUNT(ELECTORATE(i)) ||        \
     (2 * COUNT(LIVES(i)) == COUNT(ELECTORATE(i)) && HAS(LIVES(i), LOWEST(ELECTORATE(i)))))
#endif
#define TAKES_PART(i) (HAS(alive, i) && !HAS(out | parted | QUIT, i))

/* Of two that live and have decided both go on with the same. A rank that is not in what it learns is out. */
inline decide(i, what)
{
    if
    :: !HAS(what, i) -> out = out | BIT(i)
    :: else ->
        decided[i] = what;
        k = 0;
        do
        :: k < N ->
            assert(!HAS(alive & ~out, k) || decided[k] == 0 || decided[k] == what);
            k++
        :: else -> break
        od;
        k = 0
    fi
}

#define BUSY(i) (TAKES_PART(i) && decided[i] == 0 && ENTERED(i))
#define HEAR_DOUBT(from)                                                                   \
    atomic { BUSY(i) && i != from && (failed[from] & doubts & ~failed[i]) != 0 && UP(i, from) -> \
        failed[i] = failed[i] | (failed[from] & doubts) }
#define HEAR_JOIN(from) \
    atomic { BUSY(i) && HAS(join_sent[i] & ~joined[i], from) && UP(i, from) -> joined[i] = joined[i] | BIT(from) }
#define HEAR_ACCEPT(from) \
    atomic { BUSY(i) && HAS(accept_sent[i] & ~accepts[i], from) && UP(i, from) -> accepts[i] = accepts[i] | BIT(from) }
#define HEAR_PROPOSE(coordinator)                                                                              \
    atomic { BUSY(i) && i != coordinator && proposal[coordinator] != 0 && HAS(joined[coordinator], i) && !HAS(accept_sent[coordinator], i) && \
             KEEPS_PROMISE(coordinator) && UP(i, coordinator) ->                                                     \
        accepted[i] = coordinator; promised[i] = coordinator; accept_sent[coordinator] = accept_sent[coordinator] | BIT(i) }
#ifdef UNPROMISED
#define KEEPS_PROMISE(coordinator) true
#else
#define KEEPS_PROMISE(coordinator) (!HAS(failed[i], coordinator) && (promised[i] == NONE || coordinator >= promised[i]))
#endif
#ifdef SILENT
#define TELLS(from) false
#else
#define TELLS(from) true
#endif
#define HEAR_DECIDE(from) \
    atomic { BUSY(i) && i != from && decided[from] != 0 && UP(i, from) && TELLS(from) -> decide(i, decided[from]) }

#if QUITS
#ifdef UNKEPT
#define KEEPS(i) HAS(entered, i)
#else
#define KEEPS(i) true
#endif
#ifdef UNASKED
#define ASKS(i, whom) false
#else
#define ASKS(i, whom) (CHAIR(i) == i && (!HAS(joined[i], whom) || (proposal[i] != 0 && !HAS(accepts[i], whom))))
#endif
#ifdef TOLD
#define UNCONNECTED false
#else
#define UNCONNECTED true
#endif
#ifdef MUTE
#define ANSWERS(whom) HAS(entered, whom)
#else
#define ANSWERS(whom) true
#endif
/* The QUIT of a rank arrives; a rank that takes part applies it at once, and the others when they enter. */
#define HEAR_QUIT(from)                                                                    \
    atomic { TAKES_PART(i) && decided[i] == 0 && HAS(quit_sent[from], i) && UP(i, from) -> \
        quit_sent[from] = quit_sent[from] & ~BIT(i);                                       \
        told[i] = told[i] | (KEEPS(i) -> BIT(from) : 0);                                   \
        failed[i] = failed[i] | (HAS(entered, i) -> told[i] : 0) }
/* A JOIN is a question, too. */
#define ASK_QUIT(whom)                                                                                  \
    atomic { BUSY(i) && HAS(quit & alive & ~failed[i], whom) && !HAS(quit_sent[whom], i) && UP(i, whom) &&\
             ANSWERS(whom) && (ASKS(i, whom) || (CHAIR(i) == whom && HAS(join_sent[whom], i))) ->       \
        quit_sent[whom] = quit_sent[whom] | BIT(i) }
#endif

proctype rank(byte i)
{
    byte j, k, best;
    do
    :: atomic { !TAKES_PART(i) || decided[i] != 0 -> break }

#if QUITS
    :: atomic { TAKES_PART(i) && !HAS(entered, i) ->
        entered = entered | BIT(i);
        failed[i] = failed[i] | told[i] }
    :: atomic { BUSY(i) && COUNT(quit) < QUITS -> quit = quit | BIT(i); quit_sent[i] = ALL & ~BIT(i) }
    :: atomic { TAKES_PART(i) && decided[i] == 0 && COUNT(quit) < QUITS && UNCONNECTED -> quit = quit | BIT(i) }
    :: HEAR_QUIT(0)
    :: HEAR_QUIT(1)
    :: ASK_QUIT(0)
    :: ASK_QUIT(1)
#if N > 2
    :: HEAR_QUIT(2)
    :: ASK_QUIT(2)
#endif
#if N > 3
    :: HEAR_QUIT(3)
    :: ASK_QUIT(3)
#endif
#endif

    /* what it comes to know of others */
    :: atomic { BUSY(i) && (~alive & ALL & ~failed[i]) != 0 && side == 0 ->
        j = LOWEST(~alive & ALL & ~failed[i]);
        failed[i] = failed[i] | BIT(j); proved[i] = proved[i] | BIT(j); j = 0 }
    /* where there is a cut: of the dead on its own side, and of all ranks on the other: out of reach, which proves
     * nothing */
    :: atomic { BUSY(i) && side != 0 && (~alive & ALL & ~failed[i] & MINE(i)) != 0 ->
        j = LOWEST(~alive & ALL & ~failed[i] & MINE(i));
        failed[i] = failed[i] | BIT(j); proved[i] = proved[i] | BIT(j); j = 0 }
    :: atomic { BUSY(i) && side != 0 && (ALL & ~failed[i] & ~MINE(i)) != 0 ->
        j = LOWEST(ALL & ~failed[i] & ~MINE(i));
        failed[i] = failed[i] | BIT(j); j = 0 }
    /* a rank that is excluded or has no quorum quits and tells the ranks that wait for it, or is silent: the timeout
     * of silence */
    :: atomic { BUSY(i) && ((out | parted) & ALL & ~failed[i]) != 0 ->
        j = LOWEST((out | parted) & ALL & ~failed[i]);
        failed[i] = failed[i] | BIT(j); j = 0 }
#if DOUBTS
    :: HEAR_DOUBT(0)
    :: HEAR_DOUBT(1)
#if N > 2
    :: HEAR_DOUBT(2)
#endif
#if N > 3
    :: HEAR_DOUBT(3)
#endif
    :: atomic { BUSY(i) && HAS(failed[i], i) -> out = out | BIT(i) }
#endif

    /* a member joins the coordinator */
    :: atomic { BUSY(i) && !HAS(failed[i], i) && CHAIR(i) != i && !HAS(join_sent[CHAIR(i)], i) ->
        j = CHAIR(i);
        promised[i] = j;
        join_accepted[j * N + i] = accepted[i];
        join_sent[j] = join_sent[j] | BIT(i); j = 0 }

    /* messages come to the coordinator */
    :: HEAR_JOIN(0)
    :: HEAR_JOIN(1)
    :: HEAR_ACCEPT(0)
    :: HEAR_ACCEPT(1)
#if N > 2
    :: HEAR_JOIN(2)
    :: HEAR_ACCEPT(2)
#endif
#if N > 3
    :: HEAR_JOIN(3)
    :: HEAR_ACCEPT(3)
#endif

    /* the coordinator proposes */
    :: atomic { BUSY(i) && !HAS(failed[i], i) && CHAIR(i) == i && proposal[i] == 0 &&
                (LIVES(i) & ~BIT(i) & ~joined[i]) == 0 && ENOUGH(i) ->
        best = accepted[i];
        j = 0;
        do
        :: j < N ->
            if
            :: HAS(joined[i], j) && join_accepted[i * N + j] != NONE && (best == NONE || join_accepted[i * N + j] > best) ->
                best = join_accepted[i * N + j]
            :: else
            fi;
            j++
        :: else -> break
        od;
        if
        :: best == NONE -> proposal[i] = LIVES(i)
        :: else -> proposal[i] = proposal[best]
        fi;
        accepted[i] = i; promised[i] = i; best = 0; j = 0 }

    /* a member accepts */
    :: HEAR_PROPOSE(0)
    :: HEAR_PROPOSE(1)
#if N > 2
    :: HEAR_PROPOSE(2)
#endif
#if N > 3
    :: HEAR_PROPOSE(3)
#endif

    /* the coordinator decides */
    :: atomic { BUSY(i) && !HAS(failed[i], i) && CHAIR(i) == i && proposal[i] != 0 &&
#ifndef ONE_PHASE
                (LIVES(i) & ~BIT(i) & ~accepts[i]) == 0 &&
#endif
                ENOUGH(i) ->
        decide(i, proposal[i]) }

    /* a rank that has decided tells the others; a dead one may have sent it before */
    :: HEAR_DECIDE(0)
    :: HEAR_DECIDE(1)
#if N > 2
    :: HEAR_DECIDE(2)
#endif
#if N > 3
    :: HEAR_DECIDE(3)
#endif

    :: atomic { BUSY(i) && !HAS(failed[i], i) && !ENOUGH(i) ->
        assert(side != 0 || doubts != 0 || QUIT != 0);
        parted = parted | BIT(i) }
    od;
}

/* What happens to them. */
#define DIES(v) atomic { deaths < DEATHS && v < N && HAS(alive, v) -> deaths++; alive = alive & ~BIT(v) }
/* `of` takes a rank for failed, which may live. */
#define DOUBTED(v, of) \
    atomic { COUNT(doubts | BIT(v)) <= DOUBTS && v < N && of < N && HAS(alive, of) && !HAS(failed[of], v) -> \
        doubts = doubts | BIT(v); failed[of] = failed[of] | BIT(v) }
#define CUTS(s) atomic { side == 0 -> side = s }

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
    :: DOUBTED(0, 1)
    :: DOUBTED(1, 0)
#if N > 2
    :: DOUBTED(0, 2)
    :: DOUBTED(1, 2)
    :: DOUBTED(2, 0)
#endif
#if N > 3
    :: DOUBTED(3, 0)
    :: DOUBTED(3, 1)
#endif
#endif
#if CUT
    :: CUTS(CUT)
#endif
    :: break
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
        run world()
    }
}
