/* The current device and the module behind it: one that has none yet, one that says nothing of a
 * vendor's current device, one that has a word to say meanwhile. */
#include "world.h"

#include "device/stream/current.h"
#include "tenon/log.h"

static void platform_without_a_device_yet_says_so(void **state)
{
    world w;
    tn_error err = {0};
    int32_t previous = 77;
    (void)state;
    world_make(&w, WORLD_CPU | WORLD_STAND, NULL);
    const tn_platform *stand = world_platform(&w, "stand"); /* ready, and empty */
    assert_int_equal(tn_device_set(stand, 0, &err), TN_NOT_FOUND);
    assert_string_equal(err.message,
                        "platform stand has no device yet: describe one (tn_device_file_add)");
    assert_int_equal(tn_device_exchange(stand, 0, &previous, &err), TN_NOT_FOUND);
    assert_int_equal(tn_device_maybe_exchange(stand, 0, &previous, &err), TN_NOT_FOUND);
    assert_int_equal(previous, 77);
    assert_int_equal(tni_platform_no_device(stand, 5, "here", &err), TN_NOT_FOUND);
    assert_string_equal(err.where, "here");
    world_end(&w);
}

static void lose(const tn_device *device)
{
    const tn_error said = {.message = "it melted"};
    tni_call call;
    tn_error err = {0};
    assert_int_equal(tni_device_open(device, "test", &call, &err), TN_OK);
    assert_int_equal(tni_device_result_check(&call, "test", TN_DEVICE_LOST, &said, &err),
                     TN_DEVICE_LOST);
}

/* Also where the module has nothing to activate: `set` and `exchange` initialise, which fails. */
static void lost_device_is_refused_without_the_modules_help(void **state)
{
    world w;
    tn_error err = {0};
    int32_t previous = 77;
    tn_device_guard guard = {0};
    (void)state;
    world_make(&w, WORLD_CPU | WORLD_ACME, NULL);
    tn_device *one = world_device(&w, "acme:1");
    const tn_platform *acme = tn_device_platform(one);
    assert_null(one->offer->platform->row->device_activate);
    lose(one);
    assert_int_equal(tn_device_set(acme, 1, &err), TN_DEVICE_LOST);
    assert_contains(err.message, "acme:1 was lost at test: it melted");
    assert_int_equal(tn_device_exchange(acme, 1, &previous, &err), TN_DEVICE_LOST);
    assert_int_equal(tn_device_guard_enter(&guard, one, &err), TN_DEVICE_LOST);
    assert_int_equal(guard.entered, 0);
    assert_int_equal(previous, 77);
    assert_int_equal(tn_device_current(acme), 0);
    assert_int_equal(tn_device_maybe_exchange(acme, 1, &previous, &err), TN_OK); /* later */
    assert_int_equal(tn_device_current(acme), 1);
    assert_int_equal(tn_device_set(acme, 0, &err), TN_OK);
    world_end(&w);
}

/* A module that logs whenever a device is made current. */
static const tn_host *loud_host;

static tn_status loud_probe(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)out_self, (void)err;
    loud_host = host;
    *out = 2;
    return TN_OK;
}

static tn_status loud_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device, (void)bytes, (void)out;
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, "loud", "none");
}

static void loud_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device, (void)memory;
}

static tn_status loud_copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)job;
    return tn_fail(err, TN_UNSUPPORTED, 0, "loud", "none");
}

static tn_status loud_activate(void *self, int32_t device, tn_error *err)
{
    (void)self, (void)device, (void)err;
    loud_host->log(loud_host->self, TN_LOG_ERROR, "here I am");
    return TN_OK;
}

static tn_status loud_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    static const tn_platform_row row = {.struct_size = sizeof row,
                                        .name = "loud",
                                        .kind = TN_PLATFORM_OOT,
                                        .probe = loud_probe,
                                        .memory_alloc = loud_alloc,
                                        .memory_free = loud_free,
                                        .copy = loud_copy,
                                        .device_activate = loud_activate};
    static const tn_platform_row *const rows[] = {&row, NULL};
    static const tn_module module = {.struct_size = sizeof module,
                                     TN_MODULE_ABI,
                                     .name = "loud",
                                     .version = "1",
                                     .platforms = rows};
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

enum { OTHERS = 64 };
static char others[OTHERS]; /* stand for devices that the program gives a current stream */

static void make_others_current(void *user, int32_t level, const char *text)
{
    (void)user, (void)level, (void)text;
    for (int i = 0; i < OTHERS; i++)
        (void)tni_current_add(&others[i]);
}

/* A world whose "loud" came when all slots were taken. */
static const tn_platform *loud_beyond_slots(world *w, tn_registration **out)
{
    tn_error err = {0};
    for (int i = 0; i < 64; i++) {
        world_make(w, WORLD_ALL, NULL);
        if (tni_platforms_register(w->set, loud_entry, 0, out, &err))
            fail_msg("%s", err.message);
        const tn_platform *loud = world_platform(w, "loud");
        if (loud->slot < 0)
            return loud;
        tn_registration_release(*out);
        world_end(w);
    }
    fail_msg("the slots do not end");
    return NULL;
}

static void program_may_make_others_current_meanwhile(void **state)
{
    static const tn_log_sink sink = {
        .struct_size = sizeof sink, .write = make_others_current, .level = TN_LOG_ERROR};
    world w;
    tn_registration *registration = NULL;
    tn_error err = {0};
    int32_t previous = 77;
    (void)state;
    const tn_platform *loud = loud_beyond_slots(&w, &registration);
    assert_int_equal(tn_log_set(&sink, &err), TN_OK);
    assert_int_equal(tn_device_exchange(loud, 1, &previous, &err), TN_OK);
    assert_int_equal(tn_log_set(NULL, &err), TN_OK);
    assert_non_null(tni_current_find(&others[OTHERS - 1]));
    assert_int_equal(previous, 0);
    assert_int_equal(tn_device_current(loud), 1);
    for (int i = 0; i < OTHERS; i++)
        tni_current_drop(&others[i]);
    tn_registration_release(registration);
    world_end(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(platform_without_a_device_yet_says_so),
        cmocka_unit_test(lost_device_is_refused_without_the_modules_help),
        cmocka_unit_test(program_may_make_others_current_meanwhile),
    };
    return run_suite("unit.current_module", tests);
}
