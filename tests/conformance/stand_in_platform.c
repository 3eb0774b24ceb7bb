/* Stand-ins for modules that Tenon does not have yet: STAND_IN_ROCM for AMD's GPUs, STAND_IN_METAL for
 * Apple's. Each has one device without memory, so that kernels can be chosen and nothing runs. With them,
 * the settings and questions that need such a module have their effect. Only tests load them. */
#include <tenon/module/kernel.h>
#include <tenon/module/library.h>
#include <tenon/module/op/attention.h>
#include <tenon/module/op/matmul.h>
#include <tenon/module/platform.h>

#if defined(STAND_IN_ROCM)
#define PLATFORM "rocm"
#define KIND     TN_PLATFORM_ROCM
#else
#define PLATFORM "mps"
#define KIND     TN_PLATFORM_MPS
#endif

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    (void)host, (void)err;
    *out_self = NULL;
    *out_devices = 1;
    return TN_OK;
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device, (void)out;
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, "stand-in", "it has no memory for %llu bytes",
                   (unsigned long long)bytes);
}

static void memory_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device, (void)memory;
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)job;
    return tn_fail(err, TN_UNSUPPORTED, 0, "stand-in", "it has no memory");
}

static const tn_platform_row platform = {.struct_size = sizeof platform,
                                         .name = PLATFORM,
                                         .kind = KIND,
                                         .flags = TN_PLATFORM_STAND_IN,
                                         .probe = probe,
                                         .memory_alloc = memory_alloc,
                                         .memory_free = memory_free,
                                         .copy = copy};
static const tn_platform_row *const platforms[] = {&platform, NULL};

/* Libraries that are part of the module: there is nothing to open. */
#define LIBRARY(word, of)                                           \
    static const tn_library_row word = {.struct_size = sizeof word, \
                                        .name = (of),               \
                                        .platform = PLATFORM,       \
                                        .remedy = "load the stand-in"}

#if defined(STAND_IN_ROCM)

LIBRARY(aotriton, "aotriton");
LIBRARY(ck, "ck");
LIBRARY(miopen, "miopen");
static const tn_library_row *const libraries[] = {&aotriton, &ck, &miopen, NULL};

static tn_status run(const tn_run *r, tn_error *err)
{
    (void)r;
    return tn_fail(err, TN_UNSUPPORTED, 0, "stand-in", "it computes nothing");
}

/* MIOpen searches for the best kernel unless immediate mode is on. */
static tn_status admit_search(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    int64_t immediate = 0;
    (void)row;
    (void)query->setting(query, "miopen.immediate", &immediate);
    return immediate ? tn_refuse(why, TN_REFUSE_SETTING, "miopen.immediate", 0, 1) : TN_OK;
}

static const tn_dtype f16[] = {TN_F16, 0};

#define KERNEL(word, of, kind, speed, ...)                         \
    static const tn_kernel_row word = {.struct_size = sizeof word, \
                                       .name = (of),               \
                                       .platform = PLATFORM,       \
                                       .op = (kind),               \
                                       .version = 1,               \
                                       .dtypes = f16,              \
                                       .honours = ~UINT64_C(0),    \
                                       .flops_per_us = (speed),    \
                                       .bytes_per_us = 1e9,        \
                                       .run = run,                 \
                                       __VA_ARGS__}
KERNEL(attention_aotriton, "rocm.attention.aotriton", TN_OP_ATTENTION, 9, .library = "aotriton",
       .backend = "flash");
KERNEL(attention_ck, "rocm.attention.ck", TN_OP_ATTENTION, 5, .library = "ck", .backend = "flash");
KERNEL(matmul_search, "rocm.matmul.search", TN_OP_MATMUL, 9, .library = "miopen",
       .admit = admit_search);
KERNEL(matmul_immediate, "rocm.matmul.immediate", TN_OP_MATMUL, 5, .library = "miopen");
static const tn_kernel_row *const kernels[] = {&attention_aotriton, &attention_ck, &matmul_search,
                                               &matmul_immediate, NULL};

#else

LIBRARY(mps, "mps");
static const tn_library_row *const libraries[] = {&mps, NULL};
static const tn_kernel_row *const kernels[] = {NULL};

#endif

static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "stand-in-" PLATFORM,
                                 .version = "1",
                                 .platforms = platforms,
                                 .libraries = libraries,
                                 .kernels = kernels};

TN_MODULE_EXPORT tn_status tn_module_entry(const tn_host *host, const tn_module **out,
                                           tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
