#define ISA avx512
#include "../../kernels/rotary.h"
