#define LIBRARY "blis"
#define DTYPES  TN_F32, TN_F64, TN_F32, TN_F64
#include "cpu_cblas.h"

/* The leak sanitizer misreads the thread-local storage that BLIS has in threads of the pool, and dies of
 * it. */
TN_MODULE_EXPORT const char *__lsan_default_options(void); // NOLINT(bugprone-reserved-identifier)
const char *__lsan_default_options(void)                   // NOLINT(bugprone-reserved-identifier)
{
    return "use_tls=0";
}

int main(void)
{
    const struct CMUnitTest tests[] = {CBLAS_TESTS};
    return run_suite("kernels.cpu_blis", tests);
}
