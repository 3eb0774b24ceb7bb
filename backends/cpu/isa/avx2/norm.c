#define ISA avx2
#include "../../kernels/norm.h"
