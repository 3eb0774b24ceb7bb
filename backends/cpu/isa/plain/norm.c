#define ISA plain
#include "../../kernels/norm.h"
