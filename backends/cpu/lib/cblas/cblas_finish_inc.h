/* The part of cblas_finish.c that is compiled for f32 and for f64. Parameters: those of a family
 * (shared/family_f32_inc.h). */

#include "../../shared/activate_inc.h"

static void F(finish_row)(const tni_finish_job *job, int64_t row)
{
    _Alignas(64) REAL room[BLOCK], other[BLOCK];
    const int32_t size = sizeof(REAL);
    const strand out = {
        (char *)((REAL *)job->out + row * job->out_stride), job->dtype, size, 1, 0, false};
    for (int64_t at = 0; at < job->columns; at += BLOCK) {
        int64_t n = job->columns - at < BLOCK ? job->columns - at : BLOCK;
        REAL *x = F(block_room)(&out, at, n, room);
        const REAL *from = F(read_block)(&out, at, n, room);
        if (job->bias) {
            const strand bias = {(char *)(uintptr_t)((const REAL *)job->bias + row * job->bias_row),
                                 job->dtype,
                                 size,
                                 job->bias_column,
                                 0,
                                 false};
            const REAL *more = F(read_block)(&bias, at, n, other);
            for (int64_t i = 0; i < n; i += WIDTH)
                F(store)(x + i, F(load)(from + i) + F(load)(more + i));
        }
        F(activate)(job->activation, x, n);
        F(write_block)(&out, at, n, x);
    }
}
