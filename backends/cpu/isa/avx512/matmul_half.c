#define ISA avx512
#include "../../matmul/lowp_half.h"
