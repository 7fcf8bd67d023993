/* The kernels for AVX-512: F, BW, DQ and VL, which every such processor but the first has. */
#include "kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define GY_ISA avx512
#define GY_ISA_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c")))
#define GY_ISA_BYTES 64
#define GY_FROM_HALF_wide(T, value, half) value = (GY_V(f32, T))_mm512_cvtph_ps((__m256i)(half));
#define GY_TO_HALF_wide(T, out, value)                                                                        \
    {                                                                                                         \
        out = (GY_V(half, T))_mm512_cvtps_ph((__m512)(value), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); \
        out = SELECT(GY_V(half, T), (out & 0x7fff) > LARGEST_f16, QUIET_f16, out);                            \
    }
#define GY_PACK_half_wide(T, out, code) out = (GY_V(half, T))_mm512_cvtepi32_epi16((__m512i)(code));
#define GY_PACK_quarter_wide(T, out, code) out = (GY_V(quarter, T))_mm512_cvtepi32_epi8((__m512i)(code));

#include "kernels.inc"
#endif
