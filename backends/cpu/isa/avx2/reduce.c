#define ISA avx2
#include "../../kernels/reduce.h"
