#define ISA plain
#include "../../attention/low_half.h"
