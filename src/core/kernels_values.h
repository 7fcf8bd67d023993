/* What happens to one vector of elements between memory and memory: LOAD turns what is stored into what is computed
 * with, COMBINE takes the next operand, STORE turns the result back. Every macro is given T, `wide` or `one` (vectors
 * of one element, for the tail), and the scalar types by their short names, and works lane by lane: the bits cannot
 * depend on the width.
 *
 * Sums and products are IEEE operations, those of narrow floats in float32. A NaN is stored as the quiet NaN with
 * payload zero, because the payload which an operation propagates depends on the order of its operands in the code.
 *
 * Minima and maxima of floats are integer work, so that no mode of the floating-point unit can change them. A float's
 * bits become a key that orders as the number does, −0 below +0, with the NaNs outside:
 *
 *   key:   …negative NaNs…  −inf … −0  +0 … +inf  …positive NaNs…     key(bits) = bits < 0 ? bits ^ INT_MAX : bits
 *
 * min pulls the positive NaNs to the lowest key and max the negative ones to the highest, so a NaN wins either; at the
 * store every key beyond the infinity becomes the quiet NaN. The key is its own inverse. The key of −inf is ~inf.
 *
 * Half to float32, by the size of the bits m without sign: m < 2^10 is the integer m times 2^−24; otherwise the
 * exponent is rebiased; infinities and NaNs get the largest exponent. An 8-bit float is a half with fewer bits:
 *
 *   e5m2   s eeeee mm            << 8               e4m3   s eeee mmm   s 0eeee mmm0000000, times 2^8 for the bias
 *
 * Float32 to narrow rounds once, to the nearest, ties to even. In the normal range that is an addition to the bits
 * before the shift. Below it, adding the float whose last bit weighs as much as the narrow type's smallest step lets
 * the addition round, and leaves the result in the low bits of the sum. */
#ifndef GY_CORE_KERNELS_VALUES_H
#define GY_CORE_KERNELS_VALUES_H

#define QUIET_f64 0x7ff8000000000000
#define QUIET_f32 0x7fc00000
#define QUIET_bf16 0x7fc0
#define QUIET_f16 0x7e00
#define QUIET_e5m2 0x7e
#define QUIET_e4m3 0x7f
/* The largest key that is a number. */
#define LARGEST_f64 0x7ff0000000000000
#define LARGEST_f32 0x7f800000
#define LARGEST_bf16 0x7f80
#define LARGEST_f16 0x7c00
#define LARGEST_e5m2 0x7c
#define LARGEST_e4m3 0x7e

/* `mask` is all ones or all zeros in each lane. */
#define SELECT(V, mask, yes, no) (((V)(mask) & (yes)) | (~(V)(mask) & (no)))

/* Integers, and bits as they are. */
#define GY_LOAD_PLAIN(T, type, number, value, from) value = *(const GY_V(number, T) *)(from);
#define GY_STORE_PLAIN(T, type, raw, out, value) out = value;

/* Booleans: all ones where the byte is not 0, and back as 1. */
#define GY_LOAD_BOOL(T, type, number, value, from) value = (GY_V(number, T))(*(const GY_V(number, T) *)(from) != 0);
#define GY_STORE_BOOL(T, type, raw, out, value) out = (value)&1;

#define GY_COMBINE_ADD(V, value, next) value = value + next;
#define GY_COMBINE_MULTIPLY(V, value, next) value = value * next;
#define GY_COMBINE_MIN(V, value, next) value = SELECT(V, next < value, next, value);
#define GY_COMBINE_MAX(V, value, next) value = SELECT(V, next > value, next, value);
#define GY_COMBINE_AND(V, value, next) value = value & next;
#define GY_COMBINE_OR(V, value, next) value = value | next;
#define GY_COMBINE_XOR(V, value, next) value = value ^ next;

/* Sums and products of float32 and float64. */
#define GY_STORE_NUMBER(T, type, raw, out, value)                                            \
    {                                                                                        \
        GY_V(raw, T) is_nan_ = (value) != (value);                                           \
        out = SELECT(GY_V(raw, T), is_nan_, (GY_E(raw))QUIET_##type, (GY_V(raw, T))(value)); \
    }
/* The same of a value that is known to be a number. */
#define GY_STORE_BITS(T, type, raw, out, value) out = (GY_V(raw, T))(value);

/* Minima and maxima of floats, as keys. */
#define KEY(raw, T, bits) ((bits) ^ ((GY_V(raw, T))((bits) < 0) & GY_MOST(raw)))
#define LOAD_KEY(T, type, raw, value, from, is_beyond, winner)                         \
    {                                                                                  \
        GY_V(raw, T) bits_ = *(const GY_V(raw, T) *)(from), key_ = KEY(raw, T, bits_); \
        value = SELECT(GY_V(raw, T), key_ is_beyond, (GY_E(raw))(winner), key_);       \
    }
#define STORE_KEY(T, type, raw, out, value, is_beyond) \
    out = SELECT(GY_V(raw, T), (value)is_beyond, (GY_E(raw))QUIET_##type, KEY(raw, T, value));
#define ABOVE(raw, type) > (GY_E(raw))LARGEST_##type
#define BELOW(raw, type) < (GY_E(raw)) ~LARGEST_##type
#define GY_LOAD_MIN(T, type, raw, value, from) LOAD_KEY(T, type, raw, value, from, ABOVE(raw, type), -GY_MOST(raw) - 1)
#define GY_LOAD_MAX(T, type, raw, value, from) LOAD_KEY(T, type, raw, value, from, BELOW(raw, type), GY_MOST(raw))
#define GY_STORE_MIN(T, type, raw, out, value) STORE_KEY(T, type, raw, out, value, BELOW(raw, type))
#define GY_STORE_MAX(T, type, raw, out, value) STORE_KEY(T, type, raw, out, value, ABOVE(raw, type))

/* Narrow floats as float32. */
#define GY_LOAD_NARROW(T, type, number, value, from) LOAD_##type(T, value, from)
#define GY_STORE_NARROW(T, type, raw, out, value) STORE_##type(T, raw, out, value)

#define LOAD_bf16(T, value, from)                                                                         \
    {                                                                                                     \
        GY_V(u32, T) bits_ = __builtin_convertvector(*(const GY_V(half, T) *)(from), GY_V(u32, T)) << 16; \
        value = (GY_V(f32, T))bits_;                                                                      \
    }
#define LOAD_f16(T, value, from)                              \
    {                                                         \
        GY_V(half, T) half_ = *(const GY_V(half, T) *)(from); \
        GY_FROM_HALF_##T(T, value, half_)                     \
    }
#define LOAD_e5m2(T, value, from)                                                                             \
    {                                                                                                         \
        GY_V(half, T) half_ = __builtin_convertvector(*(const GY_V(quarter, T) *)(from), GY_V(half, T)) << 8; \
        GY_FROM_HALF_##T(T, value, half_)                                                                     \
    }
#define LOAD_e4m3(T, value, from)                                                                        \
    {                                                                                                    \
        GY_V(half, T) byte_ = __builtin_convertvector(*(const GY_V(quarter, T) *)(from), GY_V(half, T)); \
        GY_V(half, T) half_ = (byte_ & 0x80) << 8 | (byte_ & 0x7f) << 7;                                 \
        GY_V(i32, T) bits_;                                                                              \
        GY_FROM_HALF_##T(T, value, half_) value = value * 256;                                           \
        bits_ = (GY_V(i32, T))value;                                                                     \
        value = (GY_V(f32, T))SELECT(GY_V(i32, T), (bits_ & INT32_MAX) > BITS_448, QUIET_f32, bits_);    \
    }
#define BITS_448 0x43e00000

#define GY_FROM_HALF_SOFTLY(T, value, half)                                                                \
    {                                                                                                      \
        GY_V(i32, T) code_ = __builtin_convertvector(half, GY_V(i32, T)), size_ = code_ & 0x7fff, result_; \
        GY_V(f32, T) tiny_ = __builtin_convertvector(size_, GY_V(f32, T)) * 0x1p-24f;                      \
        result_ = (size_ << 13) + ((127 - 15) << 23);                                                      \
        result_ = SELECT(GY_V(i32, T), size_ < 1 << 10, (GY_V(i32, T))tiny_, result_);                     \
        result_ |= (GY_V(i32, T))(size_ >= LARGEST_f16) & 0x7f800000;                                      \
        value = (GY_V(f32, T))(result_ | (code_ & 0x8000) << 16);                                          \
    }

#define STORE_bf16(T, raw, out, value)                            \
    {                                                             \
        GY_V(u32, T) bits_ = (GY_V(u32, T))(value);               \
        GY_V(i32, T) is_nan_ = (GY_V(i32, T))(value != value);    \
        bits_ = (bits_ + 0x7fff + (bits_ >> 16 & 1)) >> 16;       \
        bits_ = SELECT(GY_V(u32, T), is_nan_, QUIET_bf16, bits_); \
        GY_PACK_half_##T(T, out, bits_)                           \
    }
#define STORE_f16(T, raw, out, value) GY_TO_HALF_##T(T, out, value)
#define GY_TO_HALF_SOFTLY(T, out, value) ROUND(T, half, out, value, 16, 10, 15, LARGEST_f16, LARGEST_f32, QUIET_f16)
#define STORE_e5m2(T, raw, out, value) ROUND(T, quarter, out, value, 8, 2, 15, LARGEST_e5m2, LARGEST_f32, QUIET_e5m2)
/* 464 lies between 448 and what would be 480; the tie goes to 448, which is even. */
#define STORE_e4m3(T, raw, out, value) ROUND(T, quarter, out, value, 8, 3, 7, LARGEST_e4m3, BITS_464, QUIET_e4m3)
#define BITS_464 0x43e80000

/* To `width` bits with `digits` of mantissa and an exponent biased by `bias`; codes beyond `largest` become it, unless
 * the value lies beyond nan_above: then it is `nan`. */
#define ROUND(T, raw, out, value, width, digits, bias, largest, nan_above, nan)                \
    {                                                                                          \
        enum { drop_ = 23 - (digits), step_ = 127 + 23 + 1 - (bias) - (digits) };              \
        GY_V(i32, T) bits_ = (GY_V(i32, T))(value), size_ = bits_ & INT32_MAX, tiny_, code_;   \
        GY_V(f32, T) sum_ = (GY_V(f32, T))size_ + (GY_V(f32, T))((size_ & 0) | (step_ << 23)); \
        tiny_ = (GY_V(i32, T))sum_ - (step_ << 23);                                            \
        GY_V(u32, T) raw_ = (GY_V(u32, T))size_; /* a NaN may not overflow on its way */       \
        raw_ = raw_ - ((127 - (bias)) << 23) + ((1 << (drop_ - 1)) - 1) + (raw_ >> drop_ & 1); \
        code_ = (GY_V(i32, T))raw_ >> drop_;                                                   \
        code_ = SELECT(GY_V(i32, T), code_ > (largest), (largest), code_);                     \
        code_ = SELECT(GY_V(i32, T), size_ < (127 - (bias) + 1) << 23, tiny_, code_);          \
        code_ |= bits_ >> (32 - (width)) & 1 << ((width)-1);                                   \
        code_ = SELECT(GY_V(i32, T), size_ > (nan_above), (nan), code_);                       \
        GY_PACK_##raw##_##T(T, out, code_)                                                     \
    }

/* Integers that are divided: 8-bit ones as float32, 32-bit ones as float64. The quotient of integers of b bits that is
 * no integer is further from the next one than 2^−b of itself, so rounding it to 24 or 53 digits never reaches that. */
#define GY_LOAD_INTEGER(T, raw, number, value, from) \
    value = __builtin_convertvector(*(const GY_V(raw, T) *)(from), GY_V(number, T));
#define GY_STORE_INTEGER(T, number, raw, out, value) out = __builtin_convertvector(value, GY_V(raw, T));

#endif
