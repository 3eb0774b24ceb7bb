/* Where modules are sought, in which order, and what the program may add. */
#include "support.h"

#include "tenon/module/module.h"

/* A file with the name of a module is a candidate, whatever is in it. */
static void put_candidate(const char *folder, const char *name)
{
    put_bytes(module_in(folder, name), "x", 1);
}

/* Every row is of this file, in this order. */
static void check_order(const loaded *in, const struct path *files, size_t count)
{
    assert_int_equal(tn_module_list_count(in->list), count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(row_at(in, i)->path, files[i].text);
}

static const tn_module_place *place_at(const loaded *in, size_t index)
{
    const tn_module_place *place = tn_module_list_place_get(in->list, index);
    assert_non_null(place);
    assert_int_equal(place->struct_size, sizeof *place);
    return place;
}

static void check_place(const loaded *in, size_t index, const char *path, tn_status status,
                        const char *message)
{
    const tn_module_place *place = place_at(in, index);
    assert_string_equal(place->path, path);
    assert_int_equal(place->status, status);
    assert_string_equal(place->message, message);
}

static void names_are_sorted_by_their_bytes(void **state)
{
    static const char *const others[] = {"tenon-.so",   "tenon-a.so.1", "tenon-a.dll",
                                         "libtenon.so", "xtenon-a.so",  "tenon-a.so~"};
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_candidate(folder, "b");
    put_candidate(folder, "a");
    put_candidate(folder, "B");
    put_candidate(folder, "a-b");
    put_candidate(folder, "\xc3\xa4");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        put_bytes(path_in(folder, others[i]), "x", 1);
    tni_registry_params params = seek_in(folder);
    loaded in = load(&params);
    const struct path order[] = {module_in(folder, "B"), module_in(folder, "a-b"),
                                 module_in(folder, "a"), module_in(folder, "b"),
                                 module_in(folder, "\xc3\xa4")};
    check_order(&in, order, 5);
    check_place(&in, 0, folder, TN_OK, "5 modules");
    assert_int_equal(place_at(&in, 0)->modules, 5);
    unload(&in);
    scratch_remove(folder);
}

static const tn_module plain = {
    .struct_size = sizeof plain, TN_MODULE_ABI, .name = "plain", .version = "1"};

static tn_status plain_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &plain;
    return TN_OK;
}

enum { FOLDERS = 4 };

static void make_folders(char folders[FOLDERS][SCRATCH_PATH])
{
    for (size_t i = 0; i < FOLDERS; i++) {
        scratch_make(folders[i]);
        put_candidate(folders[i], "x");
    }
}

static void remove_folders(char folders[FOLDERS][SCRATCH_PATH])
{
    for (size_t i = 0; i < FOLDERS; i++)
        scratch_remove(folders[i]);
}

/* Built-ins, the program's, the library's, the variable's. */
static void places_come_in_their_order(void **state)
{
    static const tni_builtin builtins[] = {{"plain", plain_entry}, {NULL, NULL}};
    static const char *const origins[] = {"built-in", "program", "module folder",
                                          "TENON_MODULE_PATH", "TENON_MODULE_PATH"};
    char folders[FOLDERS][SCRATCH_PATH];
    char search[2 * SCRATCH_PATH];
    (void)state;
    make_folders(folders);
    snprintf(search, sizeof search, "%s:%s", folders[2], folders[3]);
    tni_registry_params params = seek_in(folders[1]);
    params.builtins = builtins;
    params.search_path = search;
    loaded in = {.blocks = tn_allocator_blocks()};
    assert_int_equal(tni_registry_create(&params, &in.registry, NULL), TN_OK);
    assert_int_equal(tni_registry_add(in.registry, folders[0], true, 0, NULL), TN_OK);
    assert_int_equal(tni_registry_generation(in.registry), 0); /* nothing yet: it was not asked */
    look_again(&in);
    assert_int_equal(tn_module_list_count(in.list), 5);
    assert_null(row_at(&in, 0)->path);
    assert_string_equal(row_at(&in, 0)->name, "plain");
    assert_int_equal(row_at(&in, 0)->stage, TN_STAGE_READY);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(row_at(&in, i)->origin, origins[i]);
        if (i > 0)
            assert_string_equal(row_at(&in, i)->path, module_in(folders[i - 1], "x").text);
    }
    assert_int_equal(tn_module_list_place_count(in.list), FOLDERS);
    for (size_t i = 0; i < FOLDERS; i++) {
        check_place(&in, i, folders[i], TN_OK, "1 module");
        assert_string_equal(place_at(&in, i)->origin, origins[i + 1]);
    }
    unload(&in);
    remove_folders(folders);
}

static void what_is_no_folder_is_a_place_too(void **state)
{
    char folder[SCRATCH_PATH];
    char search[4 * SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_candidate(folder, "x");
    snprintf(search, sizeof search, "%s/none:%s/tenon-x.so:%s", folder, folder, folder);
    tni_registry_params params = seek_in(NULL);
    params.search_path = search;
    loaded in = load(&params);
    assert_int_equal(tn_module_list_count(in.list), 1);
    check_place(&in, 0, path_in(folder, "none").text, TN_NOT_FOUND, "no such folder");
    check_place(&in, 1, module_in(folder, "x").text, TN_IO, "not a folder");
    check_place(&in, 2, folder, TN_OK, "1 module");
    assert_int_equal(tn_module_list_place_count(in.list), 3);
    unload(&in);
    scratch_remove(folder);
}

static void current_folder_is_never_searched(void **state)
{
    static const struct {
        const char *path, *message;
    } places[] = {
        {"", "ignored: an empty entry, which would mean the current folder"},
        {".", "ignored: not an absolute path"},
        {"sub", "ignored: not an absolute path"},
        {"", "ignored: an empty entry, which would mean the current folder"},
        {"./sub", "ignored: not an absolute path"},
    };
    char folder[SCRATCH_PATH], before[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_candidate(folder, "x");
    assert_int_equal(mkdir(path_in(folder, "sub").text, 0700), 0);
    put_candidate(path_in(folder, "sub").text, "x");
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    tni_registry_params params = seek_in(NULL);
    params.search_path = ":.:sub::./sub";
    loaded in = load(&params);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(tn_module_list_count(in.list), 0);
    assert_int_equal(tn_module_list_place_count(in.list), 5);
    for (size_t i = 0; i < 5; i++)
        check_place(&in, i, places[i].path, TN_INVALID_ARGUMENT, places[i].message);
    unload(&in);
    scratch_remove(folder);
}

static void raised_privileges_close_the_variable(void **state)
{
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_candidate(folder, "x");
    tni_registry_params params = seek_in(folder);
    params.search_path = folder;
    params.search_path_ignored = true;
    loaded in = load(&params);
    assert_int_equal(tn_module_list_count(in.list), 1);
    assert_string_equal(row_at(&in, 0)->origin, "module folder");
    check_place(&in, 1, folder, TN_NOT_PERMITTED,
                "ignored: this process runs with elevated privileges");
    unload(&in);
    scratch_remove(folder);
}

static void program_adds_after_discovery_too(void **state)
{
    char folder[SCRATCH_PATH], other[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    scratch_make(other);
    put_candidate(folder, "a");
    put_candidate(folder, "b");
    put_candidate(other, "c");
    put_candidate(other, "d");
    tni_registry_params params = seek_in(NULL);
    loaded in = load(&params);
    tni_registry *registry = in.registry;
    assert_int_equal(tni_registry_add(registry, module_in(folder, "b").text, false, 0, NULL),
                     TN_OK);
    uint64_t one = tni_registry_generation(registry);
    assert_true(one > 0); /* loaded at once */
    assert_int_equal(tni_registry_add(registry, other, true, 0, NULL), TN_OK);
    assert_true(tni_registry_generation(registry) > one);
    assert_int_equal(tn_module_list_count(in.list), 0); /* a list does not change */
    look_again(&in);
    const struct path order[] = {module_in(folder, "b"), module_in(other, "c"),
                                 module_in(other, "d")};
    check_order(&in, order, 3);
    check_place(&in, 0, order[0].text, TN_OK, "one file");
    check_place(&in, 1, other, TN_OK, "2 modules");
    assert_string_equal(row_at(&in, 0)->origin, "program");
    unload(&in);
    scratch_remove(other);
    scratch_remove(folder);
}

/* Each wish is a candidate, whenever it comes; the first one is used. */
static void module_added_again_is_a_second_one(void **state)
{
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_stub(folder, "x", "good");
    struct path file = module_in(folder, "x");
    tni_registry_params params = seek_in(NULL);
    loaded in = {.blocks = tn_allocator_blocks()};
    assert_int_equal(tni_registry_create(&params, &in.registry, NULL), TN_OK);
    for (size_t i = 0; i < 3; i++) {
        if (i == 2)
            assert_int_equal(tni_registry_discover(in.registry, NULL), TN_OK);
        assert_int_equal(tni_registry_add(in.registry, file.text, false, TN_MODULE_TRUSTED, NULL),
                         TN_OK);
    }
    look_again(&in);
    assert_int_equal(tn_module_list_count(in.list), 3);
    assert_int_equal(row_at(&in, 0)->status, TN_OK);
    assert_int_equal(row_at(&in, 1)->status, TN_ALREADY_EXISTS);
    assert_int_equal(row_at(&in, 2)->status, TN_ALREADY_EXISTS);
    unload(&in);
    scratch_remove(folder);
}

/* What was lent stays as it was. */
static void lists_outlive_later_additions(void **state)
{
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_candidate(folder, "a");
    tni_registry_params params = seek_in(folder);
    loaded in = load(&params);
    tn_module_list *old = in.list;
    const tn_module_report *row = row_of(&in, "a");
    const char *message = row->message;
    in.list = NULL;
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        put_candidate(folder, name);
        assert_int_equal(
            tni_registry_add(in.registry, module_in(folder, name).text, false, 0, NULL), TN_OK);
    }
    look_again(&in);
    assert_int_equal(tn_module_list_count(in.list), 101);
    assert_int_equal(tn_module_list_count(old), 1);
    assert_ptr_equal(tn_module_list_get(old, 0), row);
    assert_ptr_equal(row->message, message);
    assert_contains(message, "too few");
    assert_int_equal(tn_module_list_place_count(old), 1);
    tn_module_list_release(old);
    unload(&in);
    scratch_remove(folder);
}

static void discovering_again_changes_nothing(void **state)
{
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_stub(folder, "good", "good");
    put_candidate(folder, "x");
    trace_begin(folder);
    tni_registry_params params = seek_in(folder);
    loaded in = load(&params);
    uint64_t generation = tni_registry_generation(in.registry);
    assert_string_equal(trace_take(), "cepcep");
    put_candidate(folder, "late"); /* folders are read once */
    for (int i = 0; i < 3; i++)
        assert_int_equal(tni_registry_discover(in.registry, NULL), TN_OK);
    look_again(&in);
    assert_int_equal(tn_module_list_count(in.list), 2);
    assert_int_equal(tni_registry_generation(in.registry), generation);
    assert_string_equal(trace_take(), "");
    unload(&in);
    scratch_remove(folder);
}

static void only_trusted_modules_need_no_child(void **state)
{
    static const char *const shipped[] = {"tenon-shipped.so", NULL};
    static const expected refused = {
        "strange", TN_STAGE_FOUND, TN_NOT_FOUND,
        "not probed: there is no tenon-probe next to the library",
        "install Tenon completely, or add the file with TN_MODULE_TRUSTED"};
    static const expected not_ours = {"shipped", TN_STAGE_FOUND, TN_NOT_FOUND, "not probed",
                                      "install Tenon completely"};
    char folder[SCRATCH_PATH], other[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    scratch_make(other);
    put_stub(folder, "shipped", "good");
    put_stub(folder, "strange", "no_rows");
    put_stub(other, "shipped", "no_rows");
    tni_registry_params params = seek_in(folder);
    params.shipped = shipped;
    params.probe = NULL;
    loaded in = load(&params);
    check_ready(&in, "shipped");
    check_row(&in, &refused);
    unload(&in);

    params.module_folder = NULL; /* a name is trusted in the library's own folder alone */
    params.search_path = other;
    in = load(&params);
    check_row(&in, &not_ours);
    struct path strange = module_in(folder, "strange");
    assert_int_equal(tni_registry_add(in.registry, strange.text, false, TN_MODULE_TRUSTED, NULL),
                     TN_OK);
    look_again(&in);
    check_ready(&in, "strange");
    unload(&in);
    scratch_remove(other);
    scratch_remove(folder);
}

static void trusted_folder_vouches_for_all_in_it(void **state)
{
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_stub(folder, "a", "good");
    put_stub(folder, "b", "no_rows");
    trace_begin(folder);
    tni_registry_params params = seek_in(NULL);
    loaded in = load(&params);
    assert_int_equal(tni_registry_add(in.registry, folder, true, TN_MODULE_TRUSTED, NULL), TN_OK);
    look_again(&in);
    check_ready(&in, "a");
    check_ready(&in, "b");
    assert_string_equal(trace_take(), "cepce"); /* each once: here */
    unload(&in);
    scratch_remove(folder);
}

static void added_path_is_of_the_moment_it_was_added(void **state)
{
    char folder[SCRATCH_PATH], before[SCRATCH_PATH], *real = NULL;
    (void)state;
    scratch_make(folder);
    put_candidate(folder, "x");
    tni_registry_params params = seek_in(NULL);
    loaded in = {.blocks = tn_allocator_blocks()};
    assert_int_equal(tni_registry_create(&params, &in.registry, NULL), TN_OK);
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(tni_registry_add(in.registry, "tenon-x.so", false, 0, NULL), TN_OK);
    assert_int_equal(chdir(before), 0);
    look_again(&in);
    assert_int_equal(tn_module_list_count(in.list), 1);
    assert_int_equal(tni_path_real(module_in(folder, "x").text, &real, NULL), TN_OK);
    assert_string_equal(row_at(&in, 0)->path, real);
    tni_release(real);
    unload(&in);
    scratch_remove(folder);
}

static void what_cannot_be_added_is_refused(void **state)
{
    tn_error err;
    (void)state;
    tni_registry_params params = seek_in(NULL);
    loaded in = load(&params);
    assert_int_equal(tni_registry_add(in.registry, NULL, false, 0, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "the path is NULL");
    assert_int_equal(tni_registry_add(in.registry, "", true, 0, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "the path is empty");
    assert_string_equal(err.where, "tn_module_folder_add");
    assert_int_equal(tni_registry_add(in.registry, "/x", false, 6, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "unknown bits 0x6; known is TN_MODULE_TRUSTED (1)");
    look_again(&in);
    assert_int_equal(tn_module_list_count(in.list), 0);
    assert_int_equal(tn_module_list_place_count(in.list), 0);

    assert_int_equal(tni_registry_add(in.registry, "/no/such/tenon-x.so", false, 0, &err), TN_OK);
    assert_int_equal(tni_registry_add(in.registry, "no/such/tenon-y.so", false, 0, &err), TN_OK);
    look_again(&in);
    static const expected absent = {"x", TN_STAGE_FOUND, TN_NOT_FOUND,
                                    "/no/such/tenon-x.so: No such", "correct the path"};
    static const expected relative = {"y", TN_STAGE_FOUND, TN_NOT_FOUND,
                                      "/no/such/tenon-y.so: No such", "correct the path"};
    check_row(&in, &absent);
    check_row(&in, &relative);
    unload(&in);
}

static void no_list_is_an_empty_one(void **state)
{
    tn_error err;
    (void)state;
    assert_int_equal(tn_module_list_count(NULL), 0);
    assert_int_equal(tn_module_list_place_count(NULL), 0);
    assert_null(tn_module_list_get(NULL, 0));
    assert_null(tn_module_list_place_get(NULL, 0));
    tn_module_list_release(NULL);
    tni_registry_destroy(NULL);
    assert_int_equal(tn_module_list_create(NULL, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "out is NULL");
}

/* A module that asks about modules while it is being loaded itself. */
static struct {
    tni_registry *registry;
    struct path adds;
    size_t rows_seen;
    tn_status added, discovered, listed;
} asking;

static tn_status asking_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    tn_module_list *list = NULL;
    (void)host, (void)err;
    asking.added = tni_registry_add(asking.registry, asking.adds.text, false, 0, NULL);
    asking.discovered = tni_registry_discover(asking.registry, NULL);
    asking.listed = tni_registry_list(asking.registry, &list, NULL);
    asking.rows_seen = tn_module_list_count(list);
    tn_module_list_release(list);
    *out = &plain;
    return TN_OK;
}

static void module_may_ask_from_within(void **state)
{
    static const tni_builtin builtins[] = {
        {"plain", plain_entry}, {"asking", asking_entry}, {NULL, NULL}};
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    put_candidate(folder, "x");
    tni_registry_params params = seek_in(NULL);
    params.builtins = builtins;
    loaded in = {.blocks = tn_allocator_blocks()};
    assert_int_equal(tni_registry_create(&params, &in.registry, NULL), TN_OK);
    asking.registry = in.registry;
    asking.adds = module_in(folder, "x");
    look_again(&in);
    assert_int_equal(asking.added, TN_OK);
    assert_int_equal(asking.discovered, TN_OK);
    assert_int_equal(asking.listed, TN_OK);
    assert_int_equal(asking.rows_seen, 1); /* the one before it */
    assert_int_equal(tn_module_list_count(in.list), 3);
    assert_int_equal(row_at(&in, 1)->status, TN_ALREADY_EXISTS);
    assert_contains(row_at(&in, 1)->message, "from the library itself");
    assert_string_equal(row_at(&in, 2)->path, asking.adds.text);
    unload(&in);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_sorted_by_their_bytes),
        cmocka_unit_test(places_come_in_their_order),
        cmocka_unit_test(what_is_no_folder_is_a_place_too),
        cmocka_unit_test(current_folder_is_never_searched),
        cmocka_unit_test(raised_privileges_close_the_variable),
        cmocka_unit_test(program_adds_after_discovery_too),
        cmocka_unit_test(module_added_again_is_a_second_one),
        cmocka_unit_test(lists_outlive_later_additions),
        cmocka_unit_test(discovering_again_changes_nothing),
        cmocka_unit_test(only_trusted_modules_need_no_child),
        cmocka_unit_test(trusted_folder_vouches_for_all_in_it),
        cmocka_unit_test(added_path_is_of_the_moment_it_was_added),
        cmocka_unit_test(what_cannot_be_added_is_refused),
        cmocka_unit_test(no_list_is_an_empty_one),
        cmocka_unit_test(module_may_ask_from_within),
    };
    return run_suite("loader.search", tests);
}
