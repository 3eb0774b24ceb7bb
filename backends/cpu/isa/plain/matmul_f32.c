#define ISA plain
#define MATMUL_F32
#include "../../matmul/reals.h"
