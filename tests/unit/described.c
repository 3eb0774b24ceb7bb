/* The module `described` through its row, with a host of the test's own: memory, copies, links, and
 * every way in which its devices fail on request. */
#include "test.h"

#include "os/clock.h"
#include "os/thread.h"
#include "tenon/module/platform.h"

#include <stdatomic.h>
#include <stdbool.h>

/* What the host has given, so that it can take all of it back: a module's own lives as long as the
 * process. */
enum { MOST_GIVEN = 4096 };

typedef struct fake {
    tni_mutex lock;
    void *given[MOST_GIVEN];
    int64_t left; /* allocations until there are no more; negative: no end */
    int count;
    char log[256];
} fake;

static void *fake_alloc(void *self, size_t size, size_t align)
{
    fake *f = self;
    void *memory = NULL, *raw = NULL;
    tni_mutex_lock(&f->lock);
    int slot = 0;
    while (slot < MOST_GIVEN && f->given[slot])
        slot++;
    if (f->left != 0 && slot < MOST_GIVEN)
        raw = malloc(size + align + sizeof(void *));
    f->left -= f->left > 0;
    if (raw) {
        uintptr_t at = ((uintptr_t)raw + sizeof(void *) + align - 1) & ~(uintptr_t)(align - 1);
        memory = (char *)raw + (at - (uintptr_t)raw);
        memcpy((char *)memory - sizeof raw, &raw, sizeof raw);
        f->given[slot] = memory;
        f->count++;
    }
    tni_mutex_unlock(&f->lock);
    return memory;
}

static void fake_release(void *self, void *memory)
{
    fake *f = self;
    void *raw;
    if (!memory)
        return;
    tni_mutex_lock(&f->lock);
    int slot = 0;
    while (slot < MOST_GIVEN && f->given[slot] != memory)
        slot++;
    if (slot == MOST_GIVEN)
        abort(); /* not the host's */
    f->given[slot] = NULL;
    f->count--;
    memcpy(&raw, (char *)memory - sizeof raw, sizeof raw);
    tni_mutex_unlock(&f->lock);
    free(raw);
}

static void fake_log(void *self, int32_t level, const char *text)
{
    fake *f = self;
    if (level == TN_LOG_ERROR)
        tn_text_fit(f->log, sizeof f->log, text);
}

/* One copy of Tenon with the module in it. */
typedef struct rig {
    fake fake;
    tn_host host;
    const tn_platform_row *row;
    void *self;
} rig;

static rig *rig_create(void)
{
    rig *r = calloc(1, sizeof *r);
    const tn_module *module = NULL;
    int32_t devices = -1;
    assert_non_null(r);
    tni_mutex_init(&r->fake.lock);
    r->fake.left = -1;
    r->host = (tn_host){.struct_size = sizeof r->host,
                        .abi_major = TN_MODULE_ABI_MAJOR,
                        .abi_minor = TN_MODULE_ABI_MINOR,
                        .self = &r->fake,
                        .alloc = fake_alloc,
                        .release = fake_release,
                        .log = fake_log};
    assert_int_equal(tn_module_entry(&r->host, &module, NULL), TN_OK);
    r->row = module->platforms[0];
    assert_int_equal(r->row->probe(&r->host, &r->self, &devices, NULL), TN_OK);
    assert_int_equal(devices, 0);
    return r;
}

static void rig_destroy(rig *r)
{
    for (int i = 0; i < MOST_GIVEN; i++)
        fake_release(&r->fake, r->fake.given[i]);
    tni_mutex_destroy(&r->fake.lock);
    free(r);
}

enum { MEMORY = 4096 };

/* Describes a device of MEMORY bytes with at most one key of the platform's own. */
static tn_status describe(rig *r, const char *key, const char *value, int32_t *out, tn_error *err)
{
    tn_device_properties properties = {.struct_size = sizeof properties,
                                       .known = TN_DEVICE_KNOWS(memory_bytes),
                                       .memory_bytes = MEMORY};
    tn_description_entry entry = {
        .struct_size = sizeof entry, .key = key, .value = value, .origin = "f:2"};
    tn_description description = {.struct_size = sizeof description,
                                  .name = "",
                                  .origin = "f:1",
                                  .properties = &properties,
                                  .entries = &entry,
                                  .entry_count = key ? 1 : 0};
    return r->row->describe(r->self, &description, out, err);
}

static int32_t device_with(rig *r, const char *key, const char *value)
{
    int32_t device = -1;
    tn_error err;
    if (describe(r, key, value, &device, &err))
        fail_msg("%s", err.message);
    return device;
}

static void *take(rig *r, int32_t device, uint64_t bytes)
{
    void *memory = NULL;
    tn_error err;
    if (r->row->memory_alloc(r->self, device, bytes, &memory, &err))
        fail_msg("%s", err.message);
    assert_non_null(memory);
    return memory;
}

static tn_status copy(rig *r, void *to, int32_t to_device, const void *from, int32_t from_device,
                      uint64_t bytes, tn_error *err)
{
    tn_copy_job job = {.struct_size = sizeof job,
                       .to = to,
                       .from = from,
                       .bytes = bytes,
                       .to_device = to_device,
                       .from_device = from_device,
                       .rows = 1,
                       .to_pitch = bytes,
                       .from_pitch = bytes};
    return r->row->copy(r->self, &job, err);
}

static tn_device_memory memory_of(rig *r, int32_t device)
{
    tn_device_memory memory = {.struct_size = sizeof memory};
    tn_error err;
    if (r->row->device_memory(r->self, device, &memory, &err))
        fail_msg("%s", err.message);
    return memory;
}

static void the_row_is_as_it_says(void **state)
{
    rig *r = rig_create();
    (void)state;
    assert_string_equal(r->row->name, "described");
    assert_int_equal(r->row->kind, TN_PLATFORM_OOT);
    assert_int_equal(r->row->flags, TN_PLATFORM_STAND_IN | TN_PLATFORM_FORK_SAFE);
    assert_contains(r->row->async_output_reason, "before they return");
    rig_destroy(r);
}

static void a_device_tells_what_was_described(void **state)
{
    rig *r = rig_create();
    tn_device_properties said = {.struct_size = sizeof said,
                                 .known = TN_DEVICE_KNOWS(warp_size),
                                 .name = "toy",
                                 .dtypes = {TN_F32},
                                 .warp_size = 7};
    tn_description description = {
        .struct_size = sizeof description, .name = "a", .origin = "f:1", .properties = &said};
    tn_device_properties told = {.struct_size = sizeof told};
    tn_error err;
    int32_t first = -1, second = -1;
    (void)state;
    assert_int_equal(r->row->describe(r->self, &description, &first, &err), TN_OK);
    assert_int_equal(r->row->describe(r->self, &description, &second, &err), TN_OK);
    assert_int_equal(first, 0);
    assert_int_equal(second, 1);
    assert_int_equal(r->row->device_properties(r->self, 1, &told, &err), TN_OK);
    assert_memory_equal(&told, &said, sizeof told);
    struct {
        tn_device_properties shorter;
        char after;
    } older = {.shorter = {.struct_size = offsetof(tn_device_properties, warp_size)}, .after = 'x'};
    assert_int_equal(r->row->device_properties(r->self, 1, &older.shorter, &err), TN_OK);
    assert_string_equal(older.shorter.name, "toy");
    assert_int_equal(older.shorter.warp_size, 0);
    assert_int_equal(older.shorter.struct_size, offsetof(tn_device_properties, warp_size));
    assert_int_equal(r->row->device_properties(r->self, 2, &told, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "no device \"described:2\": 2 devices are described");
    assert_int_equal(r->row->device_properties(r->self, -1, &told, &err), TN_INVALID_ARGUMENT);
    rig_destroy(r);
}

static void memory_is_counted_and_bounded(void **state)
{
    rig *r = rig_create();
    int32_t device = device_with(r, NULL, NULL);
    void *a = take(r, device, 1000), *b = take(r, device, MEMORY - 1000), *none = r;
    tn_error err;
    (void)state;
    assert_int_equal((uintptr_t)a % 256, 0);
    tn_device_memory now = memory_of(r, device);
    assert_true(now.total.known && now.available.known && now.in_use.known);
    assert_int_equal(now.total.value, MEMORY);
    assert_int_equal(now.in_use.value, MEMORY);
    assert_int_equal(now.available.value, 0);
    assert_string_equal(now.total.origin, "described");
    assert_int_equal(r->row->memory_alloc(r->self, device, 1, &none, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "described:0 cannot allocate 1 bytes: 0 of 4096 are free");
    assert_ptr_equal(none, r);
    r->row->memory_free(r->self, device, a);
    assert_int_equal(r->row->memory_alloc(r->self, device, 1001, &none, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "cannot allocate 1001 bytes: 1000 of 4096 are free");
    assert_int_equal(r->row->memory_alloc(r->self, device, UINT64_MAX, &none, &err),
                     TN_OUT_OF_MEMORY);
    assert_int_equal(memory_of(r, device).available.value, 1000);
    void *empty = take(r, device, 0);
    r->row->memory_free(r->self, device, empty);
    r->row->memory_free(r->self, device, b);
    r->row->memory_free(r->self, device, NULL);
    assert_int_equal(memory_of(r, device).in_use.value, 0);
    assert_string_equal(r->fake.log, "");
    assert_int_equal(r->fake.count, 2); /* the module's own: its table, the device */
    rig_destroy(r);
}

static void freeing_what_is_not_its_memory_is_logged(void **state)
{
    rig *r = rig_create();
    int32_t device = device_with(r, NULL, NULL), other = device_with(r, NULL, NULL);
    char *memory = take(r, device, 64);
    (void)state;
    r->row->memory_free(r->self, device, memory + 1);
    assert_contains(r->fake.log, "described:0: cannot free memory of another device");
    r->row->memory_free(r->self, other, memory);
    assert_contains(r->fake.log, "described:1: ");
    r->row->memory_free(r->self, 9, memory);
    assert_contains(r->fake.log, "described:9: ");
    assert_int_equal(memory_of(r, device).in_use.value, 64);
    r->row->memory_free(r->self, device, memory);
    assert_int_equal(memory_of(r, device).in_use.value, 0);
    rig_destroy(r);
}

static void unknown_memory_is_unknown(void **state)
{
    rig *r = rig_create();
    tn_device_properties nothing = {.struct_size = sizeof nothing};
    tn_description description = {
        .struct_size = sizeof description, .name = "", .origin = "f:1", .properties = &nothing};
    int32_t device = -1;
    (void)state;
    assert_int_equal(r->row->describe(r->self, &description, &device, NULL), TN_OK);
    void *memory = take(r, device, 1 << 20);
    tn_device_memory now = memory_of(r, device);
    assert_false(now.total.known || now.available.known);
    assert_contains(now.total.origin, "does not state");
    assert_contains(now.available.origin, "does not state");
    assert_int_equal(now.in_use.value, 1 << 20);
    r->row->memory_free(r->self, device, memory);
    rig_destroy(r);
}

/* Whichever allocation of the host fails, nothing is counted and nothing kept. */
static void want_of_host_memory_is_said(void **state)
{
    rig *r = rig_create();
    int32_t device = -1, devices = -1;
    void *self = r, *memory = r;
    tn_error err;
    (void)state;
    r->fake.left = 0;
    assert_int_equal(r->row->probe(&r->host, &self, &devices, &err), TN_OUT_OF_MEMORY);
    assert_true(self == r && devices == -1);
    assert_int_equal(describe(r, NULL, NULL, &device, &err), TN_OUT_OF_MEMORY);
    assert_int_equal(device, -1);
    r->fake.left = -1;
    device = device_with(r, NULL, NULL);
    assert_int_equal(device, 0);
    for (int n = 0; n < 2; n++) {
        int before = r->fake.count;
        r->fake.left = n;
        assert_int_equal(r->row->memory_alloc(r->self, device, 64, &memory, &err),
                         TN_OUT_OF_MEMORY);
        assert_contains(err.message, "the host cannot allocate 64 bytes for described:0");
        r->fake.left = -1;
        assert_int_equal(r->fake.count, before);
        assert_int_equal(memory_of(r, device).in_use.value, 0);
        assert_ptr_equal(memory, r);
    }
    rig_destroy(r);
}

static void copies_go_every_way(void **state)
{
    rig *r = rig_create();
    int32_t one = device_with(r, NULL, NULL), two = device_with(r, NULL, NULL);
    char *a = take(r, one, 16), *b = take(r, two, 16), *c = take(r, one, 16);
    char back[16] = "", host[16] = "";
    (void)state;
    assert_int_equal(copy(r, a, one, "0123456789abcde", -1, 16, NULL), TN_OK);
    assert_int_equal(copy(r, b, two, a, one, 16, NULL), TN_OK);
    assert_int_equal(copy(r, c, one, b, two, 16, NULL), TN_OK);
    assert_int_equal(copy(r, c + 1, one, c, one, 8, NULL), TN_OK);
    assert_int_equal(copy(r, back, -1, c, one, 16, NULL), TN_OK);
    assert_string_equal(back, "0012345679abcde");
    assert_int_equal(copy(r, host, -1, back, -1, 16, NULL), TN_OK);
    assert_string_equal(host, back);
    assert_int_equal(copy(r, a + 16, one, NULL, -1, 0, NULL), TN_OK);
    rig_destroy(r);
}

static void copies_go_by_rows(void **state)
{
    rig *r = rig_create();
    int32_t device = device_with(r, "behaviour.lie_copy", "2");
    char *memory = take(r, device, 11), back[16] = "...............";
    tn_copy_job job = {.struct_size = sizeof job,
                       .to = memory,
                       .from = "abc--def--ghi",
                       .bytes = 3,
                       .to_device = device,
                       .from_device = -1,
                       .rows = 3,
                       .to_pitch = 4,
                       .from_pitch = 5};
    tn_error err;
    (void)state;
    memset(memory, '.', 11);
    assert_int_equal(r->row->copy(r->self, &job, NULL), TN_OK);
    assert_memory_equal(memory, "abc.def.ghi", 11);
    job = (tn_copy_job){.struct_size = sizeof job,
                        .to = back,
                        .from = memory,
                        .bytes = 3,
                        .to_device = -1,
                        .from_device = device,
                        .rows = 3,
                        .to_pitch = 3,
                        .from_pitch = 4};
    assert_int_equal(r->row->copy(r->self, &job, NULL), TN_OK);
    assert_string_equal(back, "abcd\x9a"
                              "fghi......"); /* its second copy lies, in the middle */
    job.from = memory + 1;
    assert_int_equal(r->row->copy(r->self, &job, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "11 bytes of a copy are outside of any allocation");
    job.from = memory;
    job.from_pitch = 2;
    assert_int_equal(r->row->copy(r->self, &job, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "3 rows of 3 bytes, 3 and 2 apart, cannot be");
    job.from_pitch = UINT64_MAX / 2;
    assert_int_equal(r->row->copy(r->self, &job, &err), TN_INVALID_ARGUMENT);
    job.rows = 0;
    assert_int_equal(r->row->copy(r->self, &job, &err), TN_OK);
    rig_destroy(r);
}

static void copies_beyond_an_allocation_are_refused(void **state)
{
    rig *r = rig_create();
    int32_t one = device_with(r, NULL, NULL), two = device_with(r, NULL, NULL);
    char *a = take(r, one, 16), host[32] = "untouched";
    tn_error err;
    (void)state;
    assert_int_equal(copy(r, a, one, host, -1, 17, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "17 bytes of a copy are outside of any allocation of described:0");
    assert_int_equal(copy(r, a + 1, one, host, -1, 16, NULL), TN_INVALID_ARGUMENT);
    assert_int_equal(copy(r, a - 1, one, host, -1, 1, NULL), TN_INVALID_ARGUMENT);
    assert_int_equal(copy(r, host, -1, a, one, 17, NULL), TN_INVALID_ARGUMENT);
    assert_int_equal(copy(r, host, -1, a, two, 16, NULL), TN_INVALID_ARGUMENT);
    assert_int_equal(copy(r, host, -1, a, one, UINT64_MAX, NULL), TN_INVALID_ARGUMENT);
    assert_int_equal(copy(r, host, -1, a, 7, 16, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "no device \"described:7\"");
    r->row->memory_free(r->self, one, a);
    assert_int_equal(copy(r, host, -1, a, one, 1, NULL), TN_INVALID_ARGUMENT);
    assert_string_equal(host, "untouched");
    rig_destroy(r);
}

static void the_nth_allocation_fails(void **state)
{
    rig *r = rig_create();
    int32_t device = device_with(r, "behaviour.fail_alloc", "2");
    void *none = NULL;
    tn_error err;
    (void)state;
    void *a = take(r, device, 8);
    assert_int_equal(r->row->memory_alloc(r->self, device, 8, &none, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message,
                    "described:0 cannot allocate 8 bytes: allocation 2 is described to fail");
    assert_null(none);
    void *b = take(r, device, 8);
    assert_int_equal(memory_of(r, device).in_use.value, 16);
    assert_true(a != b);
    rig_destroy(r);
}

static void the_nth_copy_fails(void **state)
{
    rig *r = rig_create();
    int32_t device = device_with(r, "behaviour.fail_copy", "2"), other = device_with(r, NULL, NULL);
    char *a = take(r, device, 8), *b = take(r, other, 8);
    tn_error err;
    (void)state;
    assert_int_equal(copy(r, a, device, "1111111", -1, 8, NULL), TN_OK);
    assert_int_equal(copy(r, a, device, "2222222", -1, 8, &err), TN_IO);
    assert_contains(err.message, "a copy of 8 bytes failed: copy 2 of described:0 is described to");
    assert_string_equal(a, "1111111");
    assert_int_equal(copy(r, a, device, "3333333", -1, 8, NULL), TN_OK);
    assert_string_equal(a, "3333333");
    rig_destroy(r);
    r = rig_create();
    device = device_with(r, "behaviour.fail_copy", "1");
    other = device_with(r, NULL, NULL);
    a = take(r, device, 8);
    b = take(r, other, 8);
    assert_int_equal(copy(r, b, other, a, device, 8, &err), TN_IO); /* where it comes from counts */
    assert_contains(err.message, "copy 1 of described:0");
    assert_int_equal(copy(r, a, device, b, other, 8, NULL), TN_OK);
    rig_destroy(r);
}

static void a_lost_device_stays_lost(void **state)
{
    rig *r = rig_create();
    int32_t device = device_with(r, "behaviour.lose_after", "3"),
            other = device_with(r, NULL, NULL);
    tn_device_memory memory = {.struct_size = sizeof memory};
    tn_device_properties properties = {.struct_size = sizeof properties};
    char *a = take(r, device, 8), *b = take(r, other, 8);
    void *none = NULL;
    tn_error err;
    (void)state;
    assert_int_equal(copy(r, a, device, "1111111", -1, 8, NULL), TN_OK);
    assert_int_equal(memory_of(r, device).in_use.value, 8); /* asking is no operation */
    assert_int_equal(copy(r, a, device, "2222222", -1, 8, &err), TN_DEVICE_LOST);
    const char *cause = "described:0 was lost at operation 3, a copy of 8 bytes";
    assert_string_equal(err.message, cause);
    assert_string_equal(a, "1111111");
    assert_int_equal(r->row->memory_alloc(r->self, device, 1, &none, &err), TN_DEVICE_LOST);
    assert_string_equal(err.message, cause);
    assert_int_equal(copy(r, b, other, a, device, 8, &err), TN_DEVICE_LOST);
    assert_string_equal(err.message, cause);
    assert_int_equal(r->row->device_memory(r->self, device, &memory, &err), TN_DEVICE_LOST);
    assert_string_equal(err.message, cause);
    assert_int_equal(r->row->device_properties(r->self, device, &properties, &err), TN_OK);
    int before = r->fake.count;
    r->row->memory_free(r->self, device, a);
    assert_int_equal(r->fake.count, before - 2);
    assert_int_equal(copy(r, b, other, "3333333", -1, 8, NULL), TN_OK);
    rig_destroy(r);
}

static void a_copy_waits(void **state)
{
    rig *r = rig_create();
    int32_t device = device_with(r, "behaviour.stall_copy", "30 ms");
    char *a = take(r, device, 8);
    (void)state;
    int64_t before = tni_clock_ns();
    assert_int_equal(copy(r, a, device, "1111111", -1, 8, NULL), TN_OK);
    assert_true(tni_clock_ns() - before >= 30000000);
    assert_string_equal(a, "1111111");
    rig_destroy(r);
}

static void the_nth_copy_lies(void **state)
{
    rig *r = rig_create();
    int32_t device = device_with(r, "behaviour.lie_copy", "2");
    unsigned char *a = take(r, device, 5);
    const unsigned char data[5] = {1, 2, 3, 4, 5}, lie[5] = {1, 2, 3 ^ 0xff, 4, 5};
    (void)state;
    assert_int_equal(copy(r, a, device, data, -1, 5, NULL), TN_OK);
    assert_memory_equal(a, data, 5);
    assert_int_equal(copy(r, a, device, data, -1, 5, NULL), TN_OK);
    assert_memory_equal(a, lie, 5);
    assert_int_equal(copy(r, a, device, data, -1, 5, NULL), TN_OK);
    assert_memory_equal(a, data, 5);
    device = device_with(r, "behaviour.lie_copy", "1");
    a = take(r, device, 5);
    memcpy(a, data, 5);
    assert_int_equal(copy(r, a, device, NULL, -1, 0, NULL), TN_OK); /* nothing to lie about */
    assert_memory_equal(a, data, 5);
    rig_destroy(r);
}

static void memory_lies(void **state)
{
    rig *r = rig_create();
    int32_t much = device_with(r, "behaviour.lie_memory", "96 GiB");
    int32_t none = device_with(r, "behaviour.lie_memory", "0");
    (void)state;
    (void)take(r, much, 64);
    assert_int_equal(memory_of(r, much).available.value, INT64_C(96) << 30);
    assert_int_equal(memory_of(r, much).total.value, MEMORY);
    assert_int_equal(memory_of(r, much).in_use.value, 64);
    assert_true(memory_of(r, none).available.known);
    assert_int_equal(memory_of(r, none).available.value, 0);
    (void)take(r, none, MEMORY);
    rig_destroy(r);
}

static void of_two_links_the_poorer_counts(void **state)
{
    rig *r = rig_create();
    int32_t fabric = device_with(r, "behaviour.link", "fabric");
    int32_t bus = device_with(r, "behaviour.link", "bus");
    int32_t staged = device_with(r, "behaviour.link", "staged");
    int32_t silent = device_with(r, NULL, NULL), link = -1;
    const struct {
        int32_t from, to, link;
    } cases[] = {{fabric, fabric, TN_LINK_FABRIC}, {fabric, bus, TN_LINK_BUS},
                 {bus, fabric, TN_LINK_BUS},       {bus, staged, TN_LINK_STAGED},
                 {fabric, silent, TN_LINK_STAGED}, {silent, silent, TN_LINK_STAGED}};
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(r->row->device_link(r->self, cases[i].from, cases[i].to, &link, &err),
                         TN_OK);
        assert_int_equal(link, cases[i].link);
    }
    assert_int_equal(r->row->device_link(r->self, 0, 4, &link, &err), TN_INVALID_ARGUMENT);
    rig_destroy(r);
}

static void bad_behaviour_is_refused(void **state)
{
    static const char number[] = "expected a whole number from 1";
    static const char bytes[] = "expected a whole number with B kB MB GB TB KiB MiB GiB TiB";
    static const char time[] = "expected a whole number with ns us ms s, at most 3600 s";
    static const struct {
        const char *key, *value, *words;
    } cases[] = {
        {"fail_alloc", "0", "behaviour.fail_alloc: expected a whole number from 1, got \"0\""},
        {"fail_alloc", "-1", number},
        {"fail_alloc", "", number},
        {"fail_alloc", "1.5", number},
        {"fail_copy", "first", number},
        {"lie_copy", "1 B", number},
        {"lose_after", "9223372036854775808", number},
        {"lie_memory", "GiB", bytes},
        {"lie_memory", "1 gib", bytes},
        {"lie_memory", "8388608 TiB", bytes},
        {"stall_copy", "250", time},
        {"stall_copy", "250 min", time},
        {"stall_copy", "3601 s", time},
        {"link", "nvlink", "behaviour.link: expected staged, bus or fabric, got \"nvlink\""},
        {"link", "a\nb", ", got \"a?b\""},
        {"fail_aloc", "1",
         "unknown key \"behaviour.fail_aloc\" (= \"1\"); did you mean "
         "behaviour.fail_alloc?"},
        {"lie_memori", "1", "did you mean behaviour.lie_memory?"},
        {"explode", "1",
         "known keys: behaviour.fail_alloc fail_copy fail_run lose_after lie_copy lie_every "
         "stall_copy "
         "lie_memory link"},
        {"a_key_that_is_far_too_long_to_be_any_of_those_there_are", "1",
         "...\" (= \"1\"); known keys"},
    };
    rig *r = rig_create();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char key[128];
        int32_t device = -1;
        tn_error err;
        snprintf(key, sizeof key, "behaviour.%s", cases[i].key);
        assert_int_equal(describe(r, key, cases[i].value, &device, &err), TN_INVALID_ARGUMENT);
        assert_contains(err.message, cases[i].words);
        assert_null(strchr(err.message, '\n'));
        assert_int_equal(device, -1);
    }
    assert_int_equal(device_with(r, "behaviour.stall_copy", "3600s"), 0); /* none was added */
    assert_int_equal(device_with(r, "behaviour.lose_after", "9223372036854775807"), 1);
    rig_destroy(r);
}

static void there_is_room_for_64(void **state)
{
    rig *r = rig_create();
    int32_t device = -1;
    tn_error err;
    (void)state;
    for (int32_t i = 0; i < 64; i++)
        assert_int_equal(device_with(r, NULL, NULL), i);
    int before = r->fake.count;
    assert_int_equal(describe(r, NULL, NULL, &device, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "64 devices are described already, which is the maximum");
    assert_int_equal(device, -1);
    assert_int_equal(r->fake.count, before);
    rig_destroy(r);
}

/* Two hosts in one process have devices of their own. */
static void two_hosts_share_nothing(void **state)
{
    rig *a = rig_create(), *b = rig_create();
    tn_error err;
    void *none = NULL;
    (void)state;
    assert_int_equal(device_with(a, NULL, NULL), 0);
    assert_int_equal(b->row->memory_alloc(b->self, 0, 1, &none, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(device_with(b, NULL, NULL), 0);
    rig_destroy(a);
    rig_destroy(b);
}

enum { THREADS = 4, ROUNDS = 200, ADDED = 8 };

struct worker {
    rig *rig;
    _Atomic int *failures;
};

/* Uses the shared device 0, and describes devices meanwhile. */
static void work(void *user)
{
    struct worker *worker = user;
    rig *r = worker->rig;
    int failed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        void *memory = NULL;
        char back[8] = "";
        int32_t device = -1;
        failed += r->row->memory_alloc(r->self, 0, 8, &memory, NULL) != TN_OK;
        failed += copy(r, memory, 0, "1234567", -1, 8, NULL) != TN_OK;
        failed += copy(r, back, -1, memory, 0, 8, NULL) != TN_OK;
        failed += strcmp(back, "1234567") != 0;
        r->row->memory_free(r->self, 0, memory);
        if (i % (ROUNDS / ADDED) == 0) {
            tn_device_memory now = {.struct_size = sizeof now};
            failed += describe(r, NULL, NULL, &device, NULL) != TN_OK;
            failed += r->row->device_memory(r->self, device, &now, NULL) != TN_OK;
            failed += now.in_use.value != 0 || now.total.value != MEMORY;
        }
    }
    atomic_fetch_add(worker->failures, failed);
}

static void threads_share_a_device(void **state)
{
    rig *r = rig_create();
    _Atomic int failures = 0;
    struct worker worker = {r, &failures};
    tni_thread threads[THREADS];
    (void)state;
    (void)device_with(r, NULL, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(tni_thread_create(&threads[i], work, &worker, NULL), TN_OK);
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(atomic_load(&failures), 0);
    assert_int_equal(memory_of(r, 0).in_use.value, 0);
    assert_int_equal(memory_of(r, THREADS * ADDED).in_use.value, 0);
    assert_int_equal(device_with(r, NULL, NULL), THREADS * ADDED + 1);
    rig_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_row_is_as_it_says),
        cmocka_unit_test(a_device_tells_what_was_described),
        cmocka_unit_test(memory_is_counted_and_bounded),
        cmocka_unit_test(freeing_what_is_not_its_memory_is_logged),
        cmocka_unit_test(unknown_memory_is_unknown),
        cmocka_unit_test(want_of_host_memory_is_said),
        cmocka_unit_test(copies_go_every_way),
        cmocka_unit_test(copies_go_by_rows),
        cmocka_unit_test(copies_beyond_an_allocation_are_refused),
        cmocka_unit_test(the_nth_allocation_fails),
        cmocka_unit_test(the_nth_copy_fails),
        cmocka_unit_test(a_lost_device_stays_lost),
        cmocka_unit_test(a_copy_waits),
        cmocka_unit_test(the_nth_copy_lies),
        cmocka_unit_test(memory_lies),
        cmocka_unit_test(of_two_links_the_poorer_counts),
        cmocka_unit_test(bad_behaviour_is_refused),
        cmocka_unit_test(there_is_room_for_64),
        cmocka_unit_test(two_hosts_share_nothing),
        cmocka_unit_test(threads_share_a_device),
    };
    return run_suite("unit.described", tests);
}
