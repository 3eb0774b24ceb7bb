#define ISA avx2
#define MATMUL_F64
#include "../../matmul/reals.h"
