#define ISA avx2
#include "../../attention/low_half.h"
