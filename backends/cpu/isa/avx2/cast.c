#define ISA avx2
#include "../../kernels/cast.h"
