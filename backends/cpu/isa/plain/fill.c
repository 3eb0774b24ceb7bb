#define ISA plain
#include "../../kernels/fill.h"
