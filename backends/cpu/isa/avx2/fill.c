#define ISA avx2
#include "../../kernels/fill.h"
