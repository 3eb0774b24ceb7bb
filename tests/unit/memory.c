/* Memory of devices: what is given, counted, kept, limited and refused. Copies are in
 * memory_copy.c, threads in memory_threads.c. */
#include "fault/fault.h"
#include "memory_spaces.h"

#include "tenon/log.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)

static char logged[1024];
static int log_lines;

static void hear(void *user, int32_t level, const char *text)
{
    (void)user;
    log_lines += level == TN_LOG_ERROR;
    tn_text_fit(logged, sizeof logged, text);
}

static const tn_log_sink ear = {.struct_size = sizeof ear, .write = hear, .level = TN_LOG_ERROR};

static tn_memory_stats stats_of(const tn_device *device)
{
    tn_memory_stats stats = {.struct_size = sizeof stats};
    tn_error err;
    if (tn_memory_stats_get(device, &stats, &err))
        fail_msg("%s", err.message);
    return stats;
}

static void *take(tn_device *device, uint64_t bytes, const char *label)
{
    void *memory = NULL;
    tn_error err;
    if (tn_memory_alloc(device, bytes, label, &memory, &err))
        fail_msg("%s", err.message);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 64, 0);
    return memory;
}

static void sizes_share_classes(void **state)
{
    static const uint64_t numbers[] = {0, 1, 63, 64, 65, 80, 81, 96, 97, 112, 113, 128, 129, 160};
    static const uint64_t rooms[] = {64, 64, 64, 64, 80, 80, 96, 96, 112, 112, 128, 128, 160, 160};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        assert_int_equal(tni_class_bytes(tni_class_of(numbers[i])), rooms[i]);
    for (int32_t i = 0; i < TNI_CLASSES; i++) {
        uint64_t most = tni_class_bytes(i);
        assert_int_equal(tni_class_of(most), i);
        assert_int_equal(tni_class_of(most - 1), i);
        assert_int_equal(tni_class_of(most + 1), i + 1 < TNI_CLASSES ? i + 1 : TNI_NO_CLASS);
    }
    assert_int_equal(tni_class_bytes(TNI_CLASSES - 1), MIB(32));
    assert_int_equal(tni_class_of(UINT64_MAX), TNI_NO_CLASS);
}

static void what_is_given_is_counted(void **state)
{
    spaces s;
    (void)state;
    spaces_make(&s);
    tn_memory_stats now = stats_of(s.north[0]);
    assert_int_equal(now.current | now.peak | now.count | now.allocations | now.kept | now.host |
                         now.limit | now.failures | now.wrong_frees,
                     0);
    void *a = take(s.north[0], 100, NULL), *b = take(s.north[0], 0, "empty");
    void *c = take(s.north[0], MIB(33), "large");
    assert_true(a != b);
    now = stats_of(s.north[0]);
    assert_int_equal(now.current, MIB(33) + 100);
    assert_int_equal(now.count, 3);
    assert_int_equal(now.allocations, 3);
    tn_memory_free(s.north[0], c);
    tn_memory_free(s.north[0], b);
    tn_memory_free(s.north[0], a);
    tn_memory_free(s.north[0], NULL);
    now = stats_of(s.north[0]);
    assert_int_equal(now.current, 0);
    assert_int_equal(now.peak, MIB(33) + 100);
    assert_int_equal(now.count, 0);
    assert_int_equal(now.allocations, 3);
    assert_int_equal(now.wrong_frees, 0);
    assert_int_equal(stats_of(s.north[1]).allocations, 0);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* No one but this call decides when the peak begins anew. */
static void the_peak_is_the_callers(void **state)
{
    spaces s;
    (void)state;
    spaces_make(&s);
    void *a = take(s.south[0], 1000, NULL), *b = take(s.south[0], 500, NULL);
    tn_memory_free(s.south[0], a);
    assert_int_equal(stats_of(s.south[0]).peak, 1500);
    assert_int_equal(stats_of(s.south[0]).peak, 1500);
    tn_memory_peak_reset(s.south[0]);
    assert_int_equal(stats_of(s.south[0]).peak, 500);
    a = take(s.south[0], 200, NULL);
    assert_int_equal(stats_of(s.south[0]).peak, 700);
    tn_memory_free(s.south[0], a);
    tn_memory_free(s.south[0], b);
    assert_int_equal(stats_of(s.south[0]).peak, 700);
    tn_memory_peak_reset(NULL);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void what_was_freed_is_used_again(void **state)
{
    spaces s;
    (void)state;
    spaces_make(&s);
    spaces_keep(s.north[0], true);
    void *a = take(s.north[0], 1000, NULL);
    assert_int_equal(space_look(NORTH).last_bytes, 1024);
    tn_memory_free(s.north[0], a);
    assert_int_equal(space_look(NORTH).frees, 0);
    assert_int_equal(stats_of(s.north[0]).kept, 1024);
    assert_int_equal(stats_of(s.north[0]).current, 0);
    assert_ptr_equal(take(s.north[0], 897, NULL), a); /* the least of its class */
    assert_int_equal(stats_of(s.north[0]).current, 897);
    assert_int_equal(stats_of(s.north[0]).kept, 0);
    void *b = take(s.north[0], 1024, NULL), *c = take(s.north[0], 1025, NULL);
    assert_int_equal(space_look(NORTH).allocs, 3);
    tn_memory_free(s.north[0], a);
    tn_memory_free(s.north[0], b);
    assert_int_equal(stats_of(s.north[0]).kept, 2048);
    void *d = take(s.north[0], 1030, NULL);
    assert_true(d != a && d != b);
    tn_memory_trim(s.north[0]);
    assert_int_equal(stats_of(s.north[0]).kept, 0);
    assert_int_equal(space_look(NORTH).frees, 2);
    assert_int_equal(space_look(NORTH).blocks, 2);
    tn_memory_trim(s.north[0]);
    tn_memory_trim(NULL);
    tn_memory_free(s.north[0], c);
    tn_memory_free(s.north[0], d);
    assert_int_equal(stats_of(s.north[0]).kept, 2 * 1280);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void builds_with_a_sanitizer_keep_nothing(void **state)
{
    spaces s;
    (void)state;
    spaces_make(&s);
    assert_int_equal(tni_memory_of(s.cpu)->keeps, TN_MODULE_BUILT_WITH == 0);
    spaces_keep(s.north[0], false);
    tn_memory_free(s.north[0], take(s.north[0], 1000, NULL));
    assert_int_equal(space_look(NORTH).last_bytes, 1000);
    assert_int_equal(space_look(NORTH).frees, 1);
    assert_int_equal(stats_of(s.north[0]).kept, 0);
    spaces_end(&s);
}

enum { MANY = 400 };

/* Frees `count` blocks of one size at once and gives what is kept of them. */
static int64_t kept_of(tn_device *device, int count, uint64_t bytes)
{
    void *blocks[MANY];
    spaces_keep(device, true);
    for (int i = 0; i < count; i++)
        blocks[i] = take(device, bytes, NULL);
    for (int i = 0; i < count; i++)
        tn_memory_free(device, blocks[i]);
    int64_t kept = stats_of(device).kept;
    tn_memory_trim(device);
    assert_int_equal(stats_of(device).kept, 0);
    return kept;
}

static void what_is_kept_is_bounded(void **state)
{
    spaces s;
    (void)state;
    atomic_store(&space_capacity, MIB(160));
    spaces_make(&s);
    assert_int_equal(kept_of(s.cpu, 5, MIB(32)), MIB(64));
    assert_int_equal(kept_of(s.cpu, 1, MIB(32) + 1), 0);
    assert_int_equal(kept_of(s.cpu, 3, MIB(20)), MIB(60));
    assert_int_equal(kept_of(s.south[0], 4, MIB(5)), MIB(10)); /* a sixteenth of what it has */
    assert_int_equal(kept_of(s.south[0], 1, MIB(11)), 0);
    int64_t many = kept_of(s.south[0], MANY, KIB(40));
    assert_true(many <= (int64_t)MIB(10) && many > (int64_t)MIB(8));
    assert_int_equal(kept_of(s.north[0], 2, MIB(32)), MIB(64)); /* it does not tell */
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void a_limit_is_kept(void **state)
{
    spaces s;
    void *none = &s;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    spaces_keep(s.south[0], true);
    void *a = take(s.south[0], KIB(3), "weights");
    assert_int_equal(tn_memory_limit_set(s.south[0], (int64_t)KIB(4), &err), TN_OK);
    assert_int_equal(stats_of(s.south[0]).limit, KIB(4));
    assert_int_equal(tn_memory_alloc(s.south[0], KIB(1) + 1, NULL, &none, &err), TN_OUT_OF_MEMORY);
    assert_string_equal(err.message,
                        "south:0: 1.0 KiB asked; 1.0 GiB of 1.0 GiB free; limit 4.0 KiB, 3.0 "
                        "KiB of it allocated; largest users: weights (3.0 KiB)");
    assert_string_equal(err.where, "tn_memory_alloc");
    assert_ptr_equal(none, &s);
    assert_int_equal(stats_of(s.south[0]).failures, 1);
    assert_int_equal(stats_of(s.south[0]).current, KIB(3));
    void *b = take(s.south[0], KIB(1), NULL);
    assert_int_equal(tn_memory_alloc(s.south[0], 1, NULL, &none, NULL), TN_OUT_OF_MEMORY);
    void *c = take(s.south[0], 0, NULL);
    assert_int_equal(tn_memory_limit_set(s.south[0], 1, &err), TN_OK); /* what is held stays */
    tn_memory_free(s.south[0], take(s.south[0], 0, NULL));
    tn_memory_free(s.south[0], b);
    assert_int_equal(tn_memory_alloc(s.south[0], 1, NULL, &none, NULL), TN_OUT_OF_MEMORY);
    assert_int_equal(tn_memory_limit_set(s.south[0], -1, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "0 (none) or more bytes, got -1");
    assert_int_equal(tn_memory_limit_set(NULL, 1, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(stats_of(s.south[0]).limit, 1);
    assert_int_equal(tn_memory_limit_set(s.south[0], 0, &err), TN_OK);
    b = take(s.south[0], KIB(100), NULL);
    tn_memory_free(s.south[0], a);
    tn_memory_free(s.south[0], b);
    tn_memory_free(s.south[0], c);
    assert_int_equal(tn_memory_alloc(s.south[0], (uint64_t)INT64_MAX + 1, NULL, &none, &err),
                     TN_OUT_OF_MEMORY);
    assert_contains(err.message, "south:0: 8.0 EiB asked; ");
    assert_contains(err.message, "; no limit; nothing is allocated");
    spaces_end(&s);
}

/* What is kept is no reason to go above a limit, nor to refuse what is below. */
static void a_limit_counts_what_is_kept(void **state)
{
    spaces s;
    tn_error err;
    (void)state;
    spaces_make(&s);
    spaces_keep(s.north[0], true);
    tn_memory_free(s.north[0], take(s.north[0], KIB(8), NULL));
    assert_int_equal(tn_memory_limit_set(s.north[0], (int64_t)KIB(12), &err), TN_OK);
    assert_int_equal(stats_of(s.north[0]).kept, KIB(8));
    void *a = take(s.north[0], KIB(5), NULL);
    assert_int_equal(stats_of(s.north[0]).kept, 0);
    assert_int_equal(space_look(NORTH).in_use, KIB(5));
    tn_memory_free(s.north[0], a);
    assert_int_equal(stats_of(s.north[0]).kept, KIB(5));
    assert_int_equal(tn_memory_limit_set(s.north[0], (int64_t)KIB(4), &err), TN_OK);
    assert_int_equal(stats_of(s.north[0]).kept, 0);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void want_of_memory_is_explained(void **state)
{
    spaces s;
    void *none = &s;
    tn_error err = {0};
    (void)state;
    atomic_store(&space_capacity, MIB(16));
    spaces_make(&s);
    spaces_keep(s.south[0], false);
    void *a = take(s.south[0], MIB(8), "kv-cache"), *b = take(s.south[0], MIB(3), "weights");
    void *c = take(s.south[0], KIB(1536), NULL), *d = take(s.south[0], KIB(4), "small");
    assert_int_equal(tn_memory_alloc(s.south[0], MIB(12), "more", &none, &err), TN_OUT_OF_MEMORY);
    assert_string_equal(
        err.message, "south:0: 12.0 MiB asked; 3.5 MiB of 16.0 MiB free; no limit; largest "
                     "users: kv-cache (8.0 MiB), weights (3.0 MiB), no label (1.5 MiB); no room");
    assert_int_equal(err.native_code, 2);
    assert_ptr_equal(none, &s);
    assert_int_equal(stats_of(s.south[0]).current, MIB(11) + KIB(1540));
    assert_int_equal(stats_of(s.south[0]).peak, MIB(11) + KIB(1540));
    tn_memory_free(s.south[0], a);
    assert_int_equal(tn_memory_alloc(s.south[0], MIB(13), NULL, &none, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message,
                    "largest users: weights (3.0 MiB), no label (1.5 MiB), small (4.0 KiB)");
    assert_int_equal(tn_memory_alloc(s.north[0], MIB(17), NULL, &none, &err), TN_OUT_OF_MEMORY);
    assert_string_equal(err.message, "north:0: 17.0 MiB asked; free unknown; no limit; nothing is "
                                     "allocated; no room");
    assert_int_equal(stats_of(s.south[0]).failures, 2);
    tn_memory_free(s.south[0], b);
    tn_memory_free(s.south[0], c);
    tn_memory_free(s.south[0], d);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* Rounding and keeping never cost a program memory that the device has. */
static void want_of_memory_gives_back_what_is_kept(void **state)
{
    spaces s;
    (void)state;
    atomic_store(&space_capacity, KIB(64));
    spaces_make(&s);
    spaces_keep(s.north[0], true);
    for (int i = 0; i < 4; i++)
        tn_memory_free(s.north[0], take(s.north[0], KIB(4 * i + 4), NULL));
    assert_int_equal(stats_of(s.north[0]).kept, KIB(40));
    void *a = take(s.north[0], 33000, NULL);
    assert_int_equal(stats_of(s.north[0]).kept, 0);
    assert_int_equal(space_look(NORTH).last_bytes, 33000);
    void *b = take(s.north[0], KIB(64) - 33000, NULL);
    assert_int_equal(space_look(NORTH).last_bytes, KIB(64) - 33000);
    assert_int_equal(space_look(NORTH).in_use, KIB(64));
    tn_memory_free(s.north[0], a);
    tn_memory_free(s.north[0], b);
    assert_int_equal(stats_of(s.north[0]).kept, 0); /* of no class: they went back */
    assert_int_equal(stats_of(s.north[0]).failures, 0);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void labels_are_bounded(void **state)
{
    spaces s;
    void *blocks[100], *none;
    tn_error err = {0};
    (void)state;
    atomic_store(&space_capacity, MIB(1));
    spaces_make(&s);
    spaces_keep(s.south[0], false);
    for (int i = 0; i < 100; i++) {
        char label[64];
        snprintf(label, sizeof label, "request %d", i);
        blocks[i] = take(s.south[0], i < 63 ? 1 : 1024, label);
    }
    assert_int_equal(tn_memory_alloc(s.south[0], MIB(1), NULL, &none, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message,
                    "largest users: others (36.0 KiB), request 63 (1.0 KiB), request 0 (1 B)");
    for (int i = 0; i < 100; i++)
        tn_memory_free(s.south[0], blocks[i]);
    assert_int_equal(tn_memory_alloc(s.south[0], MIB(2), NULL, &none, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "nothing is allocated");
    void *a = take(s.south[0], 7, "request 62"); /* one that it knows it counts */
    assert_int_equal(tn_memory_alloc(s.south[0], MIB(2), NULL, &none, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "largest users: request 62 (7 B)");
    tn_memory_free(s.south[0], a);
    spaces_end(&s);
}

/* However many there were: those that hold something now have names. */
static void labels_that_hold_nothing_make_room(void **state)
{
    spaces s;
    void *old = NULL, *none;
    tn_error err = {0};
    (void)state;
    atomic_store(&space_capacity, MIB(1));
    spaces_make(&s);
    void *first = take(s.north[0], 3000, "the first");
    for (int i = 0; i < 1000; i++) {
        char label[64];
        snprintf(label, sizeof label, "request %d", i);
        void *fresh = take(s.north[0], 2000, label);
        tn_memory_free(s.north[0], old);
        old = fresh;
    }
    void *pinned = NULL;
    assert_int_equal(tn_memory_host_alloc(s.north[0], 10, "request 999", &pinned, &err), TN_OK);
    assert_int_equal(tn_memory_alloc(s.north[0], MIB(2), NULL, &none, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "largest users: the first (2.9 KiB), request 999 (2.0 KiB)");
    assert_null(strstr(err.message, "others"));
    tn_memory_host_free(s.north[0], pinned);
    tn_memory_free(s.north[0], old);
    tn_memory_free(s.north[0], first);
    spaces_end(&s);
}

static void labels_are_cut_and_cleaned(void **state)
{
    static const char longer[] = "a label of thirty-one bytes and then some";
    spaces s;
    void *none;
    tn_error err = {0};
    (void)state;
    atomic_store(&space_capacity, MIB(1));
    spaces_make(&s);
    void *a = take(s.north[0], 5, longer),
         *b = take(s.north[0], 6, "a label of thirty-one bytes and ");
    void *e = take(s.north[0], 9, "thirty bytes and half a letter\xc3\xa9");
    void *c = take(s.north[0], 20, "line\nbreak");
    assert_int_equal(tn_memory_alloc(s.north[0], MIB(2), NULL, &none, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message,
                    "largest users: line?break (20 B), a label of thirty-one bytes and (11 B), "
                    "thirty bytes and half a letter? (9 B)");
    void *const all[] = {a, b, c, e};
    for (size_t i = 0; i < 4; i++)
        tn_memory_free(s.north[0], all[i]);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* One that begins another is not that one. */
static void labels_are_told_apart(void **state)
{
    tni_labels labels;
    char text[TNI_LABEL_TEXT + 1];
    bool seen[TNI_LABEL_ROWS] = {false};
    (void)state;
    memset(&labels, 0, sizeof labels);
    tni_labels_init(&labels);
    for (int round = 0; round < 2; round++) {
        for (size_t length = 31; length > 0; length--) {
            for (char letter = 'a'; letter <= 'b'; letter++) {
                memset(text, letter, length);
                text[length] = '\0';
                char there[TNI_LABEL_TEXT];
                uint8_t row = tni_labels_add(&labels, text, TNI_OF_DEVICE, 1);
                assert_int_equal(seen[row], round == 1);
                tni_labels_text(&labels, row, there);
                assert_string_equal(there, text);
            }
        }
        for (size_t i = 1; i <= 62; i++)
            seen[i] = true;
    }
    assert_int_equal(tni_labels_add(&labels, NULL, TNI_OF_HOST, 1), TNI_LABEL_NONE);
    assert_int_equal(tni_labels_add(&labels, "", TNI_OF_HOST, 1), TNI_LABEL_NONE);
}

static void wrong_frees_change_nothing(void **state)
{
    spaces s;
    char words[128];
    (void)state;
    spaces_make(&s);
    assert_int_equal(tn_log_set(&ear, NULL), TN_OK);
    log_lines = 0;
    tn_memory_free(s.north[0], &s); /* before it ever gave anything */
    assert_contains(logged, "north:0: 0x");
    char *a = take(s.north[0], 100, NULL);
    tn_memory_free(s.north[0], a + 1);
    tn_memory_free(s.north[1], a);
    snprintf(words, sizeof words,
             "north:1: %p is not freed: it is not an allocation of this device", (void *)a);
    assert_contains(logged, words);
    tn_memory_host_free(s.north[0], a);
    assert_contains(logged, "it is not allocated host memory of this device");
    assert_int_equal(stats_of(s.north[0]).wrong_frees, 3);
    assert_int_equal(stats_of(s.north[1]).wrong_frees, 1);
    assert_int_equal(stats_of(s.north[0]).count, 1);
    tn_memory_free(s.north[0], a);
    for (int keeps = 0; keeps < 2; keeps++) {
        spaces_keep(s.north[0], keeps);
        a = take(s.north[0], 100, NULL);
        tn_memory_free(s.north[0], a);
        tn_memory_free(s.north[0], a);
        assert_contains(logged, keeps ? "it was already freed" : "it is not an allocation of this");
        assert_int_equal(stats_of(s.north[0]).wrong_frees, 4 + keeps);
        assert_int_equal(stats_of(s.north[0]).current, 0);
        assert_int_equal(stats_of(s.north[0]).count, 0);
    }
    assert_int_equal(log_lines, 6);
    assert_int_equal(tn_log_set(NULL, NULL), TN_OK);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void host_memory_is_the_platforms_or_ordinary(void **state)
{
    spaces s;
    (void)state;
    spaces_make(&s);
    tn_device *const devices[] = {s.cpu, s.north[0], s.south[0]};
    for (size_t i = 0; i < 3; i++) {
        void *a = NULL, *b = NULL;
        assert_int_equal(tn_memory_host_alloc(devices[i], 1000, "in", &a, NULL), TN_OK);
        assert_int_equal(tn_memory_host_alloc(devices[i], 0, NULL, &b, NULL), TN_OK);
        memset(a, 1, 1000);
        assert_int_equal((uintptr_t)a % 64, 0);
        assert_int_equal(space_look(SOUTH).host_blocks, i == 2 ? 2 : 0);
        assert_int_equal(stats_of(devices[i]).host, 1000);
        assert_int_equal(stats_of(devices[i]).current, 0);
        assert_int_equal(stats_of(devices[i]).count, 0);
        tn_memory_host_free(devices[i], a);
        tn_memory_host_free(devices[i], b);
        tn_memory_host_free(devices[i], NULL);
        assert_int_equal(stats_of(devices[i]).host, 0);
        tn_memory_host_free(devices[i], b);
        assert_int_equal(stats_of(devices[i]).wrong_frees, 1);
    }
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void want_of_host_memory_is_explained(void **state)
{
    spaces s;
    void *a = NULL, *none = &s;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    assert_int_equal(tn_memory_host_alloc(s.south[0], KIB(2), "results", &a, NULL), TN_OK);
    space_fail(1, TN_OUT_OF_MEMORY);
    assert_int_equal(tn_memory_host_alloc(s.south[0], KIB(9), NULL, &none, &err), TN_OUT_OF_MEMORY);
    assert_string_equal(err.message,
                        "south:0: 9.0 KiB of host memory asked; 2.0 KiB allocated for it; "
                        "largest users: results (2.0 KiB); made to fail");
    assert_int_equal(tn_memory_host_alloc(s.south[0], UINT64_MAX, NULL, &none, &err),
                     TN_OUT_OF_MEMORY);
    assert_non_null(tni_memory_of(s.cpu));
    for (long n = 1; n <= 2; n++) { /* the book's entry, ordinary memory */
        fault_arm(&fault_memory, n, false, 0);
        assert_int_equal(tn_memory_host_alloc(s.cpu, KIB(1), NULL, &none, &err), TN_OUT_OF_MEMORY);
        assert_true(fault_end(&fault_memory));
        assert_contains(err.message, "cpu:0: 1.0 KiB of host memory asked; 0 B allocated for it; ");
        assert_int_equal(stats_of(s.cpu).host, 0);
    }
    assert_int_equal(stats_of(s.south[0]).failures, 2);
    assert_ptr_equal(none, &s);
    tn_memory_host_free(s.south[0], a);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void what_a_platform_gives_is_checked(void **state)
{
    spaces s;
    static char odd[128];
    void *none = &s;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    spaces_keep(s.north[0], false);
    void *a = take(s.north[0], 100, NULL);
    atomic_store(&space_gives, a);
    assert_int_equal(tn_memory_alloc(s.north[0], 1, NULL, &none, &err), TN_INTERNAL);
    assert_contains(err.message, "north:0: it returned 0x");
    assert_contains(err.message, ", which is already allocated");
    assert_int_equal(space_look(NORTH).frees, 0);
    atomic_store(&space_gives, odd + (65 - (uintptr_t)odd % 64));
    assert_int_equal(tn_memory_alloc(s.north[0], 1, NULL, &none, &err), TN_INTERNAL);
    assert_contains(err.message, "north:0: expected memory aligned to 64 bytes, got 0x");
    assert_int_equal(space_look(NORTH).frees, 1); /* which the platform got back */
    atomic_store(&space_gives, NULL);
    space_fail(1, TN_STATUS_COUNT);
    assert_int_equal(tn_memory_alloc(s.north[0], 1, NULL, &none, &err), TN_INTERNAL);
    assert_contains(err.message, "which does not exist");
    assert_ptr_equal(none, &s);
    assert_int_equal(stats_of(s.north[0]).failures, 3);
    assert_int_equal(stats_of(s.north[0]).current, 100);
    tn_memory_free(s.north[0], a);
    spaces_end(&s);
}

/* Nothing is asked of a device that is lost; what was there is forgotten. */
static void a_lost_device_is_left_alone(void **state)
{
    spaces s;
    void *none = &s, *pinned = NULL, *kept;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    spaces_keep(s.south[1], true);
    void *a = take(s.south[1], 100, "a"), *b = take(s.south[1], 200, "b");
    kept = take(s.south[1], 300, NULL);
    tn_memory_free(s.south[1], kept);
    assert_int_equal(tn_memory_host_alloc(s.south[1], 10, NULL, &pinned, NULL), TN_OK);
    space_lose(SOUTH, 1);
    assert_int_equal(tn_memory_alloc(s.south[1], MIB(40), NULL, &none, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "south:1: south:1 fell off the bus");
    assert_int_equal(tn_memory_alloc(s.south[1], 300, NULL, &none, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "south:1 was lost at south: south:1 fell off the bus");
    assert_int_equal(tn_memory_host_alloc(s.south[1], 1, NULL, &none, &err), TN_DEVICE_LOST);
    int frees = space_look(SOUTH).frees;
    tn_memory_free(s.south[1], a);
    tn_memory_host_free(s.south[1], pinned);
    tn_memory_trim(s.south[1]);
    tn_memory_stats now = stats_of(s.south[1]);
    assert_int_equal(now.current, 200);
    assert_int_equal(now.count, 1);
    assert_int_equal(now.kept | now.host | now.wrong_frees, 0);
    assert_int_equal(now.failures, 3);
    assert_int_equal(space_look(SOUTH).frees, frees);
    assert_int_equal(space_look(SOUTH).wrong, 0);
    (void)b;
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void a_reset_forgets_everything(void **state)
{
    spaces s;
    void *pinned = NULL;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    spaces_keep(s.south[0], true);
    assert_int_equal(tn_memory_limit_set(s.south[0], (int64_t)MIB(9), &err), TN_OK);
    void *a = take(s.south[0], 100, "a"), *b = take(s.south[0], KIB(200), "b");
    tn_memory_free(s.south[0], b);
    tn_memory_free(s.south[0], b);
    assert_int_equal(tn_memory_host_alloc(s.south[0], 10, "c", &pinned, NULL), TN_OK);
    space_lose(SOUTH, 0);
    assert_int_not_equal(tn_memory_alloc(s.south[0], MIB(1), NULL, &b, &err), TN_OK);
    assert_int_equal(tn_device_reset(s.south[0], &err), TN_OK);
    tn_memory_stats now = stats_of(s.south[0]);
    assert_int_equal(now.current | now.peak | now.count | now.allocations | now.kept | now.host |
                         now.failures | now.wrong_frees,
                     0);
    assert_int_equal(now.limit, MIB(9));
    assert_int_equal(space_look(SOUTH).frees, 0);
    tn_memory_free(s.south[0], a);
    assert_int_equal(stats_of(s.south[0]).wrong_frees, 1);
    atomic_store(&space_capacity, KIB(1));
    assert_int_equal(tn_memory_alloc(s.south[0], MIB(1), NULL, &b, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "nothing is allocated");
    atomic_store(&space_capacity, MIB(1));
    int allocs = space_look(SOUTH).allocs;
    b = take(s.south[0], KIB(200), "b"); /* what was kept before is not there any more */
    assert_int_equal(space_look(SOUTH).allocs, allocs + 1);
    tn_memory_free(s.south[0], b);
    a = take(s.south[0], 100, "a");
    tn_memory_free(s.south[0], a);
    assert_ptr_equal(take(s.south[0], 100, "a"), a);
    tn_memory_free(s.south[0], a);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* An allocation that a reset overtakes is given to no one. */
static void a_reset_may_come_between(void **state)
{
    spaces s;
    void *none = &s;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    void *a = take(s.south[0], 5, "before");
    space_reset_meanwhile(s.south[0]);
    assert_int_equal(tn_memory_alloc(s.south[0], 100, "during", &none, &err), TN_CANCELLED);
    assert_string_equal(err.message, "south:0: the device was reset meanwhile");
    space_reset_meanwhile(s.south[0]);
    assert_int_equal(tn_memory_host_alloc(s.south[0], 9, NULL, &none, &err), TN_CANCELLED);
    assert_string_equal(err.message, "south:0: the device was reset meanwhile");
    assert_int_equal(stats_of(s.south[0]).host, 0);
    assert_ptr_equal(none, &s);
    tn_memory_stats now = stats_of(s.south[0]);
    assert_int_equal(now.current | now.count | now.allocations | now.kept, 0);
    assert_int_equal(now.failures, 1);
    tn_memory_free(s.south[0], a);
    assert_int_equal(stats_of(s.south[0]).wrong_frees, 1);
    tn_memory_free(s.south[0], take(s.south[0], 100, "after"));
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* Host memory that is not the platform's is none of the device's. */
static void a_reset_leaves_ordinary_host_memory(void **state)
{
    spaces s;
    void *ordinary = NULL;
    (void)state;
    spaces_make(&s);
    assert_int_equal(tn_memory_host_alloc(s.north[0], 10, "c", &ordinary, NULL), TN_OK);
    tni_memory_forget(s.north[0]->memory);
    assert_int_equal(stats_of(s.north[0]).host, 10);
    memset(ordinary, 1, 10);
    tn_memory_host_free(s.north[0], ordinary);
    assert_int_equal(stats_of(s.north[0]).host | stats_of(s.north[0]).wrong_frees, 0);
    spaces_end(&s);
}

/* A device that ends gives everything back. */
static void nothing_outlives_a_device(void **state)
{
    spaces s;
    void *pinned = NULL;
    int64_t before = tn_allocator_blocks();
    (void)state;
    spaces_make(&s);
    spaces_keep(s.south[0], true);
    for (int i = 0; i < 1000; i++)
        (void)take(s.south[0], (uint64_t)i, "held");
    tn_memory_free(s.south[0], take(s.south[0], MIB(1), NULL));
    (void)take(s.cpu, 100, NULL);
    assert_int_equal(tn_memory_host_alloc(s.south[0], 100, NULL, &pinned, NULL), TN_OK);
    assert_int_equal(tn_memory_host_alloc(s.cpu, 100, NULL, &pinned, NULL), TN_OK);
    spaces_end(&s);
    assert_true(spaces_are_empty());
    assert_int_equal(tn_allocator_blocks(), before);
}

static void devices_that_cannot_run_have_none(void **state)
{
    static const char text[] = "[device h200]\nplatform = cuda\nmemory = 141 GB\n";
    spaces s;
    tni_descriptions *descriptions = NULL;
    tn_device *device = NULL;
    void *none = &s;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    assert_int_equal(tni_descriptions_parse(text, sizeof text - 1, "lab", &descriptions, &err),
                     TN_OK);
    assert_int_equal(tni_devices_describe(s.set, descriptions, "lab", &err), TN_OK);
    assert_int_equal(tni_devices_get(s.set, "h200", &device, &err), TN_OK);
    assert_int_equal(tn_memory_alloc(device, 1, NULL, &none, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "for planning only");
    assert_int_equal(tn_memory_host_alloc(device, 1, NULL, &none, &err), TN_UNAVAILABLE);
    tn_memory_free(device, &s);
    tn_memory_host_free(device, &s);
    tn_memory_trim(device);
    assert_int_equal(tn_memory_limit_set(device, 5, &err), TN_OK);
    assert_int_equal(stats_of(device).failures, 2);
    assert_int_equal(stats_of(device).wrong_frees, 2);
    tni_descriptions_release(descriptions);
    spaces_end(&s);
}

static void no_device_is_the_current_one(void **state)
{
    tn_device *current = NULL;
    void *memory = NULL, *host = NULL;
    tn_error err = {0};
    (void)state;
    if (tn_device_default(&current, &err))
        fail_msg("%s", err.message);
    int64_t before = stats_of(current).current;
    memory = take(NULL, 100, NULL);
    assert_int_equal(tn_memory_host_alloc(NULL, 10, NULL, &host, &err), TN_OK);
    assert_int_equal(stats_of(current).current, before + 100);
    assert_int_equal(stats_of(current).host, 10);
    tn_memory_free(NULL, memory);
    tn_memory_host_free(NULL, host);
    assert_int_equal(stats_of(current).current, before);
    assert_int_equal(stats_of(current).host, 0);
    tn_memory_trim(current);
}

static void nonsense_is_refused(void **state)
{
    spaces s;
    tn_memory_stats small = {.struct_size = 16};
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    assert_int_equal(tn_memory_alloc(s.cpu, 1, NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_memory_host_alloc(s.cpu, 1, NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_memory_stats_get(NULL, &small, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_memory_stats_get(s.cpu, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_memory_stats_get(s.cpu, &small, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "out->struct_size: expected at least 80, got 16");
    assert_int_equal(stats_of(s.cpu).failures, 0);
    spaces_end(&s);
}

static uint32_t random_below(uint32_t bound)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % bound;
}

enum { HELD = 500 };

typedef struct model {
    void *blocks[HELD];
    uint64_t bytes[HELD];
    tn_memory_stats stats;
} model;

static void agree(const tn_device *device, const model *m)
{
    tn_memory_stats now = stats_of(device);
    assert_int_equal(now.current, m->stats.current);
    assert_int_equal(now.peak, m->stats.peak);
    assert_int_equal(now.count, m->stats.count);
    assert_int_equal(now.allocations, m->stats.allocations);
    assert_int_equal(now.failures, m->stats.failures);
    assert_int_equal(now.limit, m->stats.limit);
    assert_true(now.kept >= 0 && now.kept <= (int64_t)MIB(64));
}

static void model_take(tn_device *device, model *m, size_t at)
{
    static const char *const labels[] = {NULL, "a", "b", "c"};
    uint64_t bytes = random_below(1u << random_below(18));
    bool fits =
        !m->stats.limit || bytes == 0 || m->stats.current + (int64_t)bytes <= m->stats.limit;
    tn_status status =
        tn_memory_alloc(device, bytes, labels[random_below(4)], &m->blocks[at], NULL);
    assert_int_equal(status, fits ? TN_OK : TN_OUT_OF_MEMORY);
    if (!fits) {
        m->stats.failures++;
        return;
    }
    m->bytes[at] = bytes;
    m->stats.current += (int64_t)bytes;
    m->stats.count++;
    m->stats.allocations++;
    if (m->stats.peak < m->stats.current)
        m->stats.peak = m->stats.current;
}

static void model_give(tn_device *device, model *m, size_t at)
{
    tn_memory_free(device, m->blocks[at]);
    m->blocks[at] = NULL;
    m->stats.current -= (int64_t)m->bytes[at];
    m->stats.count--;
}

static void model_step(tn_device *device, model *m)
{
    size_t at = random_below(HELD);
    uint32_t choice = random_below(200);
    if (choice == 0) {
        tn_memory_trim(device);
        assert_int_equal(stats_of(device).kept, 0);
    } else if (choice == 1) {
        tn_memory_peak_reset(device);
        m->stats.peak = m->stats.current;
    } else if (choice == 2) {
        m->stats.limit = random_below(2) ? 0 : m->stats.current + random_below(10000);
        assert_int_equal(tn_memory_limit_set(device, m->stats.limit, NULL), TN_OK);
    } else if (m->blocks[at]) {
        model_give(device, m, at);
    } else {
        model_take(device, m, at);
    }
}

static void the_book_agrees_with_a_model(void **state)
{
    spaces s;
    int steps = test_reduced() ? 3000 : 40000;
    (void)state;
    spaces_make(&s);
    tn_device *const devices[] = {s.cpu, s.north[0], s.south[0]};
    for (size_t i = 0; i < 6; i++) {
        tn_device *device = devices[i / 2];
        model m = {.stats = stats_of(device)};
        spaces_keep(device, i % 2);
        for (int step = 0; step < steps; step++) {
            model_step(device, &m);
            if (step % 16 == 0)
                agree(device, &m);
        }
        for (size_t at = 0; at < HELD; at++) {
            if (m.blocks[at])
                model_give(device, &m, at);
        }
        assert_int_equal(m.stats.current, 0);
        agree(device, &m);
        assert_int_equal(tn_memory_limit_set(device, 0, NULL), TN_OK);
    }
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* One life with every call in it; the first failure is the outcome, but the rest goes on. */
static tn_status live(spaces *s, tn_error *err)
{
    tn_status first = TN_OK;
    tn_device *const devices[] = {s->cpu, s->north[0], s->south[0]};
    for (size_t i = 0; i < 3; i++) {
        void *blocks[40] = {NULL}, *host = NULL;
        for (size_t k = 0; k < 40; k++) {
            tn_status status = tn_memory_alloc(devices[i], 100 * k, "life", &blocks[k], err);
            first = first ? first : status;
        }
        tn_status status = tn_memory_host_alloc(devices[i], 100, "host", &host, err);
        first = first ? first : status;
        for (size_t k = 0; k < 40; k++)
            tn_memory_free(devices[i], blocks[k]);
        tn_memory_host_free(devices[i], host);
        tn_memory_trim(devices[i]);
        assert_int_equal(stats_of(devices[i]).current | stats_of(devices[i]).host |
                             stats_of(devices[i]).count | stats_of(devices[i]).kept |
                             stats_of(devices[i]).wrong_frees,
                         0);
    }
    return first;
}

static void every_allocation_may_fail(void **state)
{
    bool fired = true;
    (void)state;
    for (long n = 1; fired; n++) {
        spaces s;
        tn_error err = {0};
        struct fault_state before = fault_look();
        spaces_make(&s);
        spaces_keep(s.south[0], n % 2);
        fault_arm(&fault_memory, n, n % 3 == 0, 0);
        tn_status status = live(&s, &err);
        fired = fault_end(&fault_memory);
        assert_true(!status || (fired && status == TN_OUT_OF_MEMORY && err.message[0]));
        assert_true(!fired || n % 3 || status);
        assert_int_equal(live(&s, &err), TN_OK);
        spaces_end(&s);
        assert_true(spaces_are_empty());
        if (fault_left(before, "a life", n))
            fail();
        assert_true(fired || n > 100);
    }
}

static void a_book_may_fail(void **state)
{
    spaces s;
    tn_memory_stats none = {.struct_size = sizeof none}, zero = none;
    void *memory = NULL;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    assert_int_equal(tn_memory_stats_get(s.cpu, &none, &err), TN_OK);
    assert_memory_equal(&none, &zero, sizeof none);
    tn_memory_trim(s.cpu);
    tn_memory_peak_reset(s.cpu);
    assert_null(tni_memory_so_far(s.cpu)); /* there was no need of one */
    fault_arm(&fault_memory, 1, true, 0);
    assert_int_equal(tn_memory_alloc(s.cpu, 10, NULL, &memory, &err), TN_OUT_OF_MEMORY);
    assert_int_equal(tn_memory_host_alloc(s.cpu, 10, NULL, &memory, &err), TN_OUT_OF_MEMORY);
    assert_int_equal(tn_memory_limit_set(s.cpu, 10, &err), TN_OUT_OF_MEMORY);
    assert_true(fault_end(&fault_memory));
    assert_null(memory);
    assert_null(tni_memory_so_far(s.cpu));
    assert_int_equal(tn_memory_alloc(s.cpu, 10, NULL, &memory, &err), TN_OK);
    assert_non_null(tni_memory_so_far(s.cpu));
    tn_memory_free(s.cpu, memory);
    tni_memory_destroy(NULL);
    spaces_end(&s);
}

static void every_call_of_a_module_may_fail(void **state)
{
    static const tn_status statuses[] = {TN_OUT_OF_MEMORY, TN_IO, TN_DEVICE_LOST, TN_BUSY};
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        bool fired = true;
        for (long n = 1; fired; n++) {
            spaces s;
            tn_error err = {0};
            spaces_make(&s);
            spaces_keep(s.north[0], n % 2);
            space_fail(n, statuses[i]);
            tn_status status = live(&s, &err);
            fired = space_heal();
            if (fired && statuses[i] != TN_OUT_OF_MEMORY) /* else the second attempt succeeds */
                assert_int_equal(status, statuses[i]);
            else
                assert_true(!status || status == TN_OUT_OF_MEMORY);
            spaces_end(&s);
            assert_true(spaces_are_empty());
            assert_true(fired || n > 80);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_share_classes),
        cmocka_unit_test(what_is_given_is_counted),
        cmocka_unit_test(the_peak_is_the_callers),
        cmocka_unit_test(what_was_freed_is_used_again),
        cmocka_unit_test(builds_with_a_sanitizer_keep_nothing),
        cmocka_unit_test(what_is_kept_is_bounded),
        cmocka_unit_test(a_limit_is_kept),
        cmocka_unit_test(a_limit_counts_what_is_kept),
        cmocka_unit_test(want_of_memory_is_explained),
        cmocka_unit_test(want_of_memory_gives_back_what_is_kept),
        cmocka_unit_test(labels_are_bounded),
        cmocka_unit_test(labels_that_hold_nothing_make_room),
        cmocka_unit_test(labels_are_cut_and_cleaned),
        cmocka_unit_test(labels_are_told_apart),
        cmocka_unit_test(wrong_frees_change_nothing),
        cmocka_unit_test(host_memory_is_the_platforms_or_ordinary),
        cmocka_unit_test(want_of_host_memory_is_explained),
        cmocka_unit_test(what_a_platform_gives_is_checked),
        cmocka_unit_test(a_lost_device_is_left_alone),
        cmocka_unit_test(a_reset_forgets_everything),
        cmocka_unit_test(a_reset_may_come_between),
        cmocka_unit_test(a_reset_leaves_ordinary_host_memory),
        cmocka_unit_test(nothing_outlives_a_device),
        cmocka_unit_test(devices_that_cannot_run_have_none),
        cmocka_unit_test(no_device_is_the_current_one),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(the_book_agrees_with_a_model),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_book_may_fail),
        cmocka_unit_test(every_call_of_a_module_may_fail),
    };
    fault_memory_install();
    return run_suite("unit.memory", tests);
}
