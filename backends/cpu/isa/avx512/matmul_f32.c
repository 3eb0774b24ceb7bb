#define ISA avx512
#define MATMUL_F32
#include "../../matmul/reals.h"
