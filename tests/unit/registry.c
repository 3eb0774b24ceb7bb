/* The registry's parts that need no module: verdicts as text, names of records, checks of rows. */
#include "test.h"

#include "base/utf8.h"
#include "registry/rows.h"
#include "registry/verdict.h"
#include "tenon/module/communicator.h"
#include "tenon/module/kernel.h"
#include "tenon/module/language.h"
#include "tenon/module/library.h"
#include "tenon/module/op/matmul.h"

static void stages_and_origins_have_names(void **state)
{
    static const char *const stages[] = {"found", "opened", "negotiated", "probed", "ready"};
    (void)state;
    for (tn_module_stage i = TN_STAGE_FOUND; i <= TN_STAGE_READY; i++)
        assert_string_equal(tn_module_stage_name(i), stages[i]);
    assert_string_equal(tn_module_stage_name(-1), "unknown");
    assert_string_equal(tn_module_stage_name(TN_STAGE_READY + 1), "unknown");
    assert_string_equal(tni_origin_name(TNI_ORIGIN_ENVIRONMENT), "TENON_MODULE_PATH");
}

static void record_is_named_after_its_file(void **state)
{
    static const struct {
        const char *path, *name;
    } cases[] = {
        {"/x/tenon-acme" TNI_LIBRARY_SUFFIX, "acme"},
        {"tenon-acme" TNI_LIBRARY_SUFFIX, "acme"},
        {"/tenon-a-b" TNI_LIBRARY_SUFFIX "/tenon-c" TNI_LIBRARY_SUFFIX, "c"},
        {"/x/tenon-" TNI_LIBRARY_SUFFIX, "tenon-" TNI_LIBRARY_SUFFIX},
        {"/x/other" TNI_LIBRARY_SUFFIX, "other" TNI_LIBRARY_SUFFIX},
        {"/x/tenon-acme.txt", "tenon-acme.txt"},
        {"/x/", ""},
        {"", ""},
    };
    char name[64], small[8], path[200];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tni_record_name_of(cases[i].path, name, sizeof name);
        assert_string_equal(name, cases[i].name);
    }
    tni_record_name_of("tenon-seven77" TNI_LIBRARY_SUFFIX, small, sizeof small);
    assert_string_equal(small, "seven77");
    tni_record_name_of("tenon-eight888" TNI_LIBRARY_SUFFIX, small, sizeof small);
    assert_string_equal(small, "teno...");
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    tni_record_name_of(path, name, sizeof name);
    assert_int_equal(strlen(name), 63);
    assert_string_equal(name + 60, "...");
}

static bool is_text(const char *text)
{
    for (size_t left = strlen(text), size; left > 0; text += size, left -= size) {
        size = tni_utf8_size(text, left);
        if (size == 0)
            return false;
    }
    return true;
}

static void record_stops_with_words_that_fit(void **state)
{
    tni_record *record = tni_record_create("/x/tenon-\xff\n.so", TNI_ORIGIN_PROGRAM);
    char text[3000] = "x";
    (void)state;
    assert_string_equal(record->path, "/x/tenon-\xff\n.so");
    assert_true(is_text(record->name) && !strchr(record->name, '\n'));
    for (size_t i = 1; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa4", 3);
    for (size_t shift = 0; shift < 2; shift++) {
        assert_int_equal(
            tni_record_stop(record, TN_IO, text + shift * 2, "%s%s", shift ? "." : "", text),
            TN_IO);
        assert_int_equal(record->status, TN_IO);
        assert_true(is_text(record->message) && is_text(record->remedy));
        assert_string_equal(record->message + strlen(record->message) - 3, "...");
        assert_string_equal(record->remedy + strlen(record->remedy) - 3, "...");
    }
    tni_record_stop(record, TN_IO, "two\nlines", "ger\xe4t\tfehlt");
    assert_string_equal(record->message, "ger\\xe4t\\x09"
                                         "fehlt");
    assert_string_equal(record->remedy, "two\\x0alines");
    tni_record_destroy(record);
    tni_record_destroy(NULL);
}

static void check_same(const tni_verdict *a, const tni_verdict *b)
{
    assert_int_equal(a->stage, b->stage);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->abi_major, b->abi_major);
    assert_int_equal(a->abi_minor, b->abi_minor);
    assert_int_equal(a->ended_badly, b->ended_badly);
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->version, b->version);
    assert_string_equal(a->message, b->message);
    assert_string_equal(a->remedy, b->remedy);
}

static void verdict_survives_as_text(void **state)
{
    static const tni_verdict verdicts[] = {
        {.stage = TN_STAGE_READY, .name = "acme", .version = "1.0", .message = "offers 1 kernel"},
        {.stage = TN_STAGE_NEGOTIATED,
         .status = TN_CRASHED,
         .abi_major = UINT32_MAX,
         .abi_minor = 7,
         .ended_badly = true,
         .name = "a_b-c",
         .version = " 1 # 2 = 3 ",
         .message = "\"quoted\" \\ back\nslash\t\"\"\"",
         .remedy = "[section]\n# comment\n"},
        {.status = TN_INTERNAL, .message = "\xc3\xa4\xe2\x82\xac"},
        {.status = 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++) {
        tni_buffer text = {0};
        tni_verdict back;
        tn_error err;
        assert_int_equal(tni_verdict_write(&verdicts[i], &text, &err), TN_OK);
        assert_int_equal(tni_verdict_read(text.text, text.length, &back, &err), TN_OK);
        assert_true(back.complete);
        check_same(&back, &verdicts[i]);
        tni_buffer_release(&text);
    }
}

static void verdict_is_taken_from_a_record(void **state)
{
    static const tni_verdict expected = {.stage = TN_STAGE_OPENED,
                                         .status = TN_INCOMPATIBLE,
                                         .abi_minor = 9,
                                         .name = "acme",
                                         .version = "1.0",
                                         .message = "a message",
                                         .remedy = "a remedy"};
    tni_record *record = tni_record_create("/x/tenon-acme" TNI_LIBRARY_SUFFIX, TNI_ORIGIN_PROGRAM);
    tni_verdict verdict;
    (void)state;
    record->stage = TN_STAGE_OPENED;
    record->abi_minor = 9;
    tn_text_fit(record->version, sizeof record->version, "1.0");
    tni_record_stop(record, TN_INCOMPATIBLE, "a remedy", "a message");
    tni_verdict_from_record(&verdict, record);
    check_same(&verdict, &expected);
    tni_record_destroy(record);
}

/* The child tells one stage after another; the last that was heard counts. */
static void partial_verdict_reads_as_far_as_it_goes(void **state)
{
    static const char text[] = "stage = 1\nstage = 2\n";
    tni_verdict verdict;
    tn_error err;
    (void)state;
    assert_int_equal(tni_verdict_read(text, sizeof text - 1, &verdict, &err), TN_OK);
    assert_int_equal(verdict.stage, TN_STAGE_NEGOTIATED);
    assert_int_equal(verdict.status, TN_INTERNAL); /* not ok, as it did not say so */
    assert_false(verdict.complete);
    assert_int_equal(tni_verdict_read("", 0, &verdict, &err), TN_OK);
    assert_int_equal(verdict.stage, TN_STAGE_FOUND);
    assert_false(verdict.complete);
}

static void nonsense_is_no_verdict(void **state)
{
    static const char *const texts[] = {
        "stage = 5",
        "stage = -1",
        "stage = x",
        "stage = 1x",
        "stage =",
        "status = 19",
        "status = -1",
        "abi_major = 4294967296",
        "ended_badly = 2",
        "complete = 2",
        "stage",
        "= 1",
        "status = 99999999999999999999999999",
        "name = \"x",
        "message = \x01",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tni_verdict verdict = {.stage = 77};
        tn_error err;
        assert_int_equal(tni_verdict_read(texts[i], strlen(texts[i]), &verdict, &err), TN_CORRUPT);
        assert_int_equal(verdict.stage, 77);
    }
}

static void long_texts_of_a_verdict_are_cut(void **state)
{
    tni_buffer text = {0};
    tni_verdict verdict;
    (void)state;
    tni_buffer_add(&text, "name = ");
    for (int i = 0; i < 3000; i++)
        tni_buffer_add_char(&text, 'x');
    assert_int_equal(tni_verdict_read(text.text, text.length, &verdict, NULL), TN_OK);
    assert_int_equal(strlen(verdict.name), sizeof verdict.name - 1);
    tni_buffer_release(&text);
}

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    (void)host, (void)out_self, (void)out_devices, (void)err;
    return TN_OK;
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device, (void)bytes, (void)out, (void)err;
    return TN_OK;
}

static void memory_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device, (void)memory;
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)job, (void)err;
    return TN_OK;
}

static tn_status version(const tn_host *host, uint32_t *out_major, uint32_t *out_minor,
                         tn_error *err)
{
    (void)host, (void)out_major, (void)out_minor, (void)err;
    return TN_OK;
}

static tn_status run(const struct tn_run *run, tn_error *err)
{
    (void)run, (void)err;
    return TN_OK;
}

typedef void (*release_function)(const tn_run *run, void *plan);
static void plan_release(const tn_run *run, void *plan)
{
    (void)run, (void)plan;
}

/* A module with one good row of each kind, and a second platform. */
typedef struct rows {
    tn_platform_row platform, platform2;
    tn_library_row library;
    tn_kernel_row kernel;
    tn_language_row language;
    tn_communicator_row communicator;
    tn_dtype dtypes[3];
} rows;

static const rows good = {
    .platform = {.struct_size = sizeof good.platform,
                 .name = "acme",
                 .kind = TN_PLATFORM_OOT,
                 .probe = probe,
                 .memory_alloc = memory_alloc,
                 .memory_free = memory_free,
                 .copy = copy},
    .platform2 = {.struct_size = sizeof good.platform2,
                  .name = "acme2",
                  .kind = TN_PLATFORM_CPU,
                  .probe = probe,
                  .memory_alloc = memory_alloc,
                  .memory_free = memory_free,
                  .copy = copy},
    .library = {.struct_size = sizeof good.library,
                .name = "acmeblas",
                .platform = "acme",
                .files = "libacmeblas.so.1",
                .remedy = "install acmeblas"},
    .kernel = {.struct_size = sizeof good.kernel,
               .name = "acme.matmul",
               .platform = "acme",
               .op = TN_OP_MATMUL,
               .version = 1,
               .flops_per_us = 1,
               .bytes_per_us = 1,
               .run = run},
    .language = {.struct_size = sizeof good.language,
                 .name = "acme-c",
                 .platform = "acme",
                 .version = version},
    .communicator = {.struct_size = sizeof good.communicator,
                     .name = "acme-ring",
                     .platform = "acme",
                     .version = version},
    .dtypes = {TN_F32, TN_BF16, TN_DTYPE_NONE},
};

static tn_status check(rows *of, tn_error *err)
{
    const tn_platform_row *const platforms[] = {&of->platform, &of->platform2, NULL};
    const tn_library_row *const libraries[] = {&of->library, NULL};
    const tn_kernel_row *const kernels[] = {&of->kernel, NULL};
    const tn_language_row *const languages[] = {&of->language, NULL};
    const tn_communicator_row *const communicators[] = {&of->communicator, NULL};
    const tn_module module = {.struct_size = sizeof module,
                              .platforms = platforms,
                              .libraries = libraries,
                              .kernels = kernels,
                              .languages = languages,
                              .communicators = communicators};
    return tni_rows_check(&module, err);
}

/* One field set to what it may not be, and the words for it. */
typedef struct fault {
    size_t offset, size;
    const void *value;
    const char *message;
} fault;

#define SET(field, type, value, message)                                   \
    {                                                                      \
        offsetof(rows, field), sizeof(type), &(const type){value}, message \
    }
#define NO_FUNCTION(field, message) SET(field, void *, NULL, message)
#define TEXT(field, value, message) SET(field, char *, value, message)

/* Each in turn makes the check fail with its words. */
static void check_faults(const fault *faults, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rows spoilt = good;
        tn_error err;
        spoilt.kernel.dtypes = spoilt.dtypes;
        assert_int_equal(check(&spoilt, &err), TN_OK);
        memcpy((char *)&spoilt + faults[i].offset, faults[i].value, faults[i].size);
        assert_int_equal(check(&spoilt, &err), TN_INVALID_ARGUMENT);
        assert_string_equal(err.where, "rows");
        assert_contains(err.message, faults[i].message);
    }
}

static void end(void *self, int32_t device, void *what)
{
    (void)self, (void)device, (void)what;
}

static tn_status free_on(void *self, int32_t device, void *stream, void *memory, tn_error *err)
{
    (void)self, (void)device, (void)stream, (void)memory, (void)err;
    return TN_OK;
}

static tn_status alloc_on(void *self, int32_t device, void *stream, uint64_t bytes, void **out,
                          tn_error *err)
{
    (void)self, (void)device, (void)stream, (void)bytes, (void)out, (void)err;
    return TN_OK;
}

/* A row of before there was memory in order ends earlier, and what lies behind it is not looked at. */
static void rows_of_before_are_taken(void **state)
{
    rows before = good;
    tn_error err;
    (void)state;
    before.kernel.dtypes = before.dtypes;
    before.platform.memory_free_on = free_on;
    before.platform.struct_size = TN_UP_TO(tn_platform_row, device_leave);
    assert_int_equal(check(&before, &err), TN_OK);
    before.platform.memory_alloc_on = alloc_on;
    assert_int_equal(check(&before, &err), TN_OK);
    before.platform.struct_size = sizeof before.platform;
    assert_int_equal(check(&before, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "memory_alloc_on needs streams: stream_create is NULL");
}

static void bad_platforms_are_refused(void **state)
{
    void (*const ends)(void *, int32_t, void *) = end;
    tn_status (*const frees)(void *, int32_t, void *, void *, tn_error *) = free_on;
    static const tn_evidence_row
        sound = {.struct_size = sizeof sound, .what = "/x", .look = 1, .shows = 1},
        sizeless = {.struct_size = 8, .what = "/x", .look = 1, .shows = 1},
        no_what = {.struct_size = sizeof sound, .look = 1, .shows = 1},
        no_look = {.struct_size = sizeof sound, .what = "/x", .look = TN_LOOK_COUNT, .shows = 1},
        no_shows = {.struct_size = sizeof sound, .what = "/x", .look = 1};
    static const tn_evidence_row *small[] = {&sizeless, NULL},
                                 *nameless[] = {&sound, &no_what, NULL},
                                 *lookless[] = {&no_look, NULL}, *showless[] = {&no_shows, NULL};
    static const char *empty_word[] = {"int8", "", NULL};
    static char long_word[] = "12345678901234567890123456789012345678901234567890123456789012345";
    const fault faults[] = {
        SET(platform.struct_size, size_t, 423,
            "platform row 1: struct_size: expected at least 424, got 423"),
        TEXT(
            platform.name, NULL,
            "platform row 1: name: expected 1 to 48 of a-z 0-9 - _, beginning with a letter or digit"),
        TEXT(platform.name, "best", "name cannot be \"best\", which selects a device"),
        TEXT(platform.name, "Acme", "got \"Acme\""),
        TEXT(platform.name, "acme.x", "got \"acme.x\""),
        TEXT(platform2.name, "acme", "platform row 2 \"acme\": duplicate name, also in row 1"),
        SET(platform.kind, int32_t, 0, "platform row 1 \"acme\": kind: expected 1 to 9, got 0"),
        SET(platform.kind, int32_t, TN_PLATFORM_KIND_COUNT, "kind: expected 1 to 9, got 10"),
        TEXT(platform.name, "cuda",
             "platform row 1 \"cuda\": kind: expected 2 (cuda) for this name, got 9 "
             "(out-of-tree); change the kind or the name of the row"),
        SET(platform2.flags, uint32_t, 17, "platform row 2 \"acme2\": flags has unknown bits 0x10"),
        TEXT(platform.device_name, "", "device_name: expected 1 to 64 bytes, or NULL"),
        TEXT(platform.device_type, long_word, "device_type: expected 1 to 64 bytes, or NULL"),
        TEXT(platform.dispatch_key, "", "dispatch_key: expected 1 to 64 bytes, or NULL"),
        TEXT(platform.visible_variable, long_word, "visible_variable: expected 1 to 64 bytes"),
        TEXT(platform.async_output_reason, "", "async_output_reason is empty"),
        SET(platform.quantizations, void *, empty_word, "quantizations[1] is empty"),
        SET(platform.model_archs, void *, empty_word, "model_archs[1] is empty"),
        SET(platform.evidence, void *, small,
            "evidence[0]: struct_size: expected at least 24, got 8"),
        SET(platform.evidence, void *, nameless, "evidence[1]: what is NULL"),
        SET(platform.evidence, void *, lookless, "evidence[0]: look: expected 1 to 4, got 5"),
        SET(platform.evidence, void *, showless, "evidence[0]: shows: expected 1 to 3, got 0"),
        NO_FUNCTION(platform.probe, "platform row 1 \"acme\": probe is NULL"),
        NO_FUNCTION(platform.memory_alloc, "memory_alloc is NULL"),
        NO_FUNCTION(platform.memory_free, "memory_free is NULL"),
        NO_FUNCTION(platform2.copy, "platform row 2 \"acme2\": copy is NULL"),
        {offsetof(rows, platform.graph_destroy), sizeof ends, &ends,
         "graphs need all their functions or none: graph_destroy is set, graph_begin is NULL"},
        {offsetof(rows, platform.capture_free), sizeof ends, &ends,
         "captures need all their functions or none: capture_free is set, stream_is_captured is "
         "NULL"},
        {offsetof(rows, platform.device_leave), sizeof ends, &ends,
         "device_enter and device_leave must be set together: device_enter is NULL"},
        {offsetof(rows, platform.memory_free_on), sizeof frees, &frees,
         "memory_alloc_on and memory_free_on must be set together: memory_alloc_on is NULL"},
        {offsetof(rows, platform.stream_destroy), sizeof ends, &ends,
         "streams need all their functions or none: stream_destroy is set, stream_create is "
         "NULL"},
    };
    (void)state;
    check_faults(faults, sizeof faults / sizeof faults[0]);
}

static tn_status verbose(void *self, int32_t level, tn_error *err)
{
    (void)self, (void)level, (void)err;
    return TN_OK;
}

static void bad_libraries_are_refused(void **state)
{
    tn_status (*const talks)(void *, int32_t, tn_error *) = verbose;
    const fault faults[] = {
        SET(library.struct_size, size_t, 0,
            "library row 1: struct_size: expected at least 80, got 0"),
        TEXT(library.name, "", "library row 1: name: expected"),
        TEXT(library.platform, NULL, "library row 1 \"acmeblas\": platform is NULL"),
        TEXT(library.platform, "", "platform is empty"),
        TEXT(library.platform, "-x", "platform: expected 1 to 48 of a-z 0-9 - _, beginning with"),
        TEXT(library.files, "", "files is empty"),
        TEXT(library.remedy, NULL, "remedy is NULL"),
        TEXT(library.remedy, "", "remedy is empty"),
        TEXT(library.other, "Acme BLAS", "other: expected 1 to 48 of a-z 0-9 - _, beginning with"),
        TEXT(library.other, "acmeblas", "other is the same as name"),
        TEXT(library.verbose_setting, "", "verbose_setting: expected 1 to 64 bytes, or NULL"),
        TEXT(library.verbose_setting, "acmeblas.verbose",
             "verbose and verbose_setting must be set together: verbose is NULL"),
        {offsetof(rows, library.verbose), sizeof talks, &talks,
         "verbose and verbose_setting must be set together: verbose_setting is NULL"},
    };
    (void)state;
    check_faults(faults, sizeof faults / sizeof faults[0]);
}

static void library_may_be_part_of_its_module(void **state)
{
    rows part = good;
    tn_error err;
    (void)state;
    part.kernel.dtypes = part.dtypes;
    part.library.files = part.library.remedy = NULL;
    assert_int_equal(check(&part, &err), TN_OK);
    part.library.other = "acme-blas";
    part.library.verbose_setting = "acmeblas.verbose";
    part.library.verbose = verbose;
    part.kernel.library = "acmeblas";
    part.kernel.backend = "ACME_ATTN";
    assert_int_equal(check(&part, &err), TN_OK);
    part.library.remedy = ""; /* one that says nothing is never sound */
    assert_int_equal(check(&part, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "remedy is empty");
}

static void bad_kernels_are_refused(void **state)
{
    static const tn_dtype none[] = {TN_DTYPE_NONE}, odd[] = {TN_F32, 0x010203, TN_DTYPE_NONE};
    const fault faults[] = {
        SET(kernel.struct_size, size_t, 8, "kernel row 1: struct_size: expected at least"),
        TEXT(kernel.name, "acme matmul",
             "name: expected 1 to 96 of a-z 0-9 - _ ., beginning with a letter or digit; got"),
        TEXT(kernel.platform, "a.b", "kernel row 1 \"acme.matmul\": platform: expected"),
        SET(kernel.op, int32_t, TN_OP_NONE, "op: expected 1 to 63, got 0"),
        SET(kernel.op, int32_t, TN_OP_KIND_MAX, "op: expected 1 to 63, got 64"),
        SET(kernel.version, uint32_t, 0, "version: expected 1 or more, got 0"),
        SET(kernel.dtypes, tn_dtype *, NULL, "dtypes: expected at least one type"),
        SET(kernel.dtypes, tn_dtype *, none, "dtypes: expected at least one type"),
        SET(kernel.dtypes, tn_dtype *, odd, "dtypes[1]: expected a TN_ type, got 0x10203"),
        SET(kernel.numerics, uint64_t, UINT64_C(1) << 63,
            "numerics has unknown bits 0x8000000000000000"),
        SET(kernel.cpu_needs, uint64_t, TN_CPU_BIT(AVX2) | UINT64_C(1) << 62,
            "cpu_needs has unknown bits 0x4000000000000000"),
        SET(kernel.plan_release, release_function, plan_release,
            "plan and plan_release must be set together: plan is NULL"),
        SET(kernel.pack_release, release_function, plan_release,
            "pack and pack_release must be set together: pack is NULL"),
        SET(kernel.alignment, int64_t, 24,
            "alignment: expected 0 or a power of two up to 64, got 24"),
        SET(kernel.alignment, int64_t, -8,
            "alignment: expected 0 or a power of two up to 64, got -8"),
        SET(kernel.alignment, int64_t, 128,
            "alignment: expected 0 or a power of two up to 64, got 128"),
        SET(kernel.traits, uint64_t, 6, "traits has unknown bits 0x6"),
        SET(kernel.flops_per_us, double, 0, "flops_per_us: expected a figure above 0, got 0"),
        SET(kernel.flops_per_us, double, __builtin_nan(""),
            "flops_per_us: expected a figure above 0"),
        SET(kernel.bytes_per_us, double, -1, "bytes_per_us: expected a figure above 0, got -1"),
        SET(kernel.bytes_per_us, double, __builtin_inf(),
            "bytes_per_us: expected a figure above 0"),
        SET(kernel.overhead_us, double, -1, "overhead_us: expected 0 or more, got -1"),
        SET(kernel.overhead_us, double, __builtin_nan(""), "overhead_us: expected 0 or more"),
        NO_FUNCTION(kernel.run, "run is NULL"),
        TEXT(kernel.library, "", "library is empty"),
        TEXT(kernel.library, "acme.blas",
             "library: expected 1 to 48 of a-z 0-9 - _, beginning with"),
        TEXT(kernel.backend, "", "backend: expected 1 to 64 bytes, or NULL"),
    };
    (void)state;
    check_faults(faults, sizeof faults / sizeof faults[0]);
}

static void bad_languages_and_communicators_are_refused(void **state)
{
    const fault faults[] = {
        SET(language.struct_size, size_t, 1, "language row 1: struct_size: expected at least 40"),
        TEXT(language.name, NULL, "language row 1: name: expected"),
        TEXT(language.platform, NULL, "language row 1 \"acme-c\": platform is NULL"),
        NO_FUNCTION(language.version, "language row 1 \"acme-c\": version is NULL"),
        SET(communicator.struct_size, size_t, 1, "communicator row 1: struct_size: expected"),
        TEXT(communicator.name, "a\nb", "communicator row 1: name: expected"),
        TEXT(communicator.platform, "A", "communicator row 1 \"acme-ring\": platform: expected"),
        NO_FUNCTION(communicator.version, "communicator row 1 \"acme-ring\": version is NULL"),
    };
    (void)state;
    check_faults(faults, sizeof faults / sizeof faults[0]);
}

/* Rows may grow: a newer module's have more at their ends. */
static void larger_rows_are_sound(void **state)
{
    rows larger = good;
    (void)state;
    larger.kernel.dtypes = larger.dtypes;
    larger.platform.struct_size += 64;
    larger.kernel.struct_size = SIZE_MAX;
    assert_int_equal(check(&larger, NULL), TN_OK);
}

static void lists_end(void **state)
{
    static const tn_language_row *endless[5000];
    static const tn_language_row *const empty[] = {NULL};
    static char names[5000][8];
    static tn_language_row languages[5000];
    tn_module module = {.struct_size = sizeof module};
    tn_error err;
    (void)state;
    assert_int_equal(tni_rows_count(NULL), 0);
    assert_int_equal(tni_rows_count(empty), 0);
    assert_int_equal(tni_rows_check(&module, &err), TN_OK);
    for (size_t i = 0; i < 5000; i++) {
        snprintf(names[i], sizeof names[i], "l%zu", i);
        languages[i] = good.language;
        languages[i].name = names[i];
        endless[i] = &languages[i];
    }
    module.languages = endless;
    assert_int_equal(tni_rows_check(&module, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "the list of language rows does not end in NULL within 4096");
    endless[4095] = NULL;
    assert_int_equal(tni_rows_count(endless), 4095);
    endless[100] = NULL;
    assert_int_equal(tni_rows_check(&module, &err), TN_OK);
}

static void platforms_are_few(void **state)
{
    const tn_platform_row *list[TNI_PLATFORMS_MAX + 2] = {NULL};
    char names[TNI_PLATFORMS_MAX + 1][8];
    tn_platform_row copies[TNI_PLATFORMS_MAX + 1];
    tn_module module = {.struct_size = sizeof module, .platforms = list};
    tn_error err;
    (void)state;
    for (int i = 0; i <= TNI_PLATFORMS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "p%d", i);
        copies[i] = good.platform;
        copies[i].name = names[i];
        list[i] = &copies[i];
    }
    assert_int_equal(tni_rows_check(&module, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "the list of platform rows: expected at most 16, got 17");
    list[TNI_PLATFORMS_MAX] = NULL;
    assert_int_equal(tni_rows_check(&module, &err), TN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_and_origins_have_names),
        cmocka_unit_test(record_is_named_after_its_file),
        cmocka_unit_test(record_stops_with_words_that_fit),
        cmocka_unit_test(verdict_survives_as_text),
        cmocka_unit_test(verdict_is_taken_from_a_record),
        cmocka_unit_test(partial_verdict_reads_as_far_as_it_goes),
        cmocka_unit_test(nonsense_is_no_verdict),
        cmocka_unit_test(long_texts_of_a_verdict_are_cut),
        cmocka_unit_test(bad_platforms_are_refused),
        cmocka_unit_test(rows_of_before_are_taken),
        cmocka_unit_test(bad_libraries_are_refused),
        cmocka_unit_test(library_may_be_part_of_its_module),
        cmocka_unit_test(bad_kernels_are_refused),
        cmocka_unit_test(bad_languages_and_communicators_are_refused),
        cmocka_unit_test(larger_rows_are_sound),
        cmocka_unit_test(lists_end),
        cmocka_unit_test(platforms_are_few),
    };
    return run_suite("unit.registry", tests);
}
