/* One-sided frames of a peer that may send anything, into a window of 1000 bytes: what is refused changes nothing, and
 * what is not is what the calls of a peer that keeps the rules would have sent. Any order, as each frame finds what
 * those before it have left. The input is a row of
 *
 *   how     1    payload elsewhere than at its place (1); the link keeps the answer (2), or gives them all back first
 *           (4)
 *   header 64    as on the wire; its magic, version, epoch and communicator are always right, its kind always one-sided
 *   payload      of as many bytes as the header says, zeros where the input ends before */
#include <string.h>

#include "collectives/events/upcalls.h"
#include "collectives/rma/window.h"
#include "core/mem.h"
#include "fuzz/fuzz.h"

#define BYTES 1000u /* of the window: no whole number of elements */
#define GUARD 4096u
#define ASKED 100u /* by the get that waits for its answer */
#define PEER 1
#define FRAMES 32
#define ADDED ((gyre_op)GY_OP_MADE) /* an operation of the program's own, and a pre-multiplied sum */

static unsigned char area[GUARD + BYTES + GUARD], before[sizeof area], got[ASKED];
static struct gy_frame_out *kept[2 * GY_ONE_SIDED_FLIGHT];
static bool keeps;

static void post(struct gy_link *link, struct gy_frame_out *frame)
{
    (void)link;
    const unsigned char *payload = frame->payload;
    check(!frame->payload || (payload >= area + GUARD && payload + frame->header.bytes <= area + GUARD + BYTES));
    frame->queued = keeps;
    for (size_t i = 0; keeps; i++) {
        check(i < GY_ARRAY_LENGTH(kept));
        if (kept[i])
            continue;
        kept[i] = frame;
        break;
    }
}

static void give_back(struct gy_context *ctx)
{
    for (size_t i = 0; i < GY_ARRAY_LENGTH(kept); i++) {
        if (kept[i])
            kept[i]->queued = false;
        kept[i] = NULL;
    }
    gy_rma_answer(ctx);
}

static void add(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    (void)user;
    check(count > 0 && gyre_dtype_size(dtype) > 0);
    for (size_t i = 0; i < count * gyre_dtype_size(dtype); i++)
        ((unsigned char *)result)[i] = (unsigned char)(((const unsigned char *)left)[i] +
                                                       ((const unsigned char *)right)[i]);
}

/* What gyre.h says of accumulations, in words of its own. */
static bool may_accumulate(unsigned op, unsigned dtype)
{
    bool integer = dtype <= GYRE_UINT64 || dtype == GYRE_BOOL;
    switch (op) {
    case GYRE_SUM:
    case GYRE_PRODUCT:
    case GYRE_MIN:
    case GYRE_MAX:
    case ADDED: return true;
    case GYRE_BIT_AND:
    case GYRE_BIT_OR:
    case GYRE_BIT_XOR: return integer;
    default: return false;
    }
}

/* The program's own, which is made nowhere, too: that is refused at the flush. */
static bool may_be_asked(unsigned op, unsigned dtype)
{
    return may_accumulate(op, dtype) || (op >= GY_OP_MADE && op < GY_OP_MADE + GY_OPS_MADE_MOST);
}

static bool inside(uint64_t at, uint64_t bytes)
{
    return at <= BYTES && bytes <= BYTES - at;
}

static bool is_right(const struct gyre_window *window, const struct gy_frame *frame)
{
    size_t element = gyre_dtype_size((gyre_dtype)frame->dtype);
    if (frame->sequence != window->id)
        return false;
    switch (frame->kind) {
    case GY_FRAME_PUT: return inside(frame->value, frame->bytes);
    case GY_FRAME_ACCUMULATE:
        return element > 0 && may_be_asked(frame->op, frame->dtype) && inside(frame->value, frame->bytes) &&
               frame->count > 0 && frame->count <= BYTES && frame->count * element == frame->bytes;
    case GY_FRAME_GET:
        return frame->lane < GY_ONE_SIDED_FLIGHT && inside(frame->value, frame->count) &&
               !(window->targets[PEER].replies && window->targets[PEER].replies[frame->lane].due);
    case GY_FRAME_GOT: return frame->lane == 0 && frame->bytes == ASKED && window->get[0].waiting;
    case GY_FRAME_SIGNAL: return frame->lane < GY_SIGNALS;
    case GY_FRAME_FLUSH: return frame->value > 0 && window->targets[PEER].due == 0;
    default:
        return frame->value <= window->targets[PEER].flushes &&
               (!frame->op || (frame->op >= GY_OP_MADE && frame->op < GY_OP_MADE + GY_OPS_MADE_MOST));
    }
}

static bool has_place(const struct gy_frame *frame)
{
    return frame->kind == GY_FRAME_PUT || frame->kind == GY_FRAME_ACCUMULATE || frame->kind == GY_FRAME_GOT;
}

static void deliver(struct gyre_window *window, const struct gy_frame *frame, unsigned how, const uint8_t *data,
                    size_t size)
{
    bool right = is_right(window, frame), placed = has_place(frame);
    bool refused = !may_accumulate(frame->op, frame->dtype) ||
                   (window->targets[PEER].unmade && frame->op >= GY_OP_MADE);
    void *place = NULL;
    memcpy(before, area, sizeof area);
    if (placed && frame->bytes > 0)
        check((gy_rma_place(window->comm, PEER, frame, &place) == GYRE_SUCCESS) == right);
    unsigned char *payload = calloc(1, frame->bytes + 1u);
    check(payload && memcmp(before, area, sizeof area) == 0);
    memcpy(payload, data, size < frame->bytes ? size : frame->bytes);
    if (place && !(how & 1))
        memcpy(place, payload, frame->bytes);
    check(gy_rma_arrived(window->comm, PEER, frame, place && !(how & 1) ? place : payload) == right);
    bool changes = right && (frame->kind == GY_FRAME_PUT || (frame->kind == GY_FRAME_ACCUMULATE && !refused));
    uint64_t at = changes ? frame->value : 0, bytes = changes ? frame->bytes : 0;
    check(memcmp(before, area, GUARD + at) == 0);
    check(memcmp(before + GUARD + at + bytes, area + GUARD + at + bytes, sizeof area - GUARD - at - bytes) == 0);
    check(frame->kind != GY_FRAME_PUT || !right || memcmp(area + GUARD + at, payload, bytes) == 0);
    free(payload);
}

static void run(struct gyre_window *window, const uint8_t *data, size_t size)
{
    for (int i = 0; i < FRAMES && size > GY_FRAME_BYTES; i++) {
        struct gy_frame frame, known = {.epoch = 1, .comm = window->comm->id};
        uint8_t wire[GY_FRAME_BYTES];
        unsigned how = data[0];
        memcpy(wire, data + 1, GY_FRAME_BYTES);
        known.kind = (uint8_t)(GY_FRAME_PUT + wire[3] % (GY_FRAME_FLUSHED - GY_FRAME_PUT + 1));
        uint8_t good[GY_FRAME_BYTES];
        gy_frame_encode(&known, good);
        memcpy(wire, good, 12);
        data += 1 + GY_FRAME_BYTES;
        size -= 1 + GY_FRAME_BYTES;
        if (!gy_frame_decode(wire, &frame))
            return;
        keeps = how & 2;
        if (how & 4)
            give_back(window->comm->ctx);
        deliver(window, &frame, how, data, size);
        size_t taken = size < frame.bytes ? size : frame.bytes;
        data += taken;
        size -= taken;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct gy_transport_ops ops = {.post = post};
    static struct gy_world world = {.rank = 0, .size = 2, .epoch = 1};
    static struct gy_op_made made[] = {{.used = true, .func = add}, {.used = true, .dtype = GYRE_FLOAT32}};
    struct gy_exposed_control control = {0};
    struct gy_target targets[2] = {{.bytes = BYTES}, {.bytes = BYTES, .flushes = 3}};
    struct gy_peer peers[2] = {0};
    struct gy_context ctx = {.up = &gy_upcalls, .world = &world, .ops = {&ops}, .transports = 1, .peers = peers};
    struct gyre_comm comm = {.ctx = &ctx, .id = 1, .size = 2, .group = {.size = 2}};
    struct gyre_window window = {.comm = &comm, .id = 1, .memory = area + GUARD, .bytes = BYTES, .size = 2};
    ctx.operations = (struct gy_operations){made, GY_ARRAY_LENGTH(made)};
    ctx.comms = &comm;
    comm.windows = &window;
    window.control = &control;
    window.targets = targets;
    window.get[0].place = got;
    window.get[0].bytes = ASKED;
    window.get[0].from = PEER;
    window.get[0].waiting = true;
    for (size_t i = 0; i < sizeof area; i++)
        area[i] = (unsigned char)(i * 7);
    run(&window, data, size);
    memset(kept, 0, sizeof kept);
    gy_free(targets[PEER].replies);
    gy_free(targets[PEER].landing);
    return 0;
}
