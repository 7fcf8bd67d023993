/* The council: members of a communicator agree, although some of them fail, also while they do so. agreement.c has the
 * algorithm and why it is right.
 *
 * A *session* is one agreement, named by (communicator, number); the members of a communicator hold theirs in the same
 * order. What each brings is a *word*, what all get is the *outcome*: the words of those who took part, combined. */
#ifndef GY_MEMBERSHIP_AGREEMENT_H
#define GY_MEMBERSHIP_AGREEMENT_H

#include "bootstrap/world.h"

#define GY_COUNCIL_RECORD 128 /* bytes of a member's record, opaque to the council, at most */

/* In the number of a session's communicator: an agreement on how operations end. The program's communicators have small ones. */
#define GY_COUNCIL_OF_ENDS UINT32_C(0x40000000)

enum gy_council_kind { GY_COUNCIL_AGREE = 1, GY_COUNCIL_SHRINK, GY_COUNCIL_GROW, GY_COUNCIL_ENDS };

struct gy_word {
    uint8_t kind;
    uint64_t bits;  /* combined by AND */
    uint64_t count; /* combined by the maximum */
    uint8_t record[GY_COUNCIL_RECORD];
    size_t record_bytes;
};

struct gy_outcome {
    gyre_status status; /* MISMATCH: they did not ask for the same */
    uint64_t bits, count;
    uint64_t job; /* random, like the salt: what a next epoch is made of */
    uint8_t salt[GY_KEY_BYTES];
    int ranks; /* that took part, */
    int *rank; /* of the world, ascending */
    uint8_t (*record)[GY_COUNCIL_RECORD];
};

struct gy_session;
struct gy_overlay;

struct gy_council {
    struct gy_overlay *overlay;
    const struct gy_world *world;
    struct gy_session *sessions;
    uint8_t *body;   /* for one message */
    int64_t stepped; /* when this rank last looked */
    /* For how long it did not, at most, since it entered the last agreement on a next epoch, and when that was over. 0 where
     * nothing has been decided meanwhile. */
    int64_t away, woke;
    bool parted;   /* too few once: never enough again */
    bool waits;    /* this rank stays inside gyre for what is agreed on */
    bool outside;  /* it takes part in no agreement on how operations end any more */
    char out[256]; /* why the others go on without this rank, which is for good; empty: they do not */
};

/* Hears the messages of the other ranks' from now on. NULL: no memory. */
struct gy_council *gy_council_make(struct gy_overlay *overlay, const struct gy_world *world);
void gy_council_free(struct gy_council *council); /* NULL is allowed */
/* The longest message in a world of `size`. */
size_t gy_council_message_most(int size);
/* A message of another rank; anything may be in it. `user`: the council. */
void gy_council_hear(void *user, int from, uint8_t *body, size_t bytes);

/* Takes part in a session. `members`: ranks of the world, ascending. NO_MEMORY. */
gyre_status gy_council_enter(struct gy_council *council, uint32_t comm, uint32_t number, const int *members, int count,
                             const struct gy_word *word, int64_t timeout_ns, struct gy_error *error);
/* Does what there is to do; to be called at every event and every 20 ms. GYRE_IN_PROGRESS; SUCCESS with *outcome_p, to be
 * freed by gy_outcome_free; EXCLUDED, PARTITIONED, NO_MEMORY with a sentence: then gy_council_quit. */
gyre_status gy_council_step(struct gy_council *council, uint32_t comm, uint32_t number, struct gy_outcome *outcome_p,
                            struct gy_error *error);
/* This rank does not step any more in a session that it has entered: who waits for it there is told, now or when it
 * asks. Nothing where the session is decided. */
void gy_council_quit(struct gy_council *council, uint32_t comm, uint32_t number);
/* The same, for good, in all agreements on how operations end, entered or not, and in those that others begin later. */
void gy_council_quit_ends(struct gy_council *council);
/* Does this rank stay inside gyre from now on? An agreement on how operations end is stepped by calls that return, too:
 * between them its silence is no sign that it is stopped, and the others are told so. */
void gy_council_attend(struct gy_council *council, bool waits);
/* When this rank was last known not to be stopped, before the outcome that it has now. */
int64_t gy_council_looked(const struct gy_council *council);
/* What was decided with this rank goes on without it, because it could not: it is EXCLUDED from now on. Otherwise it would
 * find everybody gone when it asks again, and go on alone. */
void gy_council_exclude(struct gy_council *council, const char *why);
/* The sessions that this rank has entered or heard of, by their place, which a message that is heard may change; false:
 * there is no further one. */
struct gy_council_view {
    uint32_t comm, number;
    bool entered, decided;
};
bool gy_council_look(const struct gy_council *council, int place, struct gy_council_view *view_p);
void gy_outcome_free(struct gy_outcome *outcome);

#endif
