/* The base floor without the text form: statuses, errors, sizes, text, names, log, allocator. */
#include "test.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/form.h"
#include "base/log.h"
#include "base/utf8.h"
#include "base/words.h"
#include "os/thread.h"
#include "tenon/module/module.h"
#include "tenon/status.h"
#include "tenon/version.h"

static void statuses_have_a_name_each(void **state)
{
    (void)state;
    for (tn_status a = 0; a < TN_STATUS_COUNT; a++) {
        assert_true(tn_status_name(a)[0] && tn_status_meaning(a)[0]);
        assert_string_not_equal(tn_status_name(a), "unknown");
        for (tn_status b = 0; b < a; b++)
            assert_string_not_equal(tn_status_name(a), tn_status_name(b));
    }
    assert_string_equal(tn_status_name(TN_OK), "ok");
    assert_string_equal(tn_status_name(TN_OUT_OF_MEMORY), "out-of-memory");
    assert_string_equal(tn_status_name(-1), "unknown");
    assert_string_equal(tn_status_name(TN_STATUS_COUNT), "unknown");
    assert_string_equal(tn_status_name(INT32_MIN), "unknown");
    assert_contains(tn_status_meaning(INT32_MAX), "unknown to this version");
}

static bool is_text(const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        size_t size = tni_utf8_size(text, left);
        if (size == 0)
            return false;
        text += size;
        left -= size;
    }
    return true;
}

static void errors_are_filled_whole(void **state)
{
    tn_error err;
    (void)state;
    memset(&err, 0x5a, sizeof err);
    assert_int_equal(tn_fail(&err, TN_IO, 42, "open", "%s: %d", "x", 7), TN_IO);
    assert_int_equal(err.status, TN_IO);
    assert_int_equal(err.native_code, 42);
    assert_string_equal(err.where, "open");
    assert_string_equal(err.message, "x: 7");
    assert_int_equal(tn_fail(&err, TN_BUSY, 0, NULL, "%s", ""), TN_BUSY);
    assert_string_equal(err.where, "");
    assert_string_equal(err.message, "");
    assert_int_equal(tn_fail(NULL, TN_BUSY, 0, "x", "%s", "x"), TN_BUSY);
}

/* Characters of one to four bytes, at every offset from the place of the cut. */
static void long_errors_are_cut_between_characters(void **state)
{
    static const char *const characters[] = {"x", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x9a\xaa"};
    tn_error err;
    (void)state;
    for (size_t c = 0; c < 4; c++) {
        for (size_t shift = 0; shift < 4; shift++) {
            char text[2000] = "....";
            size_t size = strlen(characters[c]), length = shift;
            for (; length + size < sizeof text - 1; length += size)
                memcpy(text + length, characters[c], size + 1);
            tn_fail(&err, TN_IO, 0, text, "%s", text);
            size_t kept = strlen(err.message), where = strlen(err.where);
            assert_in_range(kept, sizeof err.message - 4, sizeof err.message - 1);
            assert_in_range(where, sizeof err.where - 4, sizeof err.where - 1);
            assert_string_equal(err.message + kept - 3, "...");
            assert_string_equal(err.where + where - 3, "...");
            assert_true(is_text(err.message) && is_text(err.where));
            assert_memory_equal(err.message, text, kept - 3);
        }
    }
}

static void text_that_just_fits_is_not_cut(void **state)
{
    char to[8];
    (void)state;
    tn_text_fit(to, sizeof to, "1234567");
    assert_string_equal(to, "1234567");
    tn_text_fit(to, sizeof to, "12345678");
    assert_string_equal(to, "1234...");
    tn_text_fit(to, 4, "12345678");
    assert_string_equal(to, "...");
    tn_text_fit(to, sizeof to, "\x80\x80\x80\x80\x80\x80\x80\x80"); /* no character begins */
    assert_string_equal(to, "...");
}

/* Paths lose leading folders before anything else goes, and none is cut. */
static void paths_are_not_cut(void **state)
{
    static const char text[] = "TENON_LOCK: /tmp/one/two/c.lock: No such file or directory";
    static const struct {
        size_t size;
        const char *from, *kept;
    } cases[] = {
        {sizeof text, text, text},
        {sizeof text - 1, text, "TENON_LOCK: .../one/two/c.lock: No such file or directory"},
        {sizeof text - 2, text, "TENON_LOCK: .../two/c.lock: No such file or directory"},
        {sizeof text - 6, text, "TENON_LOCK: .../c.lock: No such file or directory"},
        {sizeof text - 10, text, "TENON_LOCK: /tmp/one/two/c.lock: No such file..."},
        {30, text, "TENON_LOCK: ..."},
        {12, "/tmp/one/x.so", ".../x.so"},
        {12, "/tmp-0123456789", "/tmp-012..."}, /* a name that does not fit by itself */
        {16, "in (/a/b:/c/d/e/f)", "in (/a/b:.../f)"},
        {16, "matmul/library:openblas", "matmul/libra..."},
        {20, "rule matmul/library:openblas", "rule ..."},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char to[sizeof text];
        tn_text_fit(to, cases[i].size, cases[i].from);
        assert_string_equal(to, cases[i].kept);
    }
}

static uint64_t random_state = 0x9e3779b97f4a7c15u;

/* Of every width alike, so that sums and products lie on both sides of the limits. */
static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> (random_state & 63);
}

static void check_sizes(size_t a, size_t b)
{
    size_t expected, found = 77;
    bool fits = !__builtin_add_overflow(a, b, &expected);
    assert_int_equal(tni_add_size(a, b, &found), fits);
    assert_int_equal(found, fits ? expected : 77);
    found = 77;
    fits = !__builtin_mul_overflow(a, b, &expected);
    assert_int_equal(tni_mul_size(a, b, &found), fits);
    assert_int_equal(found, fits ? expected : 77);
}

static void check_i64(int64_t a, int64_t b)
{
    int64_t expected, found = 77;
    bool fits = !__builtin_add_overflow(a, b, &expected);
    assert_int_equal(tni_add_i64(a, b, &found), fits);
    assert_int_equal(found, fits ? expected : 77);
    found = 77;
    fits = !__builtin_mul_overflow(a, b, &expected);
    assert_int_equal(tni_mul_i64(a, b, &found), fits);
    assert_int_equal(found, fits ? expected : 77);
}

static void sums_and_products_never_wrap(void **state)
{
    // clang-format off
    static const uint64_t edges[] = {
        0, 1, 2, 3, 0x7fffffff, 0x80000000, 0xb504f333, 0xffffffff, 0x100000000, 0x3fffffffffffffff,
        0x4000000000000000, 0x7ffffffffffffffe, 0x7fffffffffffffff, 0x8000000000000000,
        0x8000000000000001, 0xc000000000000000, 0xfffffffffffffffe, 0xffffffffffffffff};
    // clang-format on
    enum { EDGES = sizeof edges / sizeof edges[0] };
    (void)state;
    for (size_t i = 0; i < EDGES * EDGES; i++) {
        uint64_t a = edges[i / EDGES], b = edges[i % EDGES];
        check_sizes((size_t)a, (size_t)b);
        check_i64((int64_t)a, (int64_t)b);
    }
    for (int i = 0; i < 20000; i++) {
        uint64_t a = random_number(), b = random_number();
        check_sizes((size_t)a, (size_t)b);
        check_i64((int64_t)a, (int64_t)b);
        check_i64((int64_t)(0 - a), (int64_t)b);
    }
}

static void sizes_are_aligned_without_wrapping(void **state)
{
    (void)state;
    for (size_t align = 1; align <= (size_t)1 << 20; align *= 2) {
        for (int i = 0; i < 500; i++) {
            size_t size = i < 4 ? SIZE_MAX - (size_t)i : (size_t)random_number(), found = 77;
            size_t rest = size & (align - 1), more = rest ? align - rest : 0, expected;
            bool fits = !__builtin_add_overflow(size, more, &expected);
            /* The sum on the way may wrap where the result would not: that is refused as well. */
            if (tni_align_size(size, align, &found))
                assert_true(fits && found == expected);
            else
                assert_true(size > SIZE_MAX - align && found == 77);
        }
    }
}

static void buffer_grows_and_gives_its_text(void **state)
{
    tni_buffer buffer = {0};
    (void)state;
    assert_string_equal(tni_buffer_text(&buffer), "");
    for (int i = 0; i < 1000; i++) {
        tni_buffer_add(&buffer, "ab");
        tni_buffer_add_char(&buffer, 'c');
        tni_buffer_add_part(&buffer, "defg", 2);
        tni_buffer_format(&buffer, "%03d", i);
    }
    assert_int_equal(buffer.length, 8000);
    assert_int_equal(strlen(buffer.text), 8000);
    assert_memory_equal(buffer.text + 7992, "abcde999", 8);
    tni_buffer_release(&buffer);
    assert_int_equal(buffer.length, 0);
    assert_string_equal(tni_buffer_text(&buffer), "");
    tni_buffer_add_part(&buffer, "a\0b", 3);
    assert_int_equal(buffer.length, 3);
    char *text = tni_buffer_detach(&buffer);
    assert_memory_equal(text, "a\0b", 4);
    tni_release(text);
    assert_null(buffer.text);
    text = tni_buffer_detach(&buffer);
    assert_string_equal(text, "");
    tni_release(text);
    tni_buffer_release(&buffer);
}

static void names_are_legal_or_not(void **state)
{
    static const char *const legal[] = {"a", "0", "acme", "acme-2_x", "7up"};
    static const char *const illegal[] = {"",      "-a",    "_a",   "Acme",     "a b",  "a.b",
                                          "a/b",   "a\n",   "a\t",  "\xc3\xa4", "a:0",  "a@b",
                                          "a\x7f", "a\x80", "a\\b", "../x",     "a\"b", ".a"};
    char name[TNI_NAME_MAX + 2];
    (void)state;
    for (size_t i = 0; i < sizeof legal / sizeof legal[0]; i++)
        assert_true(tni_name_is_legal(legal[i], "", TNI_NAME_MAX));
    for (size_t i = 0; i < sizeof illegal / sizeof illegal[0]; i++)
        assert_false(tni_name_is_legal(illegal[i], "", TNI_NAME_MAX));
    assert_true(tni_name_is_legal("acme.matmul", ".", TNI_NAME_MAX));
    assert_false(tni_name_is_legal(".acme", ".", TNI_NAME_MAX));
    memset(name, 'x', sizeof name);
    name[TNI_NAME_MAX + 1] = '\0';
    assert_false(tni_name_is_legal(name, "", TNI_NAME_MAX));
    name[TNI_NAME_MAX] = '\0';
    assert_true(tni_name_is_legal(name, "", TNI_NAME_MAX));
}

static void nearest_word_is_found(void **state)
{
    static const char *const words[] = {"modules", "doctor", "version", "devices"};
    static const struct {
        const char *word, *nearest;
    } cases[] = {
        {"modules", "modules"},
        {"module", "modules"},
        {"modlues", "modules"},
        {"Doctor", "doctor"},
        {"DOCTOR", "doctor"},
        {"dcotor", "doctor"},
        {"verison", "version"},
        {"device", "devices"},
        {"settings", NULL},
        {"x", NULL},
        {"", NULL},
        {"moduless", "modules"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *found = tni_words_nearest(cases[i].word, words, 4);
        if (cases[i].nearest)
            assert_string_equal(found, cases[i].nearest);
        else
            assert_null(found);
    }
    assert_null(tni_words_nearest("modules", words, 0));
    const char *const equals[] = {"cat", "bat"};
    assert_string_equal(tni_words_nearest("hat", equals, 2), "cat"); /* the first of equals */
    const char *const spellings[] = {"CAT", "cat"};
    assert_string_equal(tni_words_nearest("cat", spellings, 2), "cat");
}

static void words_are_joined_and_cut(void **state)
{
    static const char *const words[] = {"one", "two", "three"};
    char room[16], exact[9];
    (void)state;
    tni_words_join(words, 0, room, sizeof room);
    assert_string_equal(room, "");
    tni_words_join(words, 3, room, sizeof room);
    assert_string_equal(room, "one, two, three");
    tni_words_join(words, 2, exact, sizeof exact);
    assert_string_equal(exact, "one, two");
    tni_words_join(words, 3, exact, sizeof exact); /* full before the last one */
    assert_string_equal(exact, "one, ...");
    tni_words_join(words, 3, room, sizeof room - 1);
    assert_string_equal(room, "one, two, t...");
}

static void words_are_the_same_in_any_case(void **state)
{
    (void)state;
    assert_true(tni_words_same("", "") && tni_words_same("GPU-1a", "gpu-1A"));
    assert_false(tni_words_same("a", "") || tni_words_same("", "a") ||
                 tni_words_same("ab", "abc") || tni_words_same("a[", "a{"));
}

static void dtypes_have_words(void **state)
{
    (void)state;
#define CHECK(name, word, code, bits)               \
    assert_string_equal(tn_dtype_name(name), word); \
    assert_int_equal(tni_dtype_find(word), name);   \
    assert_int_equal(tni_dtype_bytes(name), (bits) / 8);
    TN_DTYPE_LIST(CHECK)
#undef CHECK
    assert_null(tn_dtype_name(TN_DTYPE_NONE));
    assert_null(tn_dtype_name(TN_DTYPE(TN_DTYPE_CODE_FLOAT, 32, 4)));
    assert_int_equal(tni_dtype_find("F32"), TN_DTYPE_NONE);
    assert_int_equal(tni_dtype_bytes(7), 0);
    assert_string_equal(tni_dtype_nearest("bf61"), "bf16");
    assert_null(tni_dtype_nearest("quaternion"));
}

static void strangers_words_are_made_text(void **state)
{
    static const struct {
        const char *said, *kept;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"\xc3\xa4 \xe2\x82\xac", "\xc3\xa4 \xe2\x82\xac"},
        {"a\nb\tc\x7f", "a?b?c?"},
        {"ger\xe4t", "ger?t"},
        {"\xc3", "?"},
        {"\xed\xa0\x80", "???"}, /* half of a pair that UTF-16 would need */
        {"\xc0\x80", "??"},
        {"a\xc2\x9b"
         "b\xc2\xa0",
         "a??b\xc2\xa0"}, /* U+009B is a control character, U+00A0 is none */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s", cases[i].said);
        tni_words_clean(text);
        assert_string_equal(text, cases[i].kept);
    }
    tn_error err = {0};
    assert_string_equal(tni_words_of(&err), "it gave no reason");
    assert_string_equal(tni_words_sanitizer(0), "no sanitizer");
    assert_string_equal(tni_words_sanitizer(TN_MODULE_SANITIZER_THREAD), "the thread sanitizer");
}

static void messages_escape_what_they_quote(void **state)
{
    static const struct {
        const char *said, *shown;
        size_t size;
    } cases[] = {
        {"", "", 32},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", 32},
        {"a\nb\x1b[1m\x7f", "a\\x0ab\\x1b[1m\\x7f", 32},
        {"\xff", "\\xff", 32},
        {"ger\xe4t", "ger\\xe4t", 32},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80", 32}, /* half of a pair that UTF-16 would need */
        {"\xc0\x80", "\\xc0\\x80", 32},
        {"a\xc2\x9b"
         "b\xc2\xa0",
         "a\\xc2\\x9b"
         "b\xc2\xa0",
         32},
        {"a\xff"
         "bcd",
         "a...", 8},
        {"\xff\xff\xff", "\\xff...", 8},
        {"\xff", "\\xff", 5},
        {"\xff", "...", 4},
    };
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s", cases[i].said);
        tn_text_escape(text, cases[i].size);
        assert_string_equal(text, cases[i].shown);
        tn_fail(&err, TN_IO, 0, "x", "\"%s\"", cases[i].said);
        assert_null(strpbrk(err.message, "\n\x1b\x7f\xff"));
    }
    assert_int_equal(tn_log_level_parse("\xff", &(int32_t){0}, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "unknown log level \"\\xff\": expected off, ");
}

/* What a sink has heard. */
typedef struct heard {
    int count;
    int32_t level;
    char text[1100];
} heard;

static void hear(void *user, int32_t level, const char *text)
{
    heard *to = user;
    to->count++;
    to->level = level;
    snprintf(to->text, sizeof to->text, "%s", text);
    tni_log(TN_LOG_ERROR, "a sink that says something itself"); /* is dropped */
}

static void sink_hears_its_level_and_graver(void **state)
{
    heard to = {0};
    tn_log_sink sink = {.struct_size = sizeof sink, .write = hear, .user = &to};
    (void)state;
    for (int32_t hears = TN_LOG_OFF; hears <= TN_LOG_DEBUG; hears++) {
        sink.level = hears;
        assert_int_equal(tn_log_set(&sink, NULL), TN_OK);
        for (int32_t level = TN_LOG_ERROR; level <= TN_LOG_DEBUG; level++) {
            to.count = 0;
            tni_log(level, "level %d", (int)level);
            assert_int_equal(to.count, level <= hears);
            if (to.count)
                assert_int_equal(to.level, level);
        }
    }
    assert_string_equal(to.text, "level 4");
    tni_log(TN_LOG_ERROR, "one\ntenon: error: forged\033[31m \xff");
    assert_null(strpbrk(to.text, "\n\033\xff")); /* one line, whatever a stranger says */
    assert_contains(to.text, "forged");
    assert_int_equal(tn_log_set(NULL, NULL), TN_OK);
    tni_log(TN_LOG_ERROR, "to no one");
    assert_int_equal(to.count, 2);
}

static void lines_are_kept_until_they_are_taken(void **state)
{
    char text[32] = "";
    int32_t level = -1;
    tn_error err;
    (void)state;
    tni_log(TN_LOG_ERROR, "nobody keeps it");
    assert_int_equal(tn_log_kept(), 0);
    assert_int_equal(tn_log_keep(TN_LOG_DEBUG + 1, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "expected a level from 0 (off) to 4 (debug), got 5");
    assert_int_equal(tn_log_keep(TN_LOG_WARNING, NULL), TN_OK);
    for (int round = 0; round < 3; round++) { /* the queue goes around */
        for (int i = 0; i < 100; i++) {
            tni_log(TN_LOG_WARNING, "line %d", i);
            tni_log(TN_LOG_INFO, "not wanted");
        }
        assert_int_equal(tn_log_kept(), 64); /* the others found no room */
        assert_int_equal(tn_log_take(NULL, text, sizeof text), 0);
        for (int i = 0; i < 64; i++) {
            char expected[16];
            snprintf(expected, sizeof expected, "line %d", i);
            assert_int_equal(tn_log_take(&level, text, sizeof text), 1);
            assert_string_equal(text, expected);
            assert_int_equal(level, TN_LOG_WARNING);
        }
        assert_int_equal(tn_log_take(&level, text, sizeof text), 0);
    }
    tni_log(TN_LOG_ERROR, "a line that is longer than the room for it");
    assert_int_equal(tn_log_take(&level, text, sizeof text), 1);
    assert_int_equal(strlen(text), sizeof text - 1);
    assert_int_equal(level, TN_LOG_ERROR);
    assert_int_equal(tn_log_keep(TN_LOG_OFF, NULL), TN_OK);
    tni_log(TN_LOG_ERROR, "no more");
    assert_int_equal(tn_log_kept(), 0);
}

/* Every line is taken once, whoever writes and takes at the same time. */
static void keep_many(void *user)
{
    for (int i = 0; i < 10000; i++) {
        char text[64];
        int32_t level;
        tni_log(TN_LOG_WARNING, "%s %d", (const char *)user, i);
        if (tn_log_take(&level, text, sizeof text))
            assert_int_equal(level, TN_LOG_WARNING);
    }
}

static void many_threads_keep_and_take(void **state)
{
    tni_thread threads[3];
    char text[64];
    int32_t level;
    (void)state;
    assert_int_equal(tn_log_keep(TN_LOG_WARNING, NULL), TN_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            tni_thread_create(&threads[i], keep_many, (void *)(uintptr_t) "a line", NULL), TN_OK);
    for (int i = 0; i < 3; i++)
        tni_thread_join(threads[i]);
    while (tn_log_take(&level, text, sizeof text))
        assert_contains(text, "a line ");
    assert_int_equal(tn_log_kept(), 0);
    assert_int_equal(tn_log_keep(TN_LOG_OFF, NULL), TN_OK);
}

static void long_lines_are_cut_for_the_sink(void **state)
{
    heard to = {0};
    const tn_log_sink sink = {
        .struct_size = sizeof sink, .write = hear, .user = &to, .level = TN_LOG_INFO};
    char line[3000] = "";
    (void)state;
    for (size_t i = 0; i + 2 < sizeof line; i += 2)
        memcpy(line + i, "\xc3\xa4", 3);
    assert_int_equal(tn_log_set(&sink, NULL), TN_OK);
    for (int shift = 0; shift < 2; shift++) {
        tni_log(TN_LOG_INFO, "%s%s", shift ? "." : "", line);
        assert_true(is_text(to.text));
        assert_in_range(strlen(to.text), 1020, 1023);
        assert_string_equal(to.text + strlen(to.text) - 3, "...");
    }
    assert_int_equal(tn_log_set(NULL, NULL), TN_OK);
}

static void invalid_sinks_change_nothing(void **state)
{
    heard to = {0};
    const tn_log_sink good = {
        .struct_size = sizeof good, .write = hear, .user = &to, .level = TN_LOG_INFO};
    tn_log_sink bad = good;
    tn_error err;
    (void)state;
    assert_int_equal(tn_log_set(&good, NULL), TN_OK);
    bad.write = NULL;
    assert_int_equal(tn_log_set(&bad, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "sink->write is NULL");
    bad = good;
    bad.level = TN_LOG_DEBUG + 1;
    assert_int_equal(tn_log_set(&bad, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "sink->level: expected 0 (off) to 4 (debug), got 5");
    bad.level = -1;
    assert_int_equal(tn_log_set(&bad, &err), TN_INVALID_ARGUMENT);
    bad = good;
    bad.struct_size = offsetof(tn_log_sink, level);
    assert_int_equal(tn_log_set(&bad, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "sink->struct_size: expected at least");
    tni_log(TN_LOG_INFO, "still heard");
    assert_string_equal(to.text, "still heard");
    assert_int_equal(tn_log_set(NULL, NULL), TN_OK);
}

static void levels_have_names(void **state)
{
    int32_t level = 77;
    tn_error err;
    (void)state;
    for (int32_t i = TN_LOG_OFF; i <= TN_LOG_DEBUG; i++) {
        assert_int_equal(tn_log_level_parse(tn_log_level_name(i), &level, &err), TN_OK);
        assert_int_equal(level, i);
    }
    assert_string_equal(tn_log_level_name(-1), "unknown");
    assert_string_equal(tn_log_level_name(TN_LOG_DEBUG + 1), "unknown");
    level = 77;
    assert_int_equal(tn_log_level_parse("warn ing", &level, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message,
                    "expected off, error, warning, info or debug; did you mean warning?");
    assert_int_equal(tn_log_level_parse("zzzzzz", &level, &err), TN_INVALID_ARGUMENT);
    assert_null(strstr(err.message, "did you mean"));
    assert_int_equal(tn_log_level_parse(NULL, &level, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_log_level_parse("off", NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(level, 77);
}

/* An allocator that counts, and can have nothing to give. */
typedef struct store {
    int64_t given, taken;
    bool empty;
} store;

/* The block that malloc gave is noted before the one handed out. */
static void *store_alloc(void *self, size_t size, size_t align)
{
    store *from = self;
    assert_true(size > 0 && align >= sizeof(void *) && (align & (align - 1)) == 0);
    if (from->empty)
        return NULL;
    char *block = malloc(size + align + sizeof block);
    assert_non_null(block);
    uintptr_t start = ((uintptr_t)block + sizeof block + align - 1) & ~(uintptr_t)(align - 1);
    char *memory = block + (start - (uintptr_t)block);
    memcpy(memory - sizeof block, &block, sizeof block);
    from->given++;
    return memory;
}

static void store_release(void *self, void *memory)
{
    store *from = self;
    char *block;
    assert_non_null(memory);
    memcpy(&block, (char *)memory - sizeof block, sizeof block);
    free(block);
    from->taken++;
}

static tn_allocator allocator_of(store *from)
{
    return (tn_allocator){.struct_size = sizeof(tn_allocator),
                          .self = from,
                          .alloc = store_alloc,
                          .release = store_release};
}

static void allocator_gets_every_block_back(void **state)
{
    store from = {0};
    tn_allocator allocator = allocator_of(&from);
    tni_buffer text = {0};
    tni_form *form = NULL;
    (void)state;
    assert_int_equal(tn_allocator_blocks(), 0);
    assert_int_equal(tn_allocator_set(&allocator, NULL), TN_OK);
    memset(&allocator, 0, sizeof allocator); /* the library has a copy */
    void *wide = tni_alloc_aligned(100, 4096), *none = tni_alloc(0);
    assert_int_equal((uintptr_t)wide % 4096, 0);
    assert_non_null(none);
    tni_buffer_format(&text, "key = %0200d\n", 7);
    assert_int_equal(tni_form_parse(text.text, text.length, "test", &form, NULL), TN_OK);
    assert_true(from.given >= 4);
    assert_int_equal(tn_allocator_blocks(), from.given - from.taken);
    tni_release(NULL);
    tni_release(wide);
    tni_release(none);
    tni_buffer_release(&text);
    tni_form_release(form);
    assert_int_equal(from.given, from.taken);
    assert_int_equal(tn_allocator_blocks(), 0);
    assert_int_equal(tn_allocator_set(NULL, NULL), TN_OK);
}

static void allocator_stays_while_blocks_are_in_use(void **state)
{
    store from = {0};
    const tn_allocator allocator = allocator_of(&from);
    tn_error err;
    (void)state;
    void *block = tni_alloc(1);
    assert_int_equal(tn_allocator_set(&allocator, &err), TN_BUSY);
    assert_contains(err.message, "1 blocks are in use");
    assert_int_equal(tn_allocator_set(NULL, &err), TN_BUSY);
    tni_release(block); /* where it came from */
    assert_int_equal(from.taken, 0);
    assert_int_equal(tn_allocator_set(&allocator, &err), TN_OK);
    assert_int_equal(tn_allocator_set(NULL, &err), TN_OK);
}

static void invalid_allocators_are_refused(void **state)
{
    store from = {0};
    tn_allocator bad = allocator_of(&from);
    tn_error err;
    (void)state;
    bad.alloc = NULL;
    assert_int_equal(tn_allocator_set(&bad, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "allocator->alloc is NULL");
    bad = allocator_of(&from);
    bad.release = NULL;
    assert_int_equal(tn_allocator_set(&bad, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "allocator->release is NULL");
    bad = allocator_of(&from);
    bad.struct_size--;
    assert_int_equal(tn_allocator_set(&bad, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "allocator->struct_size: expected at least");
    tni_release(tni_alloc(1));
    assert_int_equal(from.given, 0);
}

/* No other way to memory exists: where the hook has none, nothing does. */
static void empty_allocator_means_no_memory(void **state)
{
    store from = {.empty = true};
    const tn_allocator allocator = allocator_of(&from);
    tni_buffer text = {0};
    tni_form *form = NULL;
    void *array = NULL;
    size_t capacity = 0;
    tn_error err;
    (void)state;
    assert_int_equal(tn_allocator_set(&allocator, NULL), TN_OK);
    assert_null(tni_alloc(1));
    assert_null(tni_alloc_aligned(1, 64));
    assert_null(tni_alloc_zeroed(1, 1));
    assert_null(tni_text_copy("x"));
    assert_false(tni_array_reserve(&array, &capacity, 0, 1, 8));
    assert_int_equal(capacity, 0);
    assert_int_equal(tni_form_parse("a = b", 5, "test", &form, &err), TN_OUT_OF_MEMORY);
    tni_buffer_add(&text, "lost");
    from.empty = false;
    tni_buffer_add(&text, "lost too"); /* the failure sticks */
    assert_true(text.failed);
    assert_string_equal(tni_buffer_text(&text), "");
    assert_null(tni_buffer_detach(&text));
    tni_buffer_add(&text, "fresh");
    assert_string_equal(tni_buffer_text(&text), "fresh");
    tni_buffer_release(&text);
    assert_int_equal(tn_allocator_set(NULL, NULL), TN_OK);
}

static void arrays_grow_and_never_wrap(void **state)
{
    int *array = NULL;
    size_t capacity = 0;
    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        assert_true(tni_array_reserve((void **)&array, &capacity, i, i + 1, sizeof *array));
        array[i] = (int)i;
    }
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(array[i], i);
    size_t before = capacity;
    assert_false(tni_array_reserve((void **)&array, &capacity, 1000, SIZE_MAX / 2, sizeof *array));
    assert_int_equal(capacity, before);
    assert_int_equal(array[999], 999);
    tni_release(array);
    assert_null(tni_alloc_zeroed(SIZE_MAX / 2, 3));
    int *zeroed = tni_alloc_zeroed(100, sizeof *zeroed);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(zeroed[i], 0);
    tni_release(zeroed);
}

static void build_says_what_it_is(void **state)
{
    const tn_build *build = tn_build_get();
    char version[32];
    (void)state;
    assert_int_equal(build->struct_size, sizeof *build);
    snprintf(version, sizeof version, "%u.%u.%u", build->major, build->minor, build->patch);
    assert_string_equal(version, tn_version());
    assert_int_equal(build->module_abi_major, TN_MODULE_ABI_MAJOR);
    assert_int_equal(build->module_abi_minor, TN_MODULE_ABI_MINOR);
    assert_true(build->compiler[0] && build->target[0] && build->sanitizer[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_have_a_name_each),
        cmocka_unit_test(errors_are_filled_whole),
        cmocka_unit_test(long_errors_are_cut_between_characters),
        cmocka_unit_test(text_that_just_fits_is_not_cut),
        cmocka_unit_test(paths_are_not_cut),
        cmocka_unit_test(sums_and_products_never_wrap),
        cmocka_unit_test(sizes_are_aligned_without_wrapping),
        cmocka_unit_test(buffer_grows_and_gives_its_text),
        cmocka_unit_test(names_are_legal_or_not),
        cmocka_unit_test(nearest_word_is_found),
        cmocka_unit_test(words_are_joined_and_cut),
        cmocka_unit_test(words_are_the_same_in_any_case),
        cmocka_unit_test(dtypes_have_words),
        cmocka_unit_test(strangers_words_are_made_text),
        cmocka_unit_test(messages_escape_what_they_quote),
        cmocka_unit_test(sink_hears_its_level_and_graver),
        cmocka_unit_test(lines_are_kept_until_they_are_taken),
        cmocka_unit_test(many_threads_keep_and_take),
        cmocka_unit_test(long_lines_are_cut_for_the_sink),
        cmocka_unit_test(invalid_sinks_change_nothing),
        cmocka_unit_test(levels_have_names),
        cmocka_unit_test(allocator_gets_every_block_back),
        cmocka_unit_test(allocator_stays_while_blocks_are_in_use),
        cmocka_unit_test(invalid_allocators_are_refused),
        cmocka_unit_test(empty_allocator_means_no_memory),
        cmocka_unit_test(arrays_grow_and_never_wrap),
        cmocka_unit_test(build_says_what_it_is),
    };
    return run_suite("unit.base", tests);
}
