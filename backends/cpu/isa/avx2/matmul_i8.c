#include "../../matmul/lowp_i8.h"

const tni_mm_set tni_mm_i8_avx2 = DOT_SET(TN_I32, DEPTH, 0.015);
const tni_mm_thin_set tni_mm_thin_i8_avx2 = THIN_SET;
