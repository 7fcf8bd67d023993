/* Little-endian fields in bounded memory. A cursor that ran over stays `bad`: the caller checks once, at the end. */
#ifndef GY_NET_BYTE_CODEC_H
#define GY_NET_BYTE_CODEC_H

#include <string.h>

#include "core/base.h"

struct gy_wire {
    uint8_t *at, *end;
    bool bad;
};

static inline struct gy_wire gy_wire_over(void *memory, size_t bytes)
{
    return (struct gy_wire){.at = memory, .end = (uint8_t *)memory + bytes};
}

static inline bool gy_wire_room(struct gy_wire *wire, size_t bytes)
{
    if (wire->bad || (size_t)(wire->end - wire->at) < bytes) {
        wire->bad = true;
        return false;
    }
    return true;
}

static inline void gy_wire_put(struct gy_wire *wire, uint64_t value, size_t bytes)
{
    if (!gy_wire_room(wire, bytes))
        return;
    for (size_t i = 0; i < bytes; i++)
        *wire->at++ = (uint8_t)(value >> (8 * i));
}

static inline uint64_t gy_wire_get(struct gy_wire *wire, size_t bytes)
{
    uint64_t value = 0;

    if (!gy_wire_room(wire, bytes))
        return 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)*wire->at++ << (8 * i);
    return value;
}

static inline void gy_wire_put_bytes(struct gy_wire *wire, const void *bytes, size_t count)
{
    if (!gy_wire_room(wire, count))
        return;
    memcpy(wire->at, bytes, count);
    wire->at += count;
}

static inline void gy_wire_get_bytes(struct gy_wire *wire, void *bytes_p, size_t count)
{
    if (!gy_wire_room(wire, count))
        return;
    memcpy(bytes_p, wire->at, count);
    wire->at += count;
}

#endif
