#define ISA avx2
#define ATTENTION_F32
#include "../../attention/reals.h"
