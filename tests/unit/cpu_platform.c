/* The platform cpu: what it says of its device, made of what the host says of the machine, and its
 * memory. Its topology is in topology.c. */
#include "cpu_host.h"

#include "tenon/alloc.h"
#include "tenon/module/library.h"

static tn_device_properties properties_of(const tn_machine_facts *facts)
{
    static tn_machine_facts copy;
    tn_device_properties out = {.struct_size = sizeof out};
    tn_error err = {0};
    if (facts) {
        copy = *facts;
        cpu_host_machine_is = &copy;
    }
    if (cpu_row->device_properties(cpu_self, 0, &out, &err))
        fail_msg("%s", err.message);
    cpu_host_machine_is = NULL;
    return out;
}

/* One whose every number is known and different. */
static tn_machine_facts made_up(void)
{
    tn_machine_facts facts = {
        .struct_size = sizeof facts,
        .model = "Fake(R) CPU",
        .architecture = "fake64",
        .uuid = "01234567-89ab-8def-8123-456789abcdef",
        .threads = 3,
        .packages = tn_fact_of(2, "p"),
        .cores = tn_fact_of(48, "c"),
        .hardware_threads = tn_fact_of(96, "h"),
        .nodes = tn_fact_of(1, "n"),
        .max_khz = tn_fact_of(3700000, "k"),
        .l2_cache = tn_fact_of(2 << 20, "l2"),
        .l3_cache = tn_fact_of(99 << 20, "l3"),
        .memory_total = tn_fact_of(INT64_C(64) << 30, "a limit"),
        .memory_available = tn_fact_of(INT64_C(50) << 30, "what it leaves"),
        .memory_in_use = tn_fact_of(5 << 20, "statm"),
    };
    return facts;
}

static void row_is_whole(void **state)
{
    static const char *const libraries[] = {"blis", "hwloc", "mkl", "mkldnn", "openblas"};
    const tn_module *module = cpu_host_begin();
    (void)state;
    assert_int_equal(module->struct_size, sizeof *module);
    assert_int_equal(module->abi_minor, TN_MODULE_ABI_MINOR);
    assert_string_equal(cpu_row->name, "cpu");
    assert_string_equal(cpu_row->device_name, "CPU");
    assert_string_equal(cpu_row->visible_variable, "");
    assert_int_equal(cpu_row->kind, TN_PLATFORM_CPU);
    assert_int_equal(cpu_row->flags, TN_PLATFORM_FORK_SAFE);
    assert_contains(cpu_row->async_output_reason, "in order on the caller's thread");
    assert_null(cpu_row->describe);
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        assert_string_equal(module->libraries[i]->name, libraries[i]);
    assert_null(module->libraries[sizeof libraries / sizeof libraries[0]]);
    assert_contains(module->libraries[1]->remedy, "libhwloc15");
}

/* Two copies of Tenon may share the module's code: each probe has its own host. */
static void probe_keeps_its_host(void **state)
{
    tn_host other = cpu_host;
    void *self = NULL;
    int32_t devices = 0;
    tn_error err;
    (void)state;
    assert_int_equal(cpu_row->probe(&other, &self, &devices, &err), TN_OK);
    assert_ptr_not_equal(self, cpu_self);
    assert_ptr_equal(self, &other);
    assert_ptr_equal(cpu_self, &cpu_host);
    assert_int_equal(cpu_host_binds, 0);
}

static void properties_are_those_of_the_machine(void **state)
{
    tn_machine_facts facts = made_up();
    tn_device_properties found = properties_of(&facts);
    uint64_t known = TN_DEVICE_KNOWS(memory_bytes) | TN_DEVICE_KNOWS(numa_node) |
                     TN_DEVICE_KNOWS(physical_index) | TN_DEVICE_KNOWS(multi_processor_count) |
                     TN_DEVICE_KNOWS(l2_cache_bytes) | TN_DEVICE_KNOWS(clock_khz) |
                     TN_DEVICE_KNOWS(is_integrated) | TN_DEVICE_KNOWS(pinned_memory) |
                     TN_DEVICE_KNOWS(triton_capable);
    (void)state;
    assert_int_equal(found.known, known);
    assert_string_equal(found.name, "Fake(R) CPU");
    assert_string_equal(found.architecture, "fake64");
    assert_string_equal(found.uuid, "01234567-89ab-8def-8123-456789abcdef");
    assert_string_equal(found.bus, "");
    assert_int_equal(found.memory_bytes, INT64_C(64) << 30);
    assert_int_equal(found.multi_processor_count, 48);
    assert_int_equal(found.l2_cache_bytes, 2 << 20);
    assert_int_equal(found.clock_khz, 3700000);
    assert_int_equal(found.numa_node, 0);
    assert_int_equal(found.physical_index, 0);
    assert_int_equal(found.is_integrated, 1);
    assert_int_equal(found.pinned_memory, 0);
    assert_int_equal(found.triton_capable, 1);
}

static void unknown_facts_stay_unknown(void **state)
{
    static const char why[] = "it does not say";
    tn_machine_facts facts = made_up();
    tn_device_properties found;
    (void)state;
    facts.nodes = tn_fact_of(2, "two");
    found = properties_of(&facts);
    assert_int_equal(found.known & TN_DEVICE_KNOWS(numa_node), 0);
    facts.model[0] = '\0';
    facts.cores = facts.nodes = facts.max_khz = facts.l2_cache = facts.memory_total =
        tn_fact_unknown(why);
    found = properties_of(&facts);
    assert_string_equal(found.name, "fake64");
    assert_int_equal(found.known, TN_DEVICE_KNOWS(physical_index) | TN_DEVICE_KNOWS(is_integrated) |
                                      TN_DEVICE_KNOWS(pinned_memory) |
                                      TN_DEVICE_KNOWS(triton_capable));
    assert_int_equal(found.memory_bytes, 0);
    assert_int_equal(found.clock_khz, 0);
}

static void computes_with_what_plain_c_can(void **state)
{
    static const tn_dtype expected[] = {TN_F64, TN_BF16, TN_F16, TN_I8,  TN_I16, TN_I32,  TN_I64,
                                        TN_U8,  TN_U16,  TN_U32, TN_U64, TN_C64, TN_C128, TN_BOOL};
    tn_device_properties found = properties_of(NULL);
    size_t count = 0;
    (void)state;
    assert_int_equal(found.dtypes[0], TN_F32);
    while (found.dtypes[count])
        count++;
    assert_int_equal(count, 1 + sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        size_t at = 0;
        while (at < count && found.dtypes[at] != expected[i])
            at++;
        assert_true(at < count);
    }
}

static void real_properties_make_sense(void **state)
{
    tn_machine_facts facts = {.struct_size = sizeof facts};
    tn_device_properties found = properties_of(NULL);
    tn_error err;
    (void)state;
    assert_int_equal(tni_machine_facts_read(&facts, &err), TN_OK);
    assert_string_equal(found.uuid, facts.uuid);
    assert_string_equal(found.name, facts.model[0] ? facts.model : facts.architecture);
    assert_int_equal(found.multi_processor_count, facts.cores.value);
    assert_int_equal((found.known & TN_DEVICE_KNOWS(memory_bytes)) != 0, facts.memory_total.known);
    print_message("%s, %s, %lld cores, %lld bytes\n", found.name, found.architecture,
                  (long long)found.multi_processor_count, (long long)found.memory_bytes);
}

static void memory_is_as_the_machine_says(void **state)
{
    tn_machine_facts facts = made_up();
    tn_device_memory memory = {.struct_size = sizeof memory};
    tn_error err;
    (void)state;
    cpu_host_machine_is = &facts;
    assert_int_equal(cpu_row->device_memory(cpu_self, 0, &memory, &err), TN_OK);
    assert_int_equal(memory.struct_size, sizeof memory);
    assert_int_equal(memory.total.value, INT64_C(64) << 30);
    assert_string_equal(memory.total.origin, "a limit");
    assert_int_equal(memory.available.value, INT64_C(50) << 30);
    assert_string_equal(memory.available.origin, "what it leaves");
    assert_int_equal(memory.in_use.value, 5 << 20);
    facts.memory_in_use = tn_fact_unknown("nobody knows");
    assert_int_equal(cpu_row->device_memory(cpu_self, 0, &memory, &err), TN_OK);
    assert_int_equal(memory.in_use.known, 0);
    assert_string_equal(memory.in_use.origin, "nobody knows");
    cpu_host_machine_is = NULL;
}

static void a_machine_that_cannot_be_read_is_said(void **state)
{
    tn_device_properties properties = {.struct_size = sizeof properties};
    tn_device_memory memory = {.struct_size = sizeof memory, .total = tn_fact_of(7, "as it was")};
    tn_error err = {0};
    (void)state;
    cpu_host_machine_fails = TN_OUT_OF_MEMORY;
    assert_int_equal(cpu_row->device_properties(cpu_self, 0, &properties, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "made to fail");
    assert_int_equal(properties.known, 0);
    assert_int_equal(cpu_row->device_memory(cpu_self, 0, &memory, &err), TN_OUT_OF_MEMORY);
    assert_int_equal(memory.total.value, 7);
    cpu_host_machine_fails = TN_OK;
}

static void memory_is_given_and_taken(void **state)
{
    static const uint64_t sizes[] = {0, 1, 63, 64, 65, 4096, 1000003};
    int64_t blocks = tn_allocator_blocks();
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *memory = NULL;
        assert_int_equal(cpu_row->memory_alloc(cpu_self, 0, sizes[i], &memory, &err), TN_OK);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        memset(memory, 0xA5, (size_t)sizes[i]);
        assert_int_equal(tn_allocator_blocks(), blocks + 1);
        cpu_row->memory_free(cpu_self, 0, memory);
        assert_int_equal(tn_allocator_blocks(), blocks);
    }
    cpu_row->memory_free(cpu_self, 0, NULL);
}

static void want_of_memory_is_said(void **state)
{
    tn_machine_facts facts = made_up();
    void *memory = &facts;
    tn_error err = {0};
    (void)state;
    cpu_host_alloc_fails = 1;
    cpu_host_machine_is = &facts;
    assert_int_equal(cpu_row->memory_alloc(cpu_self, 0, 4096, &memory, &err), TN_OUT_OF_MEMORY);
    assert_string_equal(err.message, "cpu:0 has no memory for 4096 bytes; "
                                     "53687091200 are available");
    assert_ptr_equal(memory, &facts);
    cpu_host_machine_fails = TN_OUT_OF_MEMORY;
    assert_int_equal(cpu_row->memory_alloc(cpu_self, 0, 4096, &memory, &err), TN_OUT_OF_MEMORY);
    assert_string_equal(err.message, "cpu:0 has no memory for 4096 bytes");
    assert_int_equal(cpu_row->memory_alloc(cpu_self, 0, 4096, &memory, NULL), TN_OUT_OF_MEMORY);
    cpu_host_machine_fails = TN_OK;
    cpu_host_machine_is = NULL;
    cpu_host_alloc_fails = 0;
    assert_int_equal(cpu_row->memory_alloc(cpu_self, 1, 8, &memory, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "no device cpu:1; there is cpu:0");
}

static tn_status copy(void *to, const void *from, uint64_t bytes, int32_t to_device,
                      int32_t from_device, void *stream, tn_error *err)
{
    tn_copy_job job = {sizeof job,  to,     from, bytes, to_device,
                       from_device, stream, 1,    bytes, bytes};
    return cpu_row->copy(cpu_self, &job, err);
}

static void copies_are_exact(void **state)
{
    unsigned char from[300], to[302], same[300];
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = same[i] = (unsigned char)(i * 7 + 1);
    for (int32_t to_device = -1; to_device <= 0; to_device++) {
        for (int32_t from_device = -1; from_device <= 0; from_device++) {
            memset(to, 0, sizeof to);
            assert_int_equal(copy(to + 1, from, 300, to_device, from_device, NULL, &err), TN_OK);
            assert_memory_equal(to + 1, from, 300);
            assert_true(to[0] == 0 && to[301] == 0);
        }
    }
    assert_int_equal(copy(same + 10, same, 290, 0, 0, NULL, &err), TN_OK);
    assert_memory_equal(same + 10, from, 290);
    assert_int_equal(copy(same, same + 10, 290, 0, 0, NULL, &err), TN_OK);
    assert_memory_equal(same, from, 290);
    assert_int_equal(copy(NULL, NULL, 0, 0, 0, NULL, &err), TN_OK);
}

/* Rows of 3 bytes, 5 apart, become rows 4 apart; what lies between them stays. */
static void copies_go_by_rows(void **state)
{
    const char from[] = "abc--def--ghi";
    char to[] = "............";
    tn_copy_job job = {.struct_size = sizeof job,
                       .to = to,
                       .from = from,
                       .bytes = 3,
                       .to_device = 0,
                       .from_device = -1,
                       .rows = 3,
                       .to_pitch = 4,
                       .from_pitch = 5};
    tn_error err = {0};
    (void)state;
    assert_int_equal(cpu_row->copy(cpu_self, &job, &err), TN_OK);
    assert_string_equal(to, "abc.def.ghi.");
    job.from = "xyz";
    job.rows = 0;
    assert_int_equal(cpu_row->copy(cpu_self, &job, &err), TN_OK);
    job.rows = 2;
    job.to_pitch = 2;
    assert_int_equal(cpu_row->copy(cpu_self, &job, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "3 bytes a row do not fit its to_pitch");
    job.to_pitch = 3;
    job.from_pitch = 0;
    assert_int_equal(cpu_row->copy(cpu_self, &job, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "3 bytes a row do not fit its from_pitch");
    job.rows = 3;
    job.from_pitch = SIZE_MAX / 2;
    assert_int_equal(cpu_row->copy(cpu_self, &job, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(to, "abc.def.ghi.");
}

static void copies_that_make_no_sense_are_refused(void **state)
{
    char bytes[8] = "as were", other[8] = "others";
    tn_error err = {0};
    (void)state;
    assert_int_equal(copy(NULL, other, 8, 0, 0, NULL, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "8 bytes to NULL");
    assert_int_equal(copy(bytes, NULL, 8, 0, 0, NULL, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "8 bytes from NULL");
    assert_int_equal(copy(bytes, other, 8, 1, 0, NULL, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "no device cpu:1");
    assert_int_equal(copy(bytes, other, 8, -1, 3, NULL, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "no device cpu:3");
    assert_int_equal(copy(bytes, other, 8, 0, 0, other, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "no streams of its own");
    assert_string_equal(bytes, "as were");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_is_whole),
        cmocka_unit_test(probe_keeps_its_host),
        cmocka_unit_test(properties_are_those_of_the_machine),
        cmocka_unit_test(unknown_facts_stay_unknown),
        cmocka_unit_test(computes_with_what_plain_c_can),
        cmocka_unit_test(real_properties_make_sense),
        cmocka_unit_test(memory_is_as_the_machine_says),
        cmocka_unit_test(a_machine_that_cannot_be_read_is_said),
        cmocka_unit_test(memory_is_given_and_taken),
        cmocka_unit_test(want_of_memory_is_said),
        cmocka_unit_test(copies_are_exact),
        cmocka_unit_test(copies_go_by_rows),
        cmocka_unit_test(copies_that_make_no_sense_are_refused),
    };
    return run_suite("unit.cpu_platform", tests);
}
