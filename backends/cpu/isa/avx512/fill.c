#define ISA avx512
#include "../../kernels/fill.h"
