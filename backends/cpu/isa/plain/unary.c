#define ISA plain
#include "../../kernels/unary.h"
