/* The classes of ops, and what all of them share. */
#include "op.h"

#include "base/words.h"

const tni_op_class *tni_op_class_of(int32_t kind)
{
    return kind > TN_OP_NONE && kind < TN_OP_KIND_MAX ? tni_op_classes[kind] : NULL;
}

const tni_op_class *tni_op_class_find(const char *word)
{
    for (int32_t i = TN_OP_NONE + 1; i < TN_OP_KIND_MAX; i++) {
        if (tni_op_classes[i] && strcmp(tni_op_classes[i]->word, word) == 0)
            return tni_op_classes[i];
    }
    return NULL;
}

const char *tni_op_class_nearest(const char *word)
{
    const char *words[TN_OP_KIND_MAX];
    size_t count = 0;
    for (int32_t i = TN_OP_NONE + 1; i < TN_OP_KIND_MAX; i++) {
        if (tni_op_classes[i])
            words[count++] = tni_op_classes[i]->word;
    }
    return tni_words_nearest(word, words, count);
}

void tni_op_init(tn_op *op, const tni_op_class *class)
{
    op->struct_size = sizeof *op;
    op->kind = class->kind;
    op->count = 0;
    op->uses = 0;
    for (; class->operands[op->count]; op->count++) {
        op->operand[op->count].dtype = TN_DTYPE_NONE;
        op->operand[op->count].rank = 0;
    }
}

static bool has_elements(const tn_layout *layout)
{
    int32_t i = 0;
    while (i < layout->rank && layout->shape[i] != 0)
        i++;
    return layout->dtype && i == layout->rank;
}

bool tni_op_is_empty(const tn_op *op)
{
    uint32_t outputs = tni_op_classes[op->kind]->outputs;
    for (int32_t i = 0; outputs >> i; i++) {
        if (outputs >> i & 1 && has_elements(&op->operand[i]))
            return false;
    }
    return true;
}

tn_status tni_op_validate(tn_op *op, tn_error *err)
{
    for (int32_t i = 0; i < op->count; i++)
        tni_layout_tidy(&op->operand[i]);
    return tni_op_class_of(op->kind)->validate(op, err);
}

enum { ALIGNMENT_MASK = (1 << TNI_ALIGNMENT_BITS) - 1, PER_WORD = 64 / TNI_ALIGNMENT_BITS };

tni_alignments tni_alignments_of(const tn_op *op, int64_t most)
{
    tni_alignments found = {{0}};
    for (int32_t i = 0; i < op->count; i++) {
        const tn_layout *layout = &op->operand[i];
        int64_t alignment = !layout->dtype             ? 0
                            : layout->alignment < most ? layout->alignment
                                                       : most;
        uint64_t bits = 0;
        while (alignment >> bits)
            bits++;
        found.word[i / PER_WORD] |= bits << i % PER_WORD * TNI_ALIGNMENT_BITS;
    }
    return found;
}

static bool word_reaches(uint64_t has, uint64_t needs)
{
    while (needs && (has & ALIGNMENT_MASK) >= (needs & ALIGNMENT_MASK)) {
        has >>= TNI_ALIGNMENT_BITS;
        needs >>= TNI_ALIGNMENT_BITS;
    }
    return needs == 0;
}

bool tni_alignments_reach(tni_alignments has, tni_alignments needs)
{
    int32_t i = 0;
    while (i < TNI_ALIGNMENT_WORDS && word_reaches(has.word[i], needs.word[i]))
        i++;
    return i == TNI_ALIGNMENT_WORDS;
}

void tni_alignments_set(tn_op *op, tni_alignments alignments)
{
    for (int32_t i = 0; i < op->count; i++) {
        uint64_t *word = &alignments.word[i / PER_WORD];
        if (*word & ALIGNMENT_MASK)
            op->operand[i].alignment = INT64_C(1) << ((*word & ALIGNMENT_MASK) - 1);
        *word >>= TNI_ALIGNMENT_BITS;
    }
}

size_t tni_op_key(const tn_op *op, uint64_t out[TNI_KEY_MOST])
{
    return tni_op_key_up_to(op, TN_OP_ALIGNMENT_MAX, out);
}

size_t tni_op_key_up_to(const tn_op *op, int64_t alignment, uint64_t out[TNI_KEY_MOST])
{
    size_t count = 0;
    out[count++] = (uint64_t)op->kind;
    out[count++] = op->uses;
    const tni_alignments alignments = tni_alignments_of(op, alignment);
    for (int32_t i = 0; i < TNI_ALIGNMENT_WORDS; i++)
        out[count++] = alignments.word[i];
    for (int32_t i = 0; i < op->count; i++) {
        const tn_layout *layout = &op->operand[i];
        out[count++] = layout->dtype | (uint64_t)layout->rank << 32;
        for (int32_t d = 0; d < layout->rank; d++) {
            out[count++] = (uint64_t)layout->shape[d];
            out[count++] = (uint64_t)layout->stride[d];
        }
    }
    return count + tni_op_class_of(op->kind)->words(op, out + count);
}

void tni_op_copy(const tn_op *op, tn_op *out)
{
    memcpy(out, op, offsetof(tn_op, operand) + (size_t)op->count * sizeof op->operand[0]);
    out->params = op->params;
}

void tni_op_free(const tn_op *op, uint64_t dims, tn_op *out)
{
    tni_op_copy(op, out);
    if (!dims)
        return;
    for (int32_t i = 0; i < out->count; i++) {
        for (int32_t d = 0; d < out->operand[i].rank; d++)
            out->operand[i].stride[d] = 0;
    }
    tni_op_class_of(op->kind)->free(out, dims);
}
