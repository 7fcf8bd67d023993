/* The agreement: members of a communicator agree on an outcome, although some of them may fail meanwhile. agreement.c
 * has the algorithm and its proof.
 *
 * An *instance* is one agreement, named by (communicator, number). The members of a communicator run their instances in
 * the same order. Each member brings an *input*. All get the *outcome*: the inputs of the members that took part,
 * combined. */
#ifndef GY_MEMBERSHIP_AGREEMENT_H
#define GY_MEMBERSHIP_AGREEMENT_H

#include "bootstrap/world.h"

#define GY_AGREEMENT_RECORD 128 /* bytes of a member's record, opaque to the agreement, at most */

/* Flag in the communicator number of an instance: an agreement on uniform completion. The program's communicators have
 * small numbers. */
#define GY_AGREEMENT_OF_UNIFORM UINT32_C(0x40000000)

enum gy_agreement_kind { GY_AGREEMENT_AGREE = 1, GY_AGREEMENT_SHRINK, GY_AGREEMENT_GROW, GY_AGREEMENT_UNIFORM };

struct gy_agreement_input {
    uint8_t kind;
    uint64_t bits;  /* combined by AND */
    uint64_t count; /* combined by the maximum */
    uint8_t record[GY_AGREEMENT_RECORD];
    size_t record_bytes;
};

struct gy_outcome {
    gyre_status status; /* MISMATCH: they did not ask for the same */
    uint64_t bits, count;
    uint64_t job; /* random, like the salt: what a next epoch is made of */
    uint8_t salt[GY_KEY_BYTES];
    int ranks; /* that took part, */
    int *rank; /* of the world, ascending */
    uint8_t (*record)[GY_AGREEMENT_RECORD];
};

struct gy_instance;
struct gy_overlay;

struct gy_agreement {
    struct gy_overlay *overlay;
    const struct gy_world *world;
    struct gy_instance *instances;
    uint8_t *body;   /* for one message */
    int64_t stepped; /* when this rank last looked */
    /* `away`: upper bound of the time that this rank was paused since it entered the last agreement on a next epoch.
     * `resumed_at`: when that pause ended. Both are 0 if nothing has been decided meanwhile. */
    int64_t away, resumed_at;
    bool no_quorum; /* too few once: never enough again */
    bool waits;     /* this rank stays inside gyre for what is agreed on */
    bool outside;   /* it takes part in no agreement on how operations end any more */
    char out[256];  /* why the others go on without this rank, for good; empty: they do not */
};

/* Receives the messages of the other ranks from now on. NULL: no memory. */
struct gy_agreement *gy_agreement_make(struct gy_overlay *overlay, const struct gy_world *world);
void gy_agreement_free(struct gy_agreement *agreement); /* NULL is allowed */
/* The longest message in a world of `size`. */
size_t gy_agreement_message_most(int size);
/* A message of another rank; anything may be in it. `user`: the agreement. */
void gy_agreement_receive(void *user, int from, uint8_t *body, size_t bytes);

/* Takes part in a instance. `members`: ranks of the world, ascending. NO_MEMORY. */
gyre_status gy_agreement_enter(struct gy_agreement *agreement, uint32_t comm, uint32_t number, const int *members,
                               int count, const struct gy_agreement_input *input, int64_t timeout_ns,
                               struct gy_error *error);
/* Makes progress; to be called at every event and every 20 ms. Returns GYRE_IN_PROGRESS; SUCCESS with *outcome_p, to be
 * freed by gy_outcome_free; or EXCLUDED, PARTITIONED, NO_MEMORY with an error message: then call gy_agreement_quit. */
gyre_status gy_agreement_step(struct gy_agreement *agreement, uint32_t comm, uint32_t number,
                              struct gy_outcome *outcome_p, struct gy_error *error);
/* This rank no longer steps an instance that it has entered. Members that wait for it there are told so, now or when
 * they ask. No effect if the instance is decided. */
void gy_agreement_quit(struct gy_agreement *agreement, uint32_t comm, uint32_t number);
/* The same, for good, in all agreements on uniform completion, entered or not, also in those that others begin
 * later. */
void gy_agreement_quit_uniform(struct gy_agreement *agreement);
/* `waits`: this rank stays inside gyre from now on. An agreement on uniform completion is also stepped by non-blocking
 * calls. Between those the rank's silence is no sign that it is stopped, and the others are told so. */
void gy_agreement_attend(struct gy_agreement *agreement, bool waits);
/* When this rank was last known not to be stopped, before the outcome that it has now. */
int64_t gy_agreement_polled(const struct gy_agreement *agreement);
/* The others go on without this rank, although it took part in the decision, because it could not go on: it is EXCLUDED
 * from now on. Otherwise it would find all others gone when it asks again, and go on alone. */
void gy_agreement_exclude(struct gy_agreement *agreement, const char *why);
/* Iterates over the instances that this rank has entered or heard of, by index. A received message may change the
 * indices. Returns false if there is no further instance. */
struct gy_agreement_view {
    uint32_t comm, number;
    bool entered, decided;
};
bool gy_agreement_poll(const struct gy_agreement *agreement, int place, struct gy_agreement_view *view_p);
void gy_outcome_free(struct gy_outcome *outcome);

#endif
