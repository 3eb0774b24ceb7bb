/* A vendor's library, bound by name and version: all of what a module needs of it, or nothing and
 * the reason. */
#include "support.h"

#include "os/bind.h"
#include "tenon/module/library.h"
#include "tenon/module/platform.h"

/* What a module would keep of the vendor's functions. */
typedef struct vendor {
    int (*answer)(void);
    int (*old_answer)(void);
    int (*release)(void);
    int (*missing)(void);
} vendor;

static int untouched(void)
{
    return -1;
}

static const vendor before = {untouched, untouched, untouched, untouched};

static const tn_symbol answer = {"stub_answer", offsetof(vendor, answer)};
static const tn_symbol release = {"stub_release", offsetof(vendor, release)};

static void check_untouched(const vendor *table)
{
    assert_memory_equal(table, &before, sizeof before);
}

static void symbols_come_by_name_and_version(void **state)
{
    const tn_symbol symbols[] = {
        {"stub_answer", offsetof(vendor, answer)},
        {"stub_answer@STUB_1", offsetof(vendor, old_answer)},
        {"stub_release@STUB_1", offsetof(vendor, release)},
        {"?stub_missing", offsetof(vendor, missing)},
    };
    vendor table = before;
    char *file = NULL;
    tn_error err;
    (void)state;
    assert_int_equal(tni_bind("libstubvendor.so.2", symbols, 4, NULL, &table, &file, &err), TN_OK);
    assert_int_equal(table.answer(), 2);
    assert_int_equal(table.old_answer(), 1);
    assert_int_equal(table.release(), 2);
    assert_null(table.missing);
    assert_contains(file, "/libstubvendor.so.2");
    tni_release(file);
}

static void first_of_several_files_that_opens_is_bound(void **state)
{
    static const struct {
        const char *files;
        int release;
    } cases[] = {
        {"libstubvendor.so.2|libstubvendor.so.1", 2},
        {"libstubvendor.so.1|libstubvendor.so.2", 1},
        {"libstubvendor.so.3|libstubvendor.so.1|libstubvendor.so.2", 1},
        {STUBS "/libstubvendor.so.2", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        vendor table = before;
        assert_int_equal(tni_bind(cases[i].files, &release, 1, NULL, &table, NULL, NULL), TN_OK);
        assert_int_equal(table.release(), cases[i].release);
        assert_true(table.answer == untouched);
    }
}

/* Not even those before it are written. */
static void missing_symbol_leaves_the_table_alone(void **state)
{
    static const tn_symbol wanted[] = {{"stub_missing", offsetof(vendor, missing)},
                                       {"stub_answer@STUB_9", offsetof(vendor, missing)},
                                       {"?stub_missing", offsetof(vendor, missing)}};
    tn_error err;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const tn_symbol symbols[] = {answer, release, wanted[i]};
        vendor table = before;
        tn_status status = tni_bind("libstubvendor.so.2", symbols, 3, NULL, &table, NULL, &err);
        if (wanted[i].name[0] == '?') {
            assert_int_equal(status, TN_OK);
            continue;
        }
        assert_int_equal(status, TN_INCOMPATIBLE);
        assert_contains(err.message, "/libstubvendor.so.2 lacks ");
        assert_contains(err.message, wanted[i].name);
        assert_contains(err.message, "(symbol 3 of 3)");
        check_untouched(&table);
    }
}

/* A version that only a newer release has. */
static void older_release_lacks_the_newer_version(void **state)
{
    const tn_symbol symbols[] = {{"stub_answer@STUB_2", offsetof(vendor, answer)}};
    const tn_symbol optional[] = {{"?stub_answer@STUB_2", offsetof(vendor, answer)}, release};
    vendor table = before;
    tn_error err;
    (void)state;
    assert_int_equal(tni_bind("libstubvendor.so.1", symbols, 1, NULL, &table, NULL, &err),
                     TN_INCOMPATIBLE);
    assert_contains(err.message, "libstubvendor.so.1 lacks stub_answer@STUB_2");
    check_untouched(&table);
    assert_int_equal(tni_bind("libstubvendor.so.1", optional, 2, NULL, &table, NULL, &err), TN_OK);
    assert_null(table.answer);
    assert_int_equal(table.release(), 1);
}

static void missing_file_is_said_with_places_and_remedy(void **state)
{
    vendor table = before;
    tn_error err;
    (void)state;
    assert_int_equal(
        tni_bind("libstub-no.so.2|libstub-no.so.1", &answer, 1, NULL, &table, NULL, &err),
        TN_UNAVAILABLE);
    assert_contains(err.message, "libstub-no.so.2, libstub-no.so.1: cannot open"); /* once */
    assert_contains(err.message, "; searched in ");
    assert_contains(err.message, "the system's library cache and folders");
    assert_null(strstr(err.message, "install"));
    check_untouched(&table);
    char remedy[128];
    tni_bind_remedy("libstub-no.so.2|libstub-no.so.1", remedy, sizeof remedy);
    assert_string_equal(remedy,
                        "install the package that provides libstub-no.so.2|libstub-no.so.1, or "
                        "add its folder to LD_LIBRARY_PATH");
    assert_int_equal(
        tni_bind("libstub-no.so.2", &answer, 1, "apt install stub", &table, NULL, &err),
        TN_UNAVAILABLE);
    assert_contains(err.message, "; searched in ");
    assert_contains(err.message, "; apt install stub");
    check_untouched(&table);
}

#if defined(__GLIBC__)
/* Told as that, and not as a file that is not there. */
static void a_file_may_lack_what_it_needs(void **state)
{
    static const char *const files[] = {"libstublame.so",
                                        "libstubnone.so.3|libstublame.so|libstubnone.so.2"};
    vendor table = before;
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        assert_int_equal(tni_bind(files[i], &answer, 1, "install it", &table, NULL, &err),
                         TN_UNAVAILABLE);
        assert_contains(
            err.message,
            "libstublame.so exists, but needs libstubgone.so.7, which was not found: install");
        check_untouched(&table);
    }
    assert_int_equal(
        tni_bind("libstublame.so|libstubvendor.so.1", &answer, 1, NULL, &table, NULL, &err), TN_OK);
}
#endif

static void senseless_requests_are_refused(void **state)
{
    char name[400];
    const tn_symbol nameless[] = {{NULL, 0}}, empty[] = {{"", 0}}, bare[] = {{"?", 0}},
                    only_version[] = {{"@STUB_1", 0}}, endless[] = {{name, 0}};
    const tn_symbol *const bad[] = {nameless, empty, bare, only_version, endless};
    vendor table = before;
    tn_error err;
    (void)state;
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tni_bind("libstubvendor.so.2", bad[i], 1, NULL, &table, NULL, &err),
                         TN_INVALID_ARGUMENT);
        assert_contains(err.message, "symbol 1 of 1 for ");
    }
    const char *const files[] = {NULL, "", "|libstubvendor.so.2", "a||b", name};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        assert_int_equal(tni_bind(files[i], &answer, 1, NULL, &table, NULL, &err),
                         TN_INVALID_ARGUMENT);
    assert_int_equal(tni_bind("x", NULL, 1, NULL, &table, NULL, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "the list of symbols is missing");
    assert_int_equal(tni_bind("x", &answer, 1, NULL, NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "the table is missing");
    check_untouched(&table);
    assert_int_equal(tni_bind("libstubvendor.so.2", NULL, 0, NULL, NULL, NULL, &err), TN_OK);
}

/* From a real module: in the child that looks at it, and here. */
static void module_binds_in_its_probe(void **state)
{
    static const expected absent = {"without", TN_STAGE_NEGOTIATED, TN_UNAVAILABLE,
                                    "libstub-nowhere.so.1: cannot open",
                                    "install the stub vendor's package"};
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_stub(folder, "with", "vendor");
    put_stub(folder, "without", "vendorless");
    tni_registry_params params = seek_in(folder);
    loaded in = load(&params);
    check_ready(&in, "with");
    assert_int_equal(row_of(&in, "with")->devices, 1); /* what stub_answer@STUB_1 says */
    check_row(&in, &absent);
    assert_contains(row_of(&in, "without")->message, "libstub-nowhere.so.1");
    unload(&in);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols_come_by_name_and_version),
        cmocka_unit_test(first_of_several_files_that_opens_is_bound),
        cmocka_unit_test(missing_symbol_leaves_the_table_alone),
        cmocka_unit_test(older_release_lacks_the_newer_version),
        cmocka_unit_test(missing_file_is_said_with_places_and_remedy),
#if defined(__GLIBC__)
        cmocka_unit_test(a_file_may_lack_what_it_needs),
#endif
        cmocka_unit_test(senseless_requests_are_refused),
        cmocka_unit_test(module_binds_in_its_probe),
    };
    return run_suite("loader.bind", tests);
}
