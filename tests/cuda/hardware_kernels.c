/* What of our kernels no op of `tenon check` runs, on a GPU: random numbers at every edge of a block, and the writer of
 * what dropout keeps, which otherwise runs before cuDNN alone. gpu.py has compute-sanitizer look on.
 *
 *     test_cuda_hardware_kernels            both; skipped without a GPU
 *     test_cuda_hardware_kernels --rows     every kernel row of the module, with its library */
#include "module_host.h"

#include "hardware.h"

#include "../../backends/cuda/attention/attention_dropout.h"
#include "../../backends/cuda/compile/code.h"
#include "../../backends/cuda/kernels/layout.h"
#include "tenon/module/kernel.h"
#include "tenon/module/philox.h"

static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 1023, 1024, 1025, 65537, 300007};
enum { SIZES = sizeof sizes / sizeof sizes[0], GUARD = 64 };

/* Memory of the device with guards on both sides, all of one byte. */
static char *guarded(uint64_t bytes)
{
    char *memory = NULL;
    must(tn_memory_alloc(gpu, bytes + 2 * (uint64_t)GUARD, "test", (void **)&memory, &err));
    must(tn_memory_fill(TN_ARGS(memory_fill, .device = gpu, .to = memory,
                                .bytes = bytes + 2 * (uint64_t)GUARD, .pattern = 0xA5),
                        &err));
    must(tn_device_synchronize(gpu, &err));
    return memory;
}

/* What is there, and the guards as they were. Frees it. */
static void expect(char *memory, const void *expected, uint64_t bytes, const char *what)
{
    char *here = malloc(bytes + 2 * GUARD), guard[GUARD];
    assert_non_null(here);
    memset(guard, 0xA5, sizeof guard);
    must(tn_device_synchronize(gpu, &err));
    must(tn_memory_copy(TN_ARGS(memory_copy, .to = here, .from_device = gpu, .from = memory,
                                .bytes = bytes + 2 * (uint64_t)GUARD),
                        &err));
    must(tn_device_synchronize(gpu, &err));
    if (memcmp(here + GUARD, expected, bytes) != 0)
        fail_msg("%s, %llu bytes: the bits differ", what, (unsigned long long)bytes);
    if (memcmp(here, guard, GUARD) != 0 || memcmp(here + GUARD + bytes, guard, GUARD) != 0)
        fail_msg("%s, %llu bytes: more was written", what, (unsigned long long)bytes);
    free(here);
    tn_memory_free(gpu, memory);
}

static void compare_random(tn_dtype dtype, uint64_t bytes, int64_t count, bool normal)
{
    const int64_t shape[] = {count};
    const uint64_t all = bytes * (uint64_t)count;
    char *there = guarded(all);
    void *here = malloc(all);
    tn_generator *one = NULL, *two = NULL;
    tn_tensor out;
    assert_non_null(here);
    must(tn_tensor_wrap(gpu, there + GUARD, dtype, shape, NULL, 1, NULL, NULL, &out, &err));
    must(tn_generator_create(91, &one, &err));
    must(tn_generator_create(91, &two, &err));
    must(normal ? tn_random_normal(one, &out, &err) : tn_random_uniform(one, &out, &err));
    must(normal ? tn_random_fill_normal(two, dtype, here, count, &err)
                : tn_random_fill_uniform(two, dtype, here, count, &err));
    expect(there, here, all, normal ? "normal" : "uniform");
    tn_tensor_release(&out);
    tn_generator_release(one);
    tn_generator_release(two);
    free(here);
}

static void random_numbers_end_where_they_should(void **state)
{
    static const struct {
        tn_dtype dtype;
        uint64_t bytes;
    } dtypes[] = {{TN_F32, 4}, {TN_F64, 8}, {TN_F16, 2}, {TN_BF16, 2}, {TN_U32, 4}, {TN_I32, 4}};
    (void)state;
    begin_gpu();
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        for (size_t k = 0; k < SIZES; k++) {
            compare_random(dtypes[i].dtype, dtypes[i].bytes, sizes[k], false);
            if (i < 4)
                compare_random(dtypes[i].dtype, dtypes[i].bytes, sizes[k], true);
        }
    }
}

/* The module's own platform beside the loaded one: both have the device's primary context. */
static cuda *platform;

static cuda_kernel *find_keeper(void)
{
    cuda_kernel *kernel = NULL;
    tni_cache *cache = NULL;
    void *made = NULL;
    int32_t devices = 0;
    must(tni_cache_create(NULL, 64 << 20, &cache, &err));
    host.self = cache;
    must(cuda_probe(&host, &made, &devices, &err));
    platform = made;
    const cuda_nvrtc *compiler = cuda_compiler(platform);
    if (!compiler)
        skip_because("dropout needs NVIDIA's compiler, nvrtc, which is not here");
    must(cuda_kernel_get(platform, compiler, 0, &cuda_dropout_case, &kernel, &err));
    return kernel;
}

static uint16_t *kept(const cuda_dropout_args *args)
{
    uint16_t *out = malloc((size_t)args->elements * sizeof *out);
    uint32_t words[TN_PHILOX_WORDS];
    assert_non_null(out);
    for (long long i = 0; i < args->elements; i++) {
        tn_philox_block(args->seed, 0, args->block + (uint64_t)i / TN_PHILOX_WORDS, words);
        out[i] = (uint16_t)(words[i % TN_PHILOX_WORDS] >> 8 >= args->least ? args->one : 0);
    }
    return out;
}

static void what_dropout_keeps_is_what_the_processors_numbers_say(void **state)
{
    enum { ONE_BF16 = 0x3F80, IN_BLOCK = 4 };
    (void)state;
    begin_gpu();
    cuda_kernel *keeper = find_keeper();
    for (size_t k = 0; k < SIZES; k++) {
        const uint64_t bytes = (uint64_t)sizes[k] * sizeof(uint16_t);
        char *there = guarded(bytes);
        cuda_dropout_args args = {.out = there + GUARD,
                                  .elements = sizes[k],
                                  .seed = 77,
                                  .block = 5,
                                  .least = cuda_dropout_least(0.3),
                                  .one = ONE_BF16};
        const int64_t each = (int64_t)IN_BLOCK * CUDA_THREADS;
        const cuda_launch launch = {.kernel = keeper,
                                    .blocks =
                                        cuda_blocks_on(platform, 0, (sizes[k] + each - 1) / each),
                                    .threads = CUDA_THREADS,
                                    .args = &args};
        uint16_t *expected = kept(&args);
        must(cuda_kernel_launch(platform, 0, &launch, &err));
        expect(there, expected, bytes, "dropout");
        free(expected);
    }
}

static int list_rows(void)
{
    const tn_module *module = NULL;
    if (tn_module_entry(&host, &module, &err))
        return 1;
    for (const tn_kernel_row *const *row = module->kernels; *row; row++)
        printf("%s %s\n", (*row)->name, (*row)->library ? (*row)->library : "-");
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_numbers_end_where_they_should),
        cmocka_unit_test(what_dropout_keeps_is_what_the_processors_numbers_say),
    };
    if (argc == 2 && strcmp(argv[1], "--rows") == 0)
        return list_rows();
    return run_suite("cuda.hardware_kernels", tests);
}
