/* Shared by the parts of the agreement only: agreement.c (the algorithm), agreement_messages.c (sending and receiving),
 * agreement_instances.c (its state), agreement_codec.c (its messages, pure), and quorum.c (quorum, and timeouts). */
#ifndef GY_MEMBERSHIP_AGREEMENT_INTERNAL_H
#define GY_MEMBERSHIP_AGREEMENT_INTERNAL_H

#include "membership/agreement.h"
#include "membership/overlay.h"

#define GY_NOBODY (-1)

enum gy_agreement_type {
    GY_AGREEMENT_JOIN = 1, /* this rank's input, and what it has accepted; a promise to ignore lower coordinators */
    GY_AGREEMENT_PROPOSE,  /* of the coordinator: an outcome */
    GY_AGREEMENT_ACCEPT,
    GY_AGREEMENT_DECIDE, /* from any rank that knows the outcome */
    GY_AGREEMENT_ASK,    /* asks for the outcome; from the coordinator: asks for a sign of life */
    GY_AGREEMENT_BEAT, /* from the coordinator, to members that have joined it: it is alive, and `part` says whether in
                        * this instance. Also to members that would not enter by themselves (GY_AGREEMENT_UNIFORM) */
};

/* The sender's part in the instance. */
enum gy_agreement_part {
    GY_PART_NONE, /* it has not come to it yet */
    GY_PART_TAKES,
    GY_PART_QUIT, /* it has ended with an error, before anything was decided, and does not come back */
    GY_PART_AWAY, /* it takes part, and may be computing: non-blocking calls made it enter (GY_AGREEMENT_UNIFORM) */
};

/* The state of one member as this rank knows it. */
struct gy_agreement_peer {
    bool joined, accepted; /* this rank as its coordinator, and its proposal */
    bool proposed;         /* the proposal has been sent to it */
    bool entered;          /* it takes part */
    bool quit;             /* it has ended with an error; applied on entry if that comes before */
    bool away;             /* and is not bound to be inside gyre */
    int64_t heard, called; /* when it was last heard from, and last called or asked */
    struct gy_agreement_input input;
};

struct gy_blob {
    uint8_t *bytes;
    size_t size;
};

struct gy_instance {
    struct gy_instance *next;
    uint32_t comm, number;
    bool entered, decided;
    bool quit; /* this rank has ended it with an error */
    int *members, count;
    struct gy_agreement_input input;
    int64_t began, timeout_ns, beat_at, short_since;
    int promised;                    /* the highest coordinator that I have joined, GY_NOBODY at first */
    int joined;                      /* the coordinator that my last JOIN went to */
    int accepted, best;              /* whose proposals `proposal` and `best_proposal` are */
    struct gy_blob proposal;         /* that I have accepted; the outcome when decided */
    struct gy_outcome room;          /* for the outcome, had when the instance is entered */
    struct gy_blob best_proposal;    /* the highest proposal accepted by the members that joined this rank */
    struct gy_agreement_peer *peers; /* [world size] */
};

struct gy_agreement_message {
    uint8_t type;
    uint32_t comm, number;
    int coordinator;
    enum gy_agreement_part part;
    int accepted;
    struct gy_agreement_input input;
    const uint8_t *blob; /* into the body that was decoded */
    size_t blob_bytes;
};

/* agreement_messages.c. `coordinator` and `blob` (or NULL) go into the message. Returns false if the message could not
 * be handed over. */
bool gy_instance_send(struct gy_agreement *agreement, const struct gy_instance *instance, enum gy_agreement_type type,
                      int to, int coordinator, const struct gy_blob *blob);
/* To all members that this rank is connected to, but `but` and itself. Where it has not entered it knows no members. */
void gy_instance_send_all(struct gy_agreement *agreement, const struct gy_instance *instance,
                          enum gy_agreement_type type, int but, int coordinator, const struct gy_blob *blob);
/* The instance's proposal is its outcome, as this rank learnt from `from`. The outcome is forwarded to the members. A
 * rank that learns it before it enters keeps it, for itself and to answer ASK. */
void gy_instance_decide(struct gy_agreement *agreement, struct gy_instance *instance, int from);

/* agreement_instances.c. */
void gy_blob_set(struct gy_blob *blob, struct gy_blob to);
bool gy_blob_copy(struct gy_blob *blob, const uint8_t *bytes, size_t size); /* false: no memory, and it is as it was */
struct gy_instance *gy_instance_find(struct gy_agreement *agreement, uint32_t comm, uint32_t number);
struct gy_instance *gy_instance_make(struct gy_agreement *agreement, uint32_t comm,
                                     uint32_t number); /* NULL: no memory */
/* Forgets the state that a member in, or just before, instance `number` cannot ask for: no member could have got there
 * without it. */
void gy_instances_forget(struct gy_agreement *agreement, uint32_t comm, uint32_t number);

/* agreement_codec.c. encode: returns the message's length; `body_p` has room for gy_agreement_message_most. decode:
 * returns false if the message is malformed. */
size_t gy_agreement_encode(const struct gy_agreement_message *message, uint8_t *body_p, size_t room);
bool gy_agreement_decode(uint8_t *body, size_t bytes, int size, struct gy_agreement_message *message_p);
size_t gy_outcome_most(int size);
size_t gy_outcome_encode(const struct gy_outcome *outcome, const struct gy_agreement_input *const *words,
                         uint8_t *blob_p, size_t room);
/* True if the blob is an outcome, and all ranks that took part are among `members` (ascending; NULL: ranks of the
 * world). */
bool gy_outcome_check(const uint8_t *blob, size_t bytes, int size, const int *members, int count);
/* Room for `count` members, to be freed by gy_outcome_free. false: no memory, and nothing is held. */
bool gy_outcome_reserve(int count, struct gy_outcome *outcome_p);
/* What has been checked, into what has been reserved. */
void gy_outcome_read(const uint8_t *blob, size_t bytes, int size, struct gy_outcome *outcome_p);
/* All three. false: nonsense, or no memory. */
bool gy_outcome_decode(const uint8_t *blob, size_t bytes, int size, struct gy_outcome *outcome_p);

/* quorum.c. */
/* Of all members the lowest that lives as far as we know. */
int gy_instance_coordinator(const struct gy_agreement *agreement, const struct gy_instance *instance);
bool gy_instance_is_alive(const struct gy_agreement *agreement, int rank);
/* True if the live members have a quorum. */
bool gy_instance_has_quorum(const struct gy_agreement *agreement, const struct gy_instance *instance);
/* Connects to `rank` and checks its silence against the timeouts. */
void gy_instance_watch(struct gy_agreement *agreement, struct gy_instance *instance, int rank, int64_t now);
/* Checks whether `rank` has quit an instance that this rank takes part in. Then it has failed, in either order of
 * events. */
void gy_instance_check_quit(struct gy_agreement *agreement, const struct gy_instance *instance, int rank);
int64_t gy_instance_beat_interval(const struct gy_agreement *agreement);

#endif
