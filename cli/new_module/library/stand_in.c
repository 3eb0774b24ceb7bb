/* A stand-in for a vendor's library, so that the module can be built and tested anywhere. Remove it
 * when the module calls yours. It knows nothing of Tenon. */
#include <stddef.h>

int standin_version(void);
void standin_sgemm(int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                   const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* 1.2.3 */
int standin_version(void)
{
    return 10203;
}

/* c = alpha A B + beta c, with matrices that are stored by rows, or by columns if transposed. Does
 * not read c if beta is 0. May be called from several threads at once. */
void standin_sgemm(int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                   const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    const ptrdiff_t a_row = transpose_a ? 1 : lda, a_column = transpose_a ? lda : 1;
    const ptrdiff_t b_row = transpose_b ? 1 : ldb, b_column = transpose_b ? ldb : 1;
    for (ptrdiff_t i = 0; i < m; i++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            float sum = 0, *to = &c[i * ldc + j];
            for (ptrdiff_t l = 0; l < k; l++)
                sum += a[i * a_row + l * a_column] * b[l * b_row + j * b_column];
            *to = alpha * sum + (beta == 0 ? 0 : beta * *to);
        }
    }
}
