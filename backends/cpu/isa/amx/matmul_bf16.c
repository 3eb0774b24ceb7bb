#include "../../matmul/lowp_f32.h"

#define UNIT        PAIRS
#define DEPTH       512
#define MULTIPLY    _tile_dpbf16ps
#define finish_sums finish_f32

#include "../../matmul/lowp_amx.h"
const tni_mm_set tni_mm_bf16_amx = AMX_SET(TN_F32);
