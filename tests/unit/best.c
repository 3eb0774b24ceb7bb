/* Which platform "best" chooses when a module that does not ship with Tenon is there: by the
 * order of platforms and by what their kernels can compute. */
#include "test.h"

#include "tenon/module/kernel.h"
#include "tenon/module/platform.h"
#include "tenon/tenon.h"

#include <stdbool.h>
#include <stdlib.h>

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    (void)host, (void)err;
    *out_self = NULL;
    *out_devices = 1;
    return TN_OK;
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device;
    *out = bytes > SIZE_MAX - 64 ? NULL : aligned_alloc(64, ((size_t)bytes + 63) / 64 * 64);
    return *out ? TN_OK : tn_fail(err, TN_OUT_OF_MEMORY, 0, "toy", "no memory");
}

static void memory_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device;
    free(memory);
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)err;
    for (uint64_t row = 0; row < job->rows; row++)
        memcpy((char *)job->to + row * job->to_pitch,
               (const char *)job->from + row * job->from_pitch, (size_t)job->bytes);
    return TN_OK;
}

static tn_status run(const tn_run *r, tn_error *err)
{
    (void)r, (void)err;
    return TN_OK;
}

static tn_platform_row platform = {.struct_size = sizeof platform,
                                   .name = "toy",
                                   .kind = TN_PLATFORM_OOT,
                                   .probe = probe,
                                   .memory_alloc = memory_alloc,
                                   .memory_free = memory_free,
                                   .copy = copy};
static const tn_platform_row *const platforms[] = {&platform, NULL};

/* The module offers a kernel for each of these operators; and one for the CPU, of an operator that
 * does not exist: no platform needs it. */
static bool offered[TN_OP_KIND_MAX];
static int32_t only_f64; /* its kernel computes with f64 alone; or TN_OP_NONE */
static char names[TN_OP_KIND_MAX][32];
static tn_kernel_row rows[TN_OP_KIND_MAX];
static const tn_kernel_row *kernels[TN_OP_KIND_MAX + 1];

static tn_status toy_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    static const tn_dtype f32[] = {TN_F32, 0}, f64[] = {TN_F64, 0};
    static tn_kernel_row unknown;
    static tn_module module;
    size_t count = 0;
    (void)host, (void)err;
    for (int32_t op = TN_OP_NONE + 1; op < TN_OP_KIND_MAX; op++) {
        if (!offered[op])
            continue;
        snprintf(names[op], sizeof names[op], "toy.op%d", (int)op);
        rows[op] = (tn_kernel_row){.struct_size = sizeof rows[op],
                                   .name = names[op],
                                   .platform = "toy",
                                   .op = op,
                                   .version = 1,
                                   .dtypes = op == only_f64 ? f64 : f32,
                                   .flops_per_us = 1e9,
                                   .bytes_per_us = 1e9,
                                   .run = run};
        kernels[count++] = &rows[op];
    }
    unknown = (tn_kernel_row){.struct_size = sizeof unknown,
                              .name = "cpu.unknown",
                              .platform = "cpu",
                              .op = TN_OP_KIND_MAX - 1,
                              .version = 1,
                              .dtypes = f32,
                              .flops_per_us = 1e9,
                              .bytes_per_us = 1e9,
                              .run = run};
    kernels[count++] = &unknown;
    kernels[count] = NULL;
    module = (tn_module){.struct_size = sizeof module,
                         TN_MODULE_ABI,
                         .name = "toy",
                         .version = "1",
                         .platforms = platforms,
                         .kernels = kernels};
    *out = &module;
    return TN_OK;
}

/* Whether a number below TN_OP_KIND_MAX is an operator's. */
static bool has_operator(int32_t op)
{
    return tn_op_name(op)[0] != '\0';
}

static tn_registration *register_offered(void)
{
    tn_registration *registration = NULL;
    tn_error err;
    assert_int_equal(tn_module_register(toy_entry, 0, &registration, &err), TN_OK);
    assert_int_equal(tn_platform_select(NULL, &err), TN_OK); /* resolve anew */
    return registration;
}

static tn_registration *register_only(int32_t op)
{
    memset(offered, 0, sizeof offered);
    offered[op] = true;
    return register_offered();
}

/* Registers kernels of all operators but one; TN_OP_NONE: of all. */
static tn_registration *register_without(int32_t op)
{
    for (int32_t i = 0; i < TN_OP_KIND_MAX; i++)
        offered[i] = has_operator(i) && i != op;
    return register_offered();
}

static const char *current_name(void)
{
    const tn_platform *current = NULL;
    tn_error err;
    assert_int_equal(tn_platform_current(&current, &err), TN_OK);
    return tn_platform_name(current);
}

static const tn_platform_report *find_report(const tn_platform_list *list, const char *name,
                                             size_t *out_place)
{
    size_t i = 0;
    const tn_platform_report *report = NULL;
    while ((report = tn_platform_list_get(list, i)) && strcmp(report->name, name) != 0)
        i++;
    assert_non_null(report);
    *out_place = i;
    return report;
}

static void kernels_of_f64_do_not_count(void **state)
{
    tn_platform_list *list = NULL;
    tn_error err;
    (void)state;
    unsetenv("TENON_PLATFORM");
    only_f64 = TN_OP_MATMUL;
    tn_registration *toy = register_without(TN_OP_NONE);
    only_f64 = TN_OP_NONE;
    assert_string_not_equal(current_name(), "toy");
    assert_int_equal(tn_platform_list_create(&list, &err), TN_OK);
    assert_contains(tn_platform_list_choice(list),
                    "not chosen as best: toy: it has no f32 kernel for matmul");
    tn_platform_list_release(list);
    tn_registration_release(toy);
}

static void one_kernel_does_not_make_it_best(void **state)
{
    size_t toy_place, cpu_place;
    tn_platform_list *list = NULL;
    tn_device *device = NULL;
    tn_error err;
    (void)state;
    unsetenv("TENON_PLATFORM");
    tn_registration *toy = register_only(TN_OP_MATMUL);
    assert_string_not_equal(current_name(), "toy");
    assert_int_equal(tn_device_get("best", &device, &err), TN_OK);
    assert_string_not_equal(tn_platform_name(tn_device_platform(device)), "toy");
    assert_int_equal(tn_platform_list_create(&list, &err), TN_OK);
    const tn_platform_report *report = find_report(list, "toy", &toy_place);
    (void)find_report(list, "cpu", &cpu_place);
    assert_true(toy_place > cpu_place);
    assert_int_equal(report->verdict, TN_PLATFORM_READY);
    assert_contains(report->reason, "module toy found 1 device; not chosen as best: it has no f32 "
                                    "kernel for permute, cast, ");
    assert_contains(report->reason, "softmax, norm, ");
    assert_contains(report->reason, "; select it by TENON_PLATFORM=toy or tn_platform_select");
    assert_contains(tn_platform_list_choice(list),
                    "; not chosen as best: toy: it has no f32 kernel for permute, ");
    assert_null(strstr(tn_platform_list_choice(list), "also ready: toy"));
    tn_platform_list_release(list);
    tn_registration_release(toy);
}

/* A name is honoured whatever the platform can do, and then there is nothing to explain. */
static void it_is_there_by_name(void **state)
{
    size_t place;
    tn_platform_list *list = NULL;
    tn_device *device = NULL;
    tn_error err;
    (void)state;
    unsetenv("TENON_PLATFORM");
    tn_registration *toy = register_only(TN_OP_MATMUL);
    assert_int_equal(tn_device_get("toy:0", &device, &err), TN_OK);
    assert_int_equal(tn_platform_select("toy", &err), TN_OK);
    assert_string_equal(current_name(), "toy");
    assert_int_equal(tn_device_get("best", &device, &err), TN_OK);
    assert_string_equal(tn_device_id(device), "toy:0");
    assert_int_equal(tn_platform_list_create(&list, &err), TN_OK);
    assert_string_equal(find_report(list, "toy", &place)->reason, "module toy found 1 device");
    assert_contains(tn_platform_list_choice(list), "toy: selected by the program; also ready: ");
    tn_platform_list_release(list);
    setenv("TENON_PLATFORM", "toy", 1);
    assert_int_equal(tn_platform_select(NULL, &err), TN_OK);
    assert_string_equal(current_name(), "toy");
    unsetenv("TENON_PLATFORM");
    tn_registration_release(toy);
}

static void every_operator_makes_it_take_part(void **state)
{
    static const char *const before[] = {"cuda", "rocm", "tpu", "mps", "xpu", "npu", "opencl"};
    size_t toy_place, cpu_place, place;
    tn_platform_list *list = NULL;
    tn_error err;
    (void)state;
    unsetenv("TENON_PLATFORM");
    tn_registration *toy = register_without(TN_OP_NONE);
    const char *chosen = current_name();
    assert_int_equal(tn_platform_list_create(&list, &err), TN_OK);
    const tn_platform_report *report = find_report(list, "toy", &toy_place);
    (void)find_report(list, "cpu", &cpu_place);
    assert_true(toy_place < cpu_place);
    assert_null(strstr(report->reason, "not chosen"));
    bool known = false;
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        known = known || find_report(list, before[i], &place)->verdict == TN_PLATFORM_READY;
        assert_true(place < toy_place);
    }
    if (known)
        assert_string_not_equal(chosen, "toy"); /* it never takes the place of a known platform */
    else
        assert_string_equal(chosen, "toy");
    tn_platform_list_release(list);
    tn_registration_release(toy);
}

/* One operator short of all, whichever it is. */
static void every_operator_counts(void **state)
{
    int count = 0;
    (void)state;
    unsetenv("TENON_PLATFORM");
    for (int32_t op = TN_OP_NONE + 1; op < TN_OP_KIND_MAX; op++) {
        if (!has_operator(op))
            continue;
        tn_registration *toy = register_without(op);
        assert_string_not_equal(current_name(), "toy");
        tn_registration_release(toy);
        count++;
    }
    assert_true(count > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_kernel_does_not_make_it_best),
        cmocka_unit_test(kernels_of_f64_do_not_count),
        cmocka_unit_test(it_is_there_by_name),
        cmocka_unit_test(every_operator_makes_it_take_part),
        cmocka_unit_test(every_operator_counts),
    };
    return run_suite("unit.best", tests);
}
