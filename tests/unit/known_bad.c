/* What is known of kernels beforehand: the lists that ship with Tenon, the user's own, and their form. */
#include "test.h"

#include "scratch.h"

#include "policy/admission/admission.h"
#include "policy/admission/notes.h"
#include "tenon/tenon.h"

/* A kernel as the list of them would have it. */
typedef struct made_up {
    tn_kernel_row row;
    tni_kernel kernel;
} made_up;

static const tni_kernel *make(made_up *out, const char *name, const char *library,
                              const char *other)
{
    *out = (made_up){.row = {.struct_size = sizeof out->row,
                             .name = name,
                             .platform = "cpu",
                             .library = library,
                             .op = TN_OP_MATMUL}};
    out->kernel =
        (tni_kernel){.row = &out->row,
                     .own = true,
                     .names = {.library = library ? library : "", .library_other = other}};
    return &out->kernel;
}

static tn_op op_of(const char *text)
{
    tn_op op;
    char device[8];
    tn_error err;
    if (tni_problem_parse(text, &op, device, sizeof device, &err))
        fail_msg("%s", err.message);
    return op;
}

static bool is_bad(const char *library, const char *other, const char *problem,
                   const char *architecture, int64_t version, tn_refusal *why)
{
    tn_device_properties device = {.struct_size = sizeof device};
    tn_op op = op_of(problem);
    made_up room;
    tn_text_fit(device.architecture, sizeof device.architecture, architecture);
    return tni_known_bad(make(&room, "cpu.matmul.made-up", library, other), &op, &device, version,
                         why);
}

static void findings_hold_for_what_they_name(void **state)
{
    static const char f64[] = "matmul:f64:m=4,n=4,k=4", f32[] = "matmul:f32:m=4,n=4,k=4";
    tn_refusal why = {.struct_size = sizeof why};
    (void)state;
    assert_true(is_bad("openblas", "", f64, "x86_64", 304, &why));
    assert_int_equal(why.code, TN_REFUSE_KNOWN_BAD);
    assert_contains(why.text, "OpenMathLib/OpenBLAS issue 2182");
    assert_string_equal(why.what, "openblas.dgemm.avx512");
    assert_int_equal(why.needed, 307);
    assert_int_equal(why.found, 304);
    assert_true(is_bad("openblas", "", f64, "x86_64", 306, &why));
    assert_false(is_bad("openblas", "", f64, "x86_64", 303, &why));
    assert_false(is_bad("openblas", "", f64, "x86_64", 307, &why));
    assert_false(is_bad("openblas", "", f64, "x86_64", -1, &why));
    assert_false(is_bad("openblas", "", f64, "aarch64", 304, &why));
    assert_false(is_bad("openblas", "", f32, "x86_64", 304, &why));
    assert_true(is_bad("openblas", "", f32, "x86_64", 311, &why));
    assert_false(is_bad("mkl", "", f64, "x86_64", 304, &why));
    assert_false(is_bad(NULL, "", f64, "x86_64", 304, &why));
    assert_true(is_bad("mkldnn", "onednn", f32, "x86_64", 20703, &why));
    assert_false(is_bad("mkldnn", "onednn", f32, "x86_64", 31300, &why));
    assert_true(is_bad("mkldnn", "onednn", "matmul:f32:m=4,n=4,k=4,ta=1", "x86_64", 31300, &why));
}

static void findings_hold_on_one_side_of_an_edge(void **state)
{
    static const struct {
        const char *problem;
        bool bad;
    } cases[] = {{"attention:bf16:b=1,h=2,lq=64,lk=1025,d=64", true},
                 {"attention:bf16:b=1,h=2,lq=64,lk=1024,d=64", false},
                 {"attention:bf16:b=1,h=2,l=1025,d=64,mask=causal", false},
                 {"attention:bf16:b=1,h=2,lq=64,lk=1025,d=64,mask=causal-br", false},
                 {"attention:bf16:b=1,h=2,lq=1,lk=1025,d=64,mask=causal-br", true},
                 {"attention:bf16:b=1,h=2,l=1025,d=64,mask=causal,used=1", true},
                 {"attention:bf16:b=1,h=2,l=1025,d=64,mask=window:8;8", true},
                 {"attention:bf16:b=1,h=2,l=1025,d=64,mask=window:8;0", false},
                 {"attention:bf16:b=1,h=2,l=1025,d=64,mask=additive", true},
                 {"attention-backward:bf16:b=1,h=2,l=1025,d=64", true},
                 {"attention-backward:bf16:b=1,h=2,l=1025,d=64,mask=causal", false},
                 {"attention-backward:bf16:b=1,h=2,l=1024,d=64", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_refusal why = {.struct_size = sizeof why};
        if (is_bad("cudnn", "", cases[i].problem, "", 91400, &why) != cases[i].bad)
            fail_msg("%s is %sbad", cases[i].problem, cases[i].bad ? "not " : "");
        assert_false(is_bad("cudnn", "", cases[i].problem, "", 91500, &why));
        assert_int_equal(is_bad("cudnn", "", cases[i].problem, "", 91300, &why), cases[i].bad);
        assert_false(is_bad("cudnn", "", cases[i].problem, "", 91202, &why));
        (void)is_bad("cudnn", "", cases[i].problem, "", 91400, &why);
        if (!cases[i].bad)
            continue;
        assert_contains(why.text, "1025 keys, at most 1024 are safe; 9.13 and 9.14");
        assert_contains(why.text, "pull request 2344");
        assert_contains(why.text, "; `tenon libraries --try` lists its other files");
        assert_int_equal(why.needed, 91500);
        assert_int_equal(why.found, 91400);
    }
}

static void shipped_lists_can_be_read(void **state)
{
    tni_notes notes = {0};
    tn_error err;
    (void)state;
    if (tni_notes_parse((const char *)tni_embedded_known_bad, tni_embedded_known_bad_size,
                        "known_bad.form", &notes, &err))
        fail_msg("%s", err.message);
    assert_true(notes.count >= 3);
    for (size_t i = 0; i < notes.count; i++)
        assert_true(notes.notes[i].reason && notes.notes[i].source && notes.notes[i].op);
    tni_notes_release(&notes);
    if (tni_notes_parse((const char *)tni_embedded_tested, tni_embedded_tested_size, "tested.form",
                        &notes, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < notes.count; i++)
        assert_true(notes.notes[i].platform && notes.notes[i].architectures.word[0][0]);
    tni_notes_release(&notes);
}

static void only_what_is_part_of_tenon_is_vouched_for(void **state)
{
    tn_device *cpu = NULL;
    made_up room;
    (void)state;
    assert_int_equal(tn_device_get("cpu:0", &cpu, NULL), TN_OK);
    const char *architecture = cpu->properties.architecture;
    bool here = strcmp(architecture, "x86_64") == 0 || strcmp(architecture, "aarch64") == 0;
    assert_true(tni_tested(make(&room, "cpu.matmul.own", NULL, ""), cpu, -1) == here);
    room.kernel.own = false;
    assert_false(tni_tested(&room.kernel, cpu, -1));
    assert_true(tni_tested(make(&room, "cpu.matmul.x", "openblas", ""), cpu, 321) == here);
    assert_false(tni_tested(make(&room, "cpu.matmul.x", "openblas", ""), cpu, 329));
    assert_false(tni_tested(make(&room, "cpu.matmul.x", "openblas", ""), cpu, -1));
    assert_false(tni_tested(make(&room, "cpu.matmul.x", "mkl", ""), cpu, 321));
}

static void instruction_sets_are_left_out(void **state)
{
    static const char text[] = "[a]\nlibrary = none\nwithout = neon_bf16, amx\n";
    static const struct {
        const char *kernel;
        bool found;
    } cases[] = {{"cpu.matmul.neon", true},         {"cpu.matmul.bf16.neon_bf16", false},
                 {"cpu.attention.bf16.amx", false}, {"cpu.attention.bf16.avx512_bf16", true},
                 {"cpu.matmul.bf16.neon", true},    {"amx", true}};
    tni_notes notes = {0};
    made_up room;
    (void)state;
    assert_int_equal(tni_notes_parse(text, sizeof text - 1, "t", &notes, NULL), TN_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tni_kernel *kernel = make(&room, cases[i].kernel, NULL, "");
        const bool found = tni_notes_find(&notes, kernel, NULL, "cpu", "", -1) != NULL;
        if (found != cases[i].found)
            fail_msg("%s: %d", cases[i].kernel, found);
    }
    tni_notes_release(&notes);
}

static void users_list_counts_too(void **state)
{
    tn_refusal why = {.struct_size = sizeof why};
    tn_device_properties device = {.struct_size = sizeof device};
    tn_op matmul = op_of("matmul:f32:m=4,n=4,k=4");
    made_up room;
    (void)state;
    assert_true(
        tni_known_bad(make(&room, "cpu.matmul.users", NULL, ""), &matmul, &device, -1, &why));
    assert_string_equal(why.text, "I saw it");
    room.kernel.reference = true;
    assert_false(tni_known_bad(&room.kernel, &matmul, &device, -1, &why));
}

static void versions_are_numbers_or_have_points(void **state)
{
    static const struct {
        const char *text;
        int64_t low, high;
    } cases[] = {{"0.3.4..0.3.6", 304, 306},
                 {"12.1", 120100, 120100},
                 {"91002", 91002, 91002},
                 {"8900..8907", 8900, 8907},
                 {"2024.1.2", 20240102, 20240102}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128];
        tni_notes notes = {0};
        snprintf(text, sizeof text, "[a]\nlibrary = x\nversions = %s\n", cases[i].text);
        assert_int_equal(tni_notes_parse(text, strlen(text), "t", &notes, NULL), TN_OK);
        assert_int_equal(notes.notes[0].version_low, cases[i].low);
        assert_int_equal(notes.notes[0].version_high, cases[i].high);
        tni_notes_release(&notes);
    }
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"library = x\n", "list:1: expected a section before it"},
        {"[a]\nreason = r\n", "list:1: [a]: expected a library or a kernel"},
        {"[a]\nlibrary = x\nkernel = y\n", "list:1: [a]: expected a library or a kernel"},
        {"[a]\nlibrary = x\n[b]\nlibary = x\n",
         "list:4: unknown key \"libary\" (= \"x\"); did you mean library?"},
        {"[a]\nlibrary =\n", "list:2: library = \"\": expected a text"},
        {"[a]\nlibrary = x\nversions = 2..1\n", "versions = \"2..1\": expected A or A..B"},
        {"[a]\nlibrary = x\nversions = 1.2.3.4\n", "expected A or A..B"},
        {"[a]\nlibrary = x\nversions = 1.200\n", "expected A or A..B"},
        {"[a]\nlibrary = x\nversions = ..\n", "expected A or A..B"},
        {"[a]\nlibrary = x\nversions = new\n", "expected A or A..B"},
        {"[a]\nlibrary = x\nop = matmull\n", "expected an operator; did you mean matmul?"},
        {"[a]\nlibrary = x\ndtypes = f33\n", "expected dtypes separated by commas; did you mean"},
        {"[a]\nlibrary = x\ndtypes = ,\n", "expected dtypes separated by commas"},
        {"[a]\nlibrary = x\nuses = beta\n", "expected an op before it"},
        {"[a]\nlibrary = x\nop = matmul\nuses = better\n",
         "expected features of matmul, got \"better\""},
        {"[a]\nlibrary = x\nkeys = 4\n", "keys = \"4\": expected op = attention"},
        {"[a]\nlibrary = x\nop = matmul\ncausal = no\n", "expected op = attention"},
        {"[a]\nlibrary = x\nop = attention\nkeys = 0\n", "expected a number above 0"},
        {"[a]\nlibrary = x\nop = attention\ncausal = maybe\n", "expected yes or no"},
        {"[a]\nlibrary = x\narchitectures = a,b,c,d,e,f,g,h,i\n", "expected 1 to 8 words"},
        {"[a]\nlibrary = x\nwithout = neon_bf16_of_more_than_31_characters, avx2\n",
         "expected 1 to 8 words"},
        {"[a]\nlibrary = x\narchitectures = a_name_of_more_than_thirty-one_characters\n",
         "expected 1 to 8 words"},
        {"[a\n", "list:1:"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tni_notes notes = {.count = 77};
        tn_error err;
        assert_int_equal(
            tni_notes_parse(cases[i].text, strlen(cases[i].text), "list", &notes, &err),
            TN_CORRUPT);
        assert_contains(err.message, cases[i].words);
        assert_int_equal(notes.count, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(findings_hold_for_what_they_name),
        cmocka_unit_test(findings_hold_on_one_side_of_an_edge),
        cmocka_unit_test(shipped_lists_can_be_read),
        cmocka_unit_test(only_what_is_part_of_tenon_is_vouched_for),
        cmocka_unit_test(instruction_sets_are_left_out),
        cmocka_unit_test(users_list_counts_too),
        cmocka_unit_test(versions_are_numbers_or_have_points),
        cmocka_unit_test(what_is_wrong_is_said_with_its_place),
    };
    char folder[SCRATCH_PATH], path[SCRATCH_PATH + 16];
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/config", folder);
    setenv("TENON_CONFIG", path, 1);
    snprintf(path, sizeof path, "%s/known-bad", folder);
    FILE *file = fopen(path, "w");
    if (!file || fputs("[mine]\nkernel = cpu.matmul.users\nreason = I saw it\n", file) < 0 ||
        fclose(file))
        return 1;
    int failed = run_suite("unit.known_bad", tests);
    scratch_remove(folder);
    return failed;
}
