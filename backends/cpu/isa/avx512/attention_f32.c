#define ISA avx512
#define ATTENTION_F32
#include "../../attention/reals.h"
