/* Memory of devices with eight threads in it, and across fork(). */
#include "memory_spaces.h"

#include "os/sys.h"
#include "os/thread.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, HELD = 16 };

static int rounds(void)
{
    return test_reduced() ? 500 : 2000;
}

typedef struct crew crew;

typedef struct worker {
    crew *crew;
    int number;
    uint64_t random;
    int failed; /* things that were wrong */
} worker;

struct crew {
    spaces s;
    tn_device *device;
    void (*work)(worker *w);
    void *_Atomic handed[HELD]; /* from thread to thread */
    _Atomic int64_t sum;
    _Atomic int here;
    _Atomic bool over;
    worker workers[THREADS];
};

static void begin(void *user)
{
    worker *w = user;
    w->crew->work(w);
}

static uint32_t random_below(worker *w, uint32_t bound)
{
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(w->random >> 33) % bound;
}

static void start(crew *c, void (*work)(worker *w), tni_thread threads[THREADS])
{
    c->work = work;
    for (int i = 0; i < THREADS; i++) {
        c->workers[i] = (worker){.crew = c, .number = i, .random = (uint64_t)i + 1};
        assert_int_equal(tni_thread_create(&threads[i], begin, &c->workers[i], NULL), TN_OK);
    }
}

static void join(crew *c, tni_thread threads[THREADS])
{
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(c->workers[i].failed, 0);
}

static void run(crew *c, void (*work)(worker *w))
{
    tni_thread threads[THREADS];
    start(c, work, threads);
    join(c, threads);
}

static tn_memory_stats stats_of(const tn_device *device)
{
    tn_memory_stats stats = {.struct_size = sizeof stats};
    (void)tn_memory_stats_get(device, &stats, NULL);
    return stats;
}

static void expect_none(const tn_device *device)
{
    tn_memory_stats now = stats_of(device);
    assert_int_equal(now.current, 0);
    assert_int_equal(now.count, 0);
    assert_int_equal(now.host, 0);
    assert_int_equal(now.wrong_frees, 0);
}

/* Takes and gives blocks of the cpu, and signs each: no other thread may write in it. */
static void sign_blocks(worker *w)
{
    static const char *const labels[] = {NULL, "a", "b", "c", "d"};
    tn_device *device = w->crew->device;
    unsigned char *blocks[HELD] = {NULL};
    uint32_t sizes[HELD] = {0};
    for (int i = 0; i < rounds(); i++) {
        uint32_t at = random_below(w, HELD);
        if (blocks[at]) {
            for (uint32_t k = 0; k < sizes[at]; k++)
                w->failed += blocks[at][k] != w->number;
            tn_memory_free(device, blocks[at]);
            blocks[at] = NULL;
            continue;
        }
        void *memory = NULL;
        sizes[at] = 1 + random_below(w, 300);
        w->failed +=
            tn_memory_alloc(device, sizes[at], labels[random_below(w, 5)], &memory, NULL) != TN_OK;
        blocks[at] = memory;
        memset(memory, w->number, sizes[at]);
        if (random_below(w, 500) == 0)
            tn_memory_trim(device);
        if (random_below(w, 100) == 0)
            w->failed += stats_of(device).current < sizes[at];
    }
    for (int i = 0; i < HELD; i++)
        tn_memory_free(device, blocks[i]);
}

static void no_two_threads_get_one_block(void **state)
{
    (void)state;
    for (int keeps = 0; keeps < 2; keeps++) {
        crew c = {.over = false};
        spaces_make(&c.s);
        c.device = c.s.cpu;
        spaces_keep(c.device, keeps);
        run(&c, sign_blocks);
        expect_none(c.device);
        assert_true(stats_of(c.device).peak > 0);
        tn_memory_trim(c.device);
        assert_int_equal(stats_of(c.device).kept, 0);
        assert_int_equal(atomic_load(&c.device->memory->kept_drawn), 0);
        spaces_end(&c.s);
    }
}

/* What one thread took another one frees. */
static void pass_on(worker *w)
{
    crew *c = w->crew;
    for (int i = 0; i < rounds(); i++) {
        void *memory = NULL, *host = NULL;
        uint32_t at = random_below(w, HELD);
        w->failed +=
            tn_memory_alloc(c->device, random_below(w, 4096), "passed", &memory, NULL) != 0;
        tn_memory_free(c->device, atomic_exchange(&c->handed[at], memory));
        if (i % 16 == 0) {
            w->failed += tn_memory_host_alloc(c->device, 100, "host", &host, NULL) != TN_OK;
            tn_memory_host_free(c->device, host);
        }
    }
}

static void blocks_pass_from_thread_to_thread(void **state)
{
    (void)state;
    for (int keeps = 0; keeps < 2; keeps++) {
        crew c = {.over = false};
        spaces_make(&c.s);
        c.device = c.s.south[0];
        spaces_keep(c.device, keeps);
        run(&c, pass_on);
        for (int i = 0; i < HELD; i++)
            tn_memory_free(c.device, c.handed[i]);
        expect_none(c.device);
        assert_int_equal(stats_of(c.device).allocations, (int64_t)THREADS * rounds());
        spaces_end(&c.s);
        assert_true(spaces_are_empty());
    }
}

enum { LIMIT = 1000, PART = 300 };

/* Of LIMIT bytes three parts fit and never four, whoever asks. */
static void press(worker *w)
{
    crew *c = w->crew;
    for (int i = 0; i < rounds(); i++) {
        void *memory = NULL;
        if (tn_memory_alloc(c->device, PART, NULL, &memory, NULL))
            continue;
        w->failed += atomic_fetch_add(&c->sum, PART) + PART > LIMIT;
        w->failed += stats_of(c->device).current > LIMIT;
        atomic_fetch_sub(&c->sum, PART);
        tn_memory_free(c->device, memory);
    }
}

static void no_limit_is_exceeded_together(void **state)
{
    crew c = {.over = false};
    (void)state;
    spaces_make(&c.s);
    c.device = c.s.north[0];
    spaces_keep(c.device, true);
    assert_int_equal(tn_memory_limit_set(c.device, LIMIT, NULL), TN_OK);
    run(&c, press);
    expect_none(c.device);
    tn_memory_stats now = stats_of(c.device);
    assert_in_range(now.peak, PART, LIMIT);
    assert_int_equal(now.allocations + now.failures, (int64_t)THREADS * rounds());
    spaces_end(&c.s);
    assert_true(spaces_are_empty());
}

/* Until all threads are here. */
static void meet(worker *w, int round)
{
    (void)atomic_fetch_add(&w->crew->here, 1);
    while (atomic_load(&w->crew->here) < THREADS * (round + 1))
        (void)sched_yield();
}

/* All ask at once for what fits once. */
static void race(worker *w)
{
    crew *c = w->crew;
    for (int i = 0; i < rounds() / 10; i++) {
        void *memory = NULL;
        meet(w, 3 * i);
        if (tn_memory_alloc(c->device, LIMIT, NULL, &memory, NULL) == TN_OK)
            atomic_fetch_add(&c->sum, 1);
        meet(w, 3 * i + 1);
        w->failed += atomic_load(&c->sum) != 1;
        meet(w, 3 * i + 2);
        tn_memory_free(c->device, memory);
        if (memory)
            atomic_fetch_sub(&c->sum, 1);
    }
}

static void of_all_who_ask_at_once_one_is_served(void **state)
{
    crew c = {.over = false};
    (void)state;
    spaces_make(&c.s);
    c.device = c.s.cpu;
    spaces_keep(c.device, true);
    assert_int_equal(tn_memory_limit_set(c.device, LIMIT, NULL), TN_OK);
    run(&c, race);
    expect_none(c.device);
    assert_int_equal(stats_of(c.device).peak, LIMIT);
    spaces_end(&c.s);
}

/* The same labels and many others, from all threads; each counts what it holds. */
static void label(worker *w)
{
    crew *c = w->crew;
    for (int i = 0; i < rounds() / 4; i++) {
        char text[32];
        void *a = NULL, *b = NULL;
        snprintf(text, sizeof text, "label %d", i % 100);
        w->failed += tn_memory_alloc(c->device, 10, text, &a, NULL) != TN_OK;
        w->failed += tn_memory_host_alloc(c->device, 20, text, &b, NULL) != TN_OK;
        tn_memory_free(c->device, a);
        tn_memory_host_free(c->device, b);
    }
}

static void labels_are_shared(void **state)
{
    crew c = {.over = false};
    (void)state;
    spaces_make(&c.s);
    c.device = c.s.cpu;
    run(&c, label);
    const tni_labels *labels = &c.device->memory->labels;
    for (uint8_t i = 1; i < TNI_LABEL_ROWS; i++) {
        char text[TNI_LABEL_TEXT], other[TNI_LABEL_TEXT];
        int64_t bytes = atomic_load(&labels->rows[i].bytes[TNI_OF_DEVICE]);
        assert_true(bytes == 0 || (bytes == INT64_MIN && i <= TNI_LABELS)); /* or no label's */
        assert_int_equal(atomic_load(&labels->rows[i].bytes[TNI_OF_HOST]), bytes);
        tni_labels_text(labels, i, text);
        for (uint8_t k = 1; k < i && bytes == 0; k++) {
            tni_labels_text(labels, k, other);
            assert_true(labels->rows[k].bytes[TNI_OF_DEVICE] < 0 || strcmp(text, other) != 0);
        }
    }
    expect_none(c.device);
    spaces_end(&c.s);
}

/* From north to south and back, through the host, each thread its own bytes. */
static void copy_around(worker *w)
{
    enum { SIZE = 5000 };
    const spaces *s = &w->crew->s;
    tn_device *south = s->south[w->number % 2], *north = s->north[w->number % 2];
    unsigned char bytes[SIZE], back[SIZE];
    void *a = NULL, *b = NULL;
    tn_stream *own = NULL;
    w->failed += tn_stream_create(south, NULL, &own, NULL) != TN_OK;
    w->failed += tn_memory_alloc(north, SIZE, NULL, &a, NULL) != TN_OK;
    w->failed += tn_memory_alloc(south, SIZE, NULL, &b, NULL) != TN_OK;
    for (int i = 0; i < rounds() / 50 && !w->failed; i++) {
        memset(bytes, w->number + i, SIZE);
        memset(back, 0, SIZE);
        w->failed += tn_memory_copy(TN_ARGS(memory_copy, .to_device = north, .to = a, .from = bytes,
                                            .bytes = SIZE),
                                    NULL) != TN_OK;
        w->failed +=
            tn_memory_copy(TN_ARGS(memory_copy, .to_device = south, .to = b, .from_device = north,
                                   .from = a, .bytes = SIZE, .stream = own),
                           NULL) != TN_OK;
        w->failed += tn_memory_copy(TN_ARGS(memory_copy, .to = back, .from_device = south,
                                            .from = b, .bytes = SIZE, .stream = own),
                                    NULL) != TN_OK;
        w->failed += tn_stream_synchronize(own, NULL) != TN_OK;
        w->failed += memcmp(bytes, back, SIZE) != 0;
        if (i % 16 == 0)
            tn_memory_trim(south);
    }
    tn_memory_free(north, a);
    tn_memory_free(south, b);
    tn_stream_release(own);
}

static void threads_copy_through_the_host(void **state)
{
    crew c = {.over = false};
    (void)state;
    spaces_make(&c.s);
    run(&c, copy_around);
    spaces_end(&c.s);
    assert_true(spaces_are_empty());
}

static void until_over(worker *w)
{
    crew *c = w->crew;
    while (!atomic_load(&c->over)) {
        void *memory = NULL, *host = NULL;
        char text[32];
        snprintf(text, sizeof text, "label %u", random_below(w, 70));
        w->failed += tn_memory_alloc(c->device, random_below(w, 1000), text, &memory, NULL) != 0;
        w->failed += tn_memory_host_alloc(c->device, 10, NULL, &host, NULL) != TN_OK;
        tn_memory_free(c->device, memory);
        tn_memory_host_free(c->device, host);
    }
}

/* In the child: all that takes a lock, on whichever shelf another thread was. */
static int child_is_right(tn_device *device)
{
    void *blocks[200], *host = NULL;
    for (int i = 0; i < 200; i++) {
        char text[32];
        snprintf(text, sizeof text, "label %d", i % 70);
        if (tn_memory_alloc(device, (uint64_t)i * 7, text, &blocks[i], NULL))
            return 0;
    }
    if (tn_memory_host_alloc(device, 10, NULL, &host, NULL))
        return 0;
    for (int i = 0; i < 200; i++)
        tn_memory_free(device, blocks[i]);
    tn_memory_host_free(device, host);
    tn_memory_trim(device);
    return stats_of(device).wrong_frees == 0;
}

static void children_can_go_on(void **state)
{
    crew c = {.over = false};
    tni_thread threads[THREADS];
    (void)state;
    skip_unless_fork_is_safe();
    spaces_make(&c.s);
    c.device = c.s.cpu;
    spaces_keep(c.device, true);
    start(&c, until_over, threads);
    for (int i = 0; i < (test_reduced() ? 20 : 100); i++) {
        int status = -1;
        (void)fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            (void)signal(SIGALRM, SIG_DFL);
            (void)alarm(TEST_HANG_SECONDS);
            _exit(child_is_right(c.device) ? 0 : 1);
        }
        assert_true(pid > 0 && tni_sys_waitpid(pid, &status, 0) == pid);
        assert_int_equal(status, 0);
    }
    atomic_store(&c.over, true);
    join(&c, threads);
    expect_none(c.device);
    spaces_end(&c.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_two_threads_get_one_block),
        cmocka_unit_test(blocks_pass_from_thread_to_thread),
        cmocka_unit_test(no_limit_is_exceeded_together),
        cmocka_unit_test(of_all_who_ask_at_once_one_is_served),
        cmocka_unit_test(labels_are_shared),
        cmocka_unit_test(threads_copy_through_the_host),
        cmocka_unit_test(children_can_go_on),
    };
    return run_suite("unit.memory_threads", tests);
}
