#define ISA plain
#include "../../kernels/softmax.h"
