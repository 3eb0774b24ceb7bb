/* What is kept in the cache directory, byte by byte: an entry that was changed in any way is found out and
 * counts for nothing. Verdicts on kernels, and times that were measured. */
#include "test.h"

#include "base_isa.h"
#include "scratch.h"

#include "policy/admission/admission_store.h"
#include "policy/tuning/store.h"
#include "settings/context.h"
#include "tenon/tenon.h"

static char scratch[SCRATCH_PATH];
static tn_op op;
static tni_question question;
static const tni_kernel *kernel;
static int warnings;

static void hear(void *user, int32_t level, const char *text)
{
    (void)user, (void)level;
    warnings += strstr(text, "cache: removed a damaged ") != NULL;
}

static const tn_log_sink sink = {
    .struct_size = sizeof sink, .write = hear, .level = TN_LOG_WARNING};

/* One entry: how it is written, and whether it is read as what was written. */
typedef struct entry {
    const char *name, *kind;
    void (*write)(void);
    bool (*is_believed)(void);
} entry;

static void remember(const tn_op *of, int32_t verdict, const char *why)
{
    tni_trust trust = {.verdict = verdict};
    tn_error err;
    tn_text_fit(trust.text, sizeof trust.text, why);
    if (tni_trust_store(&(tni_exam){kernel, question.device, -1, of}, &trust, true, &err))
        fail_msg("%s", err.message);
}

static bool is_known(const tn_op *of)
{
    tni_trust trust;
    tni_trust_forget();
    tni_trust_lookup(&(tni_exam){kernel, question.device, -1, of}, &trust);
    return trust.verdict != TNI_TRUST_UNTESTED;
}

static void write_passed(void)
{
    remember(NULL, TNI_TRUST_PASSED, "");
}

static void write_quarantined(void)
{
    remember(NULL, TNI_TRUST_QUARANTINED, "output 0 is 1, the reference has 2");
}

static void write_trial(void)
{
    remember(&op, TNI_TRUST_PASSED, "");
}

static bool kernel_is_known(void)
{
    return is_known(NULL);
}

static bool problem_is_known(void)
{
    return is_known(&op);
}

static void write_times(void)
{
    const tni_timed timed = {.kernel = kernel, .library_version = -1, .ns = 123456};
    tn_error err;
    if (tni_times_keep(&question, &timed, 1, &err))
        fail_msg("%s", err.message);
}

static bool time_is_known(void)
{
    tni_times_forget();
    int64_t level;
    return tni_times_find(&question, kernel, &level) != TNI_TIME_UNKNOWN;
}

static const entry entries[] = {
    {"a verdict", "/admission/", write_passed, kernel_is_known},
    {"a quarantine", "/admission/", write_quarantined, kernel_is_known},
    {"a verdict on a problem", "/admission/", write_trial, problem_is_known},
    {"times", "/tuning/", write_times, time_is_known},
};
enum { ENTRIES = sizeof entries / sizeof entries[0], FILE_MOST = 4096 };

/* The one file of a kind. */
static const char *wanted;
static char found[SCRATCH_PATH + 128];

static int look(const char *path, const struct stat *facts, int type, struct FTW *position)
{
    (void)facts, (void)position;
    if (type == FTW_F && strstr(path, wanted)) {
        assert_string_equal(found, "");
        tn_text_fit(found, sizeof found, path);
    }
    return 0;
}

static int drop(const char *path, const struct stat *facts, int type, struct FTW *position)
{
    (void)facts, (void)position;
    if (type == FTW_F && (strstr(path, "/admission/") || strstr(path, "/tuning/")))
        assert_int_equal(unlink(path), 0);
    return 0;
}

/* Writes an entry into a cache that has no other; its file's bytes. */
static size_t write_entry(const entry *e, unsigned char out[FILE_MOST])
{
    assert_int_equal(nftw(scratch, drop, 16, FTW_PHYS), 0);
    e->write();
    wanted = e->kind;
    found[0] = '\0';
    assert_int_equal(nftw(scratch, look, 16, FTW_PHYS), 0);
    FILE *file = fopen(found, "rb");
    assert_non_null(file);
    size_t size = fread(out, 1, FILE_MOST, file);
    assert_int_equal(fclose(file), 0);
    assert_true(size > 88 && size < FILE_MOST);
    return size;
}

static void put_file(const void *bytes, size_t size)
{
    FILE *file = fopen(found, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void every_byte_counts(void **state)
{
    static const unsigned char flips[] = {0x01, 0x20, 0x80, 0xFF};
    static unsigned char bytes[FILE_MOST];
    (void)state;
    for (const entry *e = entries; e < entries + ENTRIES; e++) {
        size_t size = write_entry(e, bytes);
        assert_true(e->is_believed());
        for (size_t i = 0; i < size; i++) {
            for (size_t flip = 0; flip < sizeof flips; flip++) {
                bytes[i] ^= flips[flip];
                put_file(bytes, size);
                bytes[i] ^= flips[flip];
                int before = warnings;
                if (e->is_believed())
                    fail_msg("%s is believed with byte %zu changed by %#x", e->name, i,
                             flips[flip]);
                assert_int_equal(warnings, before + 1); /* found out, and said so */
                assert_int_equal(access(found, F_OK), -1);
            }
        }
        put_file(bytes, size);
        assert_true(e->is_believed());
    }
}

static void every_length_counts(void **state)
{
    static unsigned char bytes[FILE_MOST];
    (void)state;
    for (const entry *e = entries; e < entries + ENTRIES; e++) {
        size_t size = write_entry(e, bytes);
        for (size_t length = 0; length <= size + 1; length++) {
            bytes[size] = '\n';
            put_file(bytes, length);
            if (e->is_believed() != (length == size))
                fail_msg("%s of %zu bytes, cut at %zu", e->name, size, length);
        }
    }
}

/* An entry that is sound, in the place of another. */
static void entries_do_not_change_places(void **state)
{
    static unsigned char bytes[ENTRIES][FILE_MOST];
    char paths[ENTRIES][sizeof found];
    size_t sizes[ENTRIES];
    (void)state;
    for (size_t i = 0; i < ENTRIES; i++) {
        sizes[i] = write_entry(&entries[i], bytes[i]);
        memcpy(paths[i], found, sizeof found);
    }
    for (size_t to = 0; to < ENTRIES; to++) {
        for (size_t from = 0; from < ENTRIES; from++) {
            bool same = strcmp(paths[from], paths[to]) == 0;
            memcpy(found, paths[to], sizeof found);
            put_file(bytes[from], sizes[from]);
            assert_int_equal(entries[to].is_believed(), same);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(every_length_counts),
        cmocka_unit_test(entries_do_not_change_places),
    };
    char none[8];
    tn_error err;
    scratch_make(scratch);
    setenv("TENON_CACHE", scratch, 1);
    question = (tni_question){.context = tni_context_current(), .op = &op};
    if (tni_problem_parse("fill:f32:shape=77,value=1", &op, none, sizeof none, &err) ||
        tn_device_get("cpu:0", &question.device, &err) ||
        tni_kernel_find("cpu.fill." BASE_ISA, &kernel, &err) || tn_log_set(&sink, &err))
        return 1;
    int failed = run_suite("unit.kept", tests);
    scratch_remove(scratch);
    return failed;
}
