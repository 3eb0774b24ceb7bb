#define ISA avx2
#include "../../kernels/merge.h"
