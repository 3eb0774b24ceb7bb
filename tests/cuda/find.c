/* Where NVIDIA's libraries are sought, in which order, and what is said of it. The host's loader is made up:
 * it opens what a test says. */
#include "scratch.h"

#include "../../backends/cuda/compile/find.h"
#include "os/look/look.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <unistd.h>

static bool loader_has;         /* it finds the library by its name */
static bool loader_fails;       /* and does not open it */
static const char *loader_path; /* there */
static const char *broken;      /* a part of paths that do not open, or NULL */
static char opened[SCRATCH_PATH], folder[SCRATCH_PATH];

static tn_status bind(void *self, const char *files, const tn_symbol *symbols, size_t count,
                      void *table, tn_error *err)
{
    (void)self, (void)symbols, (void)count, (void)table;
    bool by_name = !strchr(files, '/');
    if (by_name && loader_fails)
        return tn_fail(err, TN_UNAVAILABLE, 0, "test", "it lacks another one");
    if (by_name ? !loader_has : broken && strstr(files, broken))
        return tn_fail(err, by_name ? TN_UNAVAILABLE : TN_INCOMPATIBLE, 0, "test", "no");
    snprintf(opened, sizeof opened, "%s", files);
    return TN_OK;
}

static tn_status look(void *self, const char *files, char *out_path, size_t size,
                      int32_t *out_is_here, tn_error *err)
{
    tni_look found;
    (void)self;
    const bool by_name = !strchr(files, '/'), is_here = by_name && tni_look_loaded(files, &found);
    if (!is_here && (by_name ? !loader_has : broken && strstr(files, broken)))
        return tn_fail(err, TN_NOT_FOUND, 0, "test", "no");
    snprintf(out_path, size, "%s", is_here ? found.text : by_name ? loader_path : files);
    *out_is_here = is_here;
    return TN_OK;
}

static const tn_host host = {
    .struct_size = sizeof host, .library_bind = bind, .library_look = look};
static const cuda_sought sought = {"libtenontest.so.13|libtenontest.so.12", "cu13|cuda_test",
                                   "libtenonkin.so.9", false};

/* Nothing of the machine's own counts. */
static int begin(void **state)
{
    static const char *const names[] = {"CUDA_PATH",    "CUDA_HOME", "VIRTUAL_ENV",
                                        "CONDA_PREFIX", "PATH",      "HOME"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    loader_has = false;
    loader_fails = false;
    loader_path = "/of/the/loader";
    broken = NULL;
    opened[0] = '\0';
    scratch_make(folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

static void place(const char *path, char out[2 * SCRATCH_PATH])
{
    snprintf(out, 2 * SCRATCH_PATH, "%s/%s", folder, path);
}

/* A file below the test's folder, with the folders on the way to it. */
static void put(const char *path)
{
    char all[2 * SCRATCH_PATH];
    place(path, all);
    for (char *at = all + strlen(folder) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        (void)mkdir(all, 0700);
        *at = '/';
    }
    FILE *file = fopen(all, "w");
    assert_non_null(file);
    fclose(file);
}

static void set(const char *name, const char *path)
{
    char all[2 * SCRATCH_PATH];
    place(path, all);
    assert_int_equal(setenv(name, all, 1), 0);
}

/* What would be opened is told before. */
static void expect_looked(const char *path, const char *words)
{
    char found[2 * SCRATCH_PATH];
    tn_error err = {0};
    if (cuda_find_look(&host, &sought, found, sizeof found, &err))
        fail_msg("nothing was found: %s", err.message);
    assert_string_equal(found, path);
    assert_contains(err.message, words);
}

static void expect_opened(const char *path)
{
    char all[2 * SCRATCH_PATH];
    tn_error err = {0};
    int table;
    place(path, all);
    expect_looked(all, all);
    assert_string_equal(opened, ""); /* by that alone nothing is */
    if (cuda_find_bind(&host, &sought, NULL, 0, &table, &err))
        fail_msg("nothing was found: %s", err.message);
    assert_string_equal(opened, all);
    assert_int_equal(err.status, TN_OK);
    assert_contains(err.message, all);
    opened[0] = '\0';
}

static void toolkits_come_before_packages(void **state)
{
    (void)state;
    put("kit/lib64/libtenontest.so.12");
    put("env/lib/python3.11/site-packages/nvidia/cu13/lib/libtenontest.so.13");
    set("CUDA_HOME", "kit");
    set("VIRTUAL_ENV", "env");
    expect_opened("kit/lib64/libtenontest.so.12");
}

/* Some have no lib64. */
static void toolkits_have_two_folders(void **state)
{
    (void)state;
    put("kit/lib/libtenontest.so.12");
    set("CUDA_PATH", "kit");
    expect_opened("kit/lib/libtenontest.so.12");
    put("kit/lib64/libtenontest.so.12");
    expect_opened("kit/lib64/libtenontest.so.12");
}

/* What the loader finds is the toolkit's own by another name, or another one beside it, which is told once. */
static void toolkits_are_passed_over(void **state)
{
    char link[2 * SCRATCH_PATH], told[2 * SCRATCH_PATH], found[2 * SCRATCH_PATH];
    tn_error err = {0};
    (void)state;
    put("kit/lib64/libtenontest.so.12");
    place("kit", told);
    place("link", link);
    assert_int_equal(symlink(told, link), 0);
    set("CUDA_PATH", "link");
    set("CUDA_HOME", "kit");
    loader_has = true;
    expect_looked("/of/the/loader", "found by the loader; passed over: ");
    assert_int_equal(cuda_find_look(&host, &sought, found, sizeof found, &err), TN_OK);
    const char *once = strstr(err.message, "libtenontest.so.12");
    assert_non_null(once);
    assert_null(strstr(once + 1, "libtenontest.so.12"));
    place("link/lib64/libtenontest.so.12", link);
    loader_path = link;
    assert_int_equal(cuda_find_look(&host, &sought, found, sizeof found, &err), TN_OK);
    assert_string_equal(found, link);
    assert_string_equal(err.message, "found by the loader");
}

static void the_newer_file_comes_first(void **state)
{
    (void)state;
    put("env/lib/python3.9/site-packages/nvidia/cuda_test/lib/libtenontest.so.12");
    put("env/lib/python3.9/site-packages/nvidia/cuda_test/lib/libtenontest.so.13");
    set("CONDA_PREFIX", "env");
    expect_opened("env/lib/python3.9/site-packages/nvidia/cuda_test/lib/libtenontest.so.13");
}

static void pythons_of_the_path_and_of_the_user_count(void **state)
{
    (void)state;
    put(".local/lib/python3.12/site-packages/nvidia/cu13/lib/libtenontest.so.13");
    set("HOME", "");
    expect_opened("/.local/lib/python3.12/site-packages/nvidia/cu13/lib/libtenontest.so.13");
    put("usr/bin/python3");
    put("usr/lib/python3/dist-packages/nvidia/cu13/lib/libtenontest.so.13");
    set("PATH", "usr/bin");
    expect_opened("usr/lib/python3/dist-packages/nvidia/cu13/lib/libtenontest.so.13");
}

static void what_does_not_open_is_passed_over(void **state)
{
    (void)state;
    put("kit/lib64/libtenontest.so.13");
    put("kit/lib64/libtenontest.so.12");
    set("CUDA_PATH", "kit");
    broken = "so.13";
    expect_opened("kit/lib64/libtenontest.so.12");
    tn_error err = {0};
    int table;
    assert_int_equal(cuda_find_bind(&host, &sought, NULL, 0, &table, &err), TN_OK);
    assert_contains(err.message, "passed over: ");
    assert_contains(err.message, "kit/lib64/libtenontest.so.13");
}

/* One that the loader finds, and one of Python's packages. */
static void have_two(void)
{
    put("env/lib/python3.11/site-packages/nvidia/cu13/lib/libtenontest.so.13");
    set("VIRTUAL_ENV", "env");
    loader_has = true;
}

static void the_loader_comes_first(void **state)
{
    tn_error err = {0};
    int table;
    (void)state;
    have_two();
    expect_looked("/of/the/loader", "found by the loader; passed over: ");
    assert_int_equal(cuda_find_bind(&host, &sought, NULL, 0, &table, &err), TN_OK);
    assert_string_equal(opened, sought.files);
    assert_contains(err.message, "found by the loader; passed over: ");
    assert_contains(err.message, "site-packages/nvidia/cu13/lib/libtenontest.so.13");
    assert_contains(err.message, "a folder in LD_LIBRARY_PATH comes before");
}

/* What the loader's lacks is told, though another one is taken. */
static void a_broken_one_of_the_loaders_is_told(void **state)
{
    char file[2 * SCRATCH_PATH];
    tn_error err = {0};
    int table;
    (void)state;
    have_two();
    put("loader/libtenontest.so.13");
    place("loader/libtenontest.so.13", file);
    loader_path = file;
    loader_fails = true;
    assert_int_equal(cuda_find_bind(&host, &sought, NULL, 0, &table, &err), TN_OK);
    assert_contains(opened, "site-packages/nvidia/cu13/lib/libtenontest.so.13");
    assert_contains(err.message, "passed over: ");
    assert_contains(err.message, file);
    assert_contains(err.message, "of the loader's: it lacks another one");
}

/* Puts a library there, under that name, and has the process load it. */
static void *load(const char *path)
{
    char all[2 * SCRATCH_PATH], command[8 * SCRATCH_PATH];
    put(path);
    place(path, all);
    snprintf(command, sizeof command, "cp '%s' '%s'", STAND_IN, all);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
    void *handle = dlopen(all, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    return handle;
}

static void what_the_process_has_comes_first(void **state)
{
    tn_error err = {0};
    int table;
    (void)state;
    have_two();
    char all[2 * SCRATCH_PATH];
    void *handle = load("theirs/libtenontest.so.12");
    place("theirs/libtenontest.so.12", all);
    expect_looked(all, "already in this process; passed over: ");
    assert_int_equal(cuda_find_bind(&host, &sought, NULL, 0, &table, &err), TN_OK);
    assert_string_equal(opened, "libtenontest.so.12"); /* by name, which the loader has already */
    assert_contains(err.message, "already in this process; passed over: ");
    assert_contains(err.message, "site-packages/nvidia/cu13/lib/libtenontest.so.13");
    loader_has = false; /* it lacks what is needed, say: another one beside it would not do */
    assert_int_equal(cuda_find_bind(&host, &sought, NULL, 0, &table, &err), TN_UNAVAILABLE);
    dlclose(handle);
}

static void what_lies_beside_its_kin_comes_before_the_loaders(void **state)
{
    (void)state;
    put("theirs/libtenontest.so.12");
    have_two();
    void *handle = load("theirs/libtenonkin.so.9");
    tn_error err = {0};
    char all[2 * SCRATCH_PATH];
    int table;
    place("theirs/libtenontest.so.12", all);
    expect_looked(all, "beside one of its version that is already in this process: ");
    assert_int_equal(cuda_find_bind(&host, &sought, NULL, 0, &table, &err), TN_OK);
    assert_string_equal(opened, all);
    place("theirs/libtenonkin.so.9", all);
    assert_contains(err.message, "beside one of its version that is already in this process: ");
    assert_contains(err.message, all);
    broken = "theirs/"; /* nothing beside it opens */
    assert_int_equal(cuda_find_bind(&host, &sought, NULL, 0, &table, &err), TN_OK);
    assert_string_equal(opened, sought.files);
    assert_contains(err.message, "found by the loader; passed over: ");
    dlclose(handle);
}

/* What comes in one release with its kin is not taken of another major, wherever it lies. */
static void majors_are_not_mixed(void **state)
{
    static const cuda_sought both = {"libtenontest.so.13|libtenontest.so.12", "cu13",
                                     "libtenonkin.so.13|libtenonkin.so.12", true};
    static const cuda_sought later = {"libtenontest.so.13", "cu13",
                                      "libtenonkin.so.13|libtenonkin.so.12", true};
    tn_error err = {0};
    int table;
    (void)state;
    put("theirs/libtenontest.so.13");
    put("theirs/libtenontest.so.12");
    void *handle = load("theirs/libtenonkin.so.12");
    char all[2 * SCRATCH_PATH], path[SCRATCH_PATH] = "as it was";
    place("theirs/libtenontest.so.12", all);
    loader_has = true;
    assert_int_equal(cuda_find_bind(&host, &both, NULL, 0, &table, &err), TN_OK);
    assert_string_equal(opened, all);
    broken = "theirs/";
    assert_int_equal(cuda_find_bind(&host, &both, NULL, 0, &table, &err), TN_OK);
    assert_string_equal(opened, "libtenontest.so.12"); /* by the loader, which has it */
    loader_has = false;
    assert_int_equal(cuda_find_bind(&host, &both, NULL, 0, &table, &err), TN_INCOMPATIBLE);
    broken = NULL;
    loader_has = true;
    assert_int_equal(cuda_find_bind(&host, &later, NULL, 0, &table, &err), TN_INCOMPATIBLE);
    assert_contains(err.message, "libtenonkin.so.12 is in this process");
    assert_contains(err.message, "two majors do not go together");
    assert_int_equal(cuda_find_look(&host, &later, path, sizeof path, &err), TN_INCOMPATIBLE);
    assert_string_equal(path, "as it was");
    dlclose(handle);
}

static void nowhere_is_what_the_loader_says(void **state)
{
    tn_error err = {0};
    int table;
    (void)state;
    char path[SCRATCH_PATH] = "as it was";
    assert_int_equal(cuda_find_bind(&host, &sought, NULL, 0, &table, &err), TN_UNAVAILABLE);
    assert_string_equal(err.message, "no");
    assert_int_equal(cuda_find_look(&host, &sought, path, sizeof path, &err), TN_UNAVAILABLE);
    assert_string_equal(path, "as it was");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(toolkits_come_before_packages, begin, end),
        cmocka_unit_test_setup_teardown(toolkits_have_two_folders, begin, end),
        cmocka_unit_test_setup_teardown(toolkits_are_passed_over, begin, end),
        cmocka_unit_test_setup_teardown(a_broken_one_of_the_loaders_is_told, begin, end),
        cmocka_unit_test_setup_teardown(the_newer_file_comes_first, begin, end),
        cmocka_unit_test_setup_teardown(pythons_of_the_path_and_of_the_user_count, begin, end),
        cmocka_unit_test_setup_teardown(what_does_not_open_is_passed_over, begin, end),
        cmocka_unit_test_setup_teardown(the_loader_comes_first, begin, end),
        cmocka_unit_test_setup_teardown(what_the_process_has_comes_first, begin, end),
        cmocka_unit_test_setup_teardown(majors_are_not_mixed, begin, end),
        cmocka_unit_test_setup_teardown(what_lies_beside_its_kin_comes_before_the_loaders, begin,
                                        end),
        cmocka_unit_test_setup_teardown(nowhere_is_what_the_loader_says, begin, end),
    };
    return run_suite("cuda.find", tests);
}
