/* The device in another process, killed while several threads have work under way on it: everyone comes
 * back with the cause, the other device goes on, and a new server can be opened. */
#include "scratch.h"
#include "tenon/tenon.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, BYTES = 1 << 18, ROUNDS = 3 };

static char folder[SCRATCH_PATH];
static tn_device *first, *second;

static void come_in(void)
{
    tn_error err;
    if (first)
        return;
    scratch_make(folder);
    setenv("FERRY_RUN", folder, 1);
    if (tn_module_file_add(FERRY, TN_MODULE_TRUSTED, &err) ||
        tn_device_get("ferry:0", &first, &err) || tn_device_get("ferry:1", &second, &err))
        fail_msg("%s: %s", err.where, err.message);
}

/* The process number of a device's server, which has been started. */
static pid_t server_of(int device)
{
    char path[SCRATCH_PATH + 32];
    int number = 0;
    snprintf(path, sizeof path, "%s/ferry-%d.pid", folder, device);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &number), 1);
    assert_int_equal(fclose(file), 0);
    return (pid_t)number;
}

/* One thread's work, again and again until something fails. */
typedef struct worker {
    tn_device *device;
    pthread_t thread;
    _Atomic int turns;
    tn_status status;
    tn_error err;
} worker;

typedef struct tools {
    tn_stream *stream;
    tn_event *event;
    void *there;
    char *here;
} tools;

static tn_status take_tools(worker *w, tools *out)
{
    tn_status status = tn_stream_create(w->device, NULL, &out->stream, &w->err);
    if (!status)
        status = tn_event_create(w->device, NULL, &out->event, &w->err);
    if (!status)
        status = tn_memory_alloc(w->device, BYTES, "ferry", &out->there, &w->err);
    out->here = calloc(2, BYTES);
    return status;
}

static tn_status do_turn(worker *w, const tools *t, int turn)
{
    tn_status status =
        tn_memory_fill(TN_ARGS(memory_fill, .device = w->device, .to = t->there, .bytes = BYTES,
                               .pattern = (uint64_t)turn, .stream = t->stream),
                       &w->err);
    for (int i = 0; i < 8 && !status; i++)
        status = tn_memory_copy(TN_ARGS(memory_copy, .to = t->here, .from_device = w->device,
                                        .from = t->there, .bytes = BYTES, .stream = t->stream),
                                &w->err);
    if (!status)
        status =
            tn_memory_copy(TN_ARGS(memory_copy, .to_device = w->device, .to = t->there,
                                   .from = t->here + BYTES, .bytes = BYTES, .stream = t->stream),
                           &w->err);
    if (!status)
        status = tn_event_record(t->event, t->stream, &w->err);
    if (!status && turn % 2)
        status = tn_stream_synchronize(t->stream, &w->err);
    else if (!status)
        status = tn_event_synchronize(t->event, &w->err);
    if (!status && t->here[BYTES - 1] != (char)turn)
        status = tn_fail(&w->err, TN_CORRUPT, 0, "ferry", "turn %d came back as %d", turn,
                         t->here[BYTES - 1]);
    return status;
}

static void *work(void *user)
{
    worker *w = user;
    tools t = {0};
    tn_status status = take_tools(w, &t);
    for (int turn = 0; !status; turn++) {
        status = do_turn(w, &t, turn);
        atomic_fetch_add(&w->turns, !status);
    }
    w->status = status;
    tn_memory_free(w->device, t.there);
    tn_event_release(t.event);
    tn_stream_release(t.stream);
    free(t.here);
    return NULL;
}

static void begin(worker *workers, tn_device *device)
{
    for (int i = 0; i < THREADS; i++) {
        workers[i].device = device;
        atomic_init(&workers[i].turns, 0);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) { /* all of them are at it */
        while (atomic_load(&workers[i].turns) < 3)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* That a device works, from new memory to what comes back. */
static void use(tn_device *device)
{
    void *there = NULL;
    char sent[1000], back[1000];
    tn_error err;
    memset(sent, 0x5A, sizeof sent);
    memset(back, 0, sizeof back);
    if (tn_memory_alloc(device, sizeof sent, NULL, &there, &err) ||
        tn_memory_copy(TN_ARGS(memory_copy, .to_device = device, .to = there, .from = sent,
                               .bytes = sizeof sent),
                       &err) ||
        tn_memory_copy(TN_ARGS(memory_copy, .to = back, .from_device = device, .from = there,
                               .bytes = sizeof sent),
                       &err) ||
        tn_device_synchronize(device, &err))
        fail_msg("%s: %s", err.where, err.message);
    assert_memory_equal(sent, back, sizeof sent);
    tn_memory_free(device, there);
}

/* Nothing is called before it is needed: a probe starts no server. */
static void a_server_starts_at_the_first_use(void **state)
{
    char path[SCRATCH_PATH + 32];
    int32_t previous;
    tn_error err;
    (void)state;
    come_in();
    snprintf(path, sizeof path, "%s/ferry-1.pid", folder);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(tn_device_maybe_exchange(tn_device_platform(second), 1, &previous, &err),
                     TN_OK);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(tn_device_set(tn_device_platform(second), 1, &err), TN_OK);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(kill(server_of(1), 0), 0);
    assert_int_equal(tn_device_set(tn_device_platform(second), 0, &err), TN_OK);
}

static void killing_the_server_loses_the_device_alone(void **state)
{
    char cause[64];
    worker workers[THREADS];
    tn_error err;
    void *none = NULL;
    (void)state;
    come_in();
    for (int round = 0; round < ROUNDS; round++) {
        use(first);
        use(second);
        begin(workers, first);
        pid_t server = server_of(0);
        snprintf(cause, sizeof cause, "the server (pid %d) ended by signal 9", (int)server);
        assert_int_equal(kill(server, SIGKILL), 0);
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
            if (workers[i].status != TN_DEVICE_LOST)
                fail_msg("%s: %s", workers[i].err.where, workers[i].err.message);
            assert_contains(workers[i].err.message, cause);
        }
        assert_int_equal(tn_device_health(first, &err), TN_DEVICE_LOST);
        assert_contains(err.message, cause);
        assert_int_equal(tn_memory_alloc(first, 1, NULL, &none, &err), TN_DEVICE_LOST);
        assert_contains(err.message, cause);
        use(second);
        assert_int_equal(tn_device_reset(first, &err), TN_OK);
        assert_int_equal(tn_device_health(first, &err), TN_OK);
        assert_int_not_equal(server_of(0), server);
        use(first);
    }
}

/* Those who still wait when the device is opened anew say what they know of the old one: it does not
 * lose the new one. */
static void late_words_lose_nothing(void **state)
{
    worker workers[THREADS];
    tn_error err;
    (void)state;
    come_in();
    for (int round = 0; round < ROUNDS; round++) {
        use(first);
        begin(workers, first);
        assert_int_equal(kill(server_of(0), SIGKILL), 0);
        while (tn_device_synchronize(first, &err) == TN_OK)
            continue;
        assert_int_equal(tn_device_reset(first, &err), TN_OK);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(tn_device_health(first, &err), TN_OK);
        use(first);
    }
}

/* A forked child would talk to its parent's servers: it is refused, and they live on. */
static void a_child_is_refused(void **state)
{
    int status = -1;
    tn_error err;
    void *none = NULL;
    (void)state;
    come_in();
    use(first);
    pid_t server = server_of(0);
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(tn_memory_alloc(first, 64, NULL, &none, &err) == TN_UNAVAILABLE &&
                      tn_device_synchronize(first, &err) == TN_UNAVAILABLE &&
                      tn_device_reset(first, &err) == TN_UNAVAILABLE
                  ? 0
                  : 1);
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
    assert_int_equal(server_of(0), server);
    use(first);
}

/* A device that is well can be reset too: a new server, and nothing of before. */
static void a_sound_device_can_be_reset(void **state)
{
    tn_memory_stats stats = {.struct_size = sizeof stats};
    tn_error err;
    void *memory = NULL;
    (void)state;
    come_in();
    assert_int_equal(tn_memory_alloc(first, 1000, NULL, &memory, &err), TN_OK);
    pid_t server = server_of(0);
    assert_int_equal(tn_device_reset(first, &err), TN_OK);
    assert_int_not_equal(server_of(0), server);
    assert_int_equal(tn_memory_stats_get(first, &stats, &err), TN_OK);
    assert_int_equal(stats.current, 0);
    use(first);
}

/* What reaches outside of its memory ends the server, with a sentence. */
static void a_stray_copy_is_the_cause(void **state)
{
    char here[100] = "";
    tn_error err;
    (void)state;
    come_in();
    use(first);
    tn_status status = tn_memory_copy(TN_ARGS(memory_copy, .to_device = first, .to = (void *)64,
                                              .from = here, .bytes = sizeof here),
                                      &err);
    if (!status)
        status = tn_device_synchronize(first, &err);
    assert_int_equal(status, TN_DEVICE_LOST);
    assert_contains(err.message, "ended: 1 rows of 100 bytes at 0x40 lie outside of its memory");
    assert_int_equal(tn_device_reset(first, &err), TN_OK);
    use(first);
}

static void clean_up(void **state)
{
    (void)state;
    come_in();
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_starts_at_the_first_use),
        cmocka_unit_test(killing_the_server_loses_the_device_alone),
        cmocka_unit_test(late_words_lose_nothing),
        cmocka_unit_test(a_child_is_refused),
        cmocka_unit_test(a_sound_device_can_be_reset),
        cmocka_unit_test(a_stray_copy_is_the_cause),
        cmocka_unit_test(clean_up),
    };
    return run_suite("conformance.ferry", tests);
}
