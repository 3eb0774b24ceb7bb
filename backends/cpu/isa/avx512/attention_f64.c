#define ISA avx512
#define ATTENTION_F64
#include "../../attention/reals.h"
