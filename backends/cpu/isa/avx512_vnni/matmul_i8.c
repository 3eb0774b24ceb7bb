#include "../../matmul/lowp_i8.h"

const tni_mm_set tni_mm_i8_avx512_vnni = DOT_SET(TN_I32, DEPTH, 0.003);
const tni_mm_thin_set tni_mm_thin_i8_avx512_vnni = THIN_SET;
