/* The header: every field survives, every bad field is refused, byte positions are those of docs/wire.md. */
#include <criterion/criterion.h>
#include <string.h>

#include "transport/transport.h"

static const struct gy_frame example = {
    .magic = GY_FRAME_MAGIC,
    .version = GY_WIRE_VERSION,
    .kind = GY_FRAME_GRANT,
    .epoch = 0x01020304,
    .comm = 0x11121314,
    .bytes = 0x000fedcb,
    .sequence = UINT64_C(0x2122232425262728),
    .value = UINT64_C(0x3132333435363738),
    .count = UINT64_C(0x4142434445464748),
    .root = 0x51525354,
    .lane = 0x6162,
    .collective = 0x71,
    .dtype = 0x72,
    .op = 0x73,
    .flags = GY_FRAME_EAGER,
    .algorithm = 0x74,
    .credit = 0x75,
    .pace = {0x8182, 0x8384},
    .taken = UINT64_C(0x9192939495969798),
};

Test(frame, every_field_survives)
{
    uint8_t wire[GY_FRAME_BYTES];
    struct gy_frame back;
    memset(&back, 0xff, sizeof(back));
    gy_frame_encode(&example, wire);
    cr_assert(gy_frame_decode(wire, &back));
    cr_assert_eq(memcmp(&back, &example, sizeof(back)), 0);
}

Test(frame, positions_are_the_documents)
{
    static const uint8_t expected[GY_FRAME_BYTES] = {
        0x67, 0x79, 1,    GY_FRAME_GRANT, 4,    3,    2,    1,    0x14, 0x13, 0x12, 0x11, 0xcb, 0xed, 0x0f, 0x00,
        0x28, 0x27, 0x26, 0x25,           0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31,
        0x48, 0x47, 0x46, 0x45,           0x44, 0x43, 0x42, 0x41, 0x54, 0x53, 0x52, 0x51, 0x62, 0x61, 0x71, 0x72,
        0x73, 1,    0x74, 0x75,           0x82, 0x81, 0x84, 0x83, 0x98, 0x97, 0x96, 0x95, 0x94, 0x93, 0x92, 0x91,
    };
    uint8_t wire[GY_FRAME_BYTES];
    gy_frame_encode(&example, wire);
    cr_assert_eq(memcmp(wire, expected, sizeof(expected)), 0);
}

/* Sets one byte of a good header; is it still understood? */
static bool with(size_t at, uint8_t value)
{
    uint8_t wire[GY_FRAME_BYTES];
    struct gy_frame frame;
    gy_frame_encode(&example, wire);
    wire[at] = value;
    return gy_frame_decode(wire, &frame);
}

Test(frame, bad_fields_are_refused)
{
    cr_assert(with(4, 99), "an epoch is not this layer's business");
    cr_assert_not(with(0, 0x68));
    cr_assert_not(with(1, 0));
    cr_assert_not(with(2, 0));
    cr_assert_not(with(2, GY_WIRE_VERSION + 1));
    cr_assert_not(with(3, 0));
    cr_assert_not(with(3, GY_FRAME_KINDS));
    cr_assert_not(with(3, 255));
    cr_assert_not(with(15, 1));
    cr_assert_not(with(14, 0x10), "0x10edcb is above the limit");
}

Test(frame, length_limit_is_exact)
{
    uint8_t wire[GY_FRAME_BYTES];
    struct gy_frame frame = example, back;
    frame.bytes = GY_FRAME_MAX;
    gy_frame_encode(&frame, wire);
    cr_assert(gy_frame_decode(wire, &back));
    frame.bytes = GY_FRAME_MAX + 1;
    gy_frame_encode(&frame, wire);
    cr_assert_not(gy_frame_decode(wire, &back));
}

Test(frame, a_refused_header_writes_nothing)
{
    uint8_t wire[GY_FRAME_BYTES] = {0};
    struct gy_frame frame = example;
    cr_assert_not(gy_frame_decode(wire, &frame));
    cr_assert_eq(memcmp(&frame, &example, sizeof(frame)), 0);
}
