/* Kernels that were compiled ahead: which one serves which device, and what there is without a compiler. The
 * file of them is made up here. */
#include "test.h"

#include "../../backends/cuda/compile/ready.h"
#include "../../backends/cuda/compile/texts.h"

static const cuda_text each_text = {.name = "elementwise.cu"},
                       permute_text = {.name = "permute.cu"};
static const cuda_unit each = {{&each_text}}, permute = {{&permute_text}};

/* Entries as they lie in the file; options and code are shorter than 16 bytes each. */
typedef struct entry {
    cuda_ready head;
    char options[16];
    char code[16];
} entry;

extern const _Alignas(16) entry cuda_ready_data[];
const _Alignas(16) entry cuda_ready_data[] = {
    {{"sm_80", "dense", "elementwise.cu", 7, 5, 1300, 0}, "-DA=1\n", "eight"},
    {{"sm_90a", "dense", "elementwise.cu", 7, 4, 1300, 0}, "-DA=1\n", "nine"},
    {{"sm_90a", "dense", "elementwise.cu", 7, 16, 1300, 0}, "-DA=2\n", "sixteen bytes .."},
    {{"sm_90a", "tiled", "permute.cu", 1, 1, 1300, 0}, "", "x"},
    {{"", "", "", 0, 0, 0, 0}, "", ""},
};

static void *take(void *self, size_t size, size_t align)
{
    (void)self, (void)align;
    return malloc(size);
}

static void give(void *self, void *memory)
{
    (void)self;
    free(memory);
}

static tn_status find_nothing(void *self, const char *files, const tn_symbol *symbols, size_t count,
                              void *table, tn_error *err)
{
    (void)self, (void)symbols, (void)count, (void)table;
    return tn_fail(err, TN_UNAVAILABLE, 0, "library_bind", "no %s", files);
}

static const tn_host host = {.struct_size = offsetof(tn_host, library_look),
                             .alloc = take,
                             .release = give,
                             .library_bind = find_nothing};

static void families_share_code_and_letters_bind_it(void **state)
{
    static const struct {
        const char *code, *device;
        int serves;
    } cases[] = {{"sm_80", "sm_80", 1},    {"sm_80", "sm_86", 1},    {"sm_86", "sm_80", 0},
                 {"sm_80", "sm_90a", 0},   {"sm_90a", "sm_90a", 1},  {"sm_90a", "sm_90", 0},
                 {"sm_90", "sm_90a", 1},   {"sm_100", "sm_103a", 1}, {"sm_100", "sm_120", 0},
                 {"sm_100a", "sm_103", 0}, {"sm_80", "gfx942", 0},   {"x", "x", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cuda_ready_serves(cases[i].code, cases[i].device) != cases[i].serves)
            fail_msg("%s on %s: expected %d", cases[i].code, cases[i].device, cases[i].serves);
    }
}

static void expect(const char *architecture, const cuda_case *wanted, const char *code)
{
    size_t size = 77;
    const void *found = cuda_ready_find(architecture, wanted, &size);
    if (!code) {
        assert_null(found);
        assert_int_equal(size, 77);
        return;
    }
    assert_non_null(found);
    assert_int_equal(size, strlen(code));
    assert_memory_equal(found, code, size);
}

static void a_case_is_found_by_all_that_it_is(void **state)
{
    (void)state;
    assert_int_equal(cuda_ready_count(), 4);
    assert_int_equal(cuda_ready_compiler(), 1300);
    expect("sm_90a", &(cuda_case){&each, "dense", "-DA=1\n"}, "nine");
    expect("sm_86", &(cuda_case){&each, "dense", "-DA=1\n"}, "eight");
    expect("sm_90a", &(cuda_case){&each, "dense", "-DA=2\n"}, "sixteen bytes ..");
    expect("sm_86", &(cuda_case){&each, "dense", "-DA=2\n"}, NULL);
    expect("sm_90a", &(cuda_case){&permute, "tiled", ""}, "x");
    expect("sm_90a", &(cuda_case){&each, "tiled", ""}, NULL);
    expect("sm_90a", &(cuda_case){&each, "strided", "-DA=1\n"}, NULL);
}

static void what_is_ready_serves_without_a_compiler(void **state)
{
    const cuda_source source = {.name = "elementwise.cu", .text = "", .options = ""};
    void *opened = NULL, *code = NULL;
    int64_t number = 0;
    size_t size = 0;
    char text[32];
    tn_error err = {0};
    (void)state;
    assert_int_equal(cuda_nvrtc_open(&host, &opened, &err), TN_OK);
    assert_contains(err.message, "4 kernels that were compiled ahead serve");
    assert_int_equal(cuda_nvrtc_version(opened, &number, text, sizeof text, &err), TN_OK);
    assert_int_equal(number, 130000);
    assert_int_equal(cuda_nvrtc_compile(opened, &source, "sm_90a", &code, &size, &err),
                     TN_UNAVAILABLE);
    assert_contains(err.message, "elementwise.cu was not compiled ahead");
    assert_contains(err.message, "install");
    give(NULL, opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_share_code_and_letters_bind_it),
        cmocka_unit_test(a_case_is_found_by_all_that_it_is),
        cmocka_unit_test(what_is_ready_serves_without_a_compiler),
    };
    unsetenv("CUDA_PATH");
    unsetenv("CUDA_HOME");
    return run_suite("cuda.ready", tests);
}
