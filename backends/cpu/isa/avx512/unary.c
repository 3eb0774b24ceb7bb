#define ISA avx512
#include "../../kernels/unary.h"
