#include "matmul_lowp_f32.h"
#include "matmul_lowp_units.h"

#define SUMS        vf
#define TILE_ROWS   12
#define UNIT        PAIRS
#define FLIP        0
#define BEGINS      false
#define finish_sums finish_f32

INLINE vf dot(vf sum, vu x, vu y)
{
    return (vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)y);
}

#include "matmul_lowp_dot.h"

const tni_mm_set tni_mm_bf16_avx512_bf16 = DOT_SET(TN_F32, 512, 0.02);
