/* The messages among members of an agreement, and their effect on the receiver. agreement.c has the algorithm and its
 * proof. Each message is handled by itself, at any time, also for an instance that this rank has not entered yet.
 * Nothing is promised or accepted that could not be stored for want of memory: the sender repeats it. */
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "membership/agreement_internal.h"

/* ---- saying ---- */

static size_t compose(struct gy_agreement *agreement, const struct gy_instance *instance, enum gy_agreement_type type,
                      int coordinator, const struct gy_blob *blob)
{
    bool inside = instance->input.kind != GY_AGREEMENT_UNIFORM || agreement->waits;
    enum gy_agreement_part part = instance->quit       ? GY_PART_QUIT
                                  : !instance->entered ? GY_PART_NONE
                                  : inside             ? GY_PART_TAKES
                                                       : GY_PART_AWAY;
    struct gy_agreement_message message = {.type = (uint8_t)type,
                                           .comm = instance->comm,
                                           .number = instance->number,
                                           .coordinator = coordinator,
                                           .part = part,
                                           .accepted = instance->accepted,
                                           .input = instance->input,
                                           .blob = blob ? blob->bytes : NULL,
                                           .blob_bytes = blob ? blob->size : 0};

    return gy_agreement_encode(&message, agreement->body, gy_agreement_message_most(agreement->world->size));
}

bool gy_instance_send(struct gy_agreement *agreement, const struct gy_instance *instance, enum gy_agreement_type type,
                      int to, int coordinator, const struct gy_blob *blob)
{
    return gy_overlay_send(agreement->overlay, to, agreement->body,
                           compose(agreement, instance, type, coordinator, blob));
}

void gy_instance_send_all(struct gy_agreement *agreement, const struct gy_instance *instance,
                          enum gy_agreement_type type, int but, int coordinator, const struct gy_blob *blob)
{
    size_t bytes = compose(agreement, instance, type, coordinator, blob);

    for (int i = 0; i < instance->count; i++) {
        if (instance->members[i] != but && instance->members[i] != agreement->world->rank)
            gy_overlay_send(agreement->overlay, instance->members[i], agreement->body, bytes);
    }
}

void gy_instance_decide(struct gy_agreement *agreement, struct gy_instance *instance, int from)
{
    if (instance->decided)
        return;
    instance->decided = true;
    gy_instance_send_all(agreement, instance, GY_AGREEMENT_DECIDE, from, instance->accepted, &instance->proposal);
}

/* ---- hearing ---- */

/* True if the blob is an outcome, and one of the instance's members, as far as they are known. */
static bool is_outcome(const struct gy_agreement *agreement, const struct gy_instance *instance,
                       const struct gy_agreement_message *message, int from)
{
    if (gy_outcome_check(message->blob, message->blob_bytes, agreement->world->size, instance->members,
                         instance->count))
        return true;
    gy_log(GY_LOG_WARN, "rank %d told an outcome of an agreement that is not understood", from);
    return false;
}

static void hear_join(struct gy_agreement *agreement, struct gy_instance *instance, int from,
                      const struct gy_agreement_message *message)
{
    struct gy_agreement_peer *peer = &instance->peers[from];

    if (instance->decided) {
        gy_instance_send(agreement, instance, GY_AGREEMENT_DECIDE, from, instance->accepted, &instance->proposal);
        return;
    }
    if (message->coordinator != agreement->world->rank)
        return;
    if (message->accepted > instance->best) {
        if (!is_outcome(agreement, instance, message, from) ||
            !gy_blob_copy(&instance->best_proposal, message->blob, message->blob_bytes))
            return; /* it has not joined until its accepted proposal is stored: it repeats the message */
        instance->best = message->accepted;
    }
    if (!peer->joined)
        peer->input = message->input;
    peer->joined = true;
    peer->proposed = peer->accepted; /* it may have lost the proposal for want of memory */
    gy_instance_send(agreement, instance, GY_AGREEMENT_BEAT, from, agreement->world->rank, NULL);
}

static void hear_propose(struct gy_agreement *agreement, struct gy_instance *instance, int from,
                         const struct gy_agreement_message *message)
{
    if (instance->decided || instance->quit || !instance->entered || message->coordinator != from ||
        from < instance->promised || !gy_instance_is_alive(agreement, from) ||
        !is_outcome(agreement, instance, message, from))
        return;
    if (instance->accepted != from && !gy_blob_copy(&instance->proposal, message->blob, message->blob_bytes))
        return; /* no memory: not accepted; the coordinator repeats it */
    instance->promised = instance->accepted = from;
    gy_instance_send(agreement, instance, GY_AGREEMENT_ACCEPT, from, from, NULL);
}

static void hear_decide(struct gy_agreement *agreement, struct gy_instance *instance, int from,
                        const struct gy_agreement_message *message)
{
    if (instance->decided || !is_outcome(agreement, instance, message, from) ||
        !gy_blob_copy(&instance->proposal, message->blob, message->blob_bytes))
        return;
    instance->accepted = message->coordinator;
    gy_instance_decide(agreement, instance, from);
}

/* ASK, or a BEAT that asks to enter. A rank that knows the outcome sends it; a rank that has quit says so. A message of
 * a rank that has quit itself is not answered. */
static void hear_question(struct gy_agreement *agreement, struct gy_instance *instance, int from,
                          const struct gy_agreement_message *message)
{
    if (instance->decided && message->type == GY_AGREEMENT_ASK)
        gy_instance_send(agreement, instance, GY_AGREEMENT_DECIDE, from, instance->accepted, &instance->proposal);
    else if (!instance->decided && instance->quit && message->part != GY_PART_QUIT)
        gy_instance_send(agreement, instance, GY_AGREEMENT_BEAT, from, GY_NOBODY, NULL);
}

/* True if this rank would end every agreement of that communicator with an error. Then it can say so without having
 * entered the instance, and without remembering that it quit one earlier. */
static bool takes_no_part(const struct gy_agreement *agreement, uint32_t comm)
{
    return agreement->out[0] || agreement->no_quorum || (agreement->outside && comm & GY_AGREEMENT_OF_UNIFORM);
}

/* Answers for an instance of which this rank holds nothing, perhaps for want of memory: this function allocates none.
 * The message is answered like a question. Otherwise the sender would wait for this rank until a timeout. */
static void deny(struct gy_agreement *agreement, int from, const struct gy_agreement_message *message)
{
    struct gy_agreement_message denial = {.type = GY_AGREEMENT_BEAT,
                                          .comm = message->comm,
                                          .number = message->number,
                                          .coordinator = GY_NOBODY,
                                          .part = GY_PART_QUIT};
    uint8_t body[32];

    if (message->part != GY_PART_QUIT && message->type != GY_AGREEMENT_DECIDE)
        gy_overlay_send(agreement->overlay, from, body, gy_agreement_encode(&denial, body, sizeof(body)));
}

void gy_agreement_receive(void *user, int from, uint8_t *body, size_t bytes)
{
    struct gy_agreement *agreement = user;
    struct gy_agreement_message message;
    struct gy_instance *instance;
    bool none, over;

    if (!gy_agreement_decode(body, bytes, agreement->world->size, &message)) {
        gy_log(GY_LOG_WARN, "rank %d sent a message about an agreement that is not understood", from);
        return;
    }
    none = takes_no_part(agreement, message.comm);
    instance = none || message.type == GY_AGREEMENT_ASK ? gy_instance_find(agreement, message.comm, message.number)
                                                        : gy_instance_make(agreement, message.comm, message.number);
    if (!instance) {
        if (none)
            deny(agreement, from, &message);
        return;
    }
    instance->quit |= none && !instance->entered && !instance->decided;
    instance->peers[from].heard = gy_now();
    instance->peers[from].entered |= message.part != GY_PART_NONE;
    instance->peers[from].quit |= message.part == GY_PART_QUIT;
    instance->peers[from].away = message.part == GY_PART_AWAY;
    over = instance->quit && !instance->decided; /* a JOIN is then a question */
    if (message.type == GY_AGREEMENT_JOIN && !over)
        hear_join(agreement, instance, from, &message);
    else if (message.type == GY_AGREEMENT_PROPOSE)
        hear_propose(agreement, instance, from, &message);
    else if (message.type == GY_AGREEMENT_ACCEPT)
        instance->peers[from].accepted |= message.coordinator == agreement->world->rank;
    else if (message.type == GY_AGREEMENT_DECIDE)
        hear_decide(agreement, instance, from, &message);
    else
        hear_question(agreement, instance, from, &message);
    gy_instance_check_quit(agreement, instance, from);
}
