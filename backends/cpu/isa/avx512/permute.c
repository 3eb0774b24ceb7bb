#define ISA avx512
#include "../../kernels/permute.h"
