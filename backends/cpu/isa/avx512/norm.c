#define ISA avx512
#include "../../kernels/norm.h"
