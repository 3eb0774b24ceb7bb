/* What a cache promises wherever it keeps its entries: each test runs in memory and, on systems
 * that have one, in a folder. */
#include "cache_count.h"
#include "test.h"

#include "base/alloc.h"
#include "os/cache/cache.h"
#include "os/thread.h"

#if !defined(_WIN32)
#include "scratch.h"

#include "os/clock.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#endif

enum { HEADER = 88 }; /* what an entry counts beside its data */

static void promises_in_memory(void (*promise)(tni_cache *cache), uint64_t limit)
{
    tni_cache *cache = NULL;
    int64_t blocks = tn_allocator_blocks();
    assert_int_equal(tni_cache_create(NULL, limit, &cache, NULL), TN_OK);
    assert_null(tni_cache_folder(cache));
    assert_string_equal(tni_cache_reason(cache), "no cache folder was requested");
    promise(cache);
    tni_cache_release(cache);
    assert_int_equal(tn_allocator_blocks(), blocks);
}

#if defined(_WIN32)

static void promises(void (*promise)(tni_cache *cache), uint64_t limit)
{
    promises_in_memory(promise, limit);
}

#else

static void promises(void (*promise)(tni_cache *cache), uint64_t limit)
{
    char folder[SCRATCH_PATH];
    tni_cache *cache = NULL;
    int64_t blocks = tn_allocator_blocks();
    promises_in_memory(promise, limit);
    scratch_make(folder);
    assert_int_equal(tni_cache_create(folder, limit, &cache, NULL), TN_OK);
    assert_string_equal(tni_cache_reason(cache), "");
    assert_string_equal(tni_cache_folder(cache), folder);
    promise(cache);
    tni_cache_release(cache);
    assert_int_equal(tn_allocator_blocks(), blocks);
    scratch_remove(folder);
}

#endif

static tn_status put(tni_cache *cache, const char *key, const char *data)
{
    return tni_cache_put(cache, "test", key, strlen(key), data, strlen(data), NULL);
}

/* "" for an entry that is not there, so data of none must be asked for otherwise. */
static void assert_holds(tni_cache *cache, const char *key, const char *data)
{
    void *found = NULL;
    size_t size = 999;
    tn_error err;
    tn_status status = tni_cache_get(cache, "test", key, strlen(key), &found, &size, &err);
    if (*data == '\0') {
        assert_int_equal(status, TN_NOT_FOUND);
        assert_contains(err.message, "no test with the key ");
        assert_null(found);
        assert_int_equal(size, 999);
        return;
    }
    assert_int_equal(status, TN_OK);
    assert_int_equal(size, strlen(data));
    assert_memory_equal(found, data, size);
    tni_release(found);
}

static void assert_counts(tni_cache *cache, uint64_t entries, uint64_t bytes)
{
    uint64_t found_entries = 0, found_bytes = 0;
    assert_int_equal(cache_count(cache, &found_entries, &found_bytes, NULL), TN_OK);
    assert_int_equal(found_entries, entries);
    assert_int_equal(found_bytes, bytes);
}

static void keeps(tni_cache *cache)
{
    assert_holds(cache, "a", "");
    assert_counts(cache, 0, 0);
    assert_int_equal(put(cache, "a", "one"), TN_OK);
    assert_int_equal(put(cache, "b", "two"), TN_OK);
    assert_holds(cache, "a", "one");
    assert_holds(cache, "b", "two");
    assert_holds(cache, "c", "");
    assert_counts(cache, 2, 2 * HEADER + 6);
}

static void test_keeps(void **state)
{
    (void)state;
    promises(keeps, 1 << 20);
}

static void replaces(tni_cache *cache)
{
    assert_int_equal(put(cache, "a", "one"), TN_OK);
    assert_int_equal(put(cache, "a", "three"), TN_OK);
    assert_holds(cache, "a", "three");
    assert_counts(cache, 1, HEADER + 5);
}

static void test_replaces(void **state)
{
    (void)state;
    promises(replaces, 1 << 20);
}

static void removes(tni_cache *cache)
{
    assert_int_equal(put(cache, "a", "one"), TN_OK);
    assert_int_equal(put(cache, "b", "two"), TN_OK);
    assert_int_equal(tni_cache_remove(cache, "test", "a", 1, NULL), TN_OK);
    assert_int_equal(tni_cache_remove(cache, "test", "a", 1, NULL), TN_OK);
    assert_int_equal(tni_cache_remove(cache, "other", "b", 1, NULL), TN_OK);
    assert_holds(cache, "a", "");
    assert_holds(cache, "b", "two");
}

static void test_removes(void **state)
{
    (void)state;
    promises(removes, 1 << 20);
}

/* Keys and data of any bytes and of none; the same key in two kinds is two entries. */
static void takes_any_bytes(tni_cache *cache)
{
    const char keys[2][4] = {{0, 1, (char)0xFF, '/'}, {0, 1, (char)0xFF, 0}};
    const unsigned char data[5] = {0, 255, 10, 0, 7};
    void *found = NULL;
    size_t size = 0;
    assert_int_equal(tni_cache_put(cache, "x-1", keys[0], 4, data, 5, NULL), TN_OK);
    assert_int_equal(tni_cache_put(cache, "x_2", keys[0], 4, NULL, 0, NULL), TN_OK);
    assert_int_equal(tni_cache_get(cache, "x-1", keys[1], 4, &found, &size, NULL), TN_NOT_FOUND);
    assert_int_equal(tni_cache_get(cache, "x-1", keys[0], 3, &found, &size, NULL), TN_NOT_FOUND);
    assert_int_equal(tni_cache_get(cache, "x-1", keys[0], 4, &found, &size, NULL), TN_OK);
    assert_int_equal(size, 5);
    assert_memory_equal(found, data, 5);
    tni_release(found);
    found = NULL;
    assert_int_equal(tni_cache_get(cache, "x_2", keys[0], 4, &found, &size, NULL), TN_OK);
    assert_int_equal(size, 0);
    assert_non_null(found);
    tni_release(found);
    assert_int_equal(tni_cache_put(cache, "x-1", "", 0, "e", 1, NULL), TN_OK);
    assert_counts(cache, 3, 3 * HEADER + 6);
}

static void test_takes_any_bytes(void **state)
{
    (void)state;
    promises(takes_any_bytes, 1 << 20);
}

static void refuses(tni_cache *cache)
{
    static const char *const kinds[] = {"", "Upper", "a/b", "..", ".", "a b", "-a"};
    char large[200] = {0};
    tn_error err;
    void *found = NULL;
    size_t size;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_int_equal(tni_cache_put(cache, kinds[i], "k", 1, "d", 1, &err), TN_INVALID_ARGUMENT);
        assert_contains(err.message,
                        "is not a valid kind of entry: expected 1 to 48 lower-case letters");
        assert_int_equal(tni_cache_get(cache, kinds[i], "k", 1, &found, &size, &err),
                         TN_INVALID_ARGUMENT);
        assert_int_equal(tni_cache_remove(cache, kinds[i], "k", 1, &err), TN_INVALID_ARGUMENT);
    }
    assert_int_equal(tni_cache_put(cache, "test", "k", 1, large, 200 - HEADER, &err), TN_OK);
    assert_int_equal(tni_cache_put(cache, "test", "l", 1, large, 200 - HEADER + 1, &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "a test of 113 + 88 bytes does not fit the cache's limit of 200");
    assert_int_equal(tni_cache_put(cache, "test", "l", 1, large, SIZE_MAX, &err),
                     TN_INVALID_ARGUMENT);
    assert_counts(cache, 1, 200);
}

static void test_refuses(void **state)
{
    (void)state;
    promises(refuses, 200);
}

static void holds_nothing(tni_cache *cache)
{
    assert_int_equal(put(cache, "a", ""), TN_INVALID_ARGUMENT);
    assert_counts(cache, 0, 0);
    assert_int_equal(tni_cache_prune(cache, 0, NULL), TN_OK);
}

static void test_limits_of_nothing(void **state)
{
    (void)state;
    promises(holds_nothing, 0);
    promises(holds_nothing, HEADER - 1);
}

/* Never above the limit, the newest always there, and enough kept to be of use. */
static void stays_bounded(tni_cache *cache)
{
    char key[32], data[32];
    for (int i = 0; i < 100; i++) {
        uint64_t entries = 0, bytes = 0;
        snprintf(key, sizeof key, "key %d", i);
        snprintf(data, sizeof data, "data %05d.", i);
        assert_int_equal(put(cache, key, data), TN_OK);
        assert_holds(cache, key, data);
        assert_int_equal(cache_count(cache, &entries, &bytes, NULL), TN_OK);
        assert_int_equal(bytes, entries * (HEADER + 11));
        assert_in_range(bytes, 0, 2000);
        assert_in_range(entries, i < 17 ? i + 1 : 17, 20);
    }
}

static void test_stays_bounded(void **state)
{
    (void)state;
    promises(stays_bounded, 2000);
}

static void prunes(tni_cache *cache)
{
    uint64_t entries = 0, bytes = 0;
    for (int i = 0; i < 10; i++)
        assert_int_equal(tni_cache_put(cache, "test", &i, sizeof i, "x", 1, NULL), TN_OK);
    assert_int_equal(tni_cache_prune(cache, 5 * (HEADER + 1) + 1, NULL), TN_OK);
    assert_int_equal(cache_count(cache, &entries, &bytes, NULL), TN_OK);
    assert_int_equal(entries, 5);
    assert_int_equal(tni_cache_prune(cache, 0, NULL), TN_OK);
    assert_counts(cache, 0, 0);
    assert_int_equal(put(cache, "a", "one"), TN_OK);
    assert_holds(cache, "a", "one");
}

static void test_prunes(void **state)
{
    (void)state;
    promises(prunes, 1 << 20);
}

/* In memory the order of use is exact: a get and a put both count. */
static void keeps_what_is_used(tni_cache *cache)
{
    assert_int_equal(put(cache, "a", "1"), TN_OK);
    assert_int_equal(put(cache, "b", "2"), TN_OK);
    assert_int_equal(put(cache, "c", "3"), TN_OK);
    assert_holds(cache, "a", "1");
    assert_int_equal(put(cache, "b", "4"), TN_OK);
    assert_int_equal(put(cache, "d", "5"), TN_OK);
    assert_int_equal(put(cache, "e", "6"), TN_OK); /* goes down to nine tenths: c and a go */
    assert_holds(cache, "c", "");
    assert_holds(cache, "a", "");
    assert_holds(cache, "b", "4");
    assert_int_equal(tni_cache_prune(cache, 2 * (HEADER + 1), NULL), TN_OK);
    assert_holds(cache, "d", "");
    assert_holds(cache, "e", "6");
    assert_int_equal(tni_cache_prune(cache, HEADER + 1, NULL), TN_OK);
    assert_holds(cache, "b", "");
    assert_holds(cache, "e", "6");
}

static void test_keeps_what_is_used(void **state)
{
    (void)state;
    promises_in_memory(keeps_what_is_used, 4 * (HEADER + 1));
}

static int64_t allocations_left;

static void *failing_alloc(void *self, size_t size, size_t align)
{
    (void)self;
    (void)align;
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

static void failing_release(void *self, void *memory)
{
    (void)self;
    free(memory);
}

/* All calls in turn; the first failure is given, and must be for want of memory. */
static tn_status use_all(const char *folder)
{
    tni_cache *cache = NULL;
    void *data = NULL;
    size_t size = 0;
    uint64_t entries = 0, bytes = 0;
    tn_error err;
    tn_status status = tni_cache_create(folder, 4 * HEADER, &cache, &err);
    for (int i = 0; !status && i < 5; i++)
        status = tni_cache_put(cache, "test", &i, sizeof i, "data", 4, &err);
    if (!status)
        status = tni_cache_get(cache, "test", &(int){4}, sizeof(int), &data, &size, &err);
    if (!status)
        status = cache_count(cache, &entries, &bytes, &err);
    if (!status)
        status = tni_cache_remove(cache, "test", "key", 3, &err);
    if (!status)
        status = tni_cache_prune(cache, 0, &err);
    tni_release(data);
    tni_cache_release(cache);
    assert_true(!status || (status == TN_OUT_OF_MEMORY && err.status == status));
    return status;
}

static void fails_without_memory(const char *folder)
{
    tn_allocator failing = {sizeof failing, NULL, failing_alloc, failing_release};
    tn_status status = TN_OUT_OF_MEMORY;
    int64_t n = 0;
    assert_int_equal(tn_allocator_set(&failing, NULL), TN_OK);
    for (; status; n++) {
        allocations_left = n;
        status = use_all(folder);
        assert_int_equal(tn_allocator_blocks(), 0);
    }
    assert_true(n > 5);
    assert_int_equal(tn_allocator_set(NULL, NULL), TN_OK);
}

/* For every n, with the n-th allocation failing. */
static void test_without_memory(void **state)
{
    (void)state;
    fails_without_memory(NULL);
#if !defined(_WIN32)
    char folder[SCRATCH_PATH];
    scratch_make(folder);
    fails_without_memory(folder);
    assert_int_equal(chmod(folder, 0755), 0);
    fails_without_memory(folder);
    scratch_remove(folder);
#endif
}

enum { THREADS = 4, KEYS = 6 };

/* Puts and gets entries whose data tell their key and must be of one piece; counts what is not. */
typedef struct user {
    tni_cache *cache;
    uint32_t seed;
    int rounds;
    int wrong;
} user;

static void use(void *record)
{
    user *u = record;
    for (int i = 0; i < u->rounds; i++) {
        unsigned char data[600], *found = NULL;
        size_t size = 0;
        u->seed = u->seed * 1664525 + 1013904223;
        unsigned char key = (unsigned char)((u->seed >> 24) % KEYS);
        size_t length = 1 + (u->seed >> 8) % sizeof data;
        memset(data, key, length);
        tn_status status = tni_cache_put(u->cache, "test", &key, 1, data, length, NULL);
        u->wrong += status != TN_OK;
        status = tni_cache_get(u->cache, "test", &key, 1, (void **)&found, &size, NULL);
        u->wrong += status != TN_OK && status != TN_NOT_FOUND;
        for (size_t k = 0; !status && k < size; k++)
            u->wrong += found[k] != key;
        tni_release(found);
    }
}

/* The limit is below what all keys need, so that threads also prune. */
static void threads_use(tni_cache *const caches[2])
{
    tni_thread threads[THREADS];
    user users[THREADS];
    for (int i = 0; i < THREADS; i++) {
        users[i] =
            (user){caches[i % 2], (uint32_t)i, test_full() && !test_reduced() ? 400 : 100, 0};
        assert_int_equal(tni_thread_create(&threads[i], use, &users[i], NULL), TN_OK);
    }
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(users[i].wrong, 0);
}

static void one_for_threads(tni_cache *cache)
{
    threads_use((tni_cache *[2]){cache, cache});
}

static void test_threads(void **state)
{
    (void)state;
    promises(one_for_threads, 2000);
}

#if !defined(_WIN32)

static void test_two_handles_in_threads(void **state)
{
    (void)state;
    char folder[SCRATCH_PATH];
    tni_cache *caches[2] = {NULL, NULL};
    scratch_make(folder);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tni_cache_create(folder, 2000, &caches[i], NULL), TN_OK);
    threads_use(caches);
    tni_cache_release(caches[0]);
    tni_cache_release(caches[1]);
    scratch_remove(folder);
}

/* Both processes use the folder at once; the child through the parent's handle. */
static void test_two_processes(void **state)
{
    (void)state;
    char folder[SCRATCH_PATH];
    tni_cache *cache = NULL;
    int ended = -1;
    scratch_make(folder);
    assert_int_equal(tni_cache_create(folder, 2000, &cache, NULL), TN_OK);
    user u = {cache, 1, test_full() && !test_reduced() ? 400 : 100, 0};
    pid_t child = fork();
    if (child == 0) {
        u.seed = 2;
        use(&u);
        _exit(u.wrong ? 1 : 0);
    }
    use(&u);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    assert_int_equal(u.wrong, 0);
    tni_cache_release(cache);
    scratch_remove(folder);
}

static _Atomic int step;

static void wait_for(int wanted)
{
    while (atomic_load(&step) < wanted)
        tni_clock_sleep_ns(1000000);
}

/* Stays inside the cache while the other thread forks. */
static void *slow_alloc(void *self, size_t size, size_t align)
{
    (void)self;
    (void)align;
    int one = 1;
    if (atomic_compare_exchange_strong(&step, &one, 2)) {
        wait_for(3);
        tni_clock_sleep_ns(100000000);
    }
    return malloc(size);
}

static void get_slowly(void *cache)
{
    void *data = NULL;
    size_t size;
    atomic_store(&step, 1);
    (void)tni_cache_get(cache, "test", "a", 1, &data, &size, NULL);
    wait_for(4);
    tni_release(data);
}

/* A child that is forked while another thread is inside finds the cache whole and not locked. */
static void test_fork_while_in_use(void **state)
{
    (void)state;
    tn_allocator slow = {sizeof slow, NULL, slow_alloc, failing_release};
    tni_cache *cache = NULL;
    tni_thread thread;
    int ended = -1;
    assert_int_equal(tn_allocator_set(&slow, NULL), TN_OK);
    assert_int_equal(tni_cache_create(NULL, 2000, &cache, NULL), TN_OK);
    assert_int_equal(put(cache, "a", "one"), TN_OK);
    assert_int_equal(tni_thread_create(&thread, get_slowly, cache, NULL), TN_OK);
    wait_for(2);
    atomic_store(&step, 3);
    pid_t child = fork();
    if (child == 0) {
        alarm(TEST_HANG_SECONDS);
        _exit(tni_cache_remove(cache, "test", "a", 1, NULL) == TN_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    atomic_store(&step, 4);
    tni_thread_join(thread);
    assert_int_equal(ended, 0);
    assert_holds(cache, "a", "one");
    tni_cache_release(cache);
    assert_int_equal(tn_allocator_set(NULL, NULL), TN_OK);
}

#endif

typedef struct seen {
    uint64_t entries, bytes, others;
} seen;

static void see(void *to, const char *kind, uint64_t bytes)
{
    seen *all = to;
    all->others += strcmp(kind, "other") == 0;
    all->entries++;
    all->bytes += bytes;
}

static void promise_visits(tni_cache *cache)
{
    seen all = {0};
    assert_int_equal(put(cache, "a", "one"), TN_OK);
    assert_int_equal(put(cache, "b", "three"), TN_OK);
    assert_int_equal(tni_cache_put(cache, "other", "a", 1, "", 0, NULL), TN_OK);
    assert_int_equal(tni_cache_visit_all(cache, see, &all, NULL), TN_OK);
    assert_int_equal(all.entries, 3);
    assert_int_equal(all.others, 1);
    assert_int_equal(all.bytes, 3 + 5 + 3 * 88);
    assert_int_equal(tni_cache_prune(cache, 0, NULL), TN_OK);
    assert_int_equal(tni_cache_visit_all(cache, see, &all, NULL), TN_OK);
    assert_int_equal(all.entries, 3);
}

static void test_visits(void **state)
{
    (void)state;
    promises(promise_visits, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeps),
        cmocka_unit_test(test_replaces),
        cmocka_unit_test(test_removes),
        cmocka_unit_test(test_takes_any_bytes),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_limits_of_nothing),
        cmocka_unit_test(test_stays_bounded),
        cmocka_unit_test(test_prunes),
        cmocka_unit_test(test_visits),
        cmocka_unit_test(test_keeps_what_is_used),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_threads),
#if !defined(_WIN32)
        cmocka_unit_test(test_two_handles_in_threads),
        cmocka_unit_test(test_two_processes),
        cmocka_unit_test(test_fork_while_in_use),
#endif
    };
    return run_suite("unit.cache", tests);
}
