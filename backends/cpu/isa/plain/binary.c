#define ISA plain
#include "../../kernels/binary.h"
