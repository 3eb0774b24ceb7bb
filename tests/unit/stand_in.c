/* Stand-ins for vendors' libraries: the few functions that are bound, with answers that a test knows.
 * Which one a build makes is in its definition, the file's name with underscores. */

#if defined(STAND_IN_libopenblas_so_0)

const char *openblas_get_config(void);
const char *openblas_get_config(void)
{
    return "OpenBLAS 0.3.21 DYNAMIC_ARCH Stand-in MAX_THREADS=2  ";
}

/* Threads of its own, by pthreads; what computes is there to be found, and computes nothing. */
int openblas_get_parallel(void);
int openblas_get_parallel(void)
{
    return 1;
}

int openblas_get_num_threads(void);
int openblas_get_num_threads(void)
{
    return 1;
}

void openblas_set_num_threads(int threads);
void openblas_set_num_threads(int threads)
{
    (void)threads;
}

#define GEMM(name)   \
    void name(void); \
    void name(void) {}
GEMM(cblas_sgemm)
GEMM(cblas_dgemm)
GEMM(cblas_cgemm)
GEMM(cblas_zgemm)

#elif defined(STAND_IN_libmkl_rt_so_2)

struct version {
    int major, minor, update;
    const char *status, *build, *processor, *platform;
};

void MKL_Get_Version(struct version *out);
int MKL_Verbose(int enable);

static int talks;

void MKL_Get_Version(struct version *out)
{
    *out = (struct version){2024, 1, 2, "Product", "20240722", "stand-in", "stand-in"};
}

int MKL_Verbose(int enable)
{
    int before = talks;
    if (enable == 1 && before == 1)
        return -1; /* so that a test sees it refuse */
    talks = enable;
    return before;
}

#elif defined(STAND_IN_libdnnl_so_2) || defined(STAND_IN_libdnnl_so_3)

struct version {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
};

const struct version *dnnl_version(void);
int dnnl_set_verbose(int level);

const struct version *dnnl_version(void)
{
#if defined(STAND_IN_libdnnl_so_2)
    static const struct version version = {2, 6, 3, "stand-in", 2, 0};
#else
    static const struct version version = {3, 11, 140, "stand-in", 2, 0};
#endif
    return &version;
}

int dnnl_set_verbose(int level)
{
    return level >= 0 && level <= 2 ? 0 : 2;
}

#else /* one that is only there */

int stand_in(void);
int stand_in(void)
{
    return 1;
}

#endif
