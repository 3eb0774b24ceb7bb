#define ISA avx512
#include "../../attention/low_half.h"
