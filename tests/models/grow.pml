/* Growing (src/collectives/lifecycle/grow.c, src/membership/join_server.c, join_client.c) as a model for spin: do all come to the same world, whatever
 * the order of events?
 *
 *   N members, of which rank 0 receives newcomers; NEWS newcomers, which come, are lost or hang up, and come again, each time
 *   with another door. At most DEATHS of both die, and at most DOUBTS members are taken for failed while they live, before
 *   they have agreed: they go on working, or stand still for good, their sockets open. Or they stand still later, rank 0 between
 *   any two of its WELCOMEs, too.
 *
 * Checked in every state: members that conclude the growing conclude the same, with the same list; a newcomer comes in only
 * when the members have agreed on it. Checked where nothing can happen any more: every member that is left has come to an
 * end, in the world that has grown or in one of those who are left; and nobody waits there for a door behind which somebody
 * lives who does not know that he is in: each one on the list is in, or dead, or has closed that door, which is how the new
 * world finds him dead (termination). So of those who are not proved to be gone only members can fail to answer there, and
 * newcomers never make those who are left too few. Whoever waits for rank 0 and hears nothing more from it goes in the end:
 * that the clock for it is over before those of the new world are is not in the model.
 *
 * The agreement is one step here, of the words of all who are left: agreement.pml has what is inside. Those who died or were
 * condemned after they had joined may be in it or not. A failure is known to each member at some later time, or before it
 * begins to grow: then it shrinks, in the same session, and all meet in the next one. What fails in the new world is the
 * next agreement's. The broadcast of the list may have come, or not, to anybody when its sender dies. CALL and HERE are one
 * with coming: whoever is gone since then is on the list, and dead.
 *
 * The defects that tests/models/check.sh puts in, each of which must be found:
 *   -DHASTY      who has the list goes on without an agreement
 *   -DEARLY      rank 0 welcomes newcomers before it
 *   -DUNHEARD    who has not heard the list agrees all the same
 *   -DUNHOSTED   the growing succeeds without rank 0
 *   -DBLIND      a growing succeeds beside members that shrink
 *   -DKEPT       a newcomer that has lost rank 0 comes again with the same door
 *   -DPATIENT    a newcomer waits for ever for a rank 0 that says nothing */
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
#define TRIES 2 /* of a newcomer */
#define HANGS 1 /* ends of connections that are nobody's death */
#define ALL ((1 << N) - 1)
#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define DOOR(c, try) ((c) * TRIES + (try)) /* which newcomer, and its how manieth */

mtype = { BEFORE, INSIDE, HEARD, JOINED, AGAIN, GROWN, SHRUNK, EXCLUDED, /* a member */
          YES, NO, SHRINKS,                                              /* its word */
          UNDECIDED, GROWS, FAILS, MIXED, PLAIN,                         /* the outcome */
          LOOKS, HERE, IN };                                             /* a newcomer */

byte alive = ALL, out, still; /* out: taken for failed; still: who does nothing any more */
byte there = (1 << NEWS) - 1; /* newcomers that live */
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
byte list;              /* doors */
byte welcomed;          /* doors whose newcomers have been sent their WELCOME */

mtype news[NEWS] = LOOKS;
byte try[NEWS];
byte closed;            /* doors */

#define LEFT (alive & ~out)
#define ACTS(i) HAS(alive & ~still, i)
#define FAILURE (((ALL & ~alive) | out) != 0)
#define MINE(c) DOOR(c, try[c])

inline conclude(i, end)
{
    phase[i] = end;
    assert(end != GROWN || HAS(party, 0)); /* else nobody could welcome anybody */
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

/* The words of all who are left, and of some of the others who had joined. */
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

    /* rank 0 has those who are there on its list, and sends it */
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

proctype judge()
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
        run judge()
    }
}
