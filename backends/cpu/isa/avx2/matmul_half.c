#define ISA avx2
#include "../../matmul/lowp_half.h"
