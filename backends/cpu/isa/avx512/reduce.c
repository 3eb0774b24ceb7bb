#define ISA avx512
#include "../../kernels/reduce.h"
