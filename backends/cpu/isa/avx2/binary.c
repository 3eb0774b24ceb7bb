#define ISA avx2
#include "../../kernels/binary.h"
