#define ISA avx2
#include "../../kernels/softmax.h"
