#include "../../attention/low_amx.h"

#define BEGIN begin
#define END   end
#define SET   tni_at_bf16_amx
#include "../../attention/low_set.h"
