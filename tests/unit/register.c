/* Platforms that the program contains: registered, replacing others, taken back. */
#include "tenon/module/kernel.h"
#include "tenon/module/op/fill.h"
#include "world.h"

#include "os/thread.h"

static tn_module_entry_fn *entry_of(unsigned module)
{
    return world_builtins(module)[0].entry;
}

static void registered_platform_comes_and_goes(void **state)
{
    world w;
    tn_registration *registration = NULL;
    tn_device *device = NULL, *gone = NULL;
    tn_device_memory memory = {.struct_size = sizeof memory};
    const tn_platform *current = NULL;
    tn_error err;
    (void)state;
    unsetenv("TENON_PLATFORM");
    world_make(&w, WORLD_CPU, NULL);
    assert_int_equal(tni_platforms_current(w.set, &current, &err), TN_OK);
    assert_string_equal(tn_platform_name(current), "cpu");
    uint64_t generation = tni_registry_generation(w.registry);
    assert_int_equal(tni_platforms_register(w.set, entry_of(WORLD_ACME), 0, &registration, &err),
                     TN_OK);
    assert_true(tni_registry_generation(w.registry) > generation);
    assert_int_equal(tni_devices_get(w.set, "acme:1", &device, &err), TN_OK);
    assert_int_equal(tni_platforms_select(w.set, "acme", &err), TN_OK);
    generation = tni_registry_generation(w.registry);
    assert_string_equal(tn_platform_simple_compile_backend(tn_device_platform(device), NULL),
                        "acme-c");
    tn_registration_release(registration);
    assert_string_equal(tn_platform_simple_compile_backend(tn_device_platform(device), NULL), "");
    assert_true(tni_registry_generation(w.registry) > generation);
    assert_int_equal(tni_devices_get(w.set, "acme:1", &gone, &err), TN_UNAVAILABLE);
    assert_int_equal(tn_platform_device_count(tn_device_platform(device)), 0);
    assert_string_equal(tn_device_name(device), "Acme Board 1"); /* the handle stays valid */
    assert_int_equal(tn_device_memory_get(device, &memory, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "acme:1 no longer exists: the program removed its platform");
    assert_int_equal(tn_device_health(device, &err), TN_UNAVAILABLE);
    assert_int_equal(tni_platforms_current(w.set, &current, &err), TN_OK);
    assert_string_equal(tn_platform_name(current), "cpu"); /* resolved anew */
    assert_int_equal(tni_platforms_register(w.set, entry_of(WORLD_ACME), 0, &registration, &err),
                     TN_OK); /* and it may come again */
    assert_int_equal(tni_devices_get(w.set, "acme:1", &gone, &err), TN_OK);
    assert_ptr_not_equal(gone, device);
    tn_registration_release(registration);
    tn_registration_release(NULL);
    world_end(&w);
}

static void second_of_a_name_is_refused_or_replaces(void **state)
{
    world w;
    tn_registration *first = NULL, *second = NULL;
    tn_device *original, *device = NULL;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_CPU | WORLD_ACME, NULL);
    original = world_device(&w, "acme:0");
    assert_int_equal(tni_platforms_register(w.set, entry_of(WORLD_ACME), 0, &first, &err),
                     TN_ALREADY_EXISTS);
    assert_contains(err.message, "a module \"acme\" is already loaded from the library itself");
    assert_null(first);
    assert_int_equal(
        tni_platforms_register(w.set, entry_of(WORLD_ACME), TN_MODULE_REPLACE, &first, &err),
        TN_OK);
    assert_int_equal(
        tni_platforms_register(w.set, entry_of(WORLD_ACME), TN_MODULE_REPLACE, &second, &err),
        TN_OK);
    device = world_device(&w, "acme:0");
    assert_ptr_not_equal(device, original);
    assert_int_equal(tn_platform_device_count(tn_device_platform(device)), 3);
    assert_int_equal(tn_device_health(original, &err), TN_OK); /* replaced, but still at work */
    tn_registration_release(first);                            /* not the one that serves */
    assert_ptr_equal(world_device(&w, "acme:0"), device);
    tn_registration_release(second);
    assert_ptr_equal(world_device(&w, "acme:0"), original);
    assert_int_equal(tn_platform_device_count(tn_device_platform(original)), 3);
    assert_int_equal(tn_device_health(device, &err), TN_UNAVAILABLE);
    world_end(&w);
}

static tn_status refuse(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)out;
    return tn_fail(err, TN_UNSUPPORTED, 0, "refuse", "not today");
}

static void what_stops_is_said_and_leaves_nothing(void **state)
{
    world w;
    tn_registration *registration = NULL;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    assert_int_equal(tni_platforms_register(w.set, refuse, 0, &registration, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "stopped at opened: its entry failed: not today; remedy: report");
    assert_int_equal(tni_platforms_register(w.set, entry_of(WORLD_BROKEN), 0, &registration, &err),
                     TN_DEVICE_LOST);
    assert_contains(err.message, "the board does not answer");
    assert_int_equal(tni_platforms_register(w.set, NULL, 0, &registration, &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(tni_platforms_register(w.set, refuse, 0, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tni_platforms_register(w.set, refuse, 8, &registration, &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "unknown bits 0x8");
    assert_null(registration);
    assert_null(tni_platform_row_of(world_platform(&w, "rocm")));
    world_end(&w);
}

/* A module of another name with the platform of `acme`. */
static tn_status rival(const tn_host *host, const tn_module **out, tn_error *err)
{
    static tn_module module;
    const tn_module *acme = NULL;
    tn_status status = entry_of(WORLD_ACME)(host, &acme, err);
    module = *acme;
    module.name = "rival";
    *out = &module;
    return status;
}

/* The platform `cpu` as one that nobody knows. */
static tn_status impostor(const tn_host *host, const tn_module **out, tn_error *err)
{
    static tn_platform_row row;
    static const tn_platform_row *const rows[] = {&row, NULL};
    static tn_module module;
    const tn_module *cpu = NULL;
    tn_status status = entry_of(WORLD_CPU)(host, &cpu, err);
    row = *cpu->platforms[0];
    row.kind = TN_PLATFORM_OOT;
    module = *cpu;
    module.name = "impostor";
    module.platforms = rows;
    *out = &module;
    return status;
}

static void another_kind_is_refused(void **state)
{
    static const uint64_t flags[] = {0, TN_MODULE_REPLACE};
    world w;
    tn_registration *registration = NULL;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    tn_device *cpu = world_device(&w, "cpu:0");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(tni_platforms_register(w.set, impostor, flags[i], &registration, &err),
                         TN_INVALID_ARGUMENT);
        assert_contains(err.message,
                        "module impostor stopped at opened: platform row 1 \"cpu\": kind: expected "
                        "1 (cpu) for this name, got 9 (out-of-tree); change the kind "
                        "or the name of the row");
        assert_null(registration);
        assert_ptr_equal(world_device(&w, "cpu:0"), cpu);
    }
    world_end(&w);
}

/* `rival` as of another kind, which the name does not stand for. */
static tn_status relative(const tn_host *host, const tn_module **out, tn_error *err)
{
    static tn_platform_row row;
    static const tn_platform_row *const rows[] = {&row, NULL};
    static tn_module module;
    const tn_module *acme = NULL;
    tn_status status = rival(host, &acme, err);
    row = *acme->platforms[0];
    row.kind = TN_PLATFORM_NPU;
    module = *acme;
    module.name = "relative";
    module.platforms = rows;
    *out = &module;
    return status;
}

static const tn_module_report *module_of(const tn_module_list *list, const char *name)
{
    const tn_module_report *report = NULL;
    size_t i = 0;
    while ((report = tn_module_list_get(list, i++)) && strcmp(report->name, name) != 0) {
    }
    assert_non_null(report);
    return report;
}

/* Modules that are not registered are not refused for a platform that another one has; the
 * report says who serves it. */
static void report_says_who_serves_instead(void **state)
{
    static const tni_builtin builtins[] = {
        {"acme", NULL}, {"rival", rival}, {"relative", relative}, {NULL, NULL}};
    static tni_builtin list_of[4];
    tni_registry *registry = NULL;
    tn_module_list *list = NULL;
    tn_error err;
    (void)state;
    memcpy(list_of, builtins, sizeof list_of);
    list_of[0].entry = entry_of(WORLD_ACME);
    const tni_registry_params params = {.builtins = list_of};
    assert_int_equal(tni_registry_create(&params, &registry, &err), TN_OK);
    assert_int_equal(tni_registry_list(registry, &list, &err), TN_OK);
    assert_null(strstr(module_of(list, "acme")->message, "platform acme"));
    assert_string_equal(module_of(list, "acme")->remedy, "");
    assert_contains(module_of(list, "rival")->message,
                    "offers 1 platform, 3 devices, 1 language, 1 communicator; platform acme is "
                    "provided by module acme, which came first");
    assert_contains(module_of(list, "rival")->remedy, "TN_MODULE_REPLACE");
    assert_contains(module_of(list, "relative")->message,
                    "; platform acme is ignored: its row has kind npu, but module acme, which "
                    "came first, has kind out-of-tree");
    tn_module_list_release(list);
    tni_registry_destroy(registry);
}

static tn_status run_nothing(const tn_run *run, tn_error *err)
{
    (void)run, (void)err;
    return TN_OK;
}

static const tn_dtype f32_alone[] = {TN_F32, 0};

#define KERNEL_OF(row_op, row, row_name, row_platform)           \
    static const tn_kernel_row row = {.struct_size = sizeof row, \
                                      .name = row_name,          \
                                      .platform = row_platform,  \
                                      .op = row_op,              \
                                      .version = 1,              \
                                      .dtypes = f32_alone,       \
                                      .flops_per_us = 1,         \
                                      .bytes_per_us = 1,         \
                                      .run = run_nothing}
#define KERNEL(row, row_name, row_platform) KERNEL_OF(TN_OP_FILL, row, row_name, row_platform)
KERNEL(acme_fill, "acme.fill", "acme");
KERNEL(stray_fill, "stray.fill", "nowhere");

/* Kernels for a platform that a known kind has, and is absent; and of a name that is new. */
static tn_status first_kernels(const tn_host *host, const tn_module **out, tn_error *err)
{
    KERNEL(cuda_fill, "cuda.fill", "cuda");
    static const tn_kernel_row *const rows[] = {&acme_fill, &cuda_fill, NULL};
    static const tn_module module = {.struct_size = sizeof module,
                                     TN_MODULE_ABI,
                                     .name = "first",
                                     .version = "1",
                                     .kernels = rows};
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static tn_status second_kernels(const tn_host *host, const tn_module **out, tn_error *err)
{
    static const tn_kernel_row *const rows[] = {&stray_fill, &acme_fill, NULL};
    static const tn_module module = {.struct_size = sizeof module,
                                     TN_MODULE_ABI,
                                     .name = "second",
                                     .version = "1",
                                     .kernels = rows};
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

/* Kernels that are never used, because of their name or their platform, are reported. */
static void report_says_which_kernels_are_not_used(void **state)
{
    static const tni_builtin builtins[] = {
        {"acme", NULL}, {"first", first_kernels}, {"second", second_kernels}, {NULL, NULL}};
    static tni_builtin list_of[4];
    tni_registry *registry = NULL;
    tn_module_list *list = NULL;
    tn_error err;
    (void)state;
    memcpy(list_of, builtins, sizeof list_of);
    list_of[0].entry = entry_of(WORLD_ACME);
    const tni_registry_params params = {.builtins = list_of};
    assert_int_equal(tni_registry_create(&params, &registry, &err), TN_OK);
    assert_int_equal(tni_registry_list(registry, &list, &err), TN_OK);
    assert_string_equal(module_of(list, "first")->message, "offers 2 kernels");
    assert_string_equal(module_of(list, "first")->remedy, "");
    assert_string_equal(
        module_of(list, "second")->message,
        "offers 2 kernels; kernel acme.fill is ignored: module first, which came "
        "first, has a kernel of this name; kernel stray.fill is not used: no module "
        "has its platform, \"nowhere\"");
    assert_string_equal(module_of(list, "second")->remedy, "give the kernel another name");
    tn_module_list_release(list);
    tni_registry_destroy(registry);
}

static tn_status later_kernels(const tn_host *host, const tn_module **out, tn_error *err)
{
    KERNEL_OF(TN_OP_KIND_MAX - 1, sort, "acme.sort", "acme");
    static const tn_kernel_row *const rows[] = {&acme_fill, &sort, NULL};
    static const tn_module module = {.struct_size = sizeof module,
                                     TN_MODULE_ABI,
                                     .name = "later",
                                     .version = "1",
                                     .kernels = rows};
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static tn_status latest_kernels(const tn_host *host, const tn_module **out, tn_error *err)
{
    KERNEL_OF(TN_OP_KIND_MAX - 1, find, "acme.find", "acme");
    KERNEL_OF(TN_OP_KIND_MAX - 2, hash, "acme.hash", "acme");
    static const tn_kernel_row *const rows[] = {&find, &hash, NULL};
    static const tn_module module = {.struct_size = sizeof module,
                                     TN_MODULE_ABI,
                                     .name = "latest",
                                     .version = "1",
                                     .kernels = rows};
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static char warned[512];

static void keep_warning(void *user, int32_t level, const char *text)
{
    (void)user;
    if (level == TN_LOG_WARNING)
        snprintf(warned + strlen(warned), sizeof warned - strlen(warned), "%s\n", text);
}

/* Kernels of operators that this version does not have are reported and logged. */
static void report_names_unknown_operators(void **state)
{
    static const tni_builtin builtins[] = {
        {"acme", NULL}, {"later", later_kernels}, {"latest", latest_kernels}, {NULL, NULL}};
    static const tn_log_sink sink = {
        .struct_size = sizeof sink, .write = keep_warning, .level = TN_LOG_WARNING};
    static tni_builtin list_of[4];
    tni_registry *registry = NULL;
    tn_module_list *list = NULL;
    tn_error err;
    (void)state;
    memcpy(list_of, builtins, sizeof list_of);
    list_of[0].entry = entry_of(WORLD_ACME);
    const tni_registry_params params = {.builtins = list_of};
    warned[0] = '\0';
    assert_int_equal(tn_log_set(&sink, &err), TN_OK);
    assert_int_equal(tni_registry_create(&params, &registry, &err), TN_OK);
    assert_int_equal(tni_registry_list(registry, &list, &err), TN_OK);
    assert_int_equal(tn_log_set(NULL, &err), TN_OK);
    assert_string_equal(module_of(list, "later")->message,
                        "offers 2 kernels; kernel acme.sort is ignored: this Tenon has no operator "
                        "with the number 63");
    assert_string_equal(module_of(list, "later")->remedy,
                        "correct the row's op, or use a Tenon that has this operator");
    assert_contains(module_of(list, "latest")->message,
                    "; kernel acme.find and 1 more are ignored: this Tenon does not have their "
                    "operators, such as number 63");
    assert_string_equal(
        warned,
        "module later: kernel acme.sort is ignored: this Tenon has no operator with the number 63\n"
        "module latest: kernel acme.find and 1 more are ignored: this Tenon does not have their "
        "operators, such as number 63\n");
    tn_module_list_release(list);
    tni_registry_destroy(registry);
}

/* A replacement shows in the report of who is replaced, for as long as it lasts. */
static void report_follows_replacements(void **state)
{
    world w;
    tn_registration *registration = NULL;
    tn_module_list *list = NULL;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_CPU | WORLD_ACME, NULL);
    assert_int_equal(tni_platforms_register(w.set, rival, TN_MODULE_REPLACE, &registration, &err),
                     TN_OK);
    assert_int_equal(tni_registry_list(w.registry, &list, &err), TN_OK);
    assert_contains(
        module_of(list, "acme")->message,
        "; platform acme is provided by module rival, which the program registered as a "
        "replacement");
    assert_string_equal(module_of(list, "acme")->remedy, "");
    assert_null(strstr(module_of(list, "rival")->message, "platform acme"));
    tn_module_list_release(list);
    tn_registration_release(registration);
    assert_int_equal(tni_registry_list(w.registry, &list, &err), TN_OK);
    assert_null(strstr(module_of(list, "acme")->message, "platform acme"));
    tn_module_list_release(list);
    world_end(&w);
}

/* Who comes first served when it came, whoever serves by the time that is looked at. */
static void who_is_overtaken_was_not_refused(void **state)
{
    world w;
    tn_registration *first = NULL, *second = NULL;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    assert_int_equal(tni_platforms_register(w.set, entry_of(WORLD_ACME), 0, &first, &err), TN_OK);
    const tn_platform *acme = world_platform(&w, "acme");
    const tni_offer *served = atomic_load(&acme->served);
    assert_int_equal(tni_platforms_register(w.set, rival, TN_MODULE_REPLACE, &second, &err), TN_OK);
    tni_mutex_lock(&w.set->lock);
    const tni_offer *then = tni_platforms_choose(w.set, acme, served->record);
    const tni_offer *now = tni_platforms_choose(w.set, acme, NULL);
    tni_mutex_unlock(&w.set->lock);
    assert_ptr_equal(then, served);
    assert_string_equal(now->record->name, "rival");
    tn_registration_release(first);
    tn_registration_release(second);
    world_end(&w);
}

static size_t count_rows(world *w)
{
    tn_module_list *list = NULL;
    tn_error err;
    assert_int_equal(tni_registry_list(w->registry, &list, &err), TN_OK);
    size_t count = tn_module_list_count(list);
    tn_module_list_release(list);
    return count;
}

static void report_says_what_became_of_it(void **state)
{
    world w;
    tn_registration *registration = NULL;
    tn_module_list *before = NULL, *list = NULL;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_CPU | WORLD_ACME, NULL);
    assert_int_equal(tni_platforms_register(w.set, rival, 0, &registration, &err),
                     TN_ALREADY_EXISTS);
    assert_int_equal(tni_registry_list(w.registry, &list, &err), TN_OK);
    assert_int_equal(tn_module_list_count(list), 3);
    const tn_module_report *row = tn_module_list_get(list, 2);
    assert_string_equal(row->name, "rival");
    assert_int_equal(row->stage, TN_STAGE_PROBED);
    assert_int_equal(row->status, TN_ALREADY_EXISTS);
    assert_contains(row->message, "platform acme is already provided by module acme");
    assert_contains(row->remedy, "TN_MODULE_REPLACE");
    tn_module_list_release(list);
    assert_int_equal(tni_platforms_register(w.set, entry_of(WORLD_BOLT), 0, &registration, &err),
                     TN_OK);
    assert_int_equal(tni_registry_list(w.registry, &before, &err), TN_OK);
    tn_registration_release(registration);
    row = tn_module_list_get(before, 3); /* a list stays as it was */
    assert_true(row->status == TN_OK && strcmp(row->name, "bolt") == 0);
    tn_module_list_release(before);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(
            tni_platforms_register(w.set, entry_of(WORLD_BOLT), 0, &registration, &err), TN_OK);
        assert_int_equal(count_rows(&w), 4);
        tn_registration_release(registration);
        assert_int_equal(count_rows(&w), 3);
    }
    world_end(&w);
}

/* What is looked through does not grow with what came and went; what stays of it is small. */
static void what_went_is_not_looked_through(void **state)
{
    world w;
    tn_registration *registration = NULL;
    tn_device *kept = NULL;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_CPU | WORLD_BOLT, NULL);
    assert_int_equal(tni_platforms_sync(w.set, &err), TN_OK);
    size_t devices = w.set->devices.count, offers = w.set->offers.count, ever = w.set->ever.count;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(
            tni_platforms_register(w.set, entry_of(WORLD_ACME), 0, &registration, &err), TN_OK);
        assert_int_equal(w.set->devices.count, devices + 3);
        assert_int_equal(w.set->offers.count, offers + 1);
        kept = world_device(&w, "acme:2");
        tn_registration_release(registration);
        assert_int_equal(w.set->devices.count, devices);
        assert_int_equal(w.set->offers.count, offers);
        assert_false(tni_device_is_visible(kept));
        assert_null(atomic_load(&kept->memory)); /* nothing was allocated from it */
    }
    assert_int_equal(w.set->ever.count, ever + 60);
    assert_ptr_equal(w.set->ever.items[kept->ordinal], kept);
    world_end(&w);
}

enum { THREADS = 8 };

typedef struct worker {
    world *w;
    tni_thread thread;
    tn_module_entry_fn *entry;
    bool wrong;
} worker;

static void come_and_go(void *user)
{
    worker *me = user;
    for (int i = 0; i < (test_reduced() ? 5 : 40); i++) {
        tn_registration *registration = NULL;
        tn_device *device = NULL;
        tn_error err = {0};
        tn_status status =
            tni_platforms_register(me->w->set, me->entry, TN_MODULE_REPLACE, &registration, &err);
        me->wrong = me->wrong || status || tni_devices_get(me->w->set, "cpu:0", &device, &err);
        (void)tni_devices_get(me->w->set, "acme:0", &device, &err);
        (void)tn_device_name(device);
        tn_registration_release(registration);
    }
}

static void many_register_at_once(void **state)
{
    worker workers[THREADS] = {{0}};
    world w;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].w = &w;
        workers[i].entry = entry_of(i % 2 ? WORLD_ACME : WORLD_BOLT);
        assert_int_equal(tni_thread_create(&workers[i].thread, come_and_go, &workers[i], &err),
                         TN_OK);
    }
    for (size_t i = 0; i < THREADS; i++)
        tni_thread_join(workers[i].thread);
    for (size_t i = 0; i < THREADS; i++)
        assert_false(workers[i].wrong);
    assert_int_equal(tn_platform_device_count(world_platform(&w, "acme")), 0);
    assert_int_equal(tn_platform_device_count(world_platform(&w, "bolt")), 0);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registered_platform_comes_and_goes),
        cmocka_unit_test(second_of_a_name_is_refused_or_replaces),
        cmocka_unit_test(what_stops_is_said_and_leaves_nothing),
        cmocka_unit_test(another_kind_is_refused),
        cmocka_unit_test(report_says_who_serves_instead),
        cmocka_unit_test(report_says_which_kernels_are_not_used),
        cmocka_unit_test(report_names_unknown_operators),
        cmocka_unit_test(report_follows_replacements),
        cmocka_unit_test(who_is_overtaken_was_not_refused),
        cmocka_unit_test(report_says_what_became_of_it),
        cmocka_unit_test(what_went_is_not_looked_through),
        cmocka_unit_test(many_register_at_once),
    };
    return run_suite("unit.register", tests);
}
