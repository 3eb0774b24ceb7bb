#include "op_words.h"

#include "op_headers.h"

const char *tni_op_word(int32_t kind)
{
    static const char *const words[TN_OP_KIND_MAX] = {
#define TNI_OP(NAME, noun, word) [TN_OP_##NAME] = word,
#include "op_list.h"
#undef TNI_OP
    };
    return kind > TN_OP_NONE && kind < TN_OP_KIND_MAX ? words[kind] : NULL;
}
