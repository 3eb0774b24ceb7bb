#define ISA avx2
#define MATMUL_F32
#include "../../matmul/reals.h"
