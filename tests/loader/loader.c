/* What becomes of a module: one row each, whatever is wrong with it, and the rest goes on. */
#include "support.h"

#include "tenon/log.h"
#include "tenon/module/module.h"

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static const char *const offers =
    "offers 1 platform, 2 devices, 1 library, 1 kernel, 1 language, 1 communicator";

/* In the folder are modules with these fates, and one that comes after all of them: it is ready
 * whatever the others do, and no one else has a row. */
static void check_rows(const char *folder, const expected *rows, size_t count)
{
    tni_registry_params params = seek_in(folder);
    put_stub(folder, "zz", "good");
    loaded in = load(&params);
    for (size_t i = 0; i < count; i++)
        check_row(&in, &rows[i]);
    check_ready(&in, "zz");
    assert_int_equal(tn_module_list_count(in.list), count + 1);
    assert_null(tn_module_list_get(in.list, count + 1));
    unload(&in);
}

/* The same for stubs, whose files are called as they are. */
static void check_stubs(const expected *rows, size_t count)
{
    char folder[SCRATCH_PATH];
    scratch_make(folder);
    for (size_t i = 0; i < count; i++)
        put_stub(folder, rows[i].name, rows[i].name);
    check_rows(folder, rows, count);
    scratch_remove(folder);
}

#define CHECK_STUBS(rows) check_stubs(rows, sizeof(rows) / sizeof((rows)[0]))

static void good_module_is_ready_with_its_rows(void **state)
{
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_stub(folder, "some", "good");
    tni_registry_params params = seek_in(folder);
    loaded in = load(&params);
    const tn_module_report *row = row_of(&in, "some");
    assert_int_equal(tn_module_list_count(in.list), 1);
    assert_int_equal(row->stage, TN_STAGE_READY);
    assert_string_equal(row->name, "good"); /* not the file's */
    assert_string_equal(row->version, "1.2");
    assert_string_equal(row->path, module_in(folder, "some").text);
    assert_string_equal(row->origin, "module folder");
    assert_string_equal(row->message, offers);
    assert_string_equal(row->remedy, "");
    assert_int_equal(row->abi_major, TN_MODULE_ABI_MAJOR);
    assert_int_equal(row->abi_minor, TN_MODULE_ABI_MINOR);
    assert_int_equal(row->platforms, 1);
    assert_int_equal(row->libraries, 1);
    assert_int_equal(row->kernels, 1);
    assert_int_equal(row->languages, 1);
    assert_int_equal(row->communicators, 1);
    assert_int_equal(row->devices, 2);
    assert_true(row->ms > 0);
    unload(&in);
    scratch_remove(folder);
}

static void other_abis_and_bad_tables(void **state)
{
    static const expected modules[] = {
        {"other_minor", TN_STAGE_OPENED, TN_INCOMPATIBLE,
         "built for module ABI 0.10; this Tenon has 0.9", "with the headers of this Tenon"},
        {"other_major", TN_STAGE_OPENED, TN_INCOMPATIBLE,
         "built for module ABI 7.9; this Tenon has 0.9", "with the headers of this Tenon"},
        {"small_table", TN_STAGE_OPENED, TN_INCOMPATIBLE,
         "its table's struct_size: expected at least 80, got 72", "set struct_size"},
        {"unknown_flags", TN_STAGE_OPENED, TN_INCOMPATIBLE,
         "its flags have unknown bits 0x10000000000", "use only the flags of module.h"},
        {"sanitizer_flag", TN_STAGE_OPENED, TN_INCOMPATIBLE, "; this Tenon is built with",
         "with the same -fsanitize= options"},
        {"bad_name", TN_STAGE_OPENED, TN_INVALID_ARGUMENT,
         "beginning with a letter or digit; got \"Stub Nr. 1\"", "a valid name"},
        {"no_version", TN_STAGE_OPENED, TN_INVALID_ARGUMENT, "its version is empty",
         "give the module a version"},
        {"null_table", TN_STAGE_OPENED, TN_INVALID_ARGUMENT, "its entry returned ok but no table",
         "set *out to the module's table"},
        {"failing_entry", TN_STAGE_OPENED, TN_REFUSED,
         "its entry failed: the stub's licence has run out", "report this to the module's author"},
        {"no_entry", TN_STAGE_FOUND, TN_INCOMPATIBLE, "it does not export tn_module_entry",
         "define tn_module_entry with default visibility"},
        {"needy", TN_STAGE_FOUND, TN_UNAVAILABLE, "libstubvendor.so.1",
         "link no vendor library: open it in the probe with host->library_bind"},
        {"unresolved", TN_STAGE_FOUND, TN_INCOMPATIBLE, "stub_nowhere",
         "build the module so that nothing it uses is missing"},
    };
    (void)state;
    CHECK_STUBS(modules);
}

static void bad_rows(void **state)
{
    static const expected modules[] = {
        {"bad_platform", TN_STAGE_OPENED, TN_INVALID_ARGUMENT,
         "platform row 1 \"stub\": kind: expected 1 to 9, got 10", "correct the row"},
        {"bad_library", TN_STAGE_OPENED, TN_INVALID_ARGUMENT,
         "library row 1 \"stubvendor\": files is empty", "correct the row"},
        {"bad_kernel", TN_STAGE_OPENED, TN_INVALID_ARGUMENT,
         "kernel row 1 \"stub.matmul.f32\": version: expected 1 or more, got 0", "correct the row"},
        {"bad_language", TN_STAGE_OPENED, TN_INVALID_ARGUMENT,
         "language row 1 \"stub-c\": version is NULL", "correct the row"},
        {"bad_communicator", TN_STAGE_OPENED, TN_INVALID_ARGUMENT,
         "communicator row 1 \"stub-ring\": platform: expected", "correct the row"},
        {"borrowed_name", TN_STAGE_OPENED, TN_INVALID_ARGUMENT,
         "platform row 1 \"cpu\": kind: expected 1 (cpu) for this name, got 9 "
         "(out-of-tree)",
         "correct the row"},
        {"no_rows", TN_STAGE_READY, TN_OK, "offers no rows", ""},
    };
    (void)state;
    CHECK_STUBS(modules);
}

static void probe_fails_or_talks_nonsense(void **state)
{
    static const expected modules[] = {
        {"unavailable", TN_STAGE_NEGOTIATED, TN_UNAVAILABLE, "no stub card is fitted",
         "fit a stub card"},
        {"wordless_probe", TN_STAGE_NEGOTIATED, TN_DEVICE_LOST, "it gave no reason",
         "fit a stub card"},
        {"failing_probe", TN_STAGE_NEGOTIATED, TN_CORRUPT,
         "it returned the status 4711, which does not exist: a status of its own",
         "fit a stub card"},
        {"starving_probe", TN_STAGE_NEGOTIATED, TN_OUT_OF_MEMORY, "no memory left on the card",
         "fit a stub card"},
        {"foreign_words", TN_STAGE_NEGOTIATED, TN_UNAVAILABLE, "ger\\xe4t fehlt\\x0aganz",
         "fit a stub card"},
        {"telling_probe", TN_STAGE_NEGOTIATED, TN_UNAVAILABLE, "the stub card is loose",
         "push the stub card\\x0a"
         "firmly"},
        {"no_device", TN_STAGE_PROBED, TN_UNAVAILABLE, "its driver is present, but no device",
         "connect a device"},
        {"negative_devices", TN_STAGE_NEGOTIATED, TN_CORRUPT,
         "its probe returned ok with -3 devices; expected 0 to 65536", "fit a stub card"},
        {"endless_devices", TN_STAGE_NEGOTIATED, TN_CORRUPT,
         "its probe returned ok with 2147483647 devices; expected 0 to 65536", "fit a stub card"},
        {"half_there", TN_STAGE_READY, TN_OK,
         "; without platform stub2: the second kind of card is absent", ""},
    };
    (void)state;
    CHECK_STUBS(modules);
}

static void module_crashes_or_exits(void **state)
{
    static const expected modules[] = {
        {"crashing_constructor", TN_STAGE_FOUND, TN_CRASHED,
         "opening it (a constructor runs then) crashed (signal 11)",
         "report this to the module's author"},
        {"crashing_entry", TN_STAGE_OPENED, TN_CRASHED, "its entry crashed (signal 11)",
         "report this to the module's author"},
        {"crashing_probe", TN_STAGE_NEGOTIATED, TN_CRASHED, "its probe crashed (signal 11)",
         "report this to the module's author"},
        {"exiting_probe", TN_STAGE_NEGOTIATED, TN_CRASHED,
         "its probe ended the process (exit code 7)", "report this to the module's author"},
        {"crashing_properties", TN_STAGE_PROBED, TN_CRASHED,
         "its device_properties crashed (signal 11)", "report this to the module's author"},
        {"crashing_destructor", TN_STAGE_PROBED, TN_CRASHED,
         "the end of its process (destructors run then) crashed (signal 11)",
         "report this to the module's author"},
        {"exiting_destructor", TN_STAGE_PROBED, TN_CRASHED,
         "the end of its process (destructors run then) ended the process (exit code 7)",
         "report this to the module's author"},
    };
    (void)state;
    CHECK_STUBS(modules);
}

/* Fills the folder with what hangs and a good one, and tells whether each came as far as it should
 * within the limit: a busy machine may need a longer one. */
static bool hangs_at_its_place(const char *folder, int64_t limit_ns, loaded *out)
{
    put_stub(folder, "constructor", "hanging_constructor");
    put_stub(folder, "probe", "hanging_probe");
    put_stub(folder, "properties", "hanging_properties");
    put_stub(folder, "destructor", "hanging_destructor");
    put_stub(folder, "zz", "good");
    tni_registry_params params = seek_in(folder);
    params.probe_limit_ns = limit_ns;
    trace_begin(folder);
    *out = load(&params);
    return strcmp(trace_take(), "ccepcepcepcepcep") == 0;
}

static void module_hangs(void **state)
{
    static const expected constructor = {"constructor", TN_STAGE_FOUND, TN_TIMEOUT,
                                         "opening it (a constructor runs then) did not finish",
                                         "report this to the module's author"};
    static const expected probe = {"probe", TN_STAGE_NEGOTIATED, TN_TIMEOUT,
                                   "its probe did not finish within",
                                   "report this to the module's author"};
    static const expected properties = {"properties", TN_STAGE_PROBED, TN_TIMEOUT,
                                        "its device_properties did not finish within",
                                        "report this to the module's author"};
    static const expected destructor = {"destructor", TN_STAGE_PROBED, TN_TIMEOUT,
                                        "the end of its process (destructors run then) did not "
                                        "finish within",
                                        "report this to the module's author"};
    char folder[SCRATCH_PATH];
    loaded in;
    (void)state;
    for (int64_t limit_ns = 300000000;; limit_ns *= 2) {
        scratch_make(folder);
        if (hangs_at_its_place(folder, limit_ns, &in))
            break;
        unload(&in);
        scratch_remove(folder);
        assert_true(limit_ns < INT64_C(10000000000));
    }
    check_row(&in, &constructor);
    check_row(&in, &probe);
    check_row(&in, &properties);
    check_row(&in, &destructor);
    check_ready(&in, "zz");
    assert_true(row_of(&in, "probe")->ms >= 300);
    unload(&in);
    scratch_remove(folder);
}

static void put_nothing(struct path at)
{
    put_bytes(at, "", 0);
}

static void put_text(struct path at)
{
    static const char text[] = "#!/bin/sh\necho 'This has the name of a module, and is a script of "
                               "more bytes than a header has.'\n";
    put_bytes(at, text, sizeof text - 1);
}

static void put_folder(struct path at)
{
    assert_int_equal(mkdir(at.text, 0755), 0);
}

static void put_pipe(struct path at)
{
    assert_int_equal(mkfifo(at.text, 0644), 0);
}

static void put_dangling_link(struct path at)
{
    assert_int_equal(symlink("nowhere", at.text), 0);
}

static void put_good(struct path at)
{
    put_copy(at, STUBS "/good.so");
}

/* In the middle of its code: what stands behind that, a debugger's, the loader would not miss. */
static void put_cut(struct path at)
{
    struct stat facts;
    put_good(at);
    assert_int_equal(stat(at.text, &facts), 0);
    assert_true(facts.st_size > 10000);
    assert_int_equal(truncate(at.text, 5000), 0);
}

static void put_changed(struct path at, off_t offset, unsigned char byte)
{
    put_good(at);
    int file = open(at.text, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(file, &byte, 1, offset), 1);
    assert_int_equal(close(file), 0);
}

static void put_32_bit(struct path at)
{
    put_changed(at, 4, 1);
}

static void put_other_machine(struct path at)
{
    put_changed(at, 18, 22);
}

static void put_program(struct path at)
{
    put_changed(at, 16, 2);
}

static void put_writable(struct path at)
{
    put_good(at);
    assert_int_equal(chmod(at.text, 0666), 0);
}

/* The limit as it is when nobody sets one. */
static void limit_is_two_seconds(void **state)
{
    static const expected stray = {"stray", TN_STAGE_NEGOTIATED, TN_TIMEOUT,
                                   "did not finish within 2.0 s",
                                   "report this to the module's author"};
    static const expected hung = {"probe", TN_STAGE_NEGOTIATED, TN_TIMEOUT,
                                  "its probe did not finish within 2.0 s and was ended",
                                  "report this to the module's author"};
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_stub(folder, "probe", "hanging_probe");
    put_stub(folder, "stray", "straying_probe"); /* leaves the group that would be killed */
    tni_registry_params params = seek_in(folder);
    params.probe_limit_ns = 0;
    loaded in = load(&params);
    check_row(&in, &hung);
    check_row(&in, &stray);
    unload(&in);
    scratch_remove(folder);
}

/* Neither the loader nor a module leaves a trace on the thread that called. */
static void caller_stays_as_it_was(void **state)
{
    char folder[SCRATCH_PATH], before[4096], after[4096];
    sigset_t masked, still;
    (void)state;
    scratch_make(folder);
    put_stub(folder, "m", "good");
    sigemptyset(&masked);
    sigaddset(&masked, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &masked, NULL), 0);
    assert_non_null(getcwd(before, sizeof before));
    const char *home = getenv("HOME");
    int rounding = fegetround();
    tni_registry_params params = seek_in(folder);
    loaded in = load(&params);
    check_ready(&in, "m");
    unload(&in);
    assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &masked, &still), 0);
    for (int number = 1; number < 32; number++)
        assert_int_equal(sigismember(&still, number), number == SIGUSR1);
    assert_string_equal(getcwd(after, sizeof after), before);
    assert_ptr_equal(getenv("HOME"), home);
    assert_int_equal(fegetround(), rounding);
    scratch_remove(folder);
}

static void file_is_no_module(void **state)
{
    static void (*const put[])(struct path) = {
        put_nothing, put_text,   put_folder,        put_pipe,    put_dangling_link,
        put_cut,     put_32_bit, put_other_machine, put_program, put_writable};
    static const expected rows[] = {
        {"empty", TN_STAGE_FOUND, TN_CORRUPT, "0 bytes are too few",
         "install the module again, or remove the file"},
        {"text", TN_STAGE_FOUND, TN_CORRUPT,
         "not a shared library: it does not begin like an ELF file",
         "install the module again, or remove the file"},
        {"folder", TN_STAGE_FOUND, TN_CORRUPT, "it is a folder", "give it another name"},
        {"pipe", TN_STAGE_FOUND, TN_CORRUPT, "not a regular file", "give it another name"},
        {"link", TN_STAGE_FOUND, TN_NOT_FOUND, "No such file or directory",
         "install the module again, or correct the path"},
        {"cut", TN_STAGE_FOUND, TN_CORRUPT, "truncated", "install the module again"},
        {"small", TN_STAGE_FOUND, TN_INCOMPATIBLE, "another word size or byte order",
         "install the module built for this machine"},
        {"machine", TN_STAGE_FOUND, TN_INCOMPATIBLE, "built for s390x; this is ",
         "install the module built for this machine"},
        {"program", TN_STAGE_FOUND, TN_CORRUPT, "an ELF file, but not a shared library",
         "install the module again"},
        {"writable", TN_STAGE_FOUND, TN_NOT_PERMITTED, "anyone may write to it",
         "chmod o-w the file"},
    };
    enum { COUNT = sizeof rows / sizeof rows[0] };
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    for (size_t i = 0; i < COUNT; i++)
        put[i](module_in(folder, rows[i].name));
    check_rows(folder, rows, COUNT);
    scratch_remove(folder);
}

/* As someone else than root, who may read every file. False when that cannot be. */
static bool try_as_nobody(const char *file, tni_registry *registry)
{
    enum { NOBODY = 65534 };
    bool root = geteuid() == 0;
    if (root && seteuid(NOBODY) != 0)
        return false;
    tn_status status = tni_registry_add(registry, file, false, 0, NULL);
    if (!status)
        status = tni_registry_discover(registry, NULL);
    assert_int_equal(root ? seteuid(0) : 0, 0);
    assert_int_equal(status, TN_OK);
    return true;
}

static void file_is_unreadable(void **state)
{
    static const expected stopped = {"closed", TN_STAGE_FOUND, TN_NOT_PERMITTED,
                                     "Permission denied", "let this user read the file"};
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    struct path file = module_in(folder, "closed");
    put_good(file);
    assert_int_equal(chmod(file.text, 0), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    tni_registry_params params = seek_in(NULL);
    loaded in = load(&params);
    if (!try_as_nobody(file.text, in.registry))
        skip_because("root may read every file, and cannot become someone else here");
    look_again(&in);
    check_row(&in, &stopped);
    unload(&in);
    scratch_remove(folder);
}

/* Also when only a link to it lies there, or when the link lies elsewhere. */
static void folder_is_world_writable(void **state)
{
    static const expected stopped = {"good", TN_STAGE_FOUND, TN_NOT_PERMITTED,
                                     "anyone may write to its folder", "chmod o-w its folder"};
    static const mode_t modes[] = {0777, 01777, 0702};
    char folder[SCRATCH_PATH], other[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    scratch_make(other);
    put_stub(folder, "good", "good");
    assert_int_equal(symlink(module_in(folder, "good").text, module_in(other, "good").text), 0);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        assert_int_equal(chmod(folder, modes[i]), 0);
        tni_registry_params there = seek_in(folder), elsewhere = seek_in(other);
        loaded first = load(&there), second = load(&elsewhere);
        check_row(&first, &stopped);
        check_row(&second, &stopped);
        unload(&second);
        unload(&first);
    }
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(chmod(other, 0777), 0);
    tni_registry_params params = seek_in(other);
    loaded in = load(&params);
    check_row(&in, &stopped);
    unload(&in);
    assert_int_equal(chmod(other, 0700), 0);
    in = load(&params);
    check_ready(&in, "good");
    unload(&in);
    scratch_remove(other);
    scratch_remove(folder);
}

static void module_has_another_sanitizer(void **state)
{
    static const expected modules[] = {
        {"other_sanitizer", TN_STAGE_FOUND, TN_INCOMPATIBLE,
         "built with the " OTHER_SANITIZER " sanitizer; this Tenon is built with ",
         "build the module and Tenon with the same -fsanitize= options"},
    };
    (void)state;
    if (!HAVE_OTHER_SANITIZER)
        skip_because("the compiler makes nothing with -fsanitize=" OTHER_SANITIZER);
    CHECK_STUBS(modules);
}

/* The first that becomes ready wins; one that does not leaves the name to the next. */
static void two_modules_of_one_name(void **state)
{
    static const expected absent = {"a", TN_STAGE_NEGOTIATED, TN_UNAVAILABLE,
                                    "no stub card is fitted", "fit a stub card"};
    static const expected first = {"b", TN_STAGE_READY, TN_OK, "offers", "another name"};
    static const expected second = {"c", TN_STAGE_NEGOTIATED, TN_ALREADY_EXISTS,
                                    "tenon-b.so; the first one is used", "remove one of the two"};
    static const expected late = {"d", TN_STAGE_NEGOTIATED, TN_ALREADY_EXISTS,
                                  "a module \"good\" is already loaded", "remove one of the two"};
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_stub(folder, "a", "absent_good");
    put_stub(folder, "b", "good");
    put_stub(folder, "c", "good");
    put_stub(folder, "d", "absent_good");
    tni_registry_params params = seek_in(folder);
    loaded in = load(&params);
    check_row(&in, &absent);
    check_row(&in, &first); /* a kernel of the absent one has the name of its kernel */
    check_row(&in, &second);
    check_row(&in, &late);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(row_at(&in, i)->name, "good");
    unload(&in);
    scratch_remove(folder);
}

/* Plans for an absent machine are made with these rows. */
static void absent_hardware_leaves_the_rows(void **state)
{
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_stub(folder, "absent", "unavailable");
    trace_begin(folder);
    tni_registry_params params = seek_in(folder);
    loaded in = load(&params);
    const tn_module_report *row = row_of(&in, "absent");
    assert_int_equal(row->stage, TN_STAGE_NEGOTIATED);
    assert_int_equal(row->platforms, 1);
    assert_int_equal(row->kernels, 1);
    assert_int_equal(row->devices, 0);
    assert_string_equal(row->version, "1.2");
    /* In the child, constructor, entry and probe; here no probe any more. */
    assert_string_equal(trace_take(), "cepce");
    unload(&in);
    scratch_remove(folder);
}

static void hear(void *user, int32_t level, const char *text)
{
    int *heard = user;
    *heard +=
        level == TN_LOG_INFO && strcmp(text, "module logging_probe: two cards say hello") == 0;
}

static void its_log_reaches_the_sink(void **state)
{
    int heard = 0;
    const tn_log_sink sink = {
        .struct_size = sizeof sink, .write = hear, .user = &heard, .level = TN_LOG_INFO};
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_stub(folder, "logging", "logging_probe");
    tni_registry_params params = seek_in(folder);
    assert_int_equal(tn_log_set(&sink, NULL), TN_OK);
    loaded in = load(&params);
    assert_int_equal(tn_log_set(NULL, NULL), TN_OK);
    assert_int_equal(heard, 1);
    unload(&in);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_module_is_ready_with_its_rows),
        cmocka_unit_test(other_abis_and_bad_tables),
        cmocka_unit_test(bad_rows),
        cmocka_unit_test(probe_fails_or_talks_nonsense),
        cmocka_unit_test(module_crashes_or_exits),
        cmocka_unit_test(module_hangs),
        cmocka_unit_test(limit_is_two_seconds),
        cmocka_unit_test(caller_stays_as_it_was),
        cmocka_unit_test(file_is_no_module),
        cmocka_unit_test(file_is_unreadable),
        cmocka_unit_test(folder_is_world_writable),
        cmocka_unit_test(module_has_another_sanitizer),
        cmocka_unit_test(two_modules_of_one_name),
        cmocka_unit_test(absent_hardware_leaves_the_rows),
        cmocka_unit_test(its_log_reaches_the_sink),
    };
    return run_suite("loader.loader", tests);
}
