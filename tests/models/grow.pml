/* Growing (src/collectives/lifecycle/grow.c, src/membership/join_server.c, join_client.c) as a model for spin: all
 * ranks come to the same world, in any order of events.
 *
 * N members, of which rank 0 receives joiners. NEWS joiners, which come, are lost or hang up, and come again, each
 * time with another listener. At most DEATHS of both die, and at most DOUBTS members are declared failed while they
 * live, before they have agreed: they go on working, or stand still for good, their sockets open. Or they stand
 * still later, rank 0 between any two of its WELCOMEs, too.
 *
 * Checked in every state: members that conclude the growing conclude the same, with the same list; a joiner is
 * accepted only when the members have agreed on it. Checked where nothing can happen any more (termination): every
 * surviving member has come to an end, in the world that has grown or in one of the survivors. And no member waits
 * there for the listener of a live joiner that does not know that it is accepted. Each joiner on the list is
 * accepted, or dead, or has closed that listener, by which the new world finds it dead. So of the ranks that are not
 * proved to be gone only members can fail to answer there, and joiners never cost the survivors their quorum. A rank
 * that waits for rank 0 and receives nothing more from it leaves in the end. That the timeout for it ends before
 * those of the new world is not in the model.
 *
 * The agreement is one step here, of the inputs of all survivors: agreement.pml has what is inside. Ranks that died
 * or were declared failed after they had joined may be in it or not. A failure is known to each member at some later
 * time, or before it begins to grow: then it shrinks, in the same instance, and all meet in the next one. What fails
 * in the new world is the next agreement's. The broadcast of the list may have come, or not, to any rank when its
 * sender dies. CALL and HERE are one with coming: a joiner that is gone since then is on the list, and dead.
 *
 * The defects that tests/models/check.sh puts in, each of which must be found:
 *   -DHASTY      a rank that has the list goes on without an agreement
 *   -DEARLY      rank 0 welcomes joiners before it
 *   -DUNHEARD    a rank that has not received the list agrees all the same
 *   -DUNHOSTED   the growing succeeds without rank 0
 *   -DBLIND      a growing succeeds beside members that shrink
 *   -DKEPT       a joiner that has lost rank 0 comes again with the same listener
 *   -DPATIENT    a joiner waits for ever for a rank 0 that is silent */
#ifndef N
#define N 3
#endif
#ifndef NEWS
#define NEWS 1
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef DOUBTS
#define DOUBTS 0
#endif
#define TRIES 2 /* of a joiner */
#define HANGS 1 /* ends of connections without a death */
#define ALL ((1 << N) - 1)
#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define LISTENER(c, try) ((c) * TRIES + (try)) /* the joiner, and the number of its attempt */

mtype = { BEFORE, INSIDE, HEARD, JOINED, AGAIN, GROWN, SHRUNK, EXCLUDED, /* a member */
          YES, NO, SHRINKS,                                              /* its word */
          UNDECIDED, GROWS, FAILS, MIXED, PLAIN,                         /* the outcome */
          LOOKS, HERE, IN };                                             /* a joiner */

byte alive = ALL, out, still; /* out: declared failed; still: ranks that do nothing any more */
byte there = (1 << NEWS) - 1; /* live joiners */
byte deaths, doubts, hangs;

mtype phase[N] = BEFORE;
mtype word[N];
byte joined, again;     /* the session, and the next one */
byte has[N];            /* the list, as this member has it */
mtype outcome = UNDECIDED;
byte party;
bool met;               /* the next session is over */

bool open;              /* rank 0 receives */
bool taken, sent;       /* it has its list; and has sent it */
byte list;              /* listeners */
byte welcomed;          /* listeners whose joiners have been sent their WELCOME */

mtype news[NEWS] = LOOKS;
byte try[NEWS];
byte closed;            /* listeners */

#define LEFT (alive & ~out)
#define ACTS(i) HAS(alive & ~still, i)
#define FAILURE (((ALL & ~alive) | out) != 0)
#define MINE(c) LISTENER(c, try[c])

inline conclude(i, end)
{
    phase[i] = end;
    assert(end != GROWN || HAS(party, 0)); /* else no rank could send a WELCOME */
    j = 0;
    do
    :: j < N ->
        assert(!(phase[i] == GROWN && phase[j] == SHRUNK) && !(phase[i] == SHRUNK && phase[j] == GROWN));
        assert(!(phase[i] == GROWN && phase[j] == GROWN) || has[i] == has[j]);
        j++
    :: else -> break
    od;
    j = 0
}

/* The inputs of all survivors, and of some of the others that had joined. */
inline agree()
{
    bool yes = true, grows = false, shrinks = false;
    j = 0;
    do
    :: j < N ->
        if
        :: HAS(joined, j) ->
            party = party | BIT(j);
            grows = grows || word[j] != SHRINKS;
            shrinks = shrinks || word[j] == SHRINKS;
            yes = yes && word[j] != NO
        :: !HAS(LEFT, j) -> skip
        fi;
        j++
    :: else -> break
    od;
    j = 0;
    if
    :: !grows -> outcome = PLAIN
#ifndef BLIND
    :: grows && shrinks -> outcome = MIXED
    :: grows && !shrinks &&
#else
    :: grows &&
#endif
#ifdef UNHOSTED
        yes ->
#else
        yes && HAS(party, 0) ->
#endif
        outcome = GROWS
    :: else -> outcome = FAILS
    fi;
    yes = false; grows = false; shrinks = false
}

proctype member(byte i)
{
    byte j;
end:
    do
    /* it begins, or has heard of a failure before */
    :: atomic { ACTS(i) && phase[i] == BEFORE -> phase[i] = INSIDE; if :: i == 0 -> open = true :: else fi }
    :: atomic { ACTS(i) && phase[i] == BEFORE && FAILURE -> phase[i] = JOINED; word[i] = SHRINKS; joined = joined | BIT(i) }

    /* rank 0 has the joiners that are there on its list, and sends it */
    :: atomic { i == 0 && ACTS(i) && phase[i] == INSIDE && !taken ->
        taken = true;
        j = 0;
        do
        :: j < NEWS ->
            if
            :: news[j] == HERE && HAS(there, j) -> list = list | BIT(MINE(j))
            :: else
            fi;
            j++
        :: else -> break
        od;
#ifdef EARLY
        welcomed = list;
#endif
        j = 0 }
    :: atomic { i == 0 && ACTS(i) && phase[i] == INSIDE && taken -> sent = true; has[i] = list; phase[i] = HEARD }
    :: atomic { i != 0 && ACTS(i) && phase[i] == INSIDE && sent -> has[i] = list; phase[i] = HEARD }

    /* to the agreement, whatever has happened */
    :: atomic { ACTS(i) && phase[i] == INSIDE && FAILURE ->
        phase[i] = JOINED;
#ifdef UNHEARD
        word[i] = YES;
#else
        word[i] = NO;
#endif
        joined = joined | BIT(i) }
#ifdef HASTY
    :: atomic { ACTS(i) && phase[i] == HEARD -> conclude(i, GROWN) }
#else
    :: atomic { ACTS(i) && phase[i] == HEARD -> phase[i] = JOINED; word[i] = YES; joined = joined | BIT(i) }
#endif
    :: atomic { ACTS(i) && HAS(LEFT & joined, i) && outcome == UNDECIDED && (LEFT & ~joined) == 0 -> agree() }

    /* what has been agreed on */
    :: atomic { ACTS(i) && phase[i] == JOINED && HAS(party, i) && word[i] != SHRINKS && outcome == GROWS ->
        conclude(i, GROWN) }
    :: atomic { i == 0 && ACTS(i) && phase[i] == GROWN && open ->
        j = 0;
        do
        :: j < NEWS * TRIES && !HAS(list & ~welcomed, j) -> j++
        :: else -> break
        od;
        if
        :: j < NEWS * TRIES -> welcomed = welcomed | BIT(j)
        :: else -> open = false
        fi;
        j = 0 }
    :: atomic { ACTS(i) && phase[i] == JOINED && HAS(party, i) && word[i] == SHRINKS && (outcome == PLAIN || outcome == GROWS) ->
        conclude(i, SHRUNK) }
    :: atomic { ACTS(i) && phase[i] == JOINED && HAS(party, i) && (outcome == FAILS || outcome == MIXED) ->
        if
        :: i == 0 -> open = false
        :: else
        fi;
        phase[i] = AGAIN; again = again | BIT(i) }
    :: atomic { ACTS(i) && phase[i] == AGAIN && HAS(LEFT, i) && (LEFT & ~still & ~again) == 0 -> met = true }
    :: atomic { ACTS(i) && phase[i] == AGAIN && HAS(LEFT, i) && met -> conclude(i, SHRUNK) }
    :: atomic { ACTS(i) && HAS(out, i) && phase[i] != EXCLUDED && phase[i] != GROWN && phase[i] != SHRUNK ->
        phase[i] = EXCLUDED;
        if
        :: i == 0 -> open = false
        :: else
        fi }
    od
}

inline lost(c)
{
#ifndef KEPT
    closed = closed | BIT(MINE(c));
    try[c]++;
#endif
    news[c] = LOOKS
}

proctype newcomer(byte c)
{
end:
    do
    :: atomic { HAS(there, c) && news[c] == LOOKS && try[c] < TRIES && open && ACTS(0) -> news[c] = HERE }
    :: atomic { HAS(there, c) && news[c] == HERE && HAS(welcomed, MINE(c)) ->
        assert(outcome == GROWS && HAS(list, MINE(c)));
        news[c] = IN }
    /* rank 0 is dead, and what it had sent may be lost; or it has closed */
    :: atomic { HAS(there, c) && news[c] == HERE && (!HAS(alive, 0) || (!open && !HAS(welcomed, MINE(c)))) -> lost(c) }
    :: atomic { HAS(there, c) && news[c] == HERE && hangs < HANGS -> hangs++; lost(c) }
#ifndef PATIENT
    /* it has said nothing for too long */
    :: atomic { HAS(there, c) && news[c] == HERE && HAS(still, 0) && !HAS(welcomed, MINE(c)) -> lost(c) }
#endif
    od
}

#define DIES(v) atomic { deaths < DEATHS && v < N && HAS(alive, v) -> deaths++; alive = alive & ~BIT(v) }
#define GOES(c) atomic { deaths < DEATHS && c < NEWS && HAS(there, c) -> deaths++; there = there & ~BIT(c) }
#define DOUBTED(v) \
    atomic { doubts < DOUBTS && outcome == UNDECIDED && v < N && HAS(LEFT, v) -> \
        doubts++; out = out | BIT(v); if :: skip :: still = still | BIT(v) fi }
#define STANDS(v) \
    atomic { doubts < DOUBTS && outcome != UNDECIDED && v < N && HAS(LEFT, v) -> doubts++; still = still | BIT(v) }

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
    :: GOES(0)
#if NEWS > 1
    :: GOES(1)
#endif
#if DOUBTS
    :: DOUBTED(0)
    :: DOUBTED(1)
    :: STANDS(0)
    :: STANDS(1)
#endif
    :: break
    od
}

proctype checker()
{
    byte i, c, t;
    timeout ->
    do
    :: i < N ->
        assert(!HAS(LEFT & ~still, i) || phase[i] == GROWN || phase[i] == SHRUNK);
        c = 0;
        do
        :: c < NEWS * TRIES ->
            t = c / TRIES;
            assert(!HAS(LEFT & ~still, i) || phase[i] != GROWN || !HAS(has[i], c) ||
                   !HAS(there, t) || HAS(closed, c) || (news[t] == IN && MINE(t) == c));
            c++
        :: else -> break
        od;
        i++
    :: else -> break
    od
}

init
{
    atomic {
        byte i;
        do
        :: i < N -> run member(i); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < NEWS -> run newcomer(i); i++
        :: else -> break
        od;
        i = 0;
        run world();
        run checker()
    }
}
