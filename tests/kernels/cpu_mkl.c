#define LIBRARY "mkl"
#define DTYPES  TN_F32, TN_F64, TN_C64, TN_C128
#include "cpu_cblas.h"

int main(void)
{
    const struct CMUnitTest tests[] = {CBLAS_TESTS};
    return run_suite("kernels.cpu_mkl", tests);
}
