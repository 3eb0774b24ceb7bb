#define ISA plain
#define ATTENTION_F64
#include "../../attention/reals.h"
