/* The checks of kernel_checks.h that try every value, or every pair of values, of what has few of them. Kernels are
 * taken from the table of each instruction set, so that all are checked, not only the one in use. */
#include <math.h>
#include <string.h>

#include "kernel_checks.h"
#include "kernel_data.h"

/* Every one of `count` values of memory[0] with every one of `partners` of `partner`. */
static const char *check_partners(size_t count, const uint64_t *partner, size_t partners, gyre_dtype dtype, gyre_op op)
{
    size_t size = gyre_dtype_size(dtype);
    const char *text = NULL;

    sources[0] = memory[0];
    sources[1] = memory[1];
    for (size_t p = 0; p < partners && !text; p++) {
        for (size_t i = 0; i < count; i++)
            put(memory[1], i, size, partner[p]);
        make_expected(2, count, dtype, op);
        text = run_all(2, count, dtype, op);
    }
    return text;
}

static const char *special_pairs(gyre_dtype dtype, gyre_op op)
{
    uint64_t special[32];
    size_t count = make_specials(dtype, special);

    for (size_t i = 0; i < count; i++)
        put(memory[0], i, gyre_dtype_size(dtype), special[i]);
    return check_partners(count, special, count, dtype, op);
}

const char *gy_check_every_pair_of_special_values(void)
{
    return for_all_pairs(special_pairs);
}

static const char *pairs_of_8_bits(gyre_dtype dtype, gyre_op op)
{
    uint64_t value[256];

    if (gyre_dtype_size(dtype) != 1)
        return NULL;
    for (size_t i = 0; i < 256; i++)
        put(memory[0], i, 1, value[i] = i);
    return check_partners(256, value, 256, dtype, op);
}

const char *gy_check_every_pair_of_8_bit_values(void)
{
    return for_all_pairs(pairs_of_8_bits);
}

/* With a few specials and itself. */
static const char *values_of_16_bits(gyre_dtype dtype, gyre_op op)
{
    static const uint64_t partner[] = {0, 0x8000, 0x0001, 0x03ff, 0x3c01, 0xbf81, 0x7bff, 0x7f7f, 0x7c00, 0xff80};
    const char *text;

    if (gyre_dtype_size(dtype) != 2)
        return NULL;
    for (size_t i = 0; i < 1 << 16; i++)
        put(memory[0], i, 2, i);
    text = check_partners(1 << 16, partner, GY_ARRAY_LENGTH(partner), dtype, op);
    sources[1] = memory[0];
    make_expected(2, 1 << 16, dtype, op);
    return text ? text : run_all(2, 1 << 16, dtype, op);
}

const char *gy_check_every_16_bit_value(void)
{
    return for_all_pairs(values_of_16_bits);
}

static const char *widen_all(const struct gy_kernels *kernels, gyre_dtype dtype)
{
    size_t size = gyre_dtype_size(dtype), count = (size_t)1 << (8 * size);
    uint32_t saved = gy_fp_enter();

    for (size_t i = 0; i < count; i++)
        put(memory[0], i, size, i);
    kernels->widen[dtype]((char *)result, (const char *)memory[0], count);
    kernels->narrow[dtype]((char *)second, (const char *)result, count);
    gy_fp_leave(saved);
    for (size_t i = 0; i < count; i++) {
        float wide, exact = (float)gy_reference_decode(dtype, i);
        bool is_nan = gy_reference_is_nan(dtype, i);

        memcpy(&wide, result + 4 * i, 4);
        if (is_nan ? !isnan(wide) : memcmp(&wide, &exact, 4) != 0)
            return wrong("%s: %s %zx widens to %a", kernels->name, gyre_dtype_name(dtype), i, (double)wide);
        if (get(second, i, size) != (is_nan ? gy_reference_encode(dtype, NAN) : i))
            return wrong("%s: %s %zx comes back as %llx", kernels->name, gyre_dtype_name(dtype), i,
                         (unsigned long long)get(second, i, size));
    }
    return NULL;
}

const char *gy_check_every_narrow_value_widens_exactly(void)
{
    const struct gy_kernels *kernels;
    const char *text = NULL;

    set_up();
    for (int i = 0; (kernels = gy_kernels_usable(i)) != NULL; i++) {
        for (int d = 0; d < GY_DTYPES && !text; d++) {
            if (gy_dtype_narrow((gyre_dtype)d))
                text = widen_all(kernels, (gyre_dtype)d);
        }
    }
    return text;
}

/* Every upper half of a float32, with lower halves around the places where rounding turns. */
const char *gy_check_narrowing_rounds_to_nearest_even(void)
{
    static const uint16_t lower[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff};
    const struct gy_kernels *kernels;
    const char *text = NULL;

    set_up();
    for (int d = 0; d < GY_DTYPES; d++) {
        for (size_t l = 0; gy_dtype_narrow((gyre_dtype)d) && l < GY_ARRAY_LENGTH(lower); l++) {
            for (size_t i = 0; i < LONGEST; i++) {
                put(memory[0], i, 4, i << 16 | lower[l]);
                put(expected, i, gyre_dtype_size((gyre_dtype)d),
                    gy_reference_encode((gyre_dtype)d, gy_reference_decode(GYRE_FLOAT32, i << 16 | lower[l])));
            }
            for (int i = 0; !text && (kernels = gy_kernels_usable(i)) != NULL; i++) {
                kernels->narrow[d]((char *)result, (const char *)memory[0], LONGEST);
                text = compare(result, LONGEST, (gyre_dtype)d, "narrowing", kernels->name);
            }
        }
    }
    return text;
}
