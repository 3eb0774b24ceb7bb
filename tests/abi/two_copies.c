/* Two copies of the library in one process, as two Python packages would bring them: neither knows
 * of the other, and a module that both open has two hosts. */
#include "scratch.h"

#include "tenon/tenon.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define CALLS(X)                \
    X(tn_allocator_blocks)      \
    X(tn_allocator_set)         \
    X(tn_log_set)               \
    X(tn_module_file_add)       \
    X(tn_module_generation)     \
    X(tn_module_list_count)     \
    X(tn_module_list_create)    \
    X(tn_module_list_get)       \
    X(tn_module_list_place_get) \
    X(tn_module_list_release)   \
    X(tn_parallel_for)          \
    X(tn_parallel_threads)      \
    X(tn_parallel_threads_set)  \
    X(tn_version)

/* One copy, and what its hooks were told. */
struct copy {
#define MEMBER(name) __typeof__(name) *name;
    CALLS(MEMBER)
#undef MEMBER
    char folder[SCRATCH_PATH];
    tn_log_sink sink;
    char host[64]; /* "host 0x..." as the module `twice` said it */
    _Atomic int lines;
    const char *fault;
    _Atomic int held; /* blocks that its allocator has given and not got back */
};

static struct copy first, second;

static void bind(void *handle, const char *name, void *slot)
{
    void *address = dlsym(handle, name);
    if (!address)
        fail_msg("no %s: %s", name, dlerror());
    memcpy(slot, &address, sizeof address);
}

static void copy_file(const char *from, const char *to)
{
    char piece[65536];
    ssize_t count;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    assert_true(in >= 0 && out >= 0);
    while ((count = read(in, piece, sizeof piece)) > 0)
        assert_int_equal(write(out, piece, (size_t)count), count);
    assert_int_equal(count, 0);
    assert_int_equal(close(in) | close(out), 0);
}

/* A copy of the file under another name, in a folder of its own beside a module folder. */
static void load(struct copy *copy)
{
    static int number;
    char path[SCRATCH_PATH + 32];
    *copy = (struct copy){0};
    scratch_make(copy->folder);
    snprintf(path, sizeof path, "%s/backends", copy->folder);
    assert_int_equal(symlink(TENON_TEST_BACKENDS, path), 0);
    snprintf(path, sizeof path, "%s/libtenon-%d.so", copy->folder, ++number);
    copy_file(TENON_TEST_LIBRARY, path);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fail_msg("%s", dlerror());
#define BIND(name) bind(handle, #name, &copy->name);
    CALLS(BIND)
#undef BIND
}

static void load_both(void)
{
    load(&first);
    load(&second);
}

static void remove_both(void)
{
    scratch_remove(first.folder);
    scratch_remove(second.folder);
}

static void hear(void *user, int32_t level, const char *text)
{
    struct copy *copy = user;
    const char *host = strstr(text, "host 0x");
    (void)level;
    if (host)
        snprintf(copy->host, sizeof copy->host, "%s", host);
    atomic_fetch_add(&copy->lines, 1);
}

static void listen_to(struct copy *copy)
{
    copy->sink = (tn_log_sink){
        .struct_size = sizeof copy->sink, .write = hear, .user = copy, .level = TN_LOG_DEBUG};
    assert_int_equal(copy->tn_log_set(&copy->sink, NULL), TN_OK);
}

static void *give(void *self, size_t size, size_t align)
{
    struct copy *copy = self;
    void *memory = NULL;
    if (posix_memalign(&memory, align, size) != 0)
        return NULL;
    atomic_fetch_add(&copy->held, 1);
    return memory;
}

static void take(void *self, void *memory)
{
    struct copy *copy = self;
    atomic_fetch_sub(&copy->held, 1);
    free(memory);
}

static void supply(struct copy *copy)
{
    tn_error err;
    tn_allocator allocator = {
        .struct_size = sizeof allocator, .self = copy, .alloc = give, .release = take};
    if (copy->tn_allocator_set(&allocator, &err))
        fail_msg("%s", err.message);
}

static tn_module_list *list_of(struct copy *copy)
{
    tn_error err;
    tn_module_list *list = NULL;
    if (copy->tn_module_list_create(&list, &err))
        fail_msg("%s: %s", err.where, err.message);
    return list;
}

/* How many rows have this name, and are ready or not. */
static int count_rows(struct copy *copy, const char *name, bool ready)
{
    tn_module_list *list = list_of(copy);
    int found = 0;
    for (size_t i = 0; i < copy->tn_module_list_count(list); i++) {
        const tn_module_report *row = copy->tn_module_list_get(list, i);
        found += strcmp(row->name, name) == 0 && (row->stage == TN_STAGE_READY) == ready;
    }
    copy->tn_module_list_release(list);
    return found;
}

static void each_has_its_own_code_and_folder(void **state)
{
    (void)state;
    load_both();
    assert_true(first.tn_version != second.tn_version);
    assert_string_equal(first.tn_version(), second.tn_version());
    struct copy *const copies[] = {&first, &second};
    for (int i = 0; i < 2; i++) {
        tn_module_list *list = list_of(copies[i]);
        const tn_module_place *place = copies[i]->tn_module_list_place_get(list, 0);
        assert_non_null(place);
        assert_contains(place->path, copies[i]->folder);
        copies[i]->tn_module_list_release(list);
    }
    remove_both();
}

static void lists_are_apart(void **state)
{
    (void)state;
    load_both();
    assert_int_equal(count_rows(&first, "ref", true), 1);
    assert_int_equal(second.tn_module_generation(), 0);
    assert_int_equal(first.tn_module_file_add(TENON_TEST_TWICE, TN_MODULE_TRUSTED, NULL), TN_OK);
    assert_int_equal(count_rows(&first, "twice", true), 1);
    assert_int_equal(count_rows(&second, "twice", true), 0);
    assert_int_equal(count_rows(&second, "ref", true), 1);
    assert_true(first.tn_module_generation() > second.tn_module_generation());
    remove_both();
}

static void logs_are_apart(void **state)
{
    (void)state;
    load_both();
    listen_to(&first);
    assert_int_equal(count_rows(&second, "ref", true), 1);
    assert_int_equal(atomic_load(&first.lines), 0);
    listen_to(&second);
    assert_int_equal(count_rows(&first, "ref", true), 1);
    assert_true(atomic_load(&first.lines) > 0);
    assert_int_equal(atomic_load(&second.lines), 0);
    remove_both();
}

static void allocators_are_apart(void **state)
{
    (void)state;
    load_both();
    supply(&first);
    assert_int_equal(count_rows(&second, "ref", true), 1);
    assert_true(second.tn_allocator_blocks() > 0);
    assert_int_equal(first.tn_allocator_blocks(), 0);
    assert_int_equal(atomic_load(&first.held), 0);
    assert_int_equal(second.tn_allocator_set(NULL, NULL), TN_BUSY);

    assert_int_equal(count_rows(&first, "ref", true), 1);
    assert_int_equal(first.tn_allocator_blocks(), atomic_load(&first.held));
    assert_true(atomic_load(&first.held) > 0);
    remove_both();
}

static void pools_are_apart(void **state)
{
    (void)state;
    load_both();
    int32_t before = second.tn_parallel_threads();
    assert_int_equal(first.tn_parallel_threads_set(before + 3, NULL), TN_OK);
    assert_int_equal(first.tn_parallel_threads(), before + 3);
    assert_int_equal(second.tn_parallel_threads(), before);
    remove_both();
}

static void a_module_of_both_has_two_hosts(void **state)
{
    struct copy *const copies[] = {&first, &second};
    (void)state;
    load_both();
    for (int i = 0; i < 2; i++) {
        supply(copies[i]);
        listen_to(copies[i]);
        assert_int_equal(count_rows(copies[i], "ref", true), 1);
        int64_t blocks = copies[i]->tn_allocator_blocks();
        assert_int_equal(copies[i]->tn_module_file_add(TENON_TEST_TWICE, TN_MODULE_TRUSTED, NULL),
                         TN_OK);
        assert_int_equal(count_rows(copies[i], "twice", true), 1);
        assert_true(copies[i]->tn_allocator_blocks() > blocks);
        assert_int_equal(copies[i]->tn_allocator_blocks(), atomic_load(&copies[i]->held));
    }
    assert_contains(first.host, "host 0x");
    assert_contains(second.host, "host 0x");
    assert_string_not_equal(first.host, second.host);
    remove_both();
}

static void count_up(void *user, int64_t index)
{
    (void)index;
    atomic_fetch_add((_Atomic int64_t *)user, 1);
}

/* One round of everything; NULL when all was right. */
static const char *use(struct copy *copy, size_t least)
{
    _Atomic int64_t sum = 0;
    tn_module_list *list = NULL;
    if (copy->tn_module_list_create(&list, NULL) != TN_OK)
        return "tn_module_list_create";
    bool enough = copy->tn_module_list_count(list) >= least;
    copy->tn_module_list_release(list);
    if (!enough)
        return "tn_module_list_count";
    copy->tn_parallel_for(100, count_up, &sum);
    return atomic_load(&sum) == 100 ? NULL : "tn_parallel_for";
}

static void *drive(void *user)
{
    struct copy *copy = user;
    for (int round = 0; !copy->fault && round < 10; round++)
        copy->fault = use(copy, 1);
    if (copy->tn_module_file_add(TENON_TEST_TWICE, TN_MODULE_TRUSTED, NULL) != TN_OK)
        copy->fault = "tn_module_file_add";
    for (int round = 0; !copy->fault && round < 10; round++)
        copy->fault = use(copy, 2);
    return NULL;
}

static void two_threads_drive_one_each(void **state)
{
    pthread_t threads[2];
    struct copy *const copies[] = {&first, &second};
    (void)state;
    load_both();
    for (int i = 0; i < 2; i++) {
        supply(copies[i]);
        listen_to(copies[i]);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, drive, copies[i]), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (copies[i]->fault)
            fail_msg("copy %d: %s", i + 1, copies[i]->fault);
        assert_int_equal(copies[i]->tn_allocator_blocks(), atomic_load(&copies[i]->held));
        assert_int_equal(count_rows(copies[i], "twice", true), 1);
    }
    assert_string_not_equal(first.host, second.host);
    remove_both();
}

/* The loader has room for about 1.6 KiB of static thread-local storage beyond what the program had at its
 * start. A library that takes from it fails to load once others have used it up. */
static void many_copies_load(void **state)
{
    enum { COPIES = 40 };
    static struct copy copies[COPIES];
    (void)state;
    for (int i = 0; i < COPIES; i++) {
        load(&copies[i]);
        const char *fault = use(&copies[i], 1);
        if (fault)
            fail_msg("copy %d: %s", i + 1, fault);
        scratch_remove(copies[i].folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_its_own_code_and_folder),
        cmocka_unit_test(lists_are_apart),
        cmocka_unit_test(logs_are_apart),
        cmocka_unit_test(allocators_are_apart),
        cmocka_unit_test(pools_are_apart),
        cmocka_unit_test(a_module_of_both_has_two_hosts),
        cmocka_unit_test(two_threads_drive_one_each),
        cmocka_unit_test(many_copies_load),
    };
    (void)unsetenv("TENON_MODULE_PATH");
    return run_suite("abi.two_copies", tests);
}
