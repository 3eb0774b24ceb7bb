#define ISA avx512
#define MATMUL_F64
#include "../../matmul/reals.h"
