/* The module cpu's rows against stand-ins for the vendors' libraries, and which OpenMP run-times a
 * process has. */
#include "scratch.h"
#include "test.h"

#include "base/alloc.h"
#include "os/bind.h"
#include "os/loaded.h"
#include "os/look/look.h"
#include "registry/registry.h"
#include "settings/library.h"
#include "tenon/tenon.h"

#include <dlfcn.h>
#include <sys/stat.h>
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

/* The processor as the host tells it. */
static const char *features = "", *model = "";

static tn_status facts(void *self, tn_machine_facts *out, tn_error *err)
{
    (void)self, (void)err;
    tn_text_fit(out->features, sizeof out->features, features);
    tn_text_fit(out->model, sizeof out->model, model);
    return TN_OK;
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
                             .library_bind = bind,
                             .machine = facts};

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
    check_version(row, self, 321, "0.3.21 DYNAMIC_ARCH Prescott MAX_THREADS=2");
    assert_null(row->verbose);
    give(NULL, self);
}

/* A variable or a function of a stand-in. */
static void *of_stand_in(const char *file, const char *name)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    void *found = handle ? dlsym(handle, name) : NULL;
    assert_non_null(found);
    return found;
}

static void check_core(const char *has, const char *variable, const char *core)
{
    const char *file = STAND_INS "/libopenblas.so.0";
    const tn_library_row *row = row_of("openblas");
    char text[96];
    features = has;
    if (variable)
        setenv("OPENBLAS_CORETYPE", variable, 1);
    void *self = open_stand_in(row, file);
    if (variable)
        unsetenv("OPENBLAS_CORETYPE");
    snprintf(text, sizeof text, "0.3.21 DYNAMIC_ARCH %s MAX_THREADS=2", core);
    check_version(row, self, 321, text);
    assert_null(getenv("OPENBLAS_CORETYPE"));
    give(NULL, self);
    features = "";
}

#define AVX2   "sse2,avx,fma,avx2"
#define AVX512 AVX2 ",avx512f,avx512bw,avx512dq,avx512vl"

/* It took the Prescott's when it was loaded; only faster ones take their place. */
static void openblas_gets_the_kernels_of_this_processor(void **state)
{
    (void)state;
    check_core("", NULL, "Prescott");
    check_core("sse2,avx", NULL, "Prescott"); /* it has none for AVX alone */
    check_core(AVX512, "Prescott", "Prescott");
    check_core("sse2,fma,avx2x", NULL, "Prescott");
    check_core(AVX2, NULL, "Haswell");
    check_core("sse2", NULL, "Haswell");
    check_core(AVX512, NULL, "SkylakeX");
    check_core(AVX2, NULL, "SkylakeX");
}

static void check_arch(const char *file, const char *has, const char *name, const char *variable,
                       int64_t number, const char *text)
{
    const tn_library_row *row = row_of("blis");
    void *handle = dlopen(file, RTLD_NOW);
    assert_non_null(handle);
    ((void (*)(void))(uintptr_t)of_stand_in(file, "stand_in_again"))();
    features = has;
    model = name;
    if (variable)
        setenv("BLIS_ARCH_TYPE", variable, 1);
    void *self = open_stand_in(row, file);
    if (variable)
        unsetenv("BLIS_ARCH_TYPE");
    check_version(row, self, number, text);
    assert_null(getenv("BLIS_ARCH_TYPE"));
    give(NULL, self);
    features = model = "";
    (void)dlclose(handle);
}

/* 3 is built without kernels for AVX-512, and would end the process. */
static void blis_gets_the_kernels_of_this_processor(void **state)
{
    const char *with = STAND_INS "/libblis.so.4", *without = STAND_INS "/libblis.so.3";
    const char *haswell = "1.1 with kernels for haswell", *skx = "1.1 with kernels for skx";
    (void)state;
    check_arch(with, "", "Some", NULL, 10100, haswell);
    check_arch(with, AVX2, "Some", NULL, 10100, haswell);
    check_arch(with, AVX512, "AMD EPYC", NULL, 10100, haswell);
    check_arch(with, AVX512, "Some", "0", 10100, "1.1 with kernels for knl");
#if defined(__x86_64__)
    check_arch(with, AVX512, "Some", NULL, 10100, skx);
#else
    (void)skx;
#endif
    check_arch(without, AVX512, "Some", NULL, 801, "0.8.1 with kernels for haswell");
}

static void blis_with_wide_numbers_is_refused(void **state)
{
    const char *file = STAND_INS "/libblis.so.4";
    int64_t *bits = of_stand_in(file, "stand_in_bits"), blocks = tn_allocator_blocks();
    void *self = NULL;
    tn_error err;
    (void)state;
    *bits = 64;
    file_bound = file;
    assert_int_equal(row_of("blis")->open(&host, &self, &err), TN_INCOMPATIBLE);
    assert_contains(err.message, "its numbers have 64 bits for BLAS and 64 of its own");
    assert_int_equal(tn_allocator_blocks(), blocks);
    *bits = 32;
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

/* Whether MKL opens, with a variable or without; what it was told of threads. */
static tn_status open_mkl(const char *variable, const char *value, int *out_layer, tn_error *err)
{
    const tn_library_row *row = row_of("mkl");
    int *layer = of_stand_in(STAND_INS "/libmkl_rt.so.2", "stand_in_layer");
    int64_t blocks = tn_allocator_blocks();
    void *self = NULL;
    *layer = -1;
    if (variable)
        setenv(variable, value, 1);
    file_bound = STAND_INS "/libmkl_rt.so.2";
    tn_status status = row->open(&host, &self, err);
    if (variable)
        unsetenv(variable);
    *out_layer = *layer;
    give(NULL, self);
    assert_int_equal(tn_allocator_blocks(), blocks);
    return status;
}

/* MKL itself would end the process without its OpenMP; it needs none where it gets no threads. */
static void mkl_gets_no_threads_unless_they_are_asked_for(void **state)
{
    enum { UNTOLD = -1, NONE = 1 };
    tn_error err;
    int layer;
    (void)state;
    unsetenv("MKL_THREADING_LAYER");
    for (has_openmp = false;; has_openmp = true) {
        assert_int_equal(open_mkl(NULL, NULL, &layer, &err), TN_OK);
        assert_int_equal(layer, NONE);
        assert_int_equal(open_mkl("MKL_THREADING_LAYER", "GNU", &layer, &err), TN_OK);
        assert_int_equal(layer, UNTOLD);
        if (has_openmp)
            break;
        assert_int_equal(open_mkl("MKL_THREADING_LAYER", "INTEL", &layer, &err), TN_UNAVAILABLE);
        assert_contains(err.message, "MKL would end the process, as it lacks libiomp5.so: ");
        assert_contains(err.message, "libiomp5.so is nowhere");
        assert_contains(err.message, "without MKL_THREADING_LAYER=INTEL it does without");
    }
    assert_int_equal(open_mkl("MKL_THREADING_LAYER", "intel", &layer, &err), TN_OK);
    assert_int_equal(layer, UNTOLD);
}

static void mkl_with_wide_numbers_is_refused(void **state)
{
    int *interface = of_stand_in(STAND_INS "/libmkl_rt.so.2", "stand_in_interface"), layer;
    tn_error err;
    (void)state;
    assert_int_equal(open_mkl("MKL_INTERFACE_LAYER", "GNU,ILP64", &layer, &err), TN_INCOMPATIBLE);
    assert_contains(err.message, "64 bits in this process (ILP64)");
    assert_int_equal(open_mkl("MKL_INTERFACE_LAYER", "LP64", &layer, &err), TN_OK);
    *interface = 3; /* a program chose it before */
    assert_int_equal(open_mkl(NULL, NULL, &layer, &err), TN_INCOMPATIBLE);
    *interface = 0;
    assert_int_equal(open_mkl(NULL, NULL, &layer, &err), TN_OK);
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

/* Not to be told anything is what the environment says, whatever was said before. */
static void onednn_falls_silent_as_the_environment_has_it(void **state)
{
    const tn_library_row *row = row_of("mkldnn");
    void *self = open_stand_in(row, STAND_INS "/libdnnl.so.3");
    int *level = of_stand_in(STAND_INS "/libdnnl.so.3", "stand_in_level");
    (void)state;
    setenv("DNNL_VERBOSE", "1", 1);
    assert_int_equal(row->verbose(self, 2, NULL), TN_OK);
    assert_int_equal(*level, 2);
    assert_int_equal(row->verbose(self, 0, NULL), TN_OK);
    assert_int_equal(*level, 1);
    setenv("ONEDNN_VERBOSE", "2", 1);
    assert_int_equal(row->verbose(self, 0, NULL), TN_OK);
    assert_int_equal(*level, 2);
    unsetenv("DNNL_VERBOSE");
    unsetenv("ONEDNN_VERBOSE");
    assert_int_equal(row->verbose(self, 0, NULL), TN_OK);
    assert_int_equal(*level, 0);
    give(NULL, self);
}

/* The beginning of the version is what a build is judged by. */
struct onednn_version {
    int major, minor, patch;
    const char *hash;
    unsigned threads;
};

static void builds_of_onednn_that_cannot_be_held_are_refused(void **state)
{
    static const struct {
        int major;
        unsigned threads;
        const char *says;
    } cases[] = {{4, 2, "this module supports versions 2.x and 3.x only"},
                 {2, 2, "this module supports versions"}, /* whose functions it lacks */
                 {3, 4, "built for TBB"},
                 {3, 512 | 4, "built for SYCL"}};
    const char *file = STAND_INS "/libdnnl.so.3";
    struct onednn_version *version = of_stand_in(file, "stand_in_version"), before = *version;
    int64_t blocks = tn_allocator_blocks();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        void *self = NULL;
        tn_error err;
        version->major = cases[i].major;
        version->threads = cases[i].threads;
        file_bound = file;
        assert_int_equal(row_of("mkldnn")->open(&host, &self, &err), TN_INCOMPATIBLE);
        assert_contains(err.message, cases[i].says);
        assert_contains(err.message, ".11.140 is here, but");
    }
    assert_int_equal(tn_allocator_blocks(), blocks);
    *version = before;
}

static void what_lacks_a_function_or_memory_is_refused_and_leaves_nothing(void **state)
{
    static const char *const names[] = {"openblas", "mkl", "mkldnn", "hwloc", "blis"};
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
           says(found.reason, "2 OpenMP runtimes are loaded in this process") &&
           says(found.reason, "/libgomp.so.1") && says(found.reason, "/libomp.so.5") &&
           says(found.reason, "can hang or crash") &&
           says(found.remedy, "in the process for one of them");
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
    return loaded && both_are_found() == false && says(openmp().reason, "3 OpenMP runtimes") &&
           says(openmp().reason, "libgomp-0123abcd.so.1") && says(openmp().reason, "among them");
}

static const char needy[] = STAND_INS "/libneedy.so";

static bool a_run_time_alone_is_no_matter(void)
{
    tn_error err = {0};
    return tni_library_openmp_check(needy, &err) == TN_OK;
}

static bool the_same_run_time_is_no_matter(void)
{
    bool loaded = dlopen(STAND_INS "/libgomp.so.1", RTLD_NOW) != NULL;
    return loaded && tni_library_openmp_check(needy, NULL) == TN_OK;
}

/* By another name, but the same file. */
static bool a_link_to_it_is_no_matter(void)
{
    char folder[] = "/tmp/tenon-test-XXXXXX", path[256];
    bool made = mkdtemp(folder) != NULL;
    snprintf(path, sizeof path, "%s/libomp.so", folder);
    made = made && symlink(STAND_INS "/libgomp.so.1", path) == 0;
    made = made && setenv("LD_LIBRARY_PATH", STAND_INS, 1) == 0; /* where it would be found */
    bool loaded = made && dlopen(path, RTLD_NOW) != NULL;
    bool fine = loaded && tni_library_openmp_check(needy, NULL) == TN_OK;
    (void)unlink(path);
    (void)rmdir(folder);
    return fine;
}

/* Whether a library at a long path is refused. */
static bool is_refused_far_away(void)
{
    char folder[] = "/tmp/tenon-test-XXXXXX", deep[256], path[300];
    bool made = mkdtemp(folder) != NULL;
    snprintf(deep, sizeof deep, "%s/%0200d", folder, 0);
    snprintf(path, sizeof path, "%s/libneedy.so", deep);
    made = made && mkdir(deep, 0700) == 0 && symlink(needy, path) == 0;
    bool refused = made && tni_library_openmp_check(path, NULL) == TN_INCOMPATIBLE;
    (void)unlink(path);
    (void)rmdir(deep);
    (void)rmdir(folder);
    return refused;
}

static bool another_run_time_is_refused(void)
{
    tn_error err = {0};
    bool loaded = dlopen(STAND_INS "/libomp.so.5", RTLD_NOW) != NULL;
    return loaded && tni_library_openmp_check(needy, &err) == TN_INCOMPATIBLE &&
           says(err.message, "/libneedy.so needs the OpenMP runtime libgomp.so.1, but ") &&
           says(err.message, "/libomp.so.5 is loaded in this process") && is_refused_far_away() &&
           tni_library_openmp_check(STAND_INS "/libdnnl.so.2", NULL) == TN_OK &&
           tni_library_openmp_check("libnowhere.so.1", NULL) == TN_OK;
}

/* Before it is opened: some run-times end the process when they meet. */
static void libraries_that_bring_another_openmp_are_refused(void **state)
{
    (void)state;
    in_a_child(a_run_time_alone_is_no_matter);
    in_a_child(the_same_run_time_is_no_matter);
    in_a_child(a_link_to_it_is_no_matter);
    in_a_child(another_run_time_is_refused);
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
    assert_contains(none.reason, "no OpenMP runtime is loaded in this process");
    void *handle = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    assert_null(handle);                /* it was not opened to find out */
    assert_string_equal(none.path, ""); /* a file of one may exist, but is not in use */
    if (none.available == TN_AVAILABLE_YES)
        assert_contains(none.reason, "in this process; code that needs one loads /");
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

static bool is_taken(const char *files, bool *out_found)
{
    tni_look look;
    bool taken = tni_look_loaded(files, &look);
    *out_found = look.holds > 0;
    return taken;
}

/* By the same path or another one to the file; and when that is gone, as the loader has it still. */
static bool what_has_a_path_is_seen(void)
{
    static const char other[] = STAND_INS "/./libomp.so.5";
    char folder[SCRATCH_PATH], link[SCRATCH_PATH + 8];
    bool found, before = is_taken(STAND_INS "/libomp.so.5", &found);
    if (before || !found || !dlopen(STAND_INS "/libomp.so.5", RTLD_NOW) ||
        !is_taken(STAND_INS "/libomp.so.5", &found) || !is_taken(other, &found) ||
        !is_taken("/nowhere/libomp.so.5|" STAND_INS "/libomp.so.5", &found) ||
        is_taken("/nowhere/libomp.so.5", &found) || found ||
        is_taken(STAND_INS "/libgomp.so.1", &found) || !found)
        return false;
    scratch_make(folder);
    snprintf(link, sizeof link, "%s/x.so", folder);
    bool seen = symlink(STAND_INS "/libgomp.so.1", link) == 0 && dlopen(link, RTLD_NOW) &&
                is_taken(STAND_INS "/libgomp.so.1", &found) && unlink(link) == 0 &&
                is_taken(link, &found) && found;
    scratch_remove(folder);
    return seen;
}

static void what_is_here_is_seen_by_its_path(void **state)
{
    (void)state;
    in_a_child(what_has_a_path_is_seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openmp_is_what_the_process_has), /* before stand-ins are opened */
        cmocka_unit_test(what_is_here_is_seen_by_its_path),
        cmocka_unit_test(libraries_that_bring_another_openmp_are_refused),
        cmocka_unit_test(openblas_tells_its_version),
        cmocka_unit_test(openblas_gets_the_kernels_of_this_processor),
        cmocka_unit_test(blis_gets_the_kernels_of_this_processor),
        cmocka_unit_test(blis_with_wide_numbers_is_refused),
        cmocka_unit_test(mkl_tells_its_version_and_talks),
        cmocka_unit_test(mkl_gets_no_threads_unless_they_are_asked_for),
        cmocka_unit_test(mkl_with_wide_numbers_is_refused),
        cmocka_unit_test(onednn_2_and_3_tell_their_versions_and_talk),
        cmocka_unit_test(onednn_falls_silent_as_the_environment_has_it),
        cmocka_unit_test(builds_of_onednn_that_cannot_be_held_are_refused),
        cmocka_unit_test(what_lacks_a_function_or_memory_is_refused_and_leaves_nothing),
        cmocka_unit_test(what_is_loaded_is_listed),
    };
    return run_suite("unit.libraries_vendor", tests);
}
