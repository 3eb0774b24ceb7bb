/* Generators: their states, who seeds whom, and many threads at one of them. */
#include "generators.h"

#include "device/random/generators.h"
#include "os/thread.h"
#include "tenon/alloc.h"
#include "tenon/parallel.h"

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

static void state_is_saved_and_restored(void **state)
{
    tn_generator *g = NULL;
    uint32_t first[9], again[9], other[9];
    (void)state;
    assert_int_equal(tn_generator_create(42, &g, NULL), TN_OK);
    tn_generator_state saved = state_of(g);
    assert_int_equal(saved.struct_size, sizeof saved);
    assert_int_equal(saved.seed, 42);
    assert_int_equal(saved.subsequence, 0);
    assert_int_equal(saved.offset, 0);
    assert_int_equal(tn_random_fill_uniform(g, TN_U32, other, 9, NULL), TN_OK);
    saved = state_of(g);
    assert_int_equal(saved.offset, 3);
    assert_int_equal(tn_random_fill_uniform(g, TN_U32, first, 9, NULL), TN_OK);
    assert_int_equal(tn_generator_state_set(g, &saved, NULL), TN_OK);
    assert_int_equal(tn_random_fill_uniform(g, TN_U32, again, 9, NULL), TN_OK);
    assert_memory_equal(first, again, sizeof first);
    saved.subsequence = 1;
    assert_int_equal(tn_generator_state_set(g, &saved, NULL), TN_OK);
    assert_int_equal(tn_random_fill_uniform(g, TN_U32, again, 9, NULL), TN_OK);
    assert_true(memcmp(first, again, sizeof first) != 0);
    tn_generator_seed(g, 7);
    saved = state_of(g);
    assert_int_equal(saved.seed, 7);
    assert_int_equal(saved.subsequence, 1);
    assert_int_equal(saved.offset, 0);
    tn_generator_release(g);
    tn_generator_release(NULL);
}

static void wrong_states_are_refused(void **state)
{
    tn_generator_state wrong = {.struct_size = offsetof(tn_generator_state, offset)};
    tn_error err;
    (void)state;
    assert_int_equal(tn_generator_state_get(NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "out is NULL");
    assert_int_equal(tn_generator_state_set(NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "state is NULL");
    assert_int_equal(tn_generator_state_get(NULL, &wrong, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "out->struct_size: expected at least 32, got 24");
    assert_int_equal(tn_generator_state_set(NULL, &wrong, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "state->struct_size: expected at least 32, got 24");
    assert_string_equal(err.where, "tn_generator_state_set");
    assert_int_equal(tn_generator_create(1, NULL, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "out is NULL");
}

static void *no_alloc(void *self, size_t size, size_t align)
{
    (void)self, (void)size, (void)align;
    return NULL;
}

static void no_release(void *self, void *memory)
{
    (void)self, (void)memory;
}

static void want_of_memory_is_told(void **state)
{
    const tn_allocator none = {
        .struct_size = sizeof none, .alloc = no_alloc, .release = no_release};
    tn_generator *g = NULL;
    float out[9];
    tn_error err;
    (void)state;
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK); /* which lets go of the pool */
    assert_int_equal(tn_allocator_set(&none, NULL), TN_OK);
    assert_int_equal(tn_generator_create(1, &g, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "a generator");
    assert_int_equal(tni_generators_add(1, &g, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "a device's generator");
    assert_null(g);
    assert_int_equal(tn_random_fill_normal(NULL, TN_F32, out, 9, NULL), TN_OK);
    assert_int_equal(tn_allocator_set(NULL, NULL), TN_OK);
}

static void seeding_everything_reaches_the_cores_own(void **state)
{
    tn_generator *own = generator_at(5, 6, 7), *device = NULL, *gone = NULL, *late = NULL;
    (void)state;
    assert_int_equal(tn_seed_everything(11, NULL), TN_OK);
    assert_int_equal(tni_generators_add(3, &device, NULL), TN_OK);
    assert_int_equal(tni_generators_add(4, &gone, NULL), TN_OK);
    assert_int_equal(state_of(device).seed, 11);
    assert_int_equal(state_of(device).subsequence, 3);
    (void)tni_generators_advance(device, 100);
    (void)tni_generators_advance(NULL, 100);
    tn_generator_release(gone);
    assert_int_equal(tn_seed_everything(12, NULL), TN_OK);
    assert_int_equal(state_of(device).seed, 12);
    assert_int_equal(state_of(device).subsequence, 3);
    assert_int_equal(state_of(device).offset, 0);
    assert_int_equal(state_of(NULL).seed, 12);
    assert_int_equal(state_of(NULL).offset, 0);
    assert_int_equal(state_of(own).seed, 5);
    assert_int_equal(state_of(own).offset, 7);
    tn_generator_seed(NULL, 99); /* the default generator's alone */
    assert_int_equal(tni_generators_add(5, &late, NULL), TN_OK);
    assert_int_equal(state_of(late).seed, 12);
    tn_generator_release(device);
    tn_generator_release(late);
    tn_generator_release(own);
    assert_int_equal(tn_seed_everything(TN_SEED_DEFAULT, NULL), TN_OK);
}

enum { THREADS = 8, FILLS = 300, MOST_BLOCKS = 5, ROOM = FILLS * MOST_BLOCKS * 4 };

struct filler {
    tni_thread thread;
    tn_generator *generator;
    int number;
    int64_t words;
    uint32_t out[ROOM];
};

static void fill_often(void *user)
{
    struct filler *filler = user;
    for (int i = 0; i < FILLS; i++) {
        int64_t count = 4 * (1 + (i * 7 + filler->number) % MOST_BLOCKS);
        (void)tn_random_fill_uniform(filler->generator, TN_U32, filler->out + filler->words, count,
                                     NULL);
        filler->words += count;
    }
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, 16);
}

/* All blocks that the threads got are those from the first on, each once. */
static void threads_share_no_block(void **state)
{
    static struct filler fillers[THREADS];
    static uint32_t found[THREADS * ROOM], expected[THREADS * ROOM];
    tn_generator *g = generator_at(77, 0, 0), *again = generator_at(77, 0, 0);
    int64_t words = 0;
    (void)state;
    for (int i = 0; i < THREADS; i++) {
        fillers[i].generator = g;
        fillers[i].number = i;
        assert_int_equal(tni_thread_create(&fillers[i].thread, fill_often, &fillers[i], NULL),
                         TN_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        tni_thread_join(fillers[i].thread);
        memcpy(found + words, fillers[i].out, (size_t)fillers[i].words * sizeof found[0]);
        words += fillers[i].words;
    }
    assert_int_equal(state_of(g).offset, words / 4);
    assert_int_equal(tn_random_fill_uniform(again, TN_U32, expected, words, NULL), TN_OK);
    qsort(found, (size_t)words / 4, 16, by_bytes);
    qsort(expected, (size_t)words / 4, 16, by_bytes);
    assert_memory_equal(found, expected, (size_t)words * sizeof found[0]);
    tn_generator_release(g);
    tn_generator_release(again);
}

/* A thread that seeds, sets, adds and releases until it is told to stop. Whatever state it sets,
 * the subsequence is the complement of the seed. */
struct disturber {
    tni_thread thread;
    tn_generator *shared;
    _Atomic int stop;
};

static void disturb(void *user)
{
    struct disturber *disturber = user;
    for (uint64_t i = 0; !disturber->stop; i++) {
        const tn_generator_state state = {sizeof state, i, ~i, i};
        tn_generator *g = NULL;
        (void)tn_generator_state_set(disturber->shared, &state, NULL);
        (void)tn_seed_everything(i, NULL);
        (void)tni_generators_add(i, &g, NULL);
        (void)tni_generators_advance(g, 3);
        tn_generator_release(g);
    }
}

static void disturber_start(struct disturber *disturber)
{
    *disturber = (struct disturber){.shared = generator_at(0, UINT64_MAX, 0)};
    assert_int_equal(tni_thread_create(&disturber->thread, disturb, disturber, NULL), TN_OK);
}

static void disturber_end(struct disturber *disturber)
{
    disturber->stop = 1;
    tni_thread_join(disturber->thread);
    tn_generator_release(disturber->shared);
    assert_int_equal(tn_seed_everything(TN_SEED_DEFAULT, NULL), TN_OK);
}

/* Who takes blocks sees a seed and a subsequence that were set together, and the list of the core's
 * own generators bears two threads. */
static void states_change_as_a_whole(void **state)
{
    struct disturber disturber;
    (void)state;
    disturber_start(&disturber);
    for (int i = 0; i < (test_reduced() ? 2000 : 20000); i++) {
        tn_generator_state taken = tni_generators_advance(disturber.shared, 1);
        tn_generator *beside = NULL; /* in the list of those that the other thread adds */
        uint32_t words[4];
        assert_int_equal(taken.seed, ~taken.subsequence);
        assert_int_equal(tni_generators_add(0, &beside, NULL), TN_OK);
        assert_int_equal(tn_random_fill_uniform(beside, TN_U32, words, 4, NULL), TN_OK);
        assert_int_equal(tn_random_fill_uniform(NULL, TN_U32, words, 4, NULL), TN_OK);
        tn_generator_release(beside);
    }
    disturber_end(&disturber);
}

/* A fork may come while another thread has the lock; the child must still be able to fill. */
static void children_can_fill(void **state)
{
    (void)state;
#if defined(_WIN32)
    skip_because("there is no fork() here");
#else
    struct disturber disturber;
    disturber_start(&disturber);
    for (int i = 0; i < 100; i++) {
        int status = -1;
        (void)fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            uint32_t words[4];
            (void)alarm(TEST_HANG_SECONDS);
            _exit(tn_random_fill_uniform(NULL, TN_U32, words, 4, NULL));
        }
        assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
        assert_int_equal(status, 0);
    }
    disturber_end(&disturber);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_is_saved_and_restored),
        cmocka_unit_test(wrong_states_are_refused),
        cmocka_unit_test(want_of_memory_is_told),
        cmocka_unit_test(seeding_everything_reaches_the_cores_own),
        cmocka_unit_test(threads_share_no_block),
        cmocka_unit_test(states_change_as_a_whole),
        cmocka_unit_test(children_can_fill),
    };
    return run_suite("unit.generators", tests);
}
