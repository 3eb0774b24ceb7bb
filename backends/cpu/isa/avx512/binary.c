#define ISA avx512
#include "../../kernels/binary.h"
