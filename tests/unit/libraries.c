/* Libraries as programs see them: the list, names, the truth about each on this machine, rules. */
#include "fault/fault.h"

#include "base/words.h"
#include "device/platform/known.h"
#include "settings/library.h"
#include "tenon/tenon.h"

#include <dlfcn.h>
#include <unistd.h>

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
    tn_error err;
    if (tn_library_state_get(library_of(name), NULL, &state, &err))
        fail_msg("%s: %s", name, err.message);
    return state;
}

/* Whether a process like this one can open one of "a|b": asked of the loader itself, in a child. */
static bool loader_opens(const char *files)
{
    char copy[256];
    int code = -1;
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        snprintf(copy, sizeof copy, "%s", files);
        for (char *name = strtok(copy, "|"); name; name = strtok(NULL, "|")) {
            if (dlopen(name, RTLD_NOW | RTLD_LOCAL))
                _exit(0);
        }
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &code, 0), pid);
    return code == 0;
}

/* One that no module here uses: not built, not available, and the reason says so. */
static void check_foreign(const tn_library_state *state)
{
    tn_error err;
    assert_string_equal(state->module, "");
    assert_int_equal(state->built, 0);
    assert_int_equal(state->available, TN_AVAILABLE_NO);
    assert_int_equal(state->version, -1);
    assert_string_equal(state->version_text, "");
    assert_contains(state->reason, "no loaded module uses it");
    assert_contains(
        state->remedy,
        "install a module that offers it into a module folder (`tenon modules` lists them)");
    assert_int_equal(tn_library_try(library_of(state->name), &err), TN_UNAVAILABLE);
    assert_contains(err.message, "is not available: ");
    assert_contains(err.message, state->reason);
}

static void cuda_tells_whether_it_is_built(void **state)
{
    tn_library_state cuda = state_of("cuda");
    (void)state;
    assert_int_equal(cuda.built, 0);
    assert_string_equal(cuda.platform, "cuda");
    check_foreign(&cuda);
    assert_true((cuda.path[0] != '\0') >= loader_opens("libcuda.so.1"));
}

static void cudnn_and_cusparselt_tell_version_and_availability(void **state)
{
    static const char *const names[] = {"cudnn", "cusparselt"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tn_library_state found = state_of(names[i]);
        assert_int_equal(found.version, -1);
        assert_int_equal(found.available, TN_AVAILABLE_NO);
        check_foreign(&found);
        if (found.path[0])
            assert_contains(found.reason, found.path);
        else
            assert_contains(found.remedy, "install NVIDIA's cu");
    }
}

static void mps_tells_whether_it_is_built_and_available(void **state)
{
    tn_library_state mps = state_of("mps");
    (void)state;
    assert_int_equal(mps.built, 0);
    assert_int_equal(mps.available, TN_AVAILABLE_NO);
    assert_string_equal(mps.platform, "mps");
    assert_contains(mps.reason, "it is part of macOS, but this is linux-");
    assert_string_equal(mps.remedy, ""); /* nothing helps */
}

/* What the module cpu has a row for: not opened to be told of, and then as the loader has it. */
static void check_offered(const char *name, const char *setting, const char *files, bool opens)
{
    tn_library_state before = state_of(name);
    tn_error err, again;
    assert_string_equal(before.module, "cpu");
    assert_string_equal(before.verbose, setting);
    assert_int_equal(before.built, 1);
    assert_int_equal(before.available, TN_AVAILABLE_UNTRIED);
    assert_contains(before.reason, "not tried yet");
    assert_int_equal(before.path[0] == '\0', before.remedy[0] != '\0');
    tn_status status = tn_library_try(library_of(name), &err);
    tn_library_state after = state_of(name);
    assert_int_equal(status == TN_OK, opens);
    assert_int_equal(after.available, opens ? TN_AVAILABLE_YES : TN_AVAILABLE_NO);
    assert_int_equal(after.version >= 0, opens);
    assert_int_equal(after.path[0] != '\0', opens);
    assert_int_equal(tn_library_try(library_of(name), &again), status);
    if (opens)
        return;
    char first[64];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(files, "|"), files);
    assert_contains(after.reason, first);
    assert_null(strstr(after.reason, after.remedy));
    assert_contains(err.message, after.remedy);
    assert_string_equal(again.message, err.message);
}

static void mkl_tells_whether_it_is_available(void **state)
{
    const char *files = "libmkl_rt.so.3|libmkl_rt.so.2|libmkl_rt.so.1|libmkl_rt.so";
    (void)state;
    assert_int_equal(state_of("mkl").available, TN_AVAILABLE_UNTRIED);
    check_offered("mkl", "mkl.verbose", files, loader_opens(files));
}

static bool is_for_x86(const char *remedy)
{
    static const char *const words[] = {"install Intel's", "install AMD's", "install AOTriton"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(remedy, words[i]))
            return true;
    }
    return false;
}

/* No remedy says to install what its vendor does not publish for this architecture. */
static void remedies_exist_for_this_architecture(void **state)
{
    const bool is_x86 = strstr(tn_build_get()->target, "x86_64") != NULL;
    int known = 0, described = 0, platforms = 0;
    tn_library_state found = {.struct_size = sizeof found};
    (void)state;
    for (const tni_library_known *row = tni_libraries_known; row->name; row++)
        known += row->remedy && is_for_x86(row->remedy);
    for (size_t i = 0; tn_library_at(i); i++) {
        assert_int_equal(tn_library_state_get(tn_library_at(i), NULL, &found, NULL), TN_OK);
        described += is_for_x86(found.remedy);
    }
    for (int32_t kind = 0; kind < TN_PLATFORM_KIND_COUNT; kind++)
        platforms += is_for_x86(tni_known_get(kind)->driver_remedy);
    assert_int_equal(known > 0, is_x86);
    assert_int_equal(platforms > 0, is_x86);
    assert_true(is_x86 || described == 0);
}

static void mkldnn_tells_whether_it_is_available(void **state)
{
    const char *files = "libdnnl.so.3|libdnnl.so.3.6|libdnnl.so.2";
    (void)state;
    assert_int_equal(state_of("mkldnn").available, TN_AVAILABLE_UNTRIED);
    assert_ptr_equal(library_of("onednn"), library_of("mkldnn"));
    check_offered("mkldnn", "mkldnn.verbose", files, loader_opens(files));
}

static void openblas_blis_and_hwloc_are_as_the_loader_has_them(void **state)
{
    const char *files = "libopenblas.so.0|libopenblasp.so.0";
    const char *blis = "libblis.so.4|libblis.so.3";
    (void)state;
    check_offered("openblas", "", files, loader_opens(files));
    check_offered("blis", "", blis, loader_opens(blis));
    check_offered("hwloc", "", "libhwloc.so.15", loader_opens("libhwloc.so.15"));
    tn_library_state hwloc = state_of("hwloc");
    if (hwloc.available == TN_AVAILABLE_YES) {
        assert_true(hwloc.version >= 0x20000);
        assert_contains(hwloc.version_text, "interface 2.");
        assert_contains(hwloc.path, "libhwloc.so.15");
        assert_string_equal(hwloc.reason, "opened for module cpu");
        assert_string_equal(hwloc.remedy, "");
    }
}

static void nnpack_tells_whether_it_is_available(void **state)
{
    tn_library_state nnpack = state_of("nnpack");
    (void)state;
    assert_int_equal(nnpack.available, TN_AVAILABLE_NO);
    assert_true((nnpack.path[0] != '\0') >= loader_opens("libnnpack.so"));
    check_foreign(&nnpack);
}

static void xnnpack_tells_whether_it_is_enabled(void **state)
{
    tn_library_state xnnpack = state_of("xnnpack");
    (void)state;
    assert_int_equal(xnnpack.built, 0); /* upstream's `enabled` */
    assert_int_equal(xnnpack.enabled, 1);
    check_foreign(&xnnpack);
}

static void kleidiai_tells_whether_it_is_available(void **state)
{
    tn_library_state kleidiai = state_of("kleidiai");
    (void)state;
    assert_int_equal(kleidiai.available, TN_AVAILABLE_NO);
#if defined(__aarch64__)
    check_foreign(&kleidiai);
#else
    assert_contains(kleidiai.reason, "it is for Arm processors, but this is linux-");
#endif
}

static void a_file_that_no_module_uses_is_where_the_loader_has_it(void **state)
{
    tn_library_state opencl = state_of("opencl");
    char found[4096], told[4096], said[4200];
    (void)state;
    void *handle = dlopen("libOpenCL.so.1", RTLD_LAZY);
    check_foreign(&opencl);
    if (!handle)
        skip_because("libOpenCL.so.1 is not here");
    assert_int_equal(dlinfo(handle, RTLD_DI_ORIGIN, found), 0);
    snprintf(said, sizeof said, "libOpenCL.so.1 is at %s, but no loaded module uses it",
             opencl.path);
    assert_string_equal(opencl.reason, said);
    snprintf(said, sizeof said, "%s/libOpenCL.so.1", found);
    assert_non_null(realpath(said, found));
    assert_non_null(realpath(opencl.path, told));
    assert_string_equal(told, found);
}

static void parts_of_tenon_are_there(void **state)
{
    tn_library_state part = state_of("cpu");
    (void)state;
    assert_int_equal(part.built, 1);
    assert_int_equal(part.available, TN_AVAILABLE_YES);
    assert_int_equal(part.enabled, 1);
    assert_string_equal(part.version_text, tn_version());
    assert_int_equal(part.version, TN_VERSION_MAJOR * 10000 + TN_VERSION_MINOR * 100);
    assert_string_equal(part.reason, "part of Tenon");
    assert_int_equal(tn_library_try(library_of("cpu"), NULL), TN_OK);
}

/* opt_einsum is the search of tn_einsum, which every build has. */
static void part_of_an_operator_is_there(void **state)
{
    tn_library_state part = state_of("opt_einsum");
    (void)state;
    assert_int_equal(part.built, 1);
    assert_int_equal(part.available, TN_AVAILABLE_YES);
    assert_string_equal(part.reason, "part of Tenon");
}

static void list_is_in_the_order_of_names_and_finds_each(void **state)
{
    const tn_library *library;
    const char *before = "";
    size_t count = 0, known = 0;
    (void)state;
    assert_int_equal(tn_library_count(&count, NULL), TN_OK);
    for (size_t i = 0; (library = tn_library_at(i)); i++) {
        tn_library_state found = {.struct_size = sizeof found};
        assert_int_equal(tn_library_state_get(library, NULL, &found, NULL), TN_OK);
        assert_true(strcmp(before, found.name) < 0);
        assert_ptr_equal(library_of(found.name), library);
        assert_true(found.available == TN_AVAILABLE_NO ? found.reason[0] != '\0' : true);
        before = found.name;
        count--;
    }
    assert_int_equal(count, 0);
    while (tni_libraries_known[known].name)
        known++;
    assert_null(tn_library_at(SIZE_MAX));
    assert_true(known > 30);
    assert_non_null(tn_library_at(known - 1)); /* the module cpu adds none of its own */
    assert_null(tn_library_at(known));
}

/* The table itself: legal names, each once, and a remedy for whatever can be absent. */
static void what_is_known_is_sound(void **state)
{
    (void)state;
    for (const tni_library_known *known = tni_libraries_known; known->name; known++) {
        assert_true(tni_name_is_legal(known->name, "", TNI_NAME_MAX));
        assert_non_null(known->platform);
        assert_true(known->what[0] != '\0');
        assert_true(!known->files || (known->remedy && known->remedy[0]));
        for (const tni_library_known *other = known + 1; other->name; other++)
            assert_string_not_equal(known->name, other->name);
    }
}

static void unknown_names_are_told_the_nearest(void **state)
{
    static const char *const cases[][2] = {
        {"cuddnn", "cudnn"}, {"ondnn", "onednn"}, {"openblass", "openblas"}, {"MKL", "mkl"}};
    const tn_library *library = NULL;
    char words[128];
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tn_library_get(cases[i][0], &library, &err), TN_NOT_FOUND);
        snprintf(words, sizeof words, "unknown library \"%s\": ", cases[i][0]);
        assert_contains(err.message, words);
        snprintf(words, sizeof words, "; did you mean %s?", cases[i][1]);
        assert_contains(err.message, words);
    }
    assert_int_equal(tn_library_get("something else", &library, &err), TN_NOT_FOUND);
    assert_null(strstr(err.message, "did you mean"));
    assert_null(library);
}

static void wrong_arguments_are_refused(void **state)
{
    tn_library_state found = {.struct_size = 8};
    const tn_library *library = NULL;
    tn_error err;
    (void)state;
    assert_int_equal(tn_library_count(NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_library_get(NULL, &library, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "the name is NULL");
    assert_int_equal(tn_library_get("mkl", NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_library_try(NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_library_state_get(NULL, NULL, &found, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_library_state_get(library_of("mkl"), NULL, NULL, &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(tn_library_state_get(library_of("mkl"), NULL, &found, &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "struct_size: expected at least 16, got 8");
    assert_null(found.name);
    assert_null(library);
}

/* A program built with an older, shorter struct gets what it knows of; a newer one sees how far this
 * library filled it. */
static void states_of_other_sizes_are_filled_as_far_as_both_know(void **state)
{
    struct {
        tn_library_state state;
        char beyond[32];
    } newer = {.state.struct_size = sizeof newer};
    tn_library_state older = {.struct_size = offsetof(tn_library_state, version), .version = 77};
    (void)state;
    memset(newer.beyond, 'x', sizeof newer.beyond);
    assert_int_equal(tn_library_state_get(library_of("cpu"), NULL, &older, NULL), TN_OK);
    assert_int_equal(older.struct_size, offsetof(tn_library_state, version));
    assert_string_equal(older.name, "cpu");
    assert_int_equal(older.version, 77);
    assert_int_equal(tn_library_state_get(library_of("cpu"), NULL, &newer.state, NULL), TN_OK);
    assert_int_equal(newer.state.struct_size, sizeof newer.state);
    assert_int_equal(newer.beyond[0], 'x');
    assert_string_equal(tn_available_name(TN_AVAILABLE_NO), "no");
    assert_string_equal(tn_available_name(TN_AVAILABLE_YES), "yes");
    assert_string_equal(tn_available_name(TN_AVAILABLE_UNTRIED), "untried");
    assert_string_equal(tn_available_name(3), "unknown");
    assert_string_equal(tn_available_name(-1), "unknown");
}

static int32_t enabled_in(const tn_context *context, const char *name)
{
    tn_library_state found = {.struct_size = sizeof found};
    assert_int_equal(tn_library_state_get(library_of(name), context, &found, NULL), TN_OK);
    return found.enabled;
}

static void rules_of_the_context_say_what_is_enabled(void **state)
{
    tn_context *context = NULL;
    tn_scope scope = {0};
    tn_error err;
    (void)state;
    if (tn_context_derive(NULL,
                          TN_CHANGES(tn_with_rules(TN_FORBID, "library:mkl"),
                                     tn_with_rules(TN_FORBID, "library:onednn"),
                                     tn_with_rules(TN_FORBID, "matmul/library:openblas"),
                                     tn_with_rules(TN_AVOID, "library:cudnn"),
                                     tn_with_rules(TN_FORBID, "platform:rocm")),
                          &context, &err))
        fail_msg("%s", err.message);
    assert_int_equal(enabled_in(context, "mkl"), 0);
    assert_int_equal(enabled_in(context, "mkldnn"), 0);   /* by its other name          */
    assert_int_equal(enabled_in(context, "openblas"), 1); /* it is forbidden matmul alone */
    assert_int_equal(enabled_in(context, "cudnn"), 1);
    assert_int_equal(enabled_in(context, "miopen"), 0);
    tn_context *nearer = NULL;
    const tn_change permit = tn_with_rule(TN_PERMIT, "library:mkldnn");
    assert_int_equal(tn_context_derive(context, &permit, 1, &nearer, &err), TN_OK);
    assert_int_equal(enabled_in(nearer, "mkldnn"), 1); /* what takes back has either name, too */
    tn_context_release(nearer);
    assert_int_equal(enabled_in(NULL, "mkl"), 1); /* the thread's own context has no such rule */
    assert_int_equal(tn_scope_enter_context(&scope, context, &err), TN_OK);
    assert_int_equal(enabled_in(NULL, "mkl"), 0);
    tn_scope_leave(&scope);
    assert_int_equal(enabled_in(NULL, "mkl"), 1);
    tn_context_release(context);
}

/* A switch that turns a library off is a rule about it. */
static void switches_of_libraries_are_such_rules(void **state)
{
    tn_scope scope = {0};
    tn_error err;
    (void)state;
    assert_int_equal(tn_scope_enter(&scope,
                                    TN_CHANGES(tn_with_cudnn_enabled(0), tn_with_mkldnn_enabled(0),
                                               tn_with_nnpack_enabled(0)),
                                    &err),
                     TN_OK);
    assert_int_equal(enabled_in(NULL, "cudnn"), 0);
    assert_int_equal(enabled_in(NULL, "mkldnn"), 0);
    assert_int_equal(enabled_in(NULL, "nnpack"), 0);
    assert_int_equal(enabled_in(NULL, "mkl"), 1);
    tn_scope_leave(&scope);
    assert_int_equal(enabled_in(NULL, "nnpack"), 1);
}

/* In a child that has used nothing yet: the n-th allocation of making the list fails, and the next call
 * makes it whole. True when it came to that. */
static bool list_survives(long n)
{
    const tn_library *library = NULL;
    size_t count = 0;
    tn_error err = {0};
    fault_arm(&fault_memory, n, false, 0);
    tn_status status = tn_library_count(&count, &err);
    bool fired = fault_end(&fault_memory);
    if (status && (!fired || status != TN_OUT_OF_MEMORY || !err.message[0]))
        _exit(2);
    if (tn_library_count(&count, &err) || count < 30 || !tn_library_at(count - 1) ||
        tn_library_at(count) || tn_library_get("mkldnn", &library, &err))
        _exit(3);
    tn_library_state found = {.struct_size = sizeof found};
    if (tn_library_state_get(library, NULL, &found, &err) || strcmp(found.module, "cpu") != 0)
        _exit(4);
    return fired;
}

/* The same for opening one: it stays untried, and opens when there is memory. */
static bool opening_survives(long n)
{
    const tn_library *library = NULL;
    tn_library_state found = {.struct_size = sizeof found};
    tn_error err = {0};
    if (tn_library_get("hwloc", &library, &err))
        _exit(5);
    fault_arm(&fault_memory, n, false, 0);
    tn_status status = tn_library_try(library, &err);
    bool fired = fault_end(&fault_memory);
    if (tn_library_state_get(library, NULL, &found, &err))
        _exit(6);
    if (status == TN_OUT_OF_MEMORY && found.available != TN_AVAILABLE_UNTRIED)
        _exit(7);
    status = tn_library_try(library, &err);
    (void)tn_library_state_get(library, NULL, &found, &err);
    if ((status == TN_OK) != (found.available == TN_AVAILABLE_YES))
        _exit(8);
    return fired;
}

static void every_allocation_may_fail(void **state)
{
    static bool (*const survives[])(long) = {list_survives, opening_survives};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        long n = 0;
        for (bool fired = true; fired;) {
            int code = -1;
            (void)fflush(NULL);
            pid_t pid = fork();
            if (pid == 0)
                _exit(survives[i](n + 1) ? 0 : 100);
            assert_int_equal(waitpid(pid, &code, 0), pid);
            fired = WIFEXITED(code) && WEXITSTATUS(code) == 0;
            if (!fired && (!WIFEXITED(code) || WEXITSTATUS(code) != 100))
                fail_msg("case %zu, allocation %ld: %d", i, n + 1, code);
            n += fired;
        }
        assert_in_range(n, 2, 2000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail), /* before anything else is used */
        cmocka_unit_test(cuda_tells_whether_it_is_built),
        cmocka_unit_test(cudnn_and_cusparselt_tell_version_and_availability),
        cmocka_unit_test(mps_tells_whether_it_is_built_and_available),
        cmocka_unit_test(mkl_tells_whether_it_is_available),
        cmocka_unit_test(remedies_exist_for_this_architecture),
        cmocka_unit_test(mkldnn_tells_whether_it_is_available),
        cmocka_unit_test(openblas_blis_and_hwloc_are_as_the_loader_has_them),
        cmocka_unit_test(nnpack_tells_whether_it_is_available),
        cmocka_unit_test(xnnpack_tells_whether_it_is_enabled),
        cmocka_unit_test(kleidiai_tells_whether_it_is_available),
        cmocka_unit_test(a_file_that_no_module_uses_is_where_the_loader_has_it),
        cmocka_unit_test(parts_of_tenon_are_there),
        cmocka_unit_test(part_of_an_operator_is_there),
        cmocka_unit_test(list_is_in_the_order_of_names_and_finds_each),
        cmocka_unit_test(what_is_known_is_sound),
        cmocka_unit_test(unknown_names_are_told_the_nearest),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(states_of_other_sizes_are_filled_as_far_as_both_know),
        cmocka_unit_test(rules_of_the_context_say_what_is_enabled),
        cmocka_unit_test(switches_of_libraries_are_such_rules),
    };
    fault_memory_install();
    return run_suite("unit.libraries", tests);
}
