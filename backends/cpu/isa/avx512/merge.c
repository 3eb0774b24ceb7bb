#define ISA avx512
#include "../../kernels/merge.h"
