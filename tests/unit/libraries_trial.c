/* Opening libraries, with a module that does whatever a module may do: once, whoever asks, and never
 * with a lock held. */
#include "test.h"

#include "base/log.h"
#include "base/words.h"
#include "os/thread.h"
#include "settings/library.h"
#include "tenon/module/kernel.h"
#include "tenon/module/module.h"
#include "tenon/tenon.h"

#include <sys/wait.h>
#include <unistd.h>

static _Atomic int opened, entered, hold, seen;
static int self_of_sound, level_told, memory_left;
static tn_status inner_status;
static tn_registration *module; /* of the module `many` */
static tn_library_state inner_state;

static const tn_library *library_of(const char *name)
{
    const tn_library *library = NULL;
    tn_error err;
    if (tn_library_get(name, &library, &err))
        fail_msg("%s: %s", name, err.message);
    return library;
}

static tn_library_state state_of(const char *name)
{
    tn_library_state state = {.struct_size = sizeof state};
    assert_int_equal(tn_library_state_get(library_of(name), NULL, &state, NULL), TN_OK);
    return state;
}

static tn_status open_sound(const tn_host *host, void **out_self, tn_error *err)
{
    tn_status status =
        host->library_bind(host->self, STAND_INS "/libgomp.so.1", NULL, 0, NULL, err);
    opened++;
    *out_self = &self_of_sound;
    return status;
}

static tn_status sound_version(void *self, int64_t *number, char *text, size_t size, tn_error *err)
{
    (void)err;
    assert_ptr_equal(self, &self_of_sound);
    memset(text, 'v', size); /* without an end */
    memcpy(text, "1.2\n", 4);
    *number = 10200;
    return TN_OK;
}

static tn_status sound_verbose(void *self, int32_t level, tn_error *err)
{
    assert_ptr_equal(self, &self_of_sound);
    if (level > 2)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "sound", "levels are 0 to 2");
    level_told = level;
    return TN_OK;
}

static tn_status open_refused(const tn_host *host, void **out_self, tn_error *err)
{
    (void)host, (void)out_self;
    return tn_fail(err, TN_INCOMPATIBLE, 7, "refused", "it is of 1999; get a newer one");
}

/* A status that there is not, and words without an end. */
static tn_status open_odd(const tn_host *host, void **out_self, tn_error *err)
{
    (void)host, (void)out_self;
    memset(err->message, 'o', sizeof err->message);
    err->message[3] = '\t';
    return 4711;
}

static tn_status open_wordless(const tn_host *host, void **out_self, tn_error *err)
{
    (void)host, (void)out_self, (void)err;
    return TN_UNAVAILABLE;
}

static tn_status open_poor(const tn_host *host, void **out_self, tn_error *err)
{
    (void)host;
    *out_self = NULL;
    if (memory_left > 0)
        return TN_OK;
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, "poor", "no memory for it");
}

static tn_status version_unknown(void *self, int64_t *number, char *text, size_t size,
                                 tn_error *err)
{
    (void)self, (void)text, (void)size;
    *number = 99;
    return tn_fail(err, TN_IO, 0, "part", "it does not say");
}

/* Asks for itself from inside. */
static tn_status open_curious(const tn_host *host, void **out_self, tn_error *err)
{
    (void)host, (void)out_self;
    inner_status = tn_library_try(library_of("curious"), err);
    inner_state = state_of("curious");
    return TN_OK;
}

/* Stays inside until it is let go. */
static tn_status open_slow(const tn_host *host, void **out_self, tn_error *err)
{
    (void)host, (void)out_self, (void)err;
    opened++;
    entered++;
    while (hold)
        usleep(100);
    return TN_OK;
}

/* Two that need each other, each on a thread of its own: neither waits for the other. */
static _Atomic int met;
static tn_status asked[2]; /* what each was told of the other */

static tn_status ask_for(const char *other, int self)
{
    met++;
    while (met < 2)
        usleep(100);
    asked[self] = tn_library_try(library_of(other), NULL);
    met++;
    while (met < 4)
        usleep(100);
    return TN_OK;
}

static tn_status open_left(const tn_host *host, void **out_self, tn_error *err)
{
    (void)host, (void)out_self, (void)err;
    return ask_for("right", 0);
}

static tn_status open_right(const tn_host *host, void **out_self, tn_error *err)
{
    (void)host, (void)out_self, (void)err;
    return ask_for("left", 1);
}

/* Knows of a place that the loader does not, by what the host finds there; and of none for another name. */
static tn_status look_aside(const tn_host *host, char *out_path, size_t size, tn_error *err)
{
    char path[512] = "";
    int32_t is_here = 7;
    assert_int_equal(
        host->library_look(host->self, "libtenon-nowhere.so.1", path, sizeof path, &is_here, NULL),
        TN_NOT_FOUND);
    assert_int_equal(host->library_look(host->self, "", path, sizeof path, &is_here, NULL),
                     TN_INVALID_ARGUMENT);
    assert_true(is_here == 7 && path[0] == '\0');
    assert_int_equal(host->library_look(host->self, STAND_INS "/libgomp.so.1", path, sizeof path,
                                        &is_here, NULL),
                     TN_OK);
    assert_string_equal(path, STAND_INS "/libgomp.so.1");
    snprintf(out_path, size, "%s", path);
    return tn_fail(err, TN_OK, 0, "", "it lies aside");
}

static tn_status look_nowhere(const tn_host *host, char *out_path, size_t size, tn_error *err)
{
    (void)host;
    snprintf(out_path, size, "not to be told");
    return tn_fail(err, TN_UNAVAILABLE, 0, "", "it is nowhere");
}

#define ROW(word, ...)                         \
    static const tn_library_row word##_row = { \
        .struct_size = sizeof word##_row, .name = #word, .platform = "cpu", __VA_ARGS__}
#define HERE .files = STAND_INS "/libgomp.so.1", .remedy = "build the stand-ins"

ROW(sound, HERE, .other = "sound-2", .verbose_setting = "sound.verbose", .open = open_sound,
    .version = sound_version, .verbose = sound_verbose);
ROW(plain, HERE);
ROW(missing, .files = "libtenon-nowhere.so.1|libtenon-nowhere.so.0", .remedy = "look elsewhere");
ROW(aside, .files = "libtenon-nowhere.so.1", .remedy = "look elsewhere", .look = look_aside);
ROW(nowhere, .files = "libtenon-nowhere.so.1", .remedy = "look elsewhere", .look = look_nowhere);
ROW(refused, HERE, .open = open_refused);
ROW(odd, HERE, .open = open_odd);
ROW(wordless, .open = open_wordless);
ROW(poor, HERE, .open = open_poor);
ROW(part, .version = version_unknown);
ROW(curious, HERE, .open = open_curious);
ROW(slow, HERE, .open = open_slow);
ROW(forked, HERE, .open = open_slow);
ROW(sunk, HERE, .open = open_slow);
ROW(left, HERE, .open = open_left);
ROW(right, HERE, .open = open_right);
ROW(cudnn, HERE, .open = open_sound); /* known without a module */

static tn_status run(const struct tn_run *run, tn_error *err)
{
    (void)run, (void)err;
    return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, TN_DTYPE_NONE};

#define KERNEL(word, of)                                                             \
    static const tn_kernel_row word##_kernel = {.struct_size = sizeof word##_kernel, \
                                                .name = "cpu.matmul." #word,         \
                                                .platform = "cpu",                   \
                                                .op = TN_OP_MATMUL,                  \
                                                .version = 1,                        \
                                                .dtypes = dtypes,                    \
                                                .flops_per_us = 1,                   \
                                                .bytes_per_us = 1,                   \
                                                .run = run,                          \
                                                .library = (of)}
KERNEL(first, "sound");
KERNEL(second, "sound-2");
KERNEL(third, "plain");
KERNEL(own, NULL);

#define MODULE(word, libraries_, kernels_)                                                   \
    static const tn_module word##_module = {.struct_size = sizeof word##_module,             \
                                            TN_MODULE_ABI,                                   \
                                            .name = #word,                                   \
                                            .version = "1",                                  \
                                            .libraries = (libraries_),                       \
                                            .kernels = (kernels_)};                          \
    static tn_status word##_entry(const tn_host *host, const tn_module **out, tn_error *err) \
    {                                                                                        \
        (void)host, (void)err;                                                               \
        *out = &word##_module;                                                               \
        return TN_OK;                                                                        \
    }

static const tn_library_row *const many_libraries[] = {
    &sound_row, &plain_row, &missing_row, &refused_row, &odd_row,    &wordless_row,
    &poor_row,  &part_row,  &curious_row, &slow_row,    &forked_row, &sunk_row,
    &left_row,  &right_row, &aside_row,   &nowhere_row, NULL};
static const tn_kernel_row *const many_kernels[] = {&first_kernel, &second_kernel, &third_kernel,
                                                    &own_kernel, NULL};
static const tn_library_row *const one_library[] = {&cudnn_row, NULL};
static const tn_library_row *const plain_library[] = {&plain_row, NULL};
MODULE(many, many_libraries, many_kernels)
MODULE(passing, one_library, NULL)
MODULE(later, plain_library, NULL)

static tn_registration *enter(tn_module_entry_fn *entry, uint64_t flags)
{
    tn_registration *registration = NULL;
    tn_error err;
    if (tn_module_register(entry, flags, &registration, &err))
        fail_msg("%s", err.message);
    return registration;
}

static void listing_and_telling_open_nothing(void **state)
{
    const tn_library *library;
    size_t count = 0;
    (void)state;
    assert_int_equal(tn_library_count(&count, NULL), TN_OK);
    for (size_t i = 0; (library = tn_library_at(i)); i++) {
        tn_library_state found = {.struct_size = sizeof found};
        assert_int_equal(tn_library_state_get(library, NULL, &found, NULL), TN_OK);
    }
    assert_int_equal(opened, 0);
    tn_library_state sound = state_of("sound");
    assert_int_equal(sound.available, TN_AVAILABLE_UNTRIED);
    assert_int_equal(sound.built, 1);
    assert_string_equal(sound.module, "many");
    assert_string_equal(sound.what, "");
    assert_string_equal(sound.reason, "not tried yet");
    assert_string_equal(sound.path, STAND_INS "/libgomp.so.1");
    assert_contains(state_of("missing").reason,
                    "not tried yet; not found: libtenon-nowhere.so.1, libtenon-nowhere.so.0");
    assert_string_equal(state_of("missing").remedy, "look elsewhere");
    assert_string_equal(state_of("part").reason, "part of module many, not tried yet");
}

/* A row that knows better than the loader is asked, and where it finds nothing the loader is. */
static void a_row_says_where_it_would_be_taken_from(void **state)
{
    (void)state;
    assert_string_equal(state_of("aside").reason, "not tried yet; it lies aside");
    assert_string_equal(state_of("aside").path, STAND_INS "/libgomp.so.1");
    assert_contains(state_of("nowhere").reason, "not tried yet; not found: libtenon-nowhere.so.1");
    assert_string_equal(state_of("nowhere").path, "");
    assert_int_equal(state_of("aside").available, TN_AVAILABLE_UNTRIED);
}

static void kernels_are_counted_by_either_name(void **state)
{
    (void)state;
    assert_int_equal(state_of("sound").kernels, 2);
    assert_int_equal(state_of("plain").kernels, 1);
    assert_int_equal(state_of("missing").kernels, 0);
}

static void one_that_opens_tells_its_version_and_file(void **state)
{
    tn_error err;
    (void)state;
    assert_int_equal(tni_library_verbose(library_of("sound"), 1, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "sound is not open");
    opened = 0;
    assert_ptr_equal(library_of("sound-2"), library_of("sound"));
    assert_int_equal(tn_library_try(library_of("sound-2"), &err), TN_OK);
    assert_int_equal(tn_library_try(library_of("sound"), &err), TN_OK);
    assert_int_equal(opened, 1);
    tn_library_state sound = state_of("sound");
    assert_int_equal(sound.available, TN_AVAILABLE_YES);
    assert_int_equal(sound.version, 10200);
    assert_int_equal(strncmp(sound.version_text, "1.2?vvvv", 8), 0);
    assert_int_equal(strlen(sound.version_text), sizeof sound.version_text - 1);
    assert_string_equal(sound.path, STAND_INS "/libgomp.so.1");
    assert_string_equal(sound.verbose, "sound.verbose");
    assert_string_equal(sound.reason, "opened for module many");
    assert_string_equal(sound.remedy, "");
}

static void one_that_is_open_can_be_made_to_talk(void **state)
{
    tn_error err;
    (void)state;
    assert_int_equal(tn_library_try(library_of("sound"), NULL), TN_OK);
    assert_int_equal(tni_library_verbose(library_of("sound"), 2, &err), TN_OK);
    assert_int_equal(level_told, 2);
    assert_int_equal(tni_library_verbose(library_of("sound"), 3, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "sound: levels are 0 to 2");
    assert_int_equal(tn_library_try(library_of("plain"), NULL), TN_OK);
    assert_int_equal(tni_library_verbose(library_of("plain"), 1, &err), TN_UNSUPPORTED);
    assert_int_equal(tni_library_verbose(library_of("cudnn"), 1, &err), TN_UNAVAILABLE);
}

static void host_opens_what_the_row_does_not(void **state)
{
    tn_error err;
    (void)state;
    assert_int_equal(tn_library_try(library_of("plain"), &err), TN_OK);
    assert_int_equal(state_of("plain").available, TN_AVAILABLE_YES);
    assert_int_equal(state_of("plain").version, -1);
    assert_string_equal(state_of("plain").path, STAND_INS "/libgomp.so.1");
    assert_int_equal(tn_library_try(library_of("missing"), &err), TN_UNAVAILABLE);
    assert_contains(err.message,
                    "missing is not available: libtenon-nowhere.so.1, libtenon-nowhere.so.0: ");
    assert_contains(err.message, "searched in");
    assert_contains(err.message, "; look elsewhere");
    tn_library_state missing = state_of("missing");
    assert_int_equal(missing.available, TN_AVAILABLE_NO);
    assert_null(strstr(missing.reason, "look elsewhere"));
    assert_string_equal(missing.remedy, "look elsewhere");
    assert_string_equal(missing.path, "");
}

static void what_a_module_refuses_is_kept_in_its_words(void **state)
{
    static const struct {
        const char *name;
        tn_status status;
        const char *words, *remedy;
        const char *file; /* that is there and was refused */
    } cases[] = {
        {"refused", TN_INCOMPATIBLE, "it is of 1999; get a newer one", "build the stand-ins",
         "/libgomp.so.1"},
        {"odd", TN_CORRUPT,
         "ooo\\x09"
         "oooo",
         "build the stand-ins", "/libgomp.so.1"},
        {"wordless", TN_UNAVAILABLE, "it gave no reason", "report this to the module's author", ""},
    };
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int again = 0; again < 2; again++) {
            assert_int_equal(tn_library_try(library_of(cases[i].name), &err), cases[i].status);
            assert_int_equal(err.status, cases[i].status);
            assert_contains(err.message, cases[i].words);
        }
        tn_library_state found = state_of(cases[i].name);
        assert_int_equal(found.available, TN_AVAILABLE_NO);
        assert_contains(found.reason, cases[i].words);
        assert_string_equal(found.remedy, cases[i].remedy);
        assert_contains(found.path, cases[i].file);
        assert_int_equal(found.path[0] != '\0', cases[i].file[0] != '\0');
        assert_int_equal(found.version, -1);
    }
}

static void want_of_memory_is_no_verdict(void **state)
{
    tn_error err;
    (void)state;
    memory_left = 0;
    assert_int_equal(tn_library_try(library_of("poor"), &err), TN_OUT_OF_MEMORY);
    assert_string_equal(err.message, "poor: no memory for it");
    assert_int_equal(state_of("poor").available, TN_AVAILABLE_UNTRIED);
    memory_left = 1;
    assert_int_equal(tn_library_try(library_of("poor"), &err), TN_OK);
    assert_int_equal(state_of("poor").available, TN_AVAILABLE_YES);
}

static void part_of_a_module_is_there_even_without_a_version(void **state)
{
    (void)state;
    assert_int_equal(tn_library_try(library_of("part"), NULL), TN_OK);
    tn_library_state part = state_of("part");
    assert_int_equal(part.available, TN_AVAILABLE_YES);
    assert_int_equal(part.version, -1);
    assert_string_equal(part.version_text, "");
    assert_string_equal(part.reason, "its version is unknown: it does not say");
    assert_string_equal(part.path, ""); /* the module is the program's own */
}

static void module_that_asks_from_inside_is_not_made_to_wait(void **state)
{
    (void)state;
    assert_int_equal(tn_library_try(library_of("curious"), NULL), TN_OK);
    assert_int_equal(inner_status, TN_BUSY);
    assert_int_equal(inner_state.available, TN_AVAILABLE_UNTRIED);
    assert_contains(inner_state.reason, "being opened now");
    assert_int_equal(state_of("curious").available, TN_AVAILABLE_YES);
}

static void try_slow(void *user)
{
    *(tn_status *)user = tn_library_try(library_of("slow"), NULL);
}

static void watch_slow(void *user)
{
    tn_library_state found;
    do {
        found = state_of("slow");
    } while (!strstr(found.reason, "being opened now"));
    *(tn_status *)user = found.available == TN_AVAILABLE_UNTRIED ? TN_OK : TN_INTERNAL;
    seen = 1;
}

static void try_in_a_task(void *user, int64_t index)
{
    (void)index;
    *(tn_status *)user = tn_library_try(library_of("slow"), NULL);
}

enum { THREADS = 8 };

/* Whoever tells sees it untried; a task may not wait; all who asked get the one answer. */
static void eight_threads_open_it_once(void **state)
{
    tni_thread threads[THREADS];
    tn_status results[THREADS], in_task = TN_OK;
    (void)state;
    opened = 0;
    hold = 1;
    for (int i = 0; i < THREADS; i++) {
        results[i] = TN_INTERNAL;
        assert_int_equal(
            tni_thread_create(&threads[i], i ? try_slow : watch_slow, &results[i], NULL), TN_OK);
    }
    while (!seen)
        usleep(100);
    tn_parallel_for(1, try_in_a_task, &in_task);
    hold = 0;
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(results[i], TN_OK);
    assert_int_equal(in_task, TN_BUSY);
    assert_int_equal(opened, 1);
    assert_int_equal(state_of("slow").available, TN_AVAILABLE_YES);
}

static void try_named(void *user)
{
    assert_int_equal(tn_library_try(library_of(user), NULL), TN_OK);
}

static void two_that_ask_for_each_other_do_not_wait(void **state)
{
    static char left[] = "left", right[] = "right";
    tni_thread threads[2];
    (void)state;
    assert_int_equal(tni_thread_create(&threads[0], try_named, left, NULL), TN_OK);
    assert_int_equal(tni_thread_create(&threads[1], try_named, right, NULL), TN_OK);
    tni_thread_join(threads[0]);
    tni_thread_join(threads[1]);
    assert_int_equal(asked[0], TN_BUSY);
    assert_int_equal(asked[1], TN_BUSY);
    assert_int_equal(state_of(left).available, TN_AVAILABLE_YES);
    assert_int_equal(state_of(right).available, TN_AVAILABLE_YES);
    tn_status again = tn_library_try(library_of(left), NULL); /* outside it is no module any more */
    assert_int_equal(again, TN_OK);
}

static tn_error told_in_sink;

static void try_in_the_sink(void *user, int32_t level, const char *text)
{
    (void)level, (void)text;
    *(tn_status *)user = tn_library_try(library_of("sunk"), &told_in_sink);
}

/* The module that is being opened may be waiting to log something itself. */
static void log_sink_is_not_made_to_wait(void **state)
{
    static char sunk[] = "sunk";
    tn_status in_sink = TN_OK;
    tni_thread thread;
    const tn_log_sink sink = {.struct_size = sizeof sink,
                              .level = TN_LOG_ERROR,
                              .write = try_in_the_sink,
                              .user = &in_sink};
    (void)state;
    entered = 0;
    hold = 1;
    assert_int_equal(tni_thread_create(&thread, try_named, sunk, NULL), TN_OK);
    while (!entered)
        usleep(100);
    assert_int_equal(tn_log_set(&sink, NULL), TN_OK);
    tni_log(TN_LOG_ERROR, "something");
    assert_int_equal(tn_log_set(NULL, NULL), TN_OK);
    hold = 0;
    tni_thread_join(thread);
    assert_int_equal(in_sink, TN_BUSY);
    assert_contains(told_in_sink.message, "a log sink cannot wait");
}

static void try_forked(void *user)
{
    *(tn_status *)user = tn_library_try(library_of("forked"), NULL);
}

/* The thread that was at it is not in the child, which opens it anew. */
static void child_of_a_process_that_opens_one_opens_it_itself(void **state)
{
    tn_status result = TN_INTERNAL;
    tni_thread thread;
    int code = -1;
    (void)state;
    if (TN_MODULE_BUILT_WITH == TN_MODULE_SANITIZER_THREAD)
        skip_because("the thread sanitizer forbids threads in a child of many, and one opens");
    if (getenv("TN_TEST_EMULATED"))
        skip_because("qemu-user dies of threads that a forked child makes");
    entered = 0;
    opened = 0;
    hold = 1;
    assert_int_equal(tni_thread_create(&thread, try_forked, &result, NULL), TN_OK);
    while (!entered)
        usleep(100);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)alarm(TEST_HANG_SECONDS);
        hold = 0;
        bool untried = state_of("forked").available == TN_AVAILABLE_UNTRIED &&
                       strcmp(state_of("forked").reason,
                              "not tried yet; already in this process") == 0; /* for others */
        bool opens = tn_library_try(library_of("forked"), NULL) == TN_OK && opened == 2;
        _exit(untried && opens && state_of("forked").available == TN_AVAILABLE_YES ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_int_equal(code, 0);
    assert_int_equal(state_of("forked").available, TN_AVAILABLE_UNTRIED);
    hold = 0;
    tni_thread_join(thread);
    assert_int_equal(result, TN_OK);
    assert_int_equal(opened, 1);
}

static void tell_until_stopped(void *user)
{
    (void)user;
    while (hold)
        (void)state_of("plain");
}

/* Whatever a thread of the parent was doing, the child's has the lock to itself. */
static void children_of_a_process_that_is_telling_can_tell(void **state)
{
    tni_thread thread;
    (void)state;
    hold = 1;
    assert_int_equal(tni_thread_create(&thread, tell_until_stopped, NULL, NULL), TN_OK);
    for (int i = 0; i < (test_reduced() ? 20 : 100); i++) {
        int code = -1;
        (void)fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            (void)alarm(TEST_HANG_SECONDS);
            _exit(state_of("plain").built == 1 ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &code, 0), pid);
        assert_int_equal(code, 0);
    }
    hold = 0;
    tni_thread_join(thread);
}

static void modules_row_goes_before_what_is_known(void **state)
{
    const tn_library *cudnn = library_of("cudnn");
    (void)state;
    assert_int_equal(state_of("cudnn").built, 0);
    tn_registration *registration = enter(passing_entry, 0);
    assert_ptr_equal(library_of("cudnn"), cudnn);
    assert_int_equal(state_of("cudnn").built, 1);
    assert_string_equal(state_of("cudnn").platform, "cpu");
    assert_string_equal(state_of("cudnn").what, "NVIDIA's neural-network operators");
    assert_int_equal(tn_library_try(cudnn, NULL), TN_OK);
    assert_int_equal(state_of("cudnn").available, TN_AVAILABLE_YES);
    tn_registration_release(registration);
    assert_int_equal(state_of("cudnn").built, 0); /* and it is as it was before */
    assert_int_equal(state_of("cudnn").available, TN_AVAILABLE_NO);
    assert_contains(state_of("cudnn").reason, "no loaded module uses it");
}

static void later_module_serves_only_in_anothers_place(void **state)
{
    (void)state;
    tn_registration *registration = enter(later_entry, 0);
    assert_string_equal(state_of("plain").module, "many");
    tn_registration_release(registration);
    assert_int_equal(tn_library_try(library_of("plain"), NULL), TN_OK);
    registration = enter(later_entry, TN_MODULE_REPLACE);
    assert_string_equal(state_of("plain").module, "later");
    assert_int_equal(state_of("plain").available, TN_AVAILABLE_UNTRIED); /* a trial of its own */
    tn_registration_release(registration);
    assert_string_equal(state_of("plain").module, "many");
    assert_int_equal(state_of("plain").available, TN_AVAILABLE_YES);
}

static void library_goes_with_its_module(void **state)
{
    const tn_library *library = library_of("sound"), *found = NULL;
    tn_library_state gone = {.struct_size = sizeof gone};
    size_t with = 0, without = 0;
    tn_error err;
    assert_int_equal(tn_library_count(&with, NULL), TN_OK);
    (void)state;
    tn_registration_release(module);
    assert_int_equal(tn_library_count(&without, NULL), TN_OK);
    assert_int_equal(with - without, sizeof many_libraries / sizeof many_libraries[0] - 1);
    assert_int_equal(tn_library_get("sound", &found, &err), TN_NOT_FOUND);
    assert_int_equal(tn_library_get("sound-2", &found, &err), TN_NOT_FOUND);
    assert_null(strstr(err.message, "did you mean"));
    assert_int_equal(tn_library_state_get(library, NULL, &gone, &err),
                     TN_OK); /* the handle stays */
    assert_int_equal(gone.available, TN_AVAILABLE_NO);
    assert_int_equal(gone.built, 0);
    assert_int_equal(gone.kernels, 0);
    assert_contains(gone.reason, "removed the module");
    assert_int_equal(tn_library_try(library, &err), TN_UNAVAILABLE);
    module = enter(many_entry, 0);
    assert_ptr_equal(library_of("sound"), library);
    assert_int_equal(state_of("sound").available, TN_AVAILABLE_UNTRIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listing_and_telling_open_nothing),
        cmocka_unit_test(a_row_says_where_it_would_be_taken_from),
        cmocka_unit_test(kernels_are_counted_by_either_name),
        cmocka_unit_test(one_that_opens_tells_its_version_and_file),
        cmocka_unit_test(one_that_is_open_can_be_made_to_talk),
        cmocka_unit_test(host_opens_what_the_row_does_not),
        cmocka_unit_test(what_a_module_refuses_is_kept_in_its_words),
        cmocka_unit_test(want_of_memory_is_no_verdict),
        cmocka_unit_test(part_of_a_module_is_there_even_without_a_version),
        cmocka_unit_test(module_that_asks_from_inside_is_not_made_to_wait),
        cmocka_unit_test(eight_threads_open_it_once),
        cmocka_unit_test(two_that_ask_for_each_other_do_not_wait),
        cmocka_unit_test(log_sink_is_not_made_to_wait),
        cmocka_unit_test(child_of_a_process_that_opens_one_opens_it_itself),
        cmocka_unit_test(children_of_a_process_that_is_telling_can_tell),
        cmocka_unit_test(modules_row_goes_before_what_is_known),
        cmocka_unit_test(later_module_serves_only_in_anothers_place),
        cmocka_unit_test(library_goes_with_its_module),
    };
    if (tn_module_register(many_entry, 0, &module, NULL))
        return 1;
    return run_suite("unit.libraries_trial", tests);
}
