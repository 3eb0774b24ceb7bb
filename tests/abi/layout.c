/* What of the headers is an ABI, written down a second time: a change to either must be made in
 * both, on purpose, and gets its line in docs/abi-changes.md. */
#include "test.h"

#include "tenon/module/communicator.h"
#include "tenon/module/dtype.h"
#include "tenon/module/kernel.h"
#include "tenon/module/language.h"
#include "tenon/module/library.h"
#include "tenon/module/module.h"
#include "tenon/module/platform.h"
#include "tenon/tenon.h"

#include <stdbool.h>

/* A struct, or a field of the struct before it. */
struct row {
    const char *type;
    const char *field; /* NULL for the struct itself */
    size_t offset, size;
    size_t golden_offset, golden_size;
};

/* For machines whose longs and pointers have 64 bits. */
// clang-format off
#define STRUCT(type, size) {#type, NULL, 0, sizeof(type), 0, (size)}
#define FIELD(type, field, offset, size) \
    {#type, #field, offsetof(type, field), sizeof(((type *)0)->field), (offset), (size)}

static const struct row rows[] = {
    STRUCT(tn_error, 512),
    FIELD(tn_error, status, 0, 4),
    FIELD(tn_error, native_code, 4, 4),
    FIELD(tn_error, where, 8, 88),
    FIELD(tn_error, message, 96, 416),
    STRUCT(tn_symbol, 16),
    FIELD(tn_symbol, name, 0, 8),
    FIELD(tn_symbol, offset, 8, 8),
    STRUCT(tn_allocator, 32),
    FIELD(tn_allocator, struct_size, 0, 8),
    FIELD(tn_allocator, self, 8, 8),
    FIELD(tn_allocator, alloc, 16, 8),
    FIELD(tn_allocator, release, 24, 8),
    STRUCT(tn_log_sink, 32),
    FIELD(tn_log_sink, struct_size, 0, 8),
    FIELD(tn_log_sink, write, 8, 8),
    FIELD(tn_log_sink, user, 16, 8),
    FIELD(tn_log_sink, level, 24, 4),
    FIELD(tn_log_sink, reserved, 28, 4),
    STRUCT(tn_module_report, 104),
    FIELD(tn_module_report, struct_size, 0, 8),
    FIELD(tn_module_report, name, 8, 8),
    FIELD(tn_module_report, version, 16, 8),
    FIELD(tn_module_report, path, 24, 8),
    FIELD(tn_module_report, origin, 32, 8),
    FIELD(tn_module_report, message, 40, 8),
    FIELD(tn_module_report, remedy, 48, 8),
    FIELD(tn_module_report, stage, 56, 4),
    FIELD(tn_module_report, status, 60, 4),
    FIELD(tn_module_report, abi_major, 64, 4),
    FIELD(tn_module_report, abi_minor, 68, 4),
    FIELD(tn_module_report, platforms, 72, 4),
    FIELD(tn_module_report, libraries, 76, 4),
    FIELD(tn_module_report, kernels, 80, 4),
    FIELD(tn_module_report, languages, 84, 4),
    FIELD(tn_module_report, communicators, 88, 4),
    FIELD(tn_module_report, devices, 92, 4),
    FIELD(tn_module_report, ms, 96, 8),
    STRUCT(tn_module_place, 40),
    FIELD(tn_module_place, struct_size, 0, 8),
    FIELD(tn_module_place, path, 8, 8),
    FIELD(tn_module_place, origin, 16, 8),
    FIELD(tn_module_place, message, 24, 8),
    FIELD(tn_module_place, status, 32, 4),
    FIELD(tn_module_place, modules, 36, 4),
    STRUCT(tn_parallel_engine, 32),
    FIELD(tn_parallel_engine, struct_size, 0, 8),
    FIELD(tn_parallel_engine, self, 8, 8),
    FIELD(tn_parallel_engine, parallel_for, 16, 8),
    FIELD(tn_parallel_engine, threads, 24, 4),
    FIELD(tn_parallel_engine, reserved, 28, 4),
    STRUCT(tn_generator_state, 32),
    FIELD(tn_generator_state, struct_size, 0, 8),
    FIELD(tn_generator_state, seed, 8, 8),
    FIELD(tn_generator_state, subsequence, 16, 8),
    FIELD(tn_generator_state, offset, 24, 8),
    STRUCT(tn_build, 56),
    FIELD(tn_build, struct_size, 0, 8),
    FIELD(tn_build, major, 8, 4),
    FIELD(tn_build, minor, 12, 4),
    FIELD(tn_build, patch, 16, 4),
    FIELD(tn_build, module_abi_major, 20, 4),
    FIELD(tn_build, module_abi_minor, 24, 4),
    FIELD(tn_build, reserved, 28, 4),
    FIELD(tn_build, compiler, 32, 8),
    FIELD(tn_build, target, 40, 8),
    FIELD(tn_build, sanitizer, 48, 8),
    STRUCT(tn_host, 64),
    FIELD(tn_host, struct_size, 0, 8),
    FIELD(tn_host, abi_major, 8, 4),
    FIELD(tn_host, abi_minor, 12, 4),
    FIELD(tn_host, self, 16, 8),
    FIELD(tn_host, alloc, 24, 8),
    FIELD(tn_host, release, 32, 8),
    FIELD(tn_host, log, 40, 8),
    FIELD(tn_host, library_bind, 48, 8),
    FIELD(tn_host, parallel_for, 56, 8),
    STRUCT(tn_module, 80),
    FIELD(tn_module, struct_size, 0, 8),
    FIELD(tn_module, abi_major, 8, 4),
    FIELD(tn_module, abi_minor, 12, 4),
    FIELD(tn_module, flags, 16, 8),
    FIELD(tn_module, name, 24, 8),
    FIELD(tn_module, version, 32, 8),
    FIELD(tn_module, platforms, 40, 8),
    FIELD(tn_module, libraries, 48, 8),
    FIELD(tn_module, kernels, 56, 8),
    FIELD(tn_module, languages, 64, 8),
    FIELD(tn_module, communicators, 72, 8),
    STRUCT(tn_copy_job, 48),
    FIELD(tn_copy_job, struct_size, 0, 8),
    FIELD(tn_copy_job, to, 8, 8),
    FIELD(tn_copy_job, from, 16, 8),
    FIELD(tn_copy_job, bytes, 24, 8),
    FIELD(tn_copy_job, to_device, 32, 4),
    FIELD(tn_copy_job, from_device, 36, 4),
    FIELD(tn_copy_job, stream, 40, 8),
    STRUCT(tn_platform_row, 64),
    FIELD(tn_platform_row, struct_size, 0, 8),
    FIELD(tn_platform_row, name, 8, 8),
    FIELD(tn_platform_row, kind, 16, 4),
    FIELD(tn_platform_row, reserved, 20, 4),
    FIELD(tn_platform_row, remedy, 24, 8),
    FIELD(tn_platform_row, probe, 32, 8),
    FIELD(tn_platform_row, memory_alloc, 40, 8),
    FIELD(tn_platform_row, memory_free, 48, 8),
    FIELD(tn_platform_row, copy, 56, 8),
    STRUCT(tn_library_row, 40),
    FIELD(tn_library_row, struct_size, 0, 8),
    FIELD(tn_library_row, name, 8, 8),
    FIELD(tn_library_row, platform, 16, 8),
    FIELD(tn_library_row, files, 24, 8),
    FIELD(tn_library_row, remedy, 32, 8),
    STRUCT(tn_kernel_row, 104),
    FIELD(tn_kernel_row, struct_size, 0, 8),
    FIELD(tn_kernel_row, name, 8, 8),
    FIELD(tn_kernel_row, platform, 16, 8),
    FIELD(tn_kernel_row, op, 24, 4),
    FIELD(tn_kernel_row, version, 28, 4),
    FIELD(tn_kernel_row, dtypes, 32, 8),
    FIELD(tn_kernel_row, numerics, 40, 8),
    FIELD(tn_kernel_row, honours, 48, 8),
    FIELD(tn_kernel_row, free_dims, 56, 8),
    FIELD(tn_kernel_row, flops_per_us, 64, 8),
    FIELD(tn_kernel_row, bytes_per_us, 72, 8),
    FIELD(tn_kernel_row, overhead_us, 80, 8),
    FIELD(tn_kernel_row, admit, 88, 8),
    FIELD(tn_kernel_row, run, 96, 8),
    STRUCT(tn_language_row, 40),
    FIELD(tn_language_row, struct_size, 0, 8),
    FIELD(tn_language_row, name, 8, 8),
    FIELD(tn_language_row, platform, 16, 8),
    FIELD(tn_language_row, remedy, 24, 8),
    FIELD(tn_language_row, version, 32, 8),
    STRUCT(tn_communicator_row, 40),
    FIELD(tn_communicator_row, struct_size, 0, 8),
    FIELD(tn_communicator_row, name, 8, 8),
    FIELD(tn_communicator_row, platform, 16, 8),
    FIELD(tn_communicator_row, remedy, 24, 8),
    FIELD(tn_communicator_row, version, 32, 8),
};
// clang-format on

enum { ROWS = sizeof rows / sizeof rows[0] };

// clang-format off
#define NUMBER(name, golden) {#name, (uint64_t)(name), UINT64_C(golden)}

static const struct {
    const char *name;
    uint64_t value, golden;
} numbers[] = {
    NUMBER(TN_OK, 0), NUMBER(TN_INVALID_ARGUMENT, 1), NUMBER(TN_UNSUPPORTED, 2),
    NUMBER(TN_UNAVAILABLE, 3), NUMBER(TN_INCOMPATIBLE, 4), NUMBER(TN_NOT_FOUND, 5),
    NUMBER(TN_ALREADY_EXISTS, 6), NUMBER(TN_REFUSED, 7), NUMBER(TN_NOT_PERMITTED, 8),
    NUMBER(TN_OUT_OF_MEMORY, 9), NUMBER(TN_TIMEOUT, 10), NUMBER(TN_BUSY, 11),
    NUMBER(TN_NOT_READY, 12), NUMBER(TN_DEVICE_LOST, 13), NUMBER(TN_IO, 14),
    NUMBER(TN_CORRUPT, 15), NUMBER(TN_CRASHED, 16), NUMBER(TN_CANCELLED, 17),
    NUMBER(TN_INTERNAL, 18), NUMBER(TN_STATUS_COUNT, 19),
    NUMBER(TN_LOG_OFF, 0), NUMBER(TN_LOG_ERROR, 1), NUMBER(TN_LOG_WARNING, 2),
    NUMBER(TN_LOG_INFO, 3), NUMBER(TN_LOG_DEBUG, 4),
    NUMBER(TN_STAGE_FOUND, 0), NUMBER(TN_STAGE_OPENED, 1), NUMBER(TN_STAGE_NEGOTIATED, 2),
    NUMBER(TN_STAGE_PROBED, 3), NUMBER(TN_STAGE_READY, 4),
    NUMBER(TN_MODULE_TRUSTED, 1),
    NUMBER(TN_MODULE_SANITIZER_ADDRESS, 1), NUMBER(TN_MODULE_SANITIZER_THREAD, 2),
    NUMBER(TN_MODULE_SANITIZER_MEMORY, 4), NUMBER(TN_MODULE_SANITIZERS, 7),
    NUMBER(TN_PLATFORM_UNSPECIFIED, 0), NUMBER(TN_PLATFORM_CPU, 1), NUMBER(TN_PLATFORM_CUDA, 2),
    NUMBER(TN_PLATFORM_ROCM, 3), NUMBER(TN_PLATFORM_TPU, 4), NUMBER(TN_PLATFORM_MPS, 5),
    NUMBER(TN_PLATFORM_XPU, 6), NUMBER(TN_PLATFORM_NPU, 7), NUMBER(TN_PLATFORM_OPENCL, 8),
    NUMBER(TN_PLATFORM_OOT, 9), NUMBER(TN_PLATFORM_KIND_COUNT, 10),
    NUMBER(TN_OP_NONE, 0), NUMBER(TN_OP_MATMUL, 1), NUMBER(TN_OP_COUNT, 2),
    NUMBER(TN_NUM_RUN_TO_RUN, 1), NUMBER(TN_NUM_BATCH_INVARIANT, 2),
    NUMBER(TN_NUM_CROSS_DEVICE, 4), NUMBER(TN_NUM_ROUNDS_F32_TF32, 8),
    NUMBER(TN_NUM_ROUNDS_F32_BF16, 16), NUMBER(TN_NUM_REDUCED_REDUCTION, 32),
    NUMBER(TN_NUM_KNOWN, 63),
    NUMBER(TN_DTYPE_NONE, 0),
    NUMBER(TN_I8, 0x10800), NUMBER(TN_I16, 0x11000), NUMBER(TN_I32, 0x12000),
    NUMBER(TN_I64, 0x14000), NUMBER(TN_U8, 0x10801), NUMBER(TN_U16, 0x11001),
    NUMBER(TN_U32, 0x12001), NUMBER(TN_U64, 0x14001), NUMBER(TN_F16, 0x11002),
    NUMBER(TN_F32, 0x12002), NUMBER(TN_F64, 0x14002), NUMBER(TN_BF16, 0x11004),
    NUMBER(TN_C64, 0x14005), NUMBER(TN_C128, 0x18005), NUMBER(TN_BOOL, 0x10806),
    NUMBER(sizeof(tn_status), 4), NUMBER(sizeof(tn_module_stage), 4), NUMBER(sizeof(tn_dtype), 4),
};
// clang-format on

static const char *field_of(const struct row *row)
{
    return row->field ? row->field : "itself";
}

static void every_field_is_where_it_was(void **state)
{
    int wrong = 0;
    (void)state;
    if (sizeof(void *) != 8 || sizeof(long) != 8)
        skip_because("the golden offsets are those of 64-bit longs and pointers");
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        if (r->offset == r->golden_offset && r->size == r->golden_size)
            continue;
        print_message("%s %s: %zu bytes at %zu; they were %zu at %zu\n", r->type, field_of(r),
                      r->size, r->offset, r->golden_size, r->golden_offset);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* Nothing lies between fields or behind the last, so a field that is missing in the table, and
 * padding, both show as a gap. */
static void the_fields_of_the_table_fill_each_struct(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS;) {
        const struct row *whole = &rows[i++];
        size_t end = 0;
        assert_null(whole->field);
        for (; i < ROWS && rows[i].field; i++) {
            assert_string_equal(rows[i].type, whole->type);
            if (rows[i].offset != end)
                fail_msg("%s has %zu bytes at %zu, before %s, that the table does not name",
                         whole->type, rows[i].offset - end, end, rows[i].field);
            end += rows[i].size;
        }
        if (end != whole->size)
            fail_msg("%s has %zu bytes; the table's fields end at %zu", whole->type, whole->size,
                     end);
    }
}

static void structs_that_grow_begin_with_their_size(void **state)
{
    static const char *const frozen[] = {"tn_error", "tn_symbol"};
    (void)state;
    for (size_t i = 0; i + 1 < ROWS; i++) {
        if (rows[i].field)
            continue;
        bool grows = strcmp(rows[i].type, frozen[0]) != 0 && strcmp(rows[i].type, frozen[1]) != 0;
        if (grows)
            assert_string_equal(rows[i + 1].field, "struct_size");
    }
    assert_int_equal(sizeof(tn_error), 512);
    assert_int_equal(sizeof(tn_symbol), 2 * sizeof(void *));
}

static void every_number_means_what_it_did(void **state)
{
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].value == numbers[i].golden)
            continue;
        print_message("%s is %llu; it was %llu\n", numbers[i].name,
                      (unsigned long long)numbers[i].value, (unsigned long long)numbers[i].golden);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_where_it_was),
        cmocka_unit_test(the_fields_of_the_table_fill_each_struct),
        cmocka_unit_test(structs_that_grow_begin_with_their_size),
        cmocka_unit_test(every_number_means_what_it_did),
    };
    return run_suite("abi.layout", tests);
}
