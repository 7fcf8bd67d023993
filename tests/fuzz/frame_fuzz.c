/* The frame decoder: whatever it lets through is bounded, and encodes to the very bytes it was made of. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "transport/transport.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < GY_FRAME_BYTES)
        return 0;
    struct gy_frame frame;
    if (!gy_frame_decode(data, &frame))
        return 0;
    if (frame.bytes > GY_FRAME_MAX || frame.kind < GY_FRAME_DATA || frame.kind >= GY_FRAME_KINDS)
        abort();
    uint8_t wire[GY_FRAME_BYTES];
    gy_frame_encode(&frame, wire);
    if (memcmp(wire, data, GY_FRAME_BYTES) != 0)
        abort();
    return 0;
}
