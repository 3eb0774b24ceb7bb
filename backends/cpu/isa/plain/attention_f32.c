#define ISA plain
#define ATTENTION_F32
#include "../../attention/reals.h"
