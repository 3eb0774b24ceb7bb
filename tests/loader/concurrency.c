/* Eight threads load, add, list and read at once; and no module is called with a lock held. */
#include "support.h"

#include "os/fork.h"
#include "os/thread.h"
#include "tenon/log.h"
#include "tenon/module/module.h"
#include "tenon/parallel.h"

#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 8, ROUNDS = 4 };

/* The calls that the threads make: on a registry of the test's, or on the process's. */
struct calls {
    tn_status (*add)(const char *path, bool is_folder, uint64_t flags);
    tn_status (*discover)(void);
    tn_status (*list)(tn_module_list **out);
    uint64_t (*generation)(void);
};

static tni_registry *shared;

static tn_status shared_add(const char *path, bool is_folder, uint64_t flags)
{
    return tni_registry_add(shared, path, is_folder, flags, NULL);
}

static tn_status shared_discover(void)
{
    return tni_registry_discover(shared, NULL);
}

static tn_status shared_list(tn_module_list **out)
{
    return tni_registry_list(shared, out, NULL);
}

static uint64_t shared_generation(void)
{
    return tni_registry_generation(shared);
}

static tn_status process_add(const char *path, bool is_folder, uint64_t flags)
{
    return is_folder ? tn_module_folder_add(path, flags, NULL)
                     : tn_module_file_add(path, flags, NULL);
}

static tn_status process_discover(void)
{
    return tn_module_discover(NULL);
}

static tn_status process_list(tn_module_list **out)
{
    return tn_module_list_create(out, NULL);
}

static const struct calls on_shared = {shared_add, shared_discover, shared_list, shared_generation};
static const struct calls on_process = {process_add, process_discover, process_list,
                                        tn_module_generation};

typedef struct worker {
    tni_thread thread;
    const struct calls *calls;
    const char *folder;
    int number;
    _Atomic bool wrong; /* threads may not assert */
} worker;

static void name_of(int thread, int round, char out[16])
{
    snprintf(out, 16, "t%d-%d", thread, round);
}

/* Every row and place of a list, from the first to the last letter. */
static bool is_sound(const tn_module_list *list)
{
    size_t letters = 0;
    for (size_t i = 0; i < tn_module_list_count(list); i++) {
        const tn_module_report *row = tn_module_list_get(list, i);
        letters += strlen(row->name) + strlen(row->message) + strlen(row->remedy);
        if ((row->status == TN_OK) != (row->stage == TN_STAGE_READY) || row->name[0] == '\0')
            return false;
    }
    for (size_t i = 0; i < tn_module_list_place_count(list); i++) {
        const tn_module_place *place = tn_module_list_place_get(list, i);
        letters += strlen(place->path) + strlen(place->message);
    }
    return letters > 0;
}

static bool holds(const tn_module_list *list, const char *path)
{
    for (size_t i = 0; i < tn_module_list_count(list); i++) {
        const char *other = tn_module_list_get(list, i)->path;
        if (other && strcmp(other, path) == 0)
            return true;
    }
    return false;
}

/* What this thread has added is in the next list it makes. */
static bool work_once(const worker *me, int round)
{
    char name[16];
    tn_module_list *list = NULL;
    uint64_t generation = me->calls->generation();
    name_of(me->number, round, name);
    struct path file = module_in(me->folder, name);
    bool right = me->calls->add(file.text, false, TN_MODULE_TRUSTED) == TN_OK &&
                 me->calls->discover() == TN_OK && me->calls->list(&list) == TN_OK &&
                 is_sound(list) && holds(list, file.text) && me->calls->generation() > generation;
    tn_module_list_release(list);
    return right;
}

static void work(void *user)
{
    worker *me = user;
    for (int round = 0; round < ROUNDS; round++) {
        if (!work_once(me, round))
            atomic_store(&me->wrong, true);
    }
}

/* The first round brings modules, of one name; the others bring what is none. */
static void put_candidates(const char *folder)
{
    for (int thread = 0; thread < THREADS; thread++) {
        for (int round = 0; round < ROUNDS; round++) {
            char name[16];
            name_of(thread, round, name);
            if (round == 0)
                put_stub(folder, name, thread % 2 ? "good" : "unavailable");
            else
                put_bytes(module_in(folder, name), "x", 1);
        }
    }
}

static void work_together(const struct calls *calls, const char *folder)
{
    worker workers[THREADS];
    put_candidates(folder);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.calls = calls, .folder = folder, .number = i};
        assert_int_equal(tni_thread_create(&workers[i].thread, work, &workers[i], NULL), TN_OK);
    }
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(workers[i].thread);
    for (int i = 0; i < THREADS; i++)
        assert_false(workers[i].wrong);
}

/* Every file has one row, and of one name exactly one module is ready. */
static void check_together(const struct calls *calls, const char *folder, size_t others)
{
    loaded in = {0};
    size_t ready = 0;
    assert_int_equal(calls->list(&in.list), TN_OK);
    assert_int_equal(tn_module_list_count(in.list), THREADS * ROUNDS + others);
    for (int thread = 0; thread < THREADS; thread++) {
        for (int round = 0; round < ROUNDS; round++) {
            char name[16];
            name_of(thread, round, name);
            const tn_module_report *row = row_of(&in, name);
            assert_string_equal(row->path, module_in(folder, name).text);
            ready += row->stage == TN_STAGE_READY;
        }
    }
    assert_int_equal(ready, 1);
    tn_module_list_release(in.list);
}

static void eight_threads_share_a_registry(void **state)
{
    char folder[SCRATCH_PATH], own[SCRATCH_PATH];
    int64_t blocks = tn_allocator_blocks();
    (void)state;
    scratch_make(folder);
    scratch_make(own);
    put_stub(own, "own", "no_rows"); /* goes through a child */
    tni_registry_params params = seek_in(own);
    assert_int_equal(tni_registry_create(&params, &shared, NULL), TN_OK);
    work_together(&on_shared, folder);
    check_together(&on_shared, folder, 1);
    tni_registry_destroy(shared);
    assert_int_equal(tn_allocator_blocks(), blocks);
    scratch_remove(own);
    scratch_remove(folder);
}

static void eight_threads_share_the_process(void **state)
{
    char folder[SCRATCH_PATH];
    tn_error err;
    (void)state;
    scratch_make(folder);
    assert_int_equal(tn_module_generation(), 0);
    work_together(&on_process, folder);
    check_together(&on_process, folder, 2); /* the built-ins */
    assert_int_equal(tn_module_verdicts_ignore(&err), TN_BUSY);
    assert_contains(err.message, "call this first");
    scratch_remove(folder);
}

/* A module whose entry waits for the test. */
static struct {
    tni_mutex lock;
    tni_condition changed;
    bool inside, may_leave;
    bool in_child; /* where no one is left to open it, and its lock may have been left locked */
} gate = {TNI_MUTEX_INIT, TNI_CONDITION_INIT, false, false, false};

static void gate_set(bool *flag)
{
    tni_mutex_lock(&gate.lock);
    *flag = true;
    tni_condition_wake_all(&gate.changed);
    tni_mutex_unlock(&gate.lock);
}

static void gate_wait(const bool *flag)
{
    tni_mutex_lock(&gate.lock);
    while (!*flag)
        tni_condition_wait(&gate.changed, &gate.lock);
    tni_mutex_unlock(&gate.lock);
}

static tn_status waiting_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    static const tn_module module = {
        .struct_size = sizeof module, TN_MODULE_ABI, .name = "waiting", .version = "1"};
    (void)host, (void)err;
    if (!gate.in_child) {
        gate_set(&gate.inside);
        gate_wait(&gate.may_leave);
    }
    *out = &module;
    return TN_OK;
}

static const tni_builtin waiting[] = {{"waiting", waiting_entry}, {NULL, NULL}};

static void discover_shared(void *user)
{
    _Atomic int *status = user;
    atomic_store(status, shared_discover());
}

/* A registry that one thread, just started, is inside a module of. */
static void begin_waiting(tni_thread *out_thread, _Atomic int *status)
{
    tni_registry_params params = {.builtins = waiting};
    gate.inside = gate.may_leave = false;
    assert_int_equal(tni_registry_create(&params, &shared, NULL), TN_OK);
    assert_int_equal(tni_thread_create(out_thread, discover_shared, status, NULL), TN_OK);
    gate_wait(&gate.inside);
}

static void no_lock_is_held_around_a_module(void **state)
{
    _Atomic int first = -1, second = -1;
    tni_thread threads[2];
    (void)state;
    begin_waiting(&threads[0], &first);
    /* None of these would return while a module is called with the lock held. */
    assert_int_equal(shared_generation(), 0);
    assert_int_equal(shared_add("/nowhere", true, 0), TN_OK);
    assert_int_equal(tni_thread_create(&threads[1], discover_shared, &second, NULL), TN_OK);
    gate_set(&gate.may_leave);
    tni_thread_join(threads[0]);
    tni_thread_join(threads[1]);
    assert_int_equal(first, TN_OK);
    assert_int_equal(second, TN_OK);
    loaded in = {.registry = shared};
    look_again(&in);
    assert_int_equal(tn_module_list_count(in.list), 1); /* loaded by one of them */
    assert_int_equal(tn_module_list_place_count(in.list), 1);
    tn_module_list_release(in.list);
    tni_registry_destroy(shared);
}

/* In a child the loading thread is gone; what it was at is loaded anew. */
static void child_of_a_loading_process_loads_itself(void **state)
{
    _Atomic int status = -1;
    tni_thread thread;
    int end = -1;
    (void)state;
    (void)tni_fork_generation(); /* forks are counted from the first use on */
    begin_waiting(&thread, &status);
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        tn_module_list *list = NULL;
        (void)alarm(TEST_HANG_SECONDS);
        gate.in_child = true;
        bool right = shared_list(&list) == TN_OK && tn_module_list_count(list) == 1;
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &end, 0), child);
    gate_set(&gate.may_leave);
    tni_thread_join(thread);
    assert_int_equal(status, TN_OK);
    assert_int_equal(end, 0);
    tni_registry_destroy(shared);
}

/* A probe that talks from every thread of the pool, to a sink that asks what has come in. */
static void talk(void *user, int64_t index)
{
    const tn_host *host = user;
    (void)index;
    host->log(host->self, TN_LOG_INFO, "a task of a probe");
}

static tn_status talking_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    static const tn_module module = {
        .struct_size = sizeof module, TN_MODULE_ABI, .name = "talking", .version = "1"};
    (void)err;
    host->parallel_for(host->self, 64, talk, (void *)(uintptr_t)host);
    *out = &module;
    return TN_OK;
}

static _Atomic int answers;

static void ask_in_sink(void *user, int32_t level, const char *text)
{
    tn_module_list *list = NULL;
    (void)user, (void)level, (void)text;
    if (tni_registry_list(shared, &list, NULL) == TN_OK)
        answers++;
    tn_module_list_release(list);
}

static void sink_may_ask_while_a_module_loads(void **state)
{
    static const tni_builtin builtins[] = {{"talking", talking_entry}, {NULL, NULL}};
    static const tn_log_sink sink = {
        .struct_size = sizeof sink, .write = ask_in_sink, .level = TN_LOG_DEBUG};
    const tni_registry_params params = {.builtins = builtins};
    (void)state;
    assert_int_equal(tn_parallel_threads_set(4, NULL), TN_OK);
    assert_int_equal(tni_registry_create(&params, &shared, NULL), TN_OK);
    assert_int_equal(tn_log_set(&sink, NULL), TN_OK);
    assert_int_equal(tni_registry_discover(shared, NULL), TN_OK);
    assert_int_equal(tn_log_set(NULL, NULL), TN_OK);
    assert_true(answers >= 64);
    tni_registry_destroy(shared);
    assert_int_equal(tn_parallel_threads_set(0, NULL), TN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_threads_share_a_registry),
        cmocka_unit_test(eight_threads_share_the_process),
        cmocka_unit_test(no_lock_is_held_around_a_module),
        cmocka_unit_test(sink_may_ask_while_a_module_loads),
        cmocka_unit_test(child_of_a_loading_process_loads_itself),
    };
    return run_suite("loader.concurrency", tests);
}
