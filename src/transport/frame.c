/* The header of a frame on the wire: 64 bytes, little-endian, fixed offsets, whatever the machine.
 *
 *    0 magic u16 | 2 version u8 | 3 kind u8 | 4 epoch u32 | 8 comm u32 | 12 bytes u32 | 16 sequence u64 | 24 value u64
 *   32 count u64 | 40 root u32  | 44 lane u16 | 46 collective u8 | 47 dtype u8 | 48 op u8 | 49 flags u8
 *   50 algorithm u8 | 51 reserved 13 zero bytes
 *
 * Both directions are pure functions. Whatever decode lets through has a length that was bounded and a kind that
 * exists. */
#include "transport/transport.h"

static void put(uint8_t *wire, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        wire[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *wire, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)wire[i] << (8 * i);
    return value;
}

void gy_frame_encode(const struct gy_frame *frame, uint8_t wire_p[GY_FRAME_BYTES])
{
    put(wire_p, GY_FRAME_MAGIC, 2);
    wire_p[2] = GY_WIRE_VERSION;
    wire_p[3] = frame->kind;
    put(wire_p + 4, frame->epoch, 4);
    put(wire_p + 8, frame->comm, 4);
    put(wire_p + 12, frame->bytes, 4);
    put(wire_p + 16, frame->sequence, 8);
    put(wire_p + 24, frame->value, 8);
    put(wire_p + 32, frame->count, 8);
    put(wire_p + 40, frame->root, 4);
    put(wire_p + 44, frame->lane, 2);
    wire_p[46] = frame->collective;
    wire_p[47] = frame->dtype;
    wire_p[48] = frame->op;
    wire_p[49] = frame->flags;
    wire_p[50] = frame->algorithm;
    for (size_t i = 51; i < GY_FRAME_BYTES; i++)
        wire_p[i] = 0;
}

const char *gy_frame_kind_name(uint8_t kind)
{
    static const char *const names[GY_FRAME_KINDS] = {
        [GY_FRAME_DATA] = "DATA",       [GY_FRAME_GRANT] = "GRANT",
        [GY_FRAME_CREDIT] = "CREDIT",   [GY_FRAME_WANT] = "WANT",
        [GY_FRAME_PING] = "PING",       [GY_FRAME_PONG] = "PONG",
        [GY_FRAME_PUT] = "PUT",         [GY_FRAME_ACCUMULATE] = "ACCUMULATE",
        [GY_FRAME_GET] = "GET",         [GY_FRAME_GOT] = "GOT",
        [GY_FRAME_SIGNAL] = "SIGNAL",   [GY_FRAME_FLUSH] = "FLUSH",
        [GY_FRAME_FLUSHED] = "FLUSHED", [GY_FRAME_ENDS] = "ENDS",
    };
    return kind < GY_FRAME_KINDS && names[kind] ? names[kind] : "unknown";
}

bool gy_frame_decode(const uint8_t wire[GY_FRAME_BYTES], struct gy_frame *frame_p)
{
    uint32_t bytes = (uint32_t)get(wire + 12, 4);
    uint8_t reserved = 0;
    for (size_t i = 51; i < GY_FRAME_BYTES; i++)
        reserved |= wire[i];
    if (get(wire, 2) != GY_FRAME_MAGIC || wire[2] != GY_WIRE_VERSION || wire[3] < GY_FRAME_DATA ||
        wire[3] >= GY_FRAME_KINDS || bytes > GY_FRAME_MAX || reserved != 0)
        return false;
    *frame_p = (struct gy_frame){
        .magic = GY_FRAME_MAGIC,
        .version = GY_WIRE_VERSION,
        .kind = wire[3],
        .epoch = (uint32_t)get(wire + 4, 4),
        .comm = (uint32_t)get(wire + 8, 4),
        .bytes = bytes,
        .sequence = get(wire + 16, 8),
        .value = get(wire + 24, 8),
        .count = get(wire + 32, 8),
        .root = (uint32_t)get(wire + 40, 4),
        .lane = (uint16_t)get(wire + 44, 2),
        .collective = wire[46],
        .dtype = wire[47],
        .op = wire[48],
        .flags = wire[49],
        .algorithm = wire[50],
    };
    return true;
}
