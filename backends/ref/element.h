/* Elements of every dtype as doubles or as whole numbers, any distance apart and however aligned. */
#ifndef TNI_REF_ELEMENT_H
#define TNI_REF_ELEMENT_H

#include "tenon/module/dtype.h"

/* What a dtype's elements are. */
enum { TNI_REF_SIGNED = 1, TNI_REF_UNSIGNED, TNI_REF_FLOAT, TNI_REF_COMPLEX };

typedef struct tni_ref_element {
    tn_dtype dtype;
    int32_t sort;  /* of the above; bool is an unsigned number that is 0 or 1 */
    int32_t parts; /* doubles that an element is: 2 for complex numbers       */
    int64_t bytes;
    /* `step` is the distance of elements in bytes. A complex number is two doubles, the real part first.
     * Whole numbers of 64 bits are rounded to nearest. */
    void (*read)(const char *from, int64_t step, int64_t count, double *to);
    /* Rounds once, as the op `cast` does. */
    void (*write)(const double *from, int64_t count, char *to, int64_t step);
    /* Whole numbers; those of u64 keep their 64 bits. NULL for floats. */
    void (*take)(const char *from, int64_t step, int64_t count, int64_t *to);
    /* Keeps the low bits: wraps. Of bool: whether it is not 0. */
    void (*put)(const int64_t *from, int64_t count, char *to, int64_t step);
} tni_ref_element;

/* For a dtype that is not of TN_DTYPE_LIST, as an absent operand's, the one that is all 0. */
const tni_ref_element *tni_ref_element_of(tn_dtype dtype);

/* Whole numbers, bool among them. */
static inline int32_t tni_ref_is_whole(const tni_ref_element *element)
{
    return element->sort == TNI_REF_SIGNED || element->sort == TNI_REF_UNSIGNED;
}

#endif
