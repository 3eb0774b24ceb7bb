#define ISA plain
#define MATMUL_F64
#include "../../matmul/reals.h"
