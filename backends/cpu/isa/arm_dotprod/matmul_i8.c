#include "../../matmul/lowp_i8.h"

const tni_mm_set tni_mm_i8_arm_dotprod = DOT_SET(TN_I32, DEPTH, 0.01);
const tni_mm_thin_set tni_mm_thin_i8_arm_dotprod = THIN_SET;
