#define ISA plain
#include "../../kernels/permute.h"
