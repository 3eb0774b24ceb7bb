#include "../../attention/low_dot.h"

#define BEGIN NULL
#define END   NULL
#define SET   tni_at_bf16_avx512_bf16
#include "../../attention/low_set.h"
