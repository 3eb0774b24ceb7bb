#include "cblas_finish.h"

#include "../../shared/block.h"
#include "../../shared/vector_math.h"

#include "../../shared/family_f32_inc.h"

#include "cblas_finish_inc.h"

#include "../../shared/family_end_inc.h"

#include "../../shared/family_f64_inc.h"

#include "cblas_finish_inc.h"

#include "../../shared/family_end_inc.h"

/* Adds a complex bias; the real and imaginary parts alternate. Elements may be at any address. */
#define ADD_COMPLEX(name, real)                                                  \
    static void name(const tni_finish_job *job, int64_t row)                     \
    {                                                                            \
        real sum[2], more[2];                                                    \
        const int64_t size = sizeof sum;                                         \
        char *out = (char *)job->out + row * job->out_stride * size;             \
        const char *bias = (const char *)job->bias + row * job->bias_row * size; \
        for (int64_t i = 0; i < job->columns; i++) {                             \
            memcpy(sum, out + i * size, sizeof sum);                             \
            memcpy(more, bias + i * job->bias_column * size, sizeof more);       \
            sum[0] += more[0];                                                   \
            sum[1] += more[1];                                                   \
            memcpy(out + i * size, sum, sizeof sum);                             \
        }                                                                        \
    }
ADD_COMPLEX(add_c64, float)
ADD_COMPLEX(add_c128, double)

void tni_cblas_finish(const tni_finish_job *job)
{
    for (int64_t row = 0; row < job->rows; row++) {
        switch (job->dtype) {
        case TN_F32: finish_row_f32(job, row); break;
        case TN_F64: finish_row_f64(job, row); break;
        case TN_C64:
            if (job->bias)
                add_c64(job, row);
            break;
        default:
            if (job->bias)
                add_c128(job, row);
        }
    }
}
