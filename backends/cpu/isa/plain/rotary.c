#define ISA plain
#include "../../kernels/rotary.h"
