/* The header of a frame on the wire: 64 bytes, little-endian, fixed offsets, on any machine.
 *
 *    0 magic u16 | 2 version u8 | 3 kind u8 | 4 epoch u32 | 8 comm u32 | 12 bytes u32 | 16 sequence u64 | 24 value u64
 *   32 count u64 | 40 root u32  | 44 lane u16 | 46 collective u8 | 47 dtype u8 | 48 op u8 | 49 flags u8
 *   50 algorithm u8 | 51 credit u8 | 52 pace 2 times u16 | 56 taken u64
 *
 * Both directions are pure functions. A decoded frame has a bounded length and a valid kind. */
#include <endian.h>
#include <stddef.h>
#include <string.h>

#include "transport/transport.h"

_Static_assert(offsetof(struct gy_frame, sequence) == 16 && offsetof(struct gy_frame, root) == 40 &&
                   offsetof(struct gy_frame, algorithm) == 50,
               "the fields lie where the wire has them");

/* Converts between the machine's byte order and the wire's; its own inverse. */
static struct gy_frame turned(struct gy_frame frame)
{
    frame.magic = htole16(frame.magic);
    frame.epoch = htole32(frame.epoch);
    frame.comm = htole32(frame.comm);
    frame.bytes = htole32(frame.bytes);
    frame.sequence = htole64(frame.sequence);
    frame.value = htole64(frame.value);
    frame.count = htole64(frame.count);
    frame.root = htole32(frame.root);
    frame.lane = htole16(frame.lane);
    frame.pace[0] = htole16(frame.pace[0]);
    frame.pace[1] = htole16(frame.pace[1]);
    frame.taken = htole64(frame.taken);
    return frame;
}

void gy_frame_encode(const struct gy_frame *frame, uint8_t wire_p[GY_FRAME_BYTES])
{
    struct gy_frame wire = *frame;
    wire.magic = GY_FRAME_MAGIC;
    wire.version = GY_WIRE_VERSION;
    wire = turned(wire);
    memcpy(wire_p, &wire, GY_FRAME_BYTES);
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
        [GY_FRAME_FLUSHED] = "FLUSHED", [GY_FRAME_UNIFORM] = "UNIFORM",
        [GY_FRAME_RAILS] = "RAILS",
    };
    return kind < GY_FRAME_KINDS && names[kind] ? names[kind] : "unknown";
}

bool gy_frame_decode(const uint8_t wire[GY_FRAME_BYTES], struct gy_frame *frame_p)
{
    struct gy_frame frame;
    memcpy(&frame, wire, GY_FRAME_BYTES);
    frame = turned(frame);
    if (frame.magic != GY_FRAME_MAGIC || frame.version != GY_WIRE_VERSION || frame.kind < GY_FRAME_DATA ||
        frame.kind >= GY_FRAME_KINDS || frame.bytes > GY_FRAME_MAX)
        return false;
    *frame_p = frame;
    return true;
}
