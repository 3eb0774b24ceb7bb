#define ISA plain
#include "../../kernels/reduce.h"
