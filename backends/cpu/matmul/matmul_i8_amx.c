#include "matmul_lowp_i32.h"

#define UNIT        BYTES
#define DEPTH       1024
#define MULTIPLY    _tile_dpbssd
#define finish_sums finish_i32

#include "matmul_lowp_amx.h"
const tni_mm_set tni_mm_i8_amx = AMX_SET(TN_I32);
