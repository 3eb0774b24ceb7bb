#define ISA avx2
#define ATTENTION_F64
#include "../../attention/reals.h"
