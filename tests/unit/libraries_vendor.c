/* The module cpu's rows against stand-ins for the vendors' libraries, and which OpenMP run-times a
 * process has. */
#include "test.h"

#include "base/alloc.h"
#include "os/bind.h"
#include "os/loaded.h"
#include "registry/registry.h"
#include "settings/library.h"
#include "tenon/tenon.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

tn_module_entry_fn tni_cpu_module_entry;

/* A host that binds a file of the test's choice in the place of what is asked for. */
static const char *file_bound;
static bool has_openmp = true, has_memory = true;

static void *take(void *self, size_t size, size_t align)
{
    (void)self;
    return has_memory ? tni_alloc_aligned(size, align) : NULL;
}

static void give(void *self, void *memory)
{
    (void)self;
    tni_release(memory);
}

static tn_status bind(void *self, const char *files, const tn_symbol *symbols, size_t count,
                      void *table, tn_error *err)
{
    (void)self;
    if (strstr(files, "libiomp5"))
        return has_openmp ? TN_OK : tn_fail(err, TN_UNAVAILABLE, 2, "bind", "%s is nowhere", files);
    return tni_bind(file_bound, symbols, count, NULL, table, NULL, err);
}

static const tn_host host = {.struct_size = sizeof host,
                             .abi_major = TN_MODULE_ABI_MAJOR,
                             .abi_minor = TN_MODULE_ABI_MINOR,
                             .alloc = take,
                             .release = give,
                             .library_bind = bind};

static const tn_library_row *row_of(const char *name)
{
    const tn_module *module = NULL;
    assert_int_equal(tni_cpu_module_entry(&host, &module, NULL), TN_OK);
    for (const tn_library_row *const *row = module->libraries; *row; row++) {
        if (strcmp((*row)->name, name) == 0)
            return *row;
    }
    fail_msg("the module cpu has no row %s", name);
    return NULL;
}

/* What the row says of the stand-in. */
static void *open_stand_in(const tn_library_row *row, const char *file)
{
    void *self = NULL;
    tn_error err;
    file_bound = file;
    if (row->open(&host, &self, &err))
        fail_msg("%s: %s", file, err.message);
    return self;
}

static void check_version(const tn_library_row *row, void *self, int64_t number, const char *text)
{
    char found[96] = "";
    int64_t version = -2;
    assert_int_equal(row->version(self, &version, found, sizeof found, NULL), TN_OK);
    assert_int_equal(version, number);
    assert_string_equal(found, text);
}

static void openblas_tells_its_version(void **state)
{
    const tn_library_row *row = row_of("openblas");
    (void)state;
    void *self = open_stand_in(row, STAND_INS "/libopenblas.so.0");
    check_version(row, self, 321, "0.3.21 DYNAMIC_ARCH Stand-in MAX_THREADS=2");
    assert_null(row->verbose);
    give(NULL, self);
}

static void mkl_tells_its_version_and_talks(void **state)
{
    const tn_library_row *row = row_of("mkl");
    tn_error err;
    (void)state;
    void *self = open_stand_in(row, STAND_INS "/libmkl_rt.so.2");
    check_version(row, self, 20240102, "2024.1.2");
    assert_string_equal(row->verbose_setting, "mkl.verbose");
    assert_int_equal(row->verbose(self, 1, &err), TN_OK);
    assert_int_equal(row->verbose(self, 1, &err), TN_UNSUPPORTED); /* as the stand-in has it */
    assert_contains(err.message, "MKL refuses level 1");
    assert_int_equal(row->verbose(self, 0, &err), TN_OK);
    give(NULL, self);
}

/* MKL itself would end the process. */
static void mkl_without_its_threads_is_refused(void **state)
{
    const tn_library_row *row = row_of("mkl");
    int64_t blocks = tn_allocator_blocks();
    void *self = NULL;
    tn_error err;
    (void)state;
    has_openmp = false;
    unsetenv("MKL_THREADING_LAYER");
    file_bound = STAND_INS "/libmkl_rt.so.2";
    assert_int_equal(row->open(&host, &self, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "MKL would end the process, as it lacks libiomp5.so: ");
    assert_contains(err.message, "libiomp5.so is nowhere");
    assert_contains(err.message, "MKL_THREADING_LAYER=GNU or SEQUENTIAL");
    setenv("MKL_THREADING_LAYER", "INTEL", 1);
    assert_int_equal(row->open(&host, &self, &err), TN_UNAVAILABLE);
    assert_null(self);
    assert_int_equal(tn_allocator_blocks(), blocks);
    setenv("MKL_THREADING_LAYER", "SEQUENTIAL", 1);
    assert_int_equal(row->open(&host, &self, &err), TN_OK);
    give(NULL, self);
    unsetenv("MKL_THREADING_LAYER");
    has_openmp = true;
}

static void onednn_2_and_3_tell_their_versions_and_talk(void **state)
{
    const tn_library_row *row = row_of("mkldnn");
    tn_error err;
    (void)state;
    void *second = open_stand_in(row, STAND_INS "/libdnnl.so.2");
    void *third = open_stand_in(row, STAND_INS "/libdnnl.so.3");
    check_version(row, second, 20603, "2.6.3");
    check_version(row, third, -1, "3.11.140"); /* which no number of two digits holds */
    assert_string_equal(row->other, "onednn");
    assert_string_equal(row->verbose_setting, "mkldnn.verbose");
    for (int32_t level = 0; level <= 2; level++)
        assert_int_equal(row->verbose(third, level, &err), TN_OK);
    assert_int_equal(row->verbose(second, 3, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "oneDNN refuses level 3 (status 2)");
    assert_int_equal(err.native_code, 2);
    give(NULL, second);
    give(NULL, third);
}

static void what_lacks_a_function_or_memory_is_refused_and_leaves_nothing(void **state)
{
    static const char *const names[] = {"openblas", "mkl", "mkldnn", "hwloc"};
    int64_t blocks = tn_allocator_blocks();
    void *self = NULL;
    tn_error err;
    (void)state;
    file_bound = STAND_INS "/libgomp.so.1"; /* which has none of them */
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(row_of(names[i])->open(&host, &self, &err), TN_INCOMPATIBLE);
        assert_contains(err.message, "libgomp.so.1 lacks ");
        has_memory = false;
        assert_int_equal(row_of(names[i])->open(&host, &self, &err), TN_OUT_OF_MEMORY);
        assert_contains(err.message, names[i]);
        has_memory = true;
    }
    assert_null(self);
    assert_int_equal(tn_allocator_blocks(), blocks);
}

static tn_library_state openmp(void)
{
    const tn_library *library = NULL;
    tn_library_state state = {.struct_size = sizeof state};
    assert_int_equal(tn_library_get("openmp", &library, NULL), TN_OK);
    assert_int_equal(tn_library_state_get(library, NULL, &state, NULL), TN_OK);
    assert_int_equal(tn_library_try(library, NULL) == TN_OK, state.available == TN_AVAILABLE_YES);
    return state;
}

/* Runs what it should find in a child, so that no run-time stays in this process. */
static void in_a_child(bool (*holds)(void))
{
    int code = -1;
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(holds() ? 0 : 1);
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_int_equal(code, 0);
}

static bool says(const char *text, const char *part)
{
    return test_contains_(text, part) != 0;
}

static bool first_is_found(void)
{
    bool loaded = dlopen(STAND_INS "/libomp.so.5", RTLD_NOW) != NULL;
    tn_library_state found = openmp();
    return loaded && found.available == TN_AVAILABLE_YES && found.built == 0 &&
           strcmp(found.path, STAND_INS "/libomp.so.5") == 0 &&
           says(found.reason, "in this process") && !found.remedy[0];
}

static bool both_are_found(void)
{
    bool loaded = dlopen(STAND_INS "/libgomp.so.1", RTLD_NOW) != NULL &&
                  dlopen(STAND_INS "/libomp.so.5", RTLD_NOW) != NULL;
    tn_library_state found = openmp();
    return loaded && found.available == TN_AVAILABLE_YES &&
           strcmp(found.path, STAND_INS "/libgomp.so.1") == 0 &&
           says(found.reason, "2 OpenMP run-times are in this process") &&
           says(found.reason, "/libgomp.so.1") && says(found.reason, "/libomp.so.5") &&
           says(found.reason, "can hang or crash") && says(found.remedy, "built for one of them");
}

/* Packagers rename the ones that they ship. */
static bool three_are_found(void)
{
    char renamed[] = "/tmp/tenon-test-XXXXXX", path[256];
    bool made = mkdtemp(renamed) != NULL;
    snprintf(path, sizeof path, "%s/libgomp-0123abcd.so.1", renamed);
    made = made && symlink(STAND_INS "/libdnnl.so.2", path) == 0;
    bool loaded = made && dlopen(path, RTLD_NOW) != NULL;
    (void)unlink(path);
    (void)rmdir(renamed);
    return loaded && both_are_found() == false && says(openmp().reason, "3 OpenMP run-times") &&
           says(openmp().reason, "libgomp-0123abcd.so.1") && says(openmp().reason, "among them");
}

static void see(void *user, const char *path)
{
    *(bool *)user = *(bool *)user || strstr(path, "libgomp") || strstr(path, "libomp") ||
                    strstr(path, "libiomp5");
}

static void openmp_is_what_the_process_has(void **state)
{
    bool has = false;
    (void)state;
    assert_true(tni_loaded_each(see, &has));
    if (has)
        skip_because("this program has an OpenMP run-time of its own");
    tn_library_state none = openmp();
    assert_int_equal(none.built, 0);
    assert_contains(none.reason, "no OpenMP run-time is in this process");
    void *handle = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    assert_null(handle); /* it was not opened to find out */
    if (none.available == TN_AVAILABLE_YES)
        assert_contains(none.reason, none.path);
    else
        assert_contains(none.remedy, "install libgomp1");
    in_a_child(first_is_found);
    in_a_child(both_are_found);
    in_a_child(three_are_found);
}

static void see_libc(void *user, const char *path)
{
    *(bool *)user = *(bool *)user || strstr(path, "libc.so") || strstr(path, "ld-");
}

static void what_is_loaded_is_listed(void **state)
{
    bool has = false;
    (void)state;
    assert_true(tni_loaded_each(see_libc, &has));
    assert_true(has);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openmp_is_what_the_process_has), /* before stand-ins are opened */
        cmocka_unit_test(openblas_tells_its_version),
        cmocka_unit_test(mkl_tells_its_version_and_talks),
        cmocka_unit_test(mkl_without_its_threads_is_refused),
        cmocka_unit_test(onednn_2_and_3_tell_their_versions_and_talk),
        cmocka_unit_test(what_lacks_a_function_or_memory_is_refused_and_leaves_nothing),
        cmocka_unit_test(what_is_loaded_is_listed),
    };
    return run_suite("unit.libraries_vendor", tests);
}
