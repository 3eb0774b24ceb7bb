/* Random operands of an einsum problem, and the numbers of a dtype. */
#ifndef TENON_CLI_EINSUM_VALUES_H
#define TENON_CLI_EINSUM_VALUES_H

#include "einsum_problem.h"

/* Bits of an integer, negative if it has a sign; 0 for others. */
int einsum_integer_bits(tn_dtype dtype);
bool einsum_is_complex(tn_dtype dtype);

/* Bytes of a number: of a part, if it is complex. */
size_t einsum_part_bytes(tn_dtype dtype);

/* Reads a number, of a complex one a part. An integer's bits beyond its own are 0. */
double einsum_decode_float(tn_dtype dtype, const unsigned char *from);
uint64_t einsum_decode_integer(tn_dtype dtype, const unsigned char *from);

/* Creates an operand with random values, on the device. *out_values are the same values, in pairs if
 * they are complex. The caller releases both, also if this fails; both are zeroed before. */
tn_status einsum_values_make(const einsum_problem *of, int32_t term, tn_generator *random,
                             tn_tensor *out, double **out_values, tn_error *err);

#endif
