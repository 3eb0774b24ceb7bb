/* Elements of every dtype as doubles or as integers, with any stride and any alignment. */
#ifndef TNI_REF_ELEMENT_H
#define TNI_REF_ELEMENT_H

#include "tenon/module/dtype.h"

/* Kinds of elements. */
enum { TNI_REF_SIGNED = 1, TNI_REF_UNSIGNED, TNI_REF_FLOAT, TNI_REF_COMPLEX };

typedef struct tni_ref_element {
    tn_dtype dtype;
    int32_t sort;  /* one of the above; bool is an unsigned number that is 0 or 1 */
    int32_t parts; /* doubles per element: 2 for complex numbers */
    int64_t bytes;
    /* `step` is the stride of elements in bytes. A complex number is two doubles, the real part
     * first. 64-bit integers are rounded to nearest. */
    void (*read)(const char *from, int64_t step, int64_t count, double *to);
    /* Rounds once, as the op `cast` does. */
    void (*write)(const double *from, int64_t count, char *to, int64_t step);
    /* Integers; u64 keeps its 64 bits. NULL for floats. */
    void (*read_whole)(const char *from, int64_t step, int64_t count, int64_t *to);
    /* Keeps the low bits (wraps). For bool: whether the number is nonzero. */
    void (*write_whole)(const int64_t *from, int64_t count, char *to, int64_t step);
} tni_ref_element;

/* For a dtype that is not in TN_DTYPE_LIST, such as an absent operand's, returns the entry that is
 * all 0. */
const tni_ref_element *tni_ref_element_of(tn_dtype dtype);

/* Integers, including bool. */
static inline int32_t tni_ref_is_whole(const tni_ref_element *element)
{
    return element->sort == TNI_REF_SIGNED || element->sort == TNI_REF_UNSIGNED;
}

#endif
