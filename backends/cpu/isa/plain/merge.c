#define ISA plain
#include "../../kernels/merge.h"
