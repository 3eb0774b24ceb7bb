#define ISA avx2
#include "../../kernels/permute.h"
