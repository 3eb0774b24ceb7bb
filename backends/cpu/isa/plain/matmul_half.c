#define ISA plain
#include "../../matmul/lowp_half.h"
