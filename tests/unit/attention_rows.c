#include "attention_rows.h"

#include "device/description.h"
#include "device/platform/platforms.h"
#include "tenon/module/platform.h"

static tn_status run(const tn_run *r, tn_error *err)
{
    (void)r, (void)err;
    return TN_OK;
}

/* A platform out of tree whose device has no memory: nothing runs on it. */
static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    (void)host, (void)err;
    *out_self = NULL;
    *out_devices = 1;
    return TN_OK;
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device, (void)bytes, (void)out;
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, "acme", "no memory");
}

static void memory_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device, (void)memory;
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)job;
    return tn_fail(err, TN_UNSUPPORTED, 0, "acme", "no memory");
}

static const tn_platform_row acme = {.struct_size = sizeof acme,
                                     .name = "acme",
                                     .kind = TN_PLATFORM_OOT,
                                     .probe = probe,
                                     .memory_alloc = memory_alloc,
                                     .memory_free = memory_free,
                                     .copy = copy};
static const tn_platform_row *const platforms[] = {&acme, NULL};

static const tn_dtype f32_bf16[] = {TN_F32, TN_BF16, 0}, halves[] = {TN_F16, TN_BF16, 0};
static const tn_dtype floats[] = {TN_F32, TN_F16, TN_BF16, 0}, f64[] = {TN_F64, 0};

#define KERNEL(word, on, speed, ...)                               \
    static const tn_kernel_row word = {.struct_size = sizeof word, \
                                       .platform = on,             \
                                       .version = 1,               \
                                       .flops_per_us = speed,      \
                                       .bytes_per_us = 1e9,        \
                                       .run = run,                 \
                                       __VA_ARGS__}
#define FORWARD(word, on, speed, ...) KERNEL(word, on, speed, .op = TN_OP_ATTENTION, __VA_ARGS__)

int attention_rows_asked;

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    (void)row, (void)query, (void)why;
    attention_rows_asked++;
    return TN_OK;
}

FORWARD(tpu_flash, "tpu", 9, .name = "tpu.attention.flash", .backend = "FLASH_ATTN",
        .dtypes = f32_bf16, .admit = admit, .numerics = TN_NUM_RUN_TO_RUN,
        .honours = TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_GROUPS | TN_ATTENTION_USES_LSE);
FORWARD(tpu_narrow, "tpu", 99, .name = "tpu.attention.narrow", .backend = "math", .dtypes = halves,
        .numerics = TN_NUM_REDUCED_REDUCTION, .honours = ~UINT64_C(0));
FORWARD(tpu_plain, "tpu", 1, .name = "tpu.attention.plain", .backend = "math", .dtypes = floats,
        .honours = ~UINT64_C(0));
FORWARD(tpu_own, "tpu", 5, .name = "tpu.attention.own", .backend = "ACME_ATTN", .dtypes = f64,
        .honours = ~UINT64_C(0));
KERNEL(tpu_backward, "tpu", 1, .op = TN_OP_ATTENTION_BACKWARD,
       .name = "tpu.attention-backward.plain", .backend = "math", .dtypes = floats,
       .honours = ~UINT64_C(0));
KERNEL(tpu_merge, "tpu", 1, .op = TN_OP_ATTENTION_MERGE, .name = "tpu.attention-merge.plain",
       .dtypes = floats, .honours = ~UINT64_C(0));
FORWARD(acme_own, "acme", 1, .name = "acme.attention.own", .dtypes = floats,
        .honours = ~UINT64_C(0));
FORWARD(acme_flash, "acme", 9, .name = "acme.attention.flash", .backend = "flash", .dtypes = halves,
        .honours = ~UINT64_C(0));
FORWARD(cuda_flash, "cuda", 9, .name = "cuda.attention.a-flash", .backend = "FLASH_ATTN",
        .dtypes = halves, .honours = ~UINT64_C(0));
FORWARD(cuda_efficient, "cuda", 5, .name = "cuda.attention.an-efficient",
        .backend = "mem_efficient", .dtypes = floats, .honours = ~UINT64_C(0));
FORWARD(cuda_cudnn, "cuda", 7, .name = "cuda.attention.a-cudnn", .backend = "cudnn",
        .dtypes = halves, .honours = ~UINT64_C(0));
FORWARD(rocm_flash, "rocm", 9, .name = "rocm.attention.a-flash", .backend = "flash",
        .dtypes = halves, .honours = ~UINT64_C(0));
FORWARD(rocm_efficient, "rocm", 5, .name = "rocm.attention.an-efficient",
        .backend = "mem_efficient", .dtypes = floats, .honours = ~UINT64_C(0));
FORWARD(rocm_ck, "rocm", 8, .name = "rocm.attention.a-ck", .backend = "flash", .library = "ck",
        .dtypes = halves, .honours = ~UINT64_C(0));

static const tn_kernel_row *const kernels[] = {
    &tpu_flash,  &tpu_narrow, &tpu_plain,      &tpu_own,    &tpu_backward,
    &tpu_merge,  &acme_own,   &acme_flash,     &cuda_flash, &cuda_efficient,
    &cuda_cudnn, &rocm_flash, &rocm_efficient, &rocm_ck,    NULL};
static const tn_kernel_row *const kernels_of_no_gpu[] = {&tpu_flash, &tpu_narrow,   &tpu_plain,
                                                         &tpu_own,   &tpu_backward, &tpu_merge,
                                                         &acme_own,  &acme_flash,   NULL};
bool attention_rows_of_gpus;

static tn_module module = {.struct_size = sizeof module,
                           TN_MODULE_ABI,
                           .name = "attention-rows",
                           .version = "1",
                           .platforms = platforms};

static tn_status entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    module.kernels = attention_rows_of_gpus ? kernels : kernels_of_no_gpu;
    *out = &module;
    return TN_OK;
}

static const char text[] = "[device pod]\nplatform = tpu\nname = a\n"
                           "[device bare]\nplatform = xpu\nname = c\n"
                           "[device untold]\nplatform = cuda\nname = d\n"
                           "[device sm49]\nplatform = cuda\ncapability = 4.9\n"
                           "[device sm50]\nplatform = cuda\ncapability = 5.0\n"
                           "[device sm69]\nplatform = cuda\ncapability = 6.9\n"
                           "[device sm70]\nplatform = cuda\ncapability = 7.0\n"
                           "[device sm75]\nplatform = cuda\ncapability = 7.5\n"
                           "[device sm79]\nplatform = cuda\ncapability = 7.9\n"
                           "[device sm85]\nplatform = cuda\ncapability = 8.5\n"
                           "[device sm86]\nplatform = cuda\ncapability = 8.6\n"
                           "[device sm89]\nplatform = cuda\ncapability = 8.9\n"
                           "[device sm100]\nplatform = cuda\ncapability = 10.0\n"
                           "[device sm107]\nplatform = cuda\ncapability = 10.7\n"
                           "[device sm110]\nplatform = cuda\ncapability = 11.0\n"
                           "[device sm120]\nplatform = cuda\ncapability = 12.0\n"
                           "[device sm121]\nplatform = cuda\ncapability = 12.1\n"
                           "[device sm122]\nplatform = cuda\ncapability = 12.2\n"
                           "[device gfx803]\nplatform = rocm\narchitecture = gfx803\n"
                           "[device gfx1100]\nplatform = rocm\narchitecture = gfx1100\n"
                           "[device gfx1101]\nplatform = rocm\narchitecture = gfx1101\n"
                           "[device gfx90a]\nplatform = rocm\narchitecture = gfx90a\n"
                           "[device gfx950]\nplatform = rocm\narchitecture = gfx950\n"
                           "[device gfx1151]\nplatform = rocm\narchitecture = gfx1151\n"
                           "[device gfx1201]\nplatform = rocm\narchitecture = gfx1201\n"
                           "[device gfx1250]\nplatform = rocm\narchitecture = gfx1250\n"
                           "[device gfx908]\nplatform = rocm\narchitecture = gfx908\n"
                           "[device gfx1102]\nplatform = rocm\narchitecture = gfx1102\n"
                           "[device gfx1103]\nplatform = rocm\narchitecture = gfx1103\n"
                           "[device gfx1150]\nplatform = rocm\narchitecture = gfx1150\n"
                           "[device gfx1152]\nplatform = rocm\narchitecture = gfx1152\n"
                           "[device gfx1153]\nplatform = rocm\narchitecture = gfx1153\n"
                           "[device gfx1200]\nplatform = rocm\narchitecture = gfx1200\n"
                           "[device gfx94]\nplatform = rocm\narchitecture = gfx94\n"
                           "[device gfx942]\nplatform = rocm\narchitecture = gfx942:xnack-\n";

static void describe_all(void)
{
    static const char *const files[] = {"h200", "a100", "mi300x"};
    tni_platforms *set;
    tni_descriptions *all = NULL;
    tn_error err;
    assert_int_equal(tni_platforms_process(&set, &err), TN_OK);
    if (tni_descriptions_parse(text, sizeof text - 1, "rows", &all, &err) ||
        tni_devices_describe(set, all, "rows", &err))
        fail_msg("%s", err.message);
    tni_descriptions_release(all);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/backends/described/devices/%s.device", SOURCE_FOLDER,
                 files[i]);
        if (tn_device_file_add(path, &err))
            fail_msg("%s", err.message);
    }
}

void attention_rows(void)
{
    static tn_registration *registration;
    tn_error err;
    if (registration)
        return;
    assert_int_equal(tn_module_register(entry, 0, &registration, &err), TN_OK);
    assert_int_equal(tn_settings_set("admission=never", &err), TN_OK);
    describe_all();
}

tn_device *described(const char *name)
{
    tn_device *device = NULL;
    tn_error err;
    attention_rows();
    if (tn_device_get(name, &device, &err))
        fail_msg("%s: %s", name, err.message);
    return device;
}
