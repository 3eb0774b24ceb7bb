#define ISA avx2
#include "../../kernels/rotary.h"
