#define ISA avx2
#include "../../kernels/unary.h"
