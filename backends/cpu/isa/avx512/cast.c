#define ISA avx512
#include "../../kernels/cast.h"
