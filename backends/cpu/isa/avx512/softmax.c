#define ISA avx512
#include "../../kernels/softmax.h"
