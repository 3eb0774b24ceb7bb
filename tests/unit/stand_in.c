/* Stand-ins for vendors' libraries: the few functions that are bound, with answers that a test knows.
 * Which one a build makes is in its definition, the file's name with underscores. */

#define FUNCTION(name) \
    int name(void);    \
    int name(void)     \
    {                  \
        return 0;      \
    }

#if defined(STAND_IN_libopenblas_so_0) || defined(STAND_IN_libmkl_rt_so_2) || \
    defined(STAND_IN_libblis_so_3) || defined(STAND_IN_libblis_so_4)
FUNCTION(cblas_sgemm)
FUNCTION(cblas_dgemm)
FUNCTION(cblas_cgemm)
FUNCTION(cblas_zgemm)
#endif

#if defined(STAND_IN_libopenblas_so_0)

#include <stdio.h>
#include <stdlib.h>

/* Which processor's kernels it took, "" for none yet: it knows no processor, and goes by its variable. */
static const char *core = "Prescott";
const char gotoblas_SKYLAKEX[1], gotoblas_HASWELL[1];

void gotoblas_dynamic_quit(void);
void gotoblas_dynamic_quit(void)
{
    core = "";
}

void gotoblas_dynamic_init(void);
void gotoblas_dynamic_init(void)
{
    static char named[32];
    const char *variable = getenv("OPENBLAS_CORETYPE");
    if (core[0])
        return;
    snprintf(named, sizeof named, "%s", variable ? variable : "Prescott");
    core = named;
}

const char *openblas_get_corename(void);
const char *openblas_get_corename(void)
{
    return core;
}

const char *openblas_get_config(void);
const char *openblas_get_config(void)
{
    static char config[96];
    snprintf(config, sizeof config, "OpenBLAS 0.3.21 DYNAMIC_ARCH %s MAX_THREADS=2  ", core);
    return config;
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

/* What it was told; -1 before. */
int stand_in_layer = -1;

int MKL_Set_Threading_Layer(int layer);
int MKL_Set_Threading_Layer(int layer)
{
    stand_in_layer = layer;
    return layer;
}

int stand_in_interface;

int MKL_Set_Interface_Layer(int layer);
int MKL_Set_Interface_Layer(int layer)
{
    (void)layer;
    return stand_in_interface;
}

FUNCTION(MKL_Set_Num_Threads_Local)

#elif defined(STAND_IN_libblis_so_3) || defined(STAND_IN_libblis_so_4)

#include <stdint.h>
#include <stdlib.h>

/* Code as that of the kernels for AVX-512, which 3 is built without. */
#if defined(STAND_IN_libblis_so_4) && defined(__x86_64__)
__asm__(".text\n.rept 100\n.byte 0x62, 0xf2, 0x7d, 0x48, 0xb8, 0xc0\n.endr\n");
#endif

static int arch = -1;

void bli_init(void);
void bli_init(void)
{
    const char *variable = getenv("BLIS_ARCH_TYPE");
    if (arch < 0)
        arch = variable ? atoi(variable) : 2;
#if defined(STAND_IN_libblis_so_3)
    if (arch == 1)
        abort(); /* as BLIS does */
#endif
}

int bli_arch_query_id(void);
int bli_arch_query_id(void)
{
    return arch;
}

const char *bli_arch_string(int id);
const char *bli_arch_string(int id)
{
    static const char *const names[] = {"knl", "skx", "haswell", "generic"};
    return names[id];
}

void stand_in_again(void);
void stand_in_again(void)
{
    arch = -1;
}

const char *bli_info_get_version_str(void);
const char *bli_info_get_version_str(void)
{
#if defined(STAND_IN_libblis_so_3)
    return "0.8.1";
#else
    return "1.1";
#endif
}

int64_t stand_in_bits = 32;

int64_t bli_info_get_blas_int_type_size(void);
int64_t bli_info_get_blas_int_type_size(void)
{
    return stand_in_bits;
}

int64_t bli_info_get_int_type_size(void);
int64_t bli_info_get_int_type_size(void)
{
    return 64;
}

int64_t bli_thread_get_num_threads(void);
int64_t bli_thread_get_num_threads(void)
{
    return -1;
}

FUNCTION(bli_thread_set_num_threads)

#elif defined(STAND_IN_libdnnl_so_2) || defined(STAND_IN_libdnnl_so_3)

struct version {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
};

#if defined(STAND_IN_libdnnl_so_2)
struct version stand_in_version = {2, 6, 3, "stand-in", 2, 0};
FUNCTION(dnnl_memory_desc_init_by_strides)
FUNCTION(dnnl_matmul_desc_init)
FUNCTION(dnnl_primitive_desc_create)
#else
struct version stand_in_version = {3, 11, 140, "stand-in", 2, 0};
FUNCTION(dnnl_memory_desc_create_with_strides)
FUNCTION(dnnl_memory_desc_destroy)
FUNCTION(dnnl_matmul_primitive_desc_create)
#endif

const struct version *dnnl_version(void);
const struct version *dnnl_version(void)
{
    return &stand_in_version;
}

int stand_in_level = -1;

int dnnl_set_verbose(int level);
int dnnl_set_verbose(int level)
{
    if (level < 0 || level > 2)
        return 2;
    stand_in_level = level;
    return 0;
}

FUNCTION(omp_get_max_threads)
FUNCTION(omp_set_num_threads)
FUNCTION(dnnl_engine_create)
FUNCTION(dnnl_stream_create)
FUNCTION(dnnl_stream_destroy)
FUNCTION(dnnl_memory_create)
FUNCTION(dnnl_memory_set_data_handle)
FUNCTION(dnnl_memory_destroy)
FUNCTION(dnnl_memory_desc_get_size)
FUNCTION(dnnl_primitive_attr_create)
FUNCTION(dnnl_primitive_attr_destroy)
FUNCTION(dnnl_primitive_attr_set_scratchpad_mode)
FUNCTION(dnnl_primitive_attr_set_post_ops)
FUNCTION(dnnl_post_ops_create)
FUNCTION(dnnl_post_ops_destroy)
FUNCTION(dnnl_post_ops_append_eltwise)
FUNCTION(dnnl_primitive_desc_query)
FUNCTION(dnnl_primitive_desc_query_md)
FUNCTION(dnnl_primitive_desc_destroy)
FUNCTION(dnnl_primitive_create)
FUNCTION(dnnl_primitive_execute)
FUNCTION(dnnl_primitive_destroy)

#else /* one that is only there */

int stand_in(void);
int stand_in(void)
{
    return 1;
}

#endif
