/* The kernels in the instruction set that every processor of the architecture has: SSE2 or NEON. */
#include "kernels.h"

#define GY_ISA_TARGET
#define GY_ISA_BYTES 16

#if defined(__aarch64__)
#include <arm_neon.h>

#define GY_ISA neon
#define GY_FROM_HALF_wide(T, value, half) value = (GY_V(f32, T))vcvt_f32_f16((float16x4_t)(half));
#define GY_TO_HALF_wide(T, out, value)                                             \
    {                                                                              \
        out = (GY_V(half, T))vcvt_f16_f32((float32x4_t)(value));                   \
        out = SELECT(GY_V(half, T), (out & 0x7fff) > LARGEST_f16, QUIET_f16, out); \
    }
#define GY_PACK_half_wide(T, out, code) out = (GY_V(half, T))vmovn_u32((uint32x4_t)(code));
#define GY_PACK_quarter_wide(T, out, code)                          \
    {                                                               \
        uint16x4_t half_ = vmovn_u32((uint32x4_t)(code));           \
        uint8x8_t quarter_ = vmovn_u16(vcombine_u16(half_, half_)); \
        __builtin_memcpy(&out, &quarter_, sizeof(out));             \
    }
#else
#include <immintrin.h>

#define GY_ISA sse2
#define GY_FROM_HALF_wide GY_FROM_HALF_SOFTLY
#define GY_TO_HALF_wide GY_TO_HALF_SOFTLY
/* The pack saturates signed numbers: the sign is extended first. */
#define GY_PACK_half_wide(T, out, code)                                            \
    {                                                                              \
        __m128i packed_ = _mm_srai_epi32(_mm_slli_epi32((__m128i)(code), 16), 16); \
        packed_ = _mm_packs_epi32(packed_, packed_);                               \
        __builtin_memcpy(&out, &packed_, sizeof(out));                             \
    }
#define GY_PACK_quarter_wide(T, out, code)                                   \
    {                                                                        \
        __m128i packed_ = _mm_packs_epi32((__m128i)(code), (__m128i)(code)); \
        packed_ = _mm_packus_epi16(packed_, packed_);                        \
        __builtin_memcpy(&out, &packed_, sizeof(out));                       \
    }
#endif

#include "kernels.inc"
