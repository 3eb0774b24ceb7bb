#define ISA plain
#include "../../kernels/cast.h"
