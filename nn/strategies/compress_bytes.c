/* bf16 and int8: fewer bytes per element, in two phases, in which each rank owns a slice of the gradient:
 *
 *     rank r   p ──encode──▶ all_to_all ──decode, add──▶ slice r of the sum ──encode──▶ all_gather ──decode──▶ grads
 *                  │                                                          │
 *                  └ error: e of this rank                                    └ error: e of the slice's owner
 *
 * Sums are made of decoded values in rank order, so nothing is rounded on the way, and both errors are kept. A rank
 * sends count·2·(ranks − 1)/ranks elements, as all_reduce does, of 2 bytes or of 1 (and 4 per block of 256).
 * int8: the elements of a block are multiples of its largest magnitude / 127. */
#include "strategies/compress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)256)

struct bytes {
    size_t slice, wire;      /* elements of a slice (the last ones may be beyond the end), its bytes */
    unsigned char *out, *in; /* a slice per rank */
    struct gy_vector sum;    /* of my slice */
};

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Elements of slice `index` that exist. */
static size_t present(const struct gy_nn_compress *self, const struct bytes *bytes, size_t index)
{
    size_t first = index * bytes->slice;
    return first < self->count ? at_most(bytes->slice, self->count - first) : 0;
}

static uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    if (isnan(value))
        return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Element i of `count` in `x` leaves for `wire`, and only the error stays in x. */
static void encode_bf16(struct gy_vector x, size_t first, size_t count, unsigned char *wire)
{
    for (size_t i = 0; i < count; i++) {
        double value = gy_vector_get(x, first + i);
        uint16_t half = to_bf16((float)value);
        memcpy(wire + 2 * i, &half, sizeof(half));
        gy_vector_set(x, first + i, value - (double)from_bf16(half));
    }
}

static void decode_bf16(const unsigned char *wire, size_t count, struct gy_vector x, size_t first)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, wire + 2 * i, sizeof(half));
        gy_vector_set(x, first + i, gy_vector_get(x, first + i) + (double)from_bf16(half));
    }
}

/* A block on the wire: its scale, and its elements. */
static void encode_int8(struct gy_vector x, size_t first, size_t count, unsigned char *wire)
{
    for (size_t from = 0; from < count; from += BLOCK, wire += sizeof(float) + BLOCK) {
        size_t many = at_most(BLOCK, count - from);
        double most = 0;
        for (size_t i = 0; i < many; i++)
            most = fmax(most, fabs(gy_vector_get(x, first + from + i)));
        float scale = (float)(most / 127);
        memcpy(wire, &scale, sizeof(scale));
        for (size_t i = 0; i < many; i++) {
            double value = gy_vector_get(x, first + from + i);
            double level = scale > 0 ? fmin(127, fmax(-127, rint(value / (double)scale))) : 0;
            int8_t small = (int8_t)level;
            memcpy(wire + sizeof(scale) + i, &small, 1);
            gy_vector_set(x, first + from + i, value - level * (double)scale);
        }
    }
}

static void decode_int8(const unsigned char *wire, size_t count, struct gy_vector x, size_t first)
{
    for (size_t from = 0; from < count; from += BLOCK, wire += sizeof(float) + BLOCK) {
        size_t many = at_most(BLOCK, count - from);
        float scale;
        memcpy(&scale, wire, sizeof(scale));
        for (size_t i = 0; i < many; i++) {
            int8_t small;
            memcpy(&small, wire + sizeof(scale) + i, 1);
            gy_vector_set(x, first + from + i, gy_vector_get(x, first + from + i) + (double)small * (double)scale);
        }
    }
}

static bool is_int8(const struct gy_nn_compress *self)
{
    return self->codec == &gy_nn_codec_int8;
}

static void encode(const struct gy_nn_compress *self, struct gy_vector x, size_t first, size_t count,
                   unsigned char *wire)
{
    is_int8(self) ? encode_int8(x, first, count, wire) : encode_bf16(x, first, count, wire);
}

/* Adds. */
static void decode(const struct gy_nn_compress *self, const unsigned char *wire, size_t count, struct gy_vector x,
                   size_t first)
{
    is_int8(self) ? decode_int8(wire, count, x, first) : decode_bf16(wire, count, x, first);
}

static gyre_status open(struct gy_nn_compress *self)
{
    struct bytes *bytes = calloc(1, sizeof(*bytes));
    size_t ranks = (size_t)self->run.ranks;
    if (!bytes)
        return GYRE_NO_MEMORY;
    self->work = bytes;
    bytes->slice = (self->count + ranks - 1) / ranks;
    bytes->wire = is_int8(self) ? (bytes->slice + BLOCK - 1) / BLOCK * (BLOCK + sizeof(float)) : 2 * bytes->slice;
    bytes->out = calloc(ranks, bytes->wire);
    bytes->in = calloc(ranks, bytes->wire);
    bytes->sum = (struct gy_vector){self->grads.dtype, calloc(bytes->slice, gyre_dtype_size(self->grads.dtype))};
    return bytes->out && bytes->in && bytes->sum.data ? GYRE_SUCCESS : GYRE_NO_MEMORY;
}

static void close(struct gy_nn_compress *self)
{
    struct bytes *bytes = self->work;
    if (!bytes)
        return;
    free(bytes->out);
    free(bytes->in);
    free(bytes->sum.data);
    free(bytes);
}

static gyre_status exchange(struct gy_nn_compress *self)
{
    struct bytes *bytes = self->work;
    size_t ranks = (size_t)self->run.ranks, rank = (size_t)self->run.rank, mine = present(self, bytes, rank);
    gyre_status status = GYRE_SUCCESS;
    for (size_t r = 0; r < ranks; r++)
        encode(self, self->residual, r * bytes->slice, present(self, bytes, r), bytes->out + r * bytes->wire);
    if (self->run.comm)
        status = gyre_all_to_all(self->run.comm, bytes->out, bytes->in, bytes->wire, GYRE_UINT8);
    else
        memcpy(bytes->in, bytes->out, bytes->wire);
    if (status != GYRE_SUCCESS)
        return status;
    gy_vector_scale(0, bytes->slice, 0, bytes->sum, bytes->sum);
    for (size_t r = 0; r < ranks; r++)
        decode(self, bytes->in + r * bytes->wire, mine, bytes->sum, 0);
    encode(self, bytes->sum, 0, mine, bytes->out);
    for (size_t i = 0; i < mine; i++)
        gy_vector_set(self->residual, rank * bytes->slice + i,
                      gy_vector_get(self->residual, rank * bytes->slice + i) + gy_vector_get(bytes->sum, i));
    if (self->run.comm)
        status = gyre_all_gather(self->run.comm, bytes->out, bytes->in, bytes->wire, GYRE_UINT8);
    else
        memcpy(bytes->in, bytes->out, bytes->wire);
    if (status != GYRE_SUCCESS)
        return status;
    gyre_nn_zero_grads(self->run.model);
    for (size_t r = 0; r < ranks; r++)
        decode(self, bytes->in + r * bytes->wire, present(self, bytes, r), self->grads, r * bytes->slice);
    return GYRE_SUCCESS;
}

const struct gy_nn_codec gy_nn_codec_bf16 = {.name = "bf16", .open = open, .close = close, .exchange = exchange};
const struct gy_nn_codec gy_nn_codec_int8 = {.name = "int8", .open = open, .close = close, .exchange = exchange};
