/* Descriptions of devices: what is read from them, what is refused and how, and those that ship. */
#include "test.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "device/description.h"
#include "os/file.h"
#include "tenon/module/cpu.h"

static tn_status parse(const char *text, tni_descriptions **out, tn_error *err)
{
    return tni_descriptions_parse(text, strlen(text), "f", out, err);
}

static tni_descriptions *parsed(const char *text)
{
    tni_descriptions *descriptions = NULL;
    tn_error err;
    if (parse(text, &descriptions, &err))
        fail_msg("%s in\n%s", err.message, text);
    return descriptions;
}

static void assert_refused(const char *text, const char *words)
{
    static char untouched;
    tni_descriptions *descriptions = (void *)&untouched;
    tn_error err;
    if (parse(text, &descriptions, &err) != TN_INVALID_ARGUMENT)
        fail_msg("taken, or refused with another status:\n%s", text);
    assert_contains(err.message, words);
    assert_null(strchr(err.message, '\n'));
    assert_true((char *)descriptions == &untouched);
}

static void every_key_is_read(void **state)
{
    tni_descriptions *all = parsed("# a comment\n"
                                   "[device big]\n"
                                   "platform = cuda\n"
                                   "name = NVIDIA H200 # and so on\n"
                                   "uuid = GPU-0A1b2C3d-0000-1111-2222-333344445555\n"
                                   "bus = 0000:3B:00.0\n"
                                   "architecture = \"sm_90a\"\n"
                                   "capability = 9.0\n"
                                   "dtypes = bf16, f16 ,f8_e4m3fn\n"
                                   "memory = 141 GB\n"
                                   "numa_node = 3\n"
                                   "physical_index = 4\n"
                                   "multi_processor_count = 132\n"
                                   "max_threads_per_multi_processor = 2048\n"
                                   "max_threads_per_block = 1024\n"
                                   "warp_size = 32\n"
                                   "registers_per_multi_processor = 65536\n"
                                   "shared_memory_per_block = 227 KiB\n"
                                   "shared_memory_per_multi_processor = 228 KiB\n"
                                   "l2_cache = 60 MiB\n"
                                   "clock = 1.98 GHz\n"
                                   "memory_bandwidth = 4.8 TB/s\n"
                                   "is_integrated = 0\n"
                                   "pinned_memory = 1\ntriton_capable = 1\n");
    (void)state;
    assert_int_equal(tni_descriptions_count(all), 1);
    const tni_description *one = tni_descriptions_get(all, 0);
    const tn_device_properties *p = &one->properties;
    assert_string_equal(one->platform, "cuda");
    assert_string_equal(one->view.name, "big");
    assert_string_equal(one->view.origin, "f:2");
    assert_ptr_equal(one->view.properties, p);
    assert_int_equal(one->view.struct_size, sizeof one->view);
    assert_int_equal(one->view.entry_count, 0);
    assert_int_equal(p->struct_size, sizeof *p);
    assert_string_equal(p->name, "NVIDIA H200");
    assert_string_equal(p->uuid, "GPU-0a1b2c3d-0000-1111-2222-333344445555");
    assert_string_equal(p->bus, "0000:3b:00.0");
    assert_string_equal(p->architecture, "sm_90a");
    assert_int_equal(p->capability.major, 9);
    assert_int_equal(p->capability.minor, 0);
    const tn_dtype dtypes[] = {TN_BF16, TN_F16, TN_F8_E4M3FN, 0};
    assert_memory_equal(p->dtypes, dtypes, sizeof dtypes);
    assert_int_equal(p->memory_bytes, INT64_C(141000000000));
    assert_int_equal(p->numa_node, 3);
    assert_int_equal(p->physical_index, 4);
    assert_int_equal(p->multi_processor_count, 132);
    assert_int_equal(p->max_threads_per_multi_processor, 2048);
    assert_int_equal(p->max_threads_per_block, 1024);
    assert_int_equal(p->warp_size, 32);
    assert_int_equal(p->registers_per_multi_processor, 65536);
    assert_int_equal(p->shared_memory_per_block, 232448);
    assert_int_equal(p->shared_memory_per_multi_processor, 233472);
    assert_int_equal(p->l2_cache_bytes, 62914560);
    assert_int_equal(p->clock_khz, 1980000);
    assert_int_equal(p->memory_bandwidth, INT64_C(4800000000000));
    assert_int_equal(p->is_integrated, 0);
    assert_int_equal(p->pinned_memory, 1);
    assert_int_equal(p->triton_capable, 1);
    assert_true(p->known ==
                (TN_DEVICE_KNOWS(capability) | ((UINT64_C(1) << TN_DEVICE_NUMBER_COUNT) - 1)));
    tni_descriptions_release(all);
}

static void a_processor_has_features(void **state)
{
    tni_descriptions *all =
        parsed("[device]\nfeatures = fma, avx2 ,avx512-bf16\nplatform = cpu\ncount = 2\n"
               "[device]\nplatform = cpu\n");
    (void)state;
    const uint64_t bits = TN_CPU_BIT(FMA) | TN_CPU_BIT(AVX2) | TN_CPU_BIT(AVX512_BF16);
    assert_true(tni_descriptions_get(all, 0)->cpu_features == bits);
    assert_true(tni_descriptions_get(all, 1)->cpu_features == bits);
    assert_true(tni_descriptions_get(all, 2)->cpu_features == 0);
    tni_descriptions_release(all);
}

static void what_is_left_out_is_unknown(void **state)
{
    tni_descriptions *all = parsed("[device]\nplatform = anyones-own\nwarp_size = 0\n");
    (void)state;
    const tni_description *one = tni_descriptions_get(all, 0);
    tn_device_properties empty = {.struct_size = sizeof empty, .known = TN_DEVICE_KNOWS(warp_size)};
    assert_string_equal(one->platform, "anyones-own");
    assert_string_equal(one->view.name, "");
    assert_memory_equal(&one->properties, &empty, sizeof empty);
    tni_descriptions_release(all);
}

static tn_device_properties with(const char *entry)
{
    char text[256];
    snprintf(text, sizeof text, "[device]\nplatform = x\n%s\n", entry);
    tni_descriptions *all = parsed(text);
    tn_device_properties properties = tni_descriptions_get(all, 0)->properties;
    tni_descriptions_release(all);
    return properties;
}

static void quantities_are_exact(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } bytes[] = {
        {"0", 0},
        {"007", 7},
        {"12 B", 12},
        {"96GiB", INT64_C(96) << 30},
        {"96   GiB", INT64_C(96) << 30},
        {"1 kB", 1000},
        {"1 KiB", 1024},
        {"3 MB", 3000000},
        {"3 MiB", 3 << 20},
        {"2 TB", INT64_C(2000000000000)},
        {"2 TiB", INT64_C(2) << 40},
        {"1.5 KiB", 1536},
        {"0.1 kB", 100},
        {"4.80 kB", 4800},
        {"1.000 B", 1},
        {"2.718281828459 TB", INT64_C(2718281828459)},
        {"0.0009765625 KiB", 1},
        {"9223372036854775807", INT64_MAX},
        {"9223372.036854775807 TB", INT64_MAX},
        {"8388607 TiB", INT64_C(8388607) << 40},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        char entry[128];
        snprintf(entry, sizeof entry, "memory = %s", bytes[i].text);
        if (with(entry).memory_bytes != bytes[i].value)
            fail_msg("%s is read as %lld", bytes[i].text, (long long)with(entry).memory_bytes);
    }
    assert_int_equal(with("clock = 1 kHz").clock_khz, 1);
    assert_int_equal(with("clock = 1410 MHz").clock_khz, 1410000);
    assert_int_equal(with("clock = 3.000001GHz").clock_khz, 3000001);
    assert_int_equal(with("memory_bandwidth = 819 GB/s").memory_bandwidth, INT64_C(819000000000));
    assert_int_equal(with("memory_bandwidth = 4.8 TB/s").memory_bandwidth, INT64_C(4800000000000));
    assert_int_equal(with("memory_bandwidth = 1.5 KiB/s").memory_bandwidth, 1536);
    assert_int_equal(with("numa_node = 2147483647").numa_node, INT32_MAX);
}

static void bad_values_are_refused(void **state)
{
    static const char bytes[] =
        "expected bytes, as in 96 GiB; units are B kB MB GB TB KiB MiB GiB TiB";
    static const char clock[] = "expected a frequency, as in 1.98 GHz; units are kHz MHz GHz";
    static const char rate[] = "expected bytes a second, as in 4.8 TB/s";
    static const char bus[] = "expected domain, bus, device and function, as in 0000:3b:00.0";
    static const char uuid[] = "expected 8-4-4-4-12 hexadecimal digits";
    static const struct {
        const char *entry, *found, *needs;
    } cases[] = {
        {"memory = -1", "memory = \"-1\": ", bytes},
        {"memory = +1", "\"+1\"", bytes},
        {"memory =", "memory = \"\": ", bytes},
        {"memory = GB", "\"GB\"", bytes},
        {"memory = .5 GB", "\".5 GB\"", bytes},
        {"memory = 5. GB", "\"5. GB\"", bytes},
        {"memory = 1e9", "\"1e9\"", bytes},
        {"memory = 0x10", "\"0x10\"", bytes},
        {"memory = 141 gb", "\"141 gb\"", bytes},
        {"memory = 1 GB/s", "\"1 GB/s\"", bytes},
        {"memory = 1 2", "\"1 2\"", bytes},
        {"memory = \" 1\"", "\" 1\"", bytes},
        {"memory = \"1 \\n\"", "\"1 \\x0a\"", bytes},
        {"memory = 0.5", "\"0.5\"", "expected a whole number of bytes"},
        {"memory = 0.3 KiB", "\"0.3 KiB\"", "expected a whole number of bytes"},
        {"memory = 1.00000000000000000001 TB", "\"1.0000", "expected a whole number of bytes"},
        {"memory = 9223372036854775808", "\"9223372036854775808\"",
         "expected 0 to 9223372036854775807 bytes"},
        {"memory = 8388608 TiB", "\"8388608 TiB\"", "expected 0 to 9223372036854775807 bytes"},
        {"memory = 99999999999999999999.5 kB", "99.5 kB\"",
         "expected 0 to 9223372036854775807 bytes"},
        {"clock = 1980", "clock = \"1980\": ", clock},
        {"clock = 5 Hz", "\"5 Hz\"", clock},
        {"clock = 0.5 kHz", "\"0.5 kHz\"", "expected a whole number of kHz"},
        {"memory_bandwidth = 4.8", "\"4.8\"", rate},
        {"memory_bandwidth = 4.8 TB", "\"4.8 TB\"", rate},
        {"memory_bandwidth = 0.1 B/s", "\"0.1 B/s\"", "expected a whole number of bytes/s"},
        {"warp_size = 32 threads", "\"32 threads\"",
         "expected a whole number from 0 to 9223372036854775807"},
        {"warp_size = 9223372036854775808", "\"9223372036854775808\"", "expected 0 to 9"},
        {"warp_size = 0.5", "\"0.5\"", "expected a whole number"},
        {"is_integrated = 2", "\"2\"", "expected 0 to 1"},
        {"pinned_memory = yes", "\"yes\"", "expected a whole number from 0 to 1"},
        {"triton_capable = 2", "\"2\"", "expected 0 to 1"},
        {"count = 0", "count = \"0\": ", "expected 1 to 64"},
        {"count = 65", "\"65\"", "expected 1 to 64"},
        {"capability = nine", "capability = \"nine\": ", "expected a capability, as in 9.0"},
        {"dtypes = bf16, f23", "dtypes = \"bf16, f23\": ", "did you mean f32?"},
        {"dtypes = f32,", "\"f32,\"", "expected dtypes separated by commas"},
        {"dtypes =", "\"\"", "expected dtypes separated by commas"},
        {"dtypes = f32 f64", "\"f32 f64\"", "expected dtypes separated by commas"},
        {"dtypes = f32, i8, f32", "\"f32, i8, f32\"", "expected each dtype once; duplicate f32"},
        {"dtypes = floating-point-of-any-kind", "\"floating", "as in bf16, f16, f32"},
        {"features = fma, avx22", "features = \"fma, avx22\": ", "did you mean avx2?"},
        {"features = avx2,", "\"avx2,\"", "expected features of a processor separated by commas"},
        {"features =", "\"\"", "as in fma, avx2"},
        {"features = avx2", "features: ", "expected platform = cpu, got \"x\""},
        {"name =", "name = \"\": ", "expected 1 to 127 bytes of text"},
        {"name = \"a\\tb\"",
         "\"a\\x09"
         "b\"",
         "expected one line of text"},
        {"architecture = 0123456789012345678901234567890x", "\"0123", "expected 1 to 31 bytes"},
        {"bus = 3b:00.0", "bus = \"3b:00.0\": ", bus},
        {"bus = 000:3b:00.0", "\"000:3b:00.0\"", bus},
        {"bus = 0000:3b:00", "\"0000:3b:00\"", bus},
        {"bus = 0000:3b:00.0x", "\"0000:3b:00.0x\"", bus},
        {"bus = 00g0:3b:00.0", "\"00g0:3b:00.0\"", bus},
        {"bus = 000000000:3b:00.0", "\"000000000:", bus},
        {"uuid = GPU", "uuid = \"GPU\": ", uuid},
        {"uuid = 0a1b2c3d-0000-1111-2222-33334444555", "\"0a1b2c3d", uuid},
        {"uuid = 0a1b2c3d-0000-1111-2222-33334444555g", "\"0a1b2c3d", uuid},
        {"uuid = -0a1b2c3d-0000-1111-2222-333344445555", "\"-0a1b2c3d", uuid},
        {"uuid = GPU_0a1b2c3d-0000-1111-2222-333344445555", "\"GPU_0a1b2c3d", uuid},
        {"uuid = G/U-0a1b2c3d-0000-1111-2222-333344445555", "\"G/U-", uuid},
        {"uuid = ABCDEFGHIJK-0a1b2c3d-0000-1111-2222-333344445555", "\"ABC",
         "expected 1 to 47 bytes of text"},
        {"platform = CUDA", "platform = \"CUDA\": ", "expected 1 to 48 of a-z 0-9 - _"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        bool platform = strncmp(cases[i].entry, "platform", 8) == 0;
        snprintf(text, sizeof text, "[device]\n%s\n%s\n", platform ? "" : "platform = x",
                 cases[i].entry);
        assert_refused(text, "f:3: ");
        assert_refused(text, cases[i].found);
        assert_refused(text, cases[i].needs);
    }
}

static void bad_forms_are_refused(void **state)
{
    (void)state;
    assert_refused("", "f:1: expected a section [device], got none");
    assert_refused("# nothing\n", "f:1: expected a section [device], got none");
    assert_refused("\nplatform = cuda\n[device]\nplatform = cuda\n",
                   "f:2: platform = \"cuda\": expected [device] before it");
    assert_refused("[device]\nplatform = x\n[devices]\n",
                   "f:3: expected [device] or [device NAME], got section [devices]");
    assert_refused("[dev]\n", "f:1: expected [device] or [device NAME], got section [dev]");
    assert_refused("[device Big]\nplatform = x\n",
                   "f:1: expected a name of 1 to 48 of a-z 0-9 - _, got [device Big]");
    assert_refused("[device a b]\nplatform = x\n",
                   "f:1: expected a name of 1 to 48 of a-z 0-9 - _, got [device a b]");
    assert_refused("[device a]\nplatform = x\n[device b]\nplatform = x\n[device   a]\n",
                   "f:5: duplicate [device a]: the name is used in line 1 already");
    assert_refused("[device]\nname = x\n",
                   "f:1: expected a platform, such as platform = cuda; got none");
    assert_refused("[device]\nplatform = x\nmemroy = 1 GB\n",
                   "f:3: unknown key \"memroy\" (= \"1 GB\"); did you mean memory?");
    assert_refused("[device]\nplatform = x\nMemory = 1 GB\n", "did you mean memory?");
    assert_refused(
        "[device]\nplatform = x\nfavourite_colour = red\n",
        "f:3: unknown key \"favourite_colour\" (= \"red\"); keys: platform, count, features, name");
    assert_refused("[device]\nplatform = x\nmemory = 1\n\nmemory = 2\n",
                   "f:5: memory = \"2\": duplicate key, first set in line 3");
    assert_refused("[device]\nplatform = x\nbehaviour.a = 1\nbehaviour.a = 1\n",
                   "f:4: behaviour.a = \"1\": duplicate key, first set in line 3");
    assert_refused(
        "[device]\nplatform = x\ncount = 2\n"
        "uuid = 0a1b2c3d-0000-1111-2222-333344445555\n",
        "f:4: count = \"2\": cannot be combined with uuid, which is unique to each device");
    assert_refused("[device]\nplatform = x\ncount = 2\nbus = 0000:00:00.0\n",
                   "cannot be combined with bus");
    assert_refused("[device]\nplatform = x\nphysical_index = 0\ncount = 2\n",
                   "cannot be combined with physical_index");
    tni_descriptions *none = NULL;
    tn_error err;
    assert_int_equal(parse("[device\n", &none, &err), TN_CORRUPT);
    assert_contains(err.message, "f:1:8: expected ']'");
}

static void equal_devices_are_written_once(void **state)
{
    tni_descriptions *all = parsed("[device a]\nplatform = described\ncount = 2\nmemory = 1\n"
                                   "behaviour.x = 1\n"
                                   "[device]\nplatform = cuda\ncount = 64\n"
                                   "[device b]\nplatform = cuda\ncount = 1\nbus = 0000:00:01.0\n");
    (void)state;
    assert_int_equal(tni_descriptions_count(all), 67);
    for (size_t i = 0; i < 67; i++) {
        const tni_description *one = tni_descriptions_get(all, i);
        const char *name = i == 0 ? "a.0" : i == 1 ? "a.1" : i < 66 ? "" : "b";
        assert_string_equal(one->view.name, name);
        assert_string_equal(one->view.origin, i < 2 ? "f:1" : i < 66 ? "f:6" : "f:9");
        assert_string_equal(one->platform, i < 2 ? "described" : "cuda");
        assert_int_equal(one->properties.memory_bytes, i < 2);
        assert_int_equal(one->view.entry_count, i < 2);
        assert_ptr_equal(one->view.properties, &one->properties);
    }
    tni_descriptions_release(all);
}

static void keys_of_a_platform_are_handed_on(void **state)
{
    tni_descriptions *all = parsed("[device]\nplatform = cuda\n"
                                   "[device]\nbehaviour.fail_alloc = 3\nplatform = described\n"
                                   "behaviour. = \"a\\nb\"\n"
                                   "[device]\nplatform = described\nbehaviour.link = bus\n");
    (void)state;
    const tn_description *first = &tni_descriptions_get(all, 0)->view;
    const tn_description *second = &tni_descriptions_get(all, 1)->view;
    const tn_description *third = &tni_descriptions_get(all, 2)->view;
    assert_int_equal(first->entry_count, 0);
    assert_int_equal(second->entry_count, 2);
    assert_string_equal(second->entries[0].key, "behaviour.fail_alloc");
    assert_string_equal(second->entries[0].value, "3");
    assert_string_equal(second->entries[1].key, "behaviour.");
    assert_string_equal(second->entries[1].value, "a\nb");
    assert_int_equal(third->entry_count, 1);
    assert_string_equal(third->entries[0].key, "behaviour.link");
    tni_descriptions_release(all);
}

static void sizes_are_bounded(void **state)
{
    tni_buffer text = {0};
    (void)state;
    for (int i = 0; i < 16; i++)
        tni_buffer_add(&text, "[device]\nplatform = x\ncount = 64\n");
    tni_descriptions *all = parsed(tni_buffer_text(&text));
    assert_int_equal(tni_descriptions_count(all), 1024);
    tni_descriptions_release(all);
    tni_buffer_add(&text, "[device]\nplatform = x\n");
    assert_refused(tni_buffer_text(&text),
                   "f:49: expected at most 1024 devices, got 1025 up to here");
    tni_buffer_release(&text);
    tni_buffer_add(&text, "[device]\nplatform = x\n");
    for (int i = 0; i < 255; i++)
        tni_buffer_format(&text, "behaviour.%d = 1\n", i);
    all = parsed(tni_buffer_text(&text));
    assert_int_equal(tni_descriptions_get(all, 0)->view.entry_count, 255);
    tni_descriptions_release(all);
    tni_buffer_add(&text, "name = x\n");
    assert_refused(tni_buffer_text(&text),
                   "f:1: expected at most 256 keys in one section, got 257");
    tni_buffer_release(&text);
}

/* The longest of everything: the message still ends with what is needed. */
static void long_texts_leave_room_for_the_remedy(void **state)
{
    char origin[1000];
    tni_buffer text = {0};
    tni_descriptions *none = NULL;
    tn_error err;
    (void)state;
    memset(origin, 'o', sizeof origin);
    memcpy(origin + sizeof origin - 8, "/a.file", 8);
    origin[sizeof origin - 60] = '/';
    tni_buffer_add(&text, "[device]\nplatform = x\nshared_memory_per_multi_processor = ");
    for (int i = 0; i < 200; i++)
        tni_buffer_add(&text, "\xe2\x82\xac");
    assert_int_equal(
        tni_descriptions_parse(tni_buffer_text(&text), text.length, origin, &none, &err),
        TN_INVALID_ARGUMENT);
    assert_int_equal(strncmp(err.message, ".../ooo", 7), 0);
    assert_contains(err.message, "o/a.file:3: shared_memory_per_multi_processor = \"\xe2\x82\xac");
    assert_contains(err.message,
                    "\xe2\x82\xac...\": expected bytes, as in 96 GiB; units are B kB MB GB "
                    "TB KiB MiB GiB TiB");
    tni_buffer_release(&text);
}

static int64_t allocations_left;

static void *failing_alloc(void *self, size_t size, size_t align)
{
    (void)self, (void)align;
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

static void failing_release(void *self, void *memory)
{
    (void)self;
    free(memory);
}

/* Whichever allocation fails, nothing is left and nothing is given. */
static void want_of_memory_is_said(void **state)
{
    const char *text = "[device a]\nplatform = x\ncount = 64\nbehaviour.x = 1\n"
                       "[device b]\nplatform = x\ncount = 64\n";
    tn_allocator failing = {sizeof failing, NULL, failing_alloc, failing_release};
    tni_descriptions *all = NULL;
    tn_status status = TN_OUT_OF_MEMORY;
    int64_t n = 0;
    (void)state;
    assert_int_equal(tn_allocator_set(&failing, NULL), TN_OK);
    for (; status; n++) {
        tn_error err;
        allocations_left = n;
        status = parse(text, &all, &err);
        assert_true(!status || (status == TN_OUT_OF_MEMORY && err.status == status && !all));
        assert_true(!status || tn_allocator_blocks() == 0);
    }
    assert_true(n > 4);
    assert_int_equal(tni_descriptions_count(all), 128);
    tni_descriptions_release(all);
    tni_descriptions_release(NULL);
    assert_int_equal(tn_allocator_blocks(), 0);
    assert_int_equal(tn_allocator_set(NULL, NULL), TN_OK);
}

/* The one device of a shipped file, whose section is called as the file. */
static tni_descriptions *shipped(const char *name, const tn_device_properties **out)
{
    char path[1024];
    tni_descriptions *all = NULL;
    tn_error err;
    snprintf(path, sizeof path, "%s/backends/described/devices/%s.device", SOURCE_FOLDER, name);
    if (tni_descriptions_read(path, &all, &err))
        fail_msg("%s", err.message);
    assert_int_equal(tni_descriptions_count(all), 1);
    assert_string_equal(tni_descriptions_get(all, 0)->view.name, name);
    *out = &tni_descriptions_get(all, 0)->properties;
    return all;
}

static void check_shipped(const char *name, const char *platform, const char *architecture,
                          int64_t units, int64_t memory, int64_t bandwidth, int32_t capability,
                          tn_dtype first)
{
    const tn_device_properties *p;
    tni_descriptions *all = shipped(name, &p);
    assert_string_equal(tni_descriptions_get(all, 0)->platform, platform);
    assert_string_equal(p->architecture, architecture);
    assert_true(p->name[0] != '\0');
    assert_int_equal(p->multi_processor_count, units);
    assert_int_equal(p->memory_bytes, memory);
    assert_int_equal(p->memory_bandwidth, bandwidth);
    assert_int_equal(p->capability.major * 10 + p->capability.minor, capability);
    assert_int_equal((p->known & TN_DEVICE_KNOWS(capability)) != 0, capability != 0);
    assert_int_equal(p->dtypes[0], first);
    tni_descriptions_release(all);
}

static bool has_dtype(const char *name, tn_dtype dtype)
{
    const tn_device_properties *p;
    tni_descriptions *all = shipped(name, &p);
    bool found = false;
    for (size_t i = 0; p->dtypes[i]; i++)
        found = found || p->dtypes[i] == dtype;
    tni_descriptions_release(all);
    return found;
}

static void shipped_descriptions_are_sound(void **state)
{
    const int64_t giga = 1000000000;
    const tn_device_properties *p;
    (void)state;
    check_shipped("h200", "cuda", "sm_90a", 132, INT64_C(150109880320), 4800 * giga, 90, TN_BF16);
    check_shipped("a100", "cuda", "sm_80", 108, 80 * giga, 2039 * giga, 80, TN_BF16);
    check_shipped("mi300x", "rocm", "gfx942", 304, 192 * giga, 5300 * giga, 94, TN_BF16);
    check_shipped("tpu-v5e", "tpu", "v5e", 1, 16 * giga, 819 * giga, 0, TN_BF16);
    check_shipped("m3-max", "mps", "apple9", 40, 128 * giga, 400 * giga, 0, TN_BF16);
    check_shipped("arm-server", "cpu", "aarch64", 128, 0, 204800000000, 0, TN_F32);
    assert_true(has_dtype("h200", TN_F8_E4M3FN) && !has_dtype("h200", TN_F8_E4M3FNUZ));
    assert_true(!has_dtype("a100", TN_F8_E4M3FN) && has_dtype("a100", TN_I8));
    assert_true(has_dtype("mi300x", TN_F8_E4M3FNUZ) && !has_dtype("mi300x", TN_F8_E4M3FN));
    assert_true(has_dtype("tpu-v5e", TN_I8) && !has_dtype("tpu-v5e", TN_F16));
    tni_descriptions *all = shipped("m3-max", &p);
    assert_int_equal(p->is_integrated, 1);
    tni_descriptions_release(all);
    all = shipped("h200", &p);
    assert_int_equal(p->clock_khz, 1980000);
    assert_int_equal(p->shared_memory_per_block, 227 * 1024);
    tni_descriptions_release(all);
}

/* docs/descriptions.md: tni_release it. */
static char *page_text(void)
{
    char path[1024], *page = NULL;
    size_t length = 0;
    tn_error err;
    snprintf(path, sizeof path, "%s/docs/descriptions.md", SOURCE_FOLDER);
    if (tni_file_read(path, 1 << 20, &page, &length, &err))
        fail_msg("%s", err.message);
    return page;
}

/* The page's example is its one indented part. */
static void the_example_of_the_page_is_sound(void **state)
{
    char *page = page_text();
    const char *line = strstr(page, "\n    ");
    tni_buffer text = {0};
    (void)state;
    assert_non_null(line);
    for (line++; *line == '\n' || strncmp(line, "    ", 4) == 0; line += strcspn(line, "\n") + 1)
        tni_buffer_add_part(&text, line, strcspn(line, "\n") + 1);
    tni_descriptions *all = parsed(tni_buffer_text(&text));
    assert_int_equal(tni_descriptions_count(all), 3);
    assert_string_equal(tni_descriptions_get(all, 1)->view.name, "h200.1");
    assert_int_equal(tni_descriptions_get(all, 1)->properties.memory_bytes, INT64_C(141000000000));
    assert_string_equal(tni_descriptions_get(all, 2)->view.entries[0].key, "behaviour.fail_copy");
    tni_descriptions_release(all);
    tni_buffer_release(&text);
    tni_release(page);
}

static void the_page_has_every_key(void **state)
{
    static const char *const keys[] = {
#define KEY(field, word, unit, meaning) word,
        TN_DEVICE_NUMBER_LIST(KEY)
#undef KEY
            "platform",
        "count",
        "name",
        "uuid",
        "bus",
        "architecture",
        "capability",
        "dtypes",
        "features",
        "behaviour.fail_alloc",
        "behaviour.fail_copy",
        "behaviour.lose_after",
        "behaviour.stall_copy",
        "behaviour.lie_copy",
        "behaviour.lie_memory",
        "behaviour.link"};
    static const char *const dtypes[] = {
#define ROW(name, word, code, bits) word,
        TN_DTYPE_LIST(ROW)
#undef ROW
    };
    static const char *const features[] = {
#define ROW(name, bit, word) word,
        TN_CPU_FEATURE_LIST(ROW)
#undef ROW
    };
    char *page = page_text();
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char row[64];
        snprintf(row, sizeof row, "\n| `%s` |", keys[i]);
        assert_contains(page, row);
    }
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        assert_contains(page, dtypes[i]);
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++)
        assert_contains(page, features[i]);
    tni_release(page);
}

static void files_that_cannot_be_read_say_why(void **state)
{
    tni_descriptions *none = NULL;
    tn_error err;
    (void)state;
    assert_int_equal(tni_descriptions_read("/nonexistent/a.device", &none, &err), TN_NOT_FOUND);
    assert_contains(err.message, "/nonexistent/a.device");
    assert_null(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(what_is_left_out_is_unknown),
        cmocka_unit_test(quantities_are_exact),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(bad_forms_are_refused),
        cmocka_unit_test(equal_devices_are_written_once),
        cmocka_unit_test(keys_of_a_platform_are_handed_on),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(long_texts_leave_room_for_the_remedy),
        cmocka_unit_test(want_of_memory_is_said),
        cmocka_unit_test(shipped_descriptions_are_sound),
        cmocka_unit_test(the_example_of_the_page_is_sound),
        cmocka_unit_test(a_processor_has_features),
        cmocka_unit_test(the_page_has_every_key),
        cmocka_unit_test(files_that_cannot_be_read_say_why),
    };
    return run_suite("unit.description", tests);
}
