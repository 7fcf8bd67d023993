/* The kernels for AVX2, with F16C for the halves. */
#include "kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define GY_ISA avx2
#define GY_ISA_TARGET __attribute__((target("avx2,f16c")))
#define GY_ISA_BYTES 32
#define GY_FROM_HALF_wide(T, value, half) value = (GY_V(f32, T))_mm256_cvtph_ps((__m128i)(half));
#define GY_TO_HALF_wide(T, out, value)                                                    \
    {                                                                                     \
        out = (GY_V(half, T))_mm256_cvtps_ph((__m256)(value), _MM_FROUND_TO_NEAREST_INT); \
        out = SELECT(GY_V(half, T), (out & 0x7fff) > LARGEST_f16, QUIET_f16, out);        \
    }
/* Packs work on halves of the vector: the results are brought together. */
#define GY_PACK_half_wide(T, out, code)                                                       \
    {                                                                                         \
        __m256i packed_ = _mm256_packus_epi32((__m256i)(code), (__m256i)(code));              \
        out = (GY_V(half, T))_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed_, 0x08)); \
    }
#define GY_PACK_quarter_wide(T, out, code)                                       \
    {                                                                            \
        __m256i packed_ = _mm256_packus_epi32((__m256i)(code), (__m256i)(code)); \
        __m128i low_, high_;                                                     \
        packed_ = _mm256_packus_epi16(packed_, packed_);                         \
        low_ = _mm256_castsi256_si128(packed_);                                  \
        high_ = _mm256_extracti128_si256(packed_, 1);                            \
        low_ = _mm_unpacklo_epi32(low_, high_);                                  \
        __builtin_memcpy(&out, &low_, sizeof(out));                              \
    }
/* One comparison covers two vectors, and the select is skipped if there is no NaN. This gains nothing on a real
 * processor; but an emulator makes a call for each comparison, which was half the time of a sum. */
#define GY_HAVE_NAN(type, a, b, c, d) HAVE_NAN_##type(a, b, c, d)
#define HAVE_NAN_f32(a, b, c, d) (_mm256_movemask_ps(_mm256_or_ps(UNORDERED(ps, a, b), UNORDERED(ps, c, d))) != 0)
#define HAVE_NAN_f64(a, b, c, d) (_mm256_movemask_pd(_mm256_or_pd(UNORDERED(pd, a, b), UNORDERED(pd, c, d))) != 0)
#define UNORDERED(suffix, a, b) _mm256_cmp_##suffix(a, b, _CMP_UNORD_Q)

#include "kernels.inc"
#endif
