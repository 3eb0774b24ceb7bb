/* Devices on PCI buses that do not exist, held against what they were made from, and on this
 * machine's. */
#include "look_check.h"

#include "base/alloc.h"

static tni_look at(const char *root, const char *ids)
{
    tni_look look = look_unset();
    tni_look_pci(root, ids, &look);
    return look_sound(look);
}

static void ids_are_vendors_and_classes(void **state)
{
    static const char *const sound[] = {"10de",        "10DE",        "10de:0",
                                        "10de:03",     "10de:030200", "10de|1002:0380",
                                        "0000:000000", "1ae0/0063",   "10de:03|1ae0/ffff"};
    static const char *const wrong[][2] = {
        {"", ""},
        {"10d", "10d"},
        {"10dee", "10dee"},
        {"10de:", "10de:"},
        {"|10de", ""},
        {"10de|", ""},
        {"10de||1002", ""},
        {"0x10de", "0x10de"},
        {"0x1f", "0x1f"},
        {"10de:0x", "10de:0x"},
        {"10de:0302001", "10de:0302001"},
        {"10 e", "10 e"},
        {"10de:03|g", "g"},
        {"10de:3:0", "10de:3:0"},
        {"10dg", "10dg"},
        {"1ae0/", "1ae0/"},
        {"1ae0/63", "1ae0/63"},
        {"1ae0/00631", "1ae0/00631"},
        {"1ae0/0063:03", "1ae0/0063:03"},
        {"1ae0:03/0063", "1ae0:03/0063"},
    };
    tni_span span;
    (void)state;
    for (size_t i = 0; i < sizeof sound / sizeof sound[0]; i++)
        assert_true(tni_pci_ids_check(tni_span_of(sound[i]), &span));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (tni_pci_ids_check(tni_span_of(wrong[i][0]), &span))
            fail_msg("\"%s\" is taken for ids", wrong[i][0]);
        assert_true(tni_span_is(span, wrong[i][1]));
        assert_int_equal(at("/nowhere", wrong[i][0]).holds, -1);
    }
    look_expect(
        at("/nowhere", "10de|nvidia"), -1, 0,
        "\"nvidia\" is not a PCI id: expected VENDOR, VENDOR:CLASS or VENDOR/DEVICE, such as "
        "10de:03");
}

static void ids_fit_by_the_beginning_of_a_class(void **state)
{
    static const struct {
        const char *ids;
        uint32_t vendor;
        int32_t kind;
        bool named, fits;
    } rows[] = {
        {"1ae0/0063", 0x1ae0, 0x020000, true, true},
        {"1ae0/0042|1ae0/0063", 0x1ae0, -1, true, true},
        {"1ae0/0062", 0x1ae0, 0x006300, true, false},
        {"1ae0/0062|1ae0:02", 0x1ae0, 0x020000, true, true},
        {"1ae1/0063", 0x1ae0, 0x020000, false, false},
        {"10de", 0x10de, 0x030200, true, true},
        {"10DE", 0x10de, -1, true, true},
        {"10de", 0x1002, 0x030200, false, false},
        {"10de:03", 0x10de, 0x030200, true, true},
        {"10de:03", 0x10de, 0x040300, true, false},
        {"10de:03", 0x10de, -1, true, false},
        {"10de:0", 0x10de, 0x030200, true, true},
        {"10de:1", 0x10de, 0x030200, true, false},
        {"10de:0302", 0x10de, 0x030200, true, true},
        {"10de:0302", 0x10de, 0x030000, true, false},
        {"10de:030200", 0x10de, 0x030200, true, true},
        {"10de:030201", 0x10de, 0x030200, true, false},
        {"10de:12|1002:03", 0x1002, 0x038000, true, true},
        {"10de:12|1002:03", 0x1002, 0x120000, true, false},
        {"10de:12|10de", 0x10de, 0x030200, true, true},
        {"0000:000000", 0, 0, true, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tni_span ids = tni_span_of(rows[i].ids);
        assert_int_equal(tni_pci_ids_name(ids, rows[i].vendor), rows[i].named);
        if (tni_pci_ids_fit(ids, rows[i].vendor, 0x63, rows[i].kind) != rows[i].fits)
            fail_msg("row %zu: %s", i, rows[i].ids);
    }
    assert_false(tni_pci_ids_fit(tni_span_of("1ae0/0063"), 0x1ae0, -1, 0x020000));
}

static void addresses_have_places(void **state)
{
    static const struct {
        const char *name;
        uint32_t place;
    } rows[] = {
        {"0000:00:00.0", 0},      {"0000:3b:00.0", 0x3b00},  {"0000:00:1f.7", 0xff},
        {"ffff:FF:1f.7", 0xffff}, {"10000:e1:00.0", 0xe100}, {"12345678:01:02.3", 0x113},
    };
    static const char *const wrong[] = {"",
                                        ".",
                                        "..",
                                        "3b:00.0",
                                        "0000:3b:00",
                                        "0000:3b:00.",
                                        "0000:3b:00.8",
                                        "0000:3b:20.0",
                                        "0000:3b:0.0",
                                        "0000:3b:000.0",
                                        "000:3b:00.0",
                                        "0000:g0:00.0",
                                        "0000:3b.00.0",
                                        "0000:3b:00:0",
                                        "123456789:00:00.0",
                                        "0x00:00:00.0"};
    uint32_t place;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        place = 1u << 20;
        assert_true(tni_pci_address_parse(tni_span_of(rows[i].name), &place));
        assert_int_equal(place, rows[i].place);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (tni_pci_address_parse(tni_span_of(wrong[i]), &place))
            fail_msg("\"%s\" is taken for an address", wrong[i]);
    }
}

static void list_of_the_bus_gives_places(void **state)
{
    static const char list[] = "0000\t80860d57\t0\t 0\t\n3b00\t10de2335\t10\t 1\tnvidia\n"
                               "3b00\t10de2335\t10\t 1\tnvidia\nff07\t1002740c\t0\t0\t0\n";
    static const char *const wrong[] = {
        "0000\n",
        "0000\t80860d5\t\n",
        "000\t80860d57\t\n",
        "\n",
        "0000\t80860d57\t\n\n",
        "0000 80860d57\n",
        "0000\t80860d5x\t\n",
        "0000\t80860d57\t0\nx",
    };
    tni_pci_places places;
    (void)state;
    assert_true(tni_pci_places_parse(tni_span_of(list), tni_span_of("10de:03"), &places));
    assert_int_equal(places.count, 2);
    for (uint32_t i = 0; i <= TNI_PCI_PLACES; i++)
        assert_int_equal(tni_pci_places_has(&places, i), i == 0x3b00);
    assert_true(tni_pci_places_parse(tni_span_of(list), tni_span_of("1002|8086"), &places));
    assert_int_equal(places.count, 2);
    assert_true(tni_pci_places_has(&places, 0) && tni_pci_places_has(&places, 0xff07));
    assert_true(tni_pci_places_parse(tni_span_of(list), tni_span_of("1af4"), &places));
    assert_int_equal(places.count, 0);
    assert_true(tni_pci_places_parse(tni_span_of("3b00\t10de2335"), tni_span_of("10de"), &places));
    assert_int_equal(places.count, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (tni_pci_places_parse(tni_span_of(wrong[i]), tni_span_of("10de"), &places))
            fail_msg("text %zu is taken for a list", i);
    }
}

struct device {
    unsigned domain, place, vendor, number, kind;
};

static void put_fact(const char *root, const struct device *device, const char *fact,
                     const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.%x/%s", device->domain,
             device->place >> 8, device->place >> 3 & 31, device->place & 7, fact);
    tree_put(root, path, "%s", text);
}

static void put_device(const char *root, const struct device *device)
{
    char text[16];
    snprintf(text, sizeof text, "0x%04x\n", device->vendor);
    put_fact(root, device, "vendor", text);
    snprintf(text, sizeof text, "0x%04x\n", device->number);
    put_fact(root, device, "device", text);
    snprintf(text, sizeof text, "0x%06x\n", device->kind);
    put_fact(root, device, "class", text);
}

/* What the bus's list has of them. */
static void put_list(const char *root, const struct device *devices, size_t count)
{
    tni_buffer text = {0};
    for (size_t i = 0; i < count; i++)
        tni_buffer_format(&text, "%04x\t%04x%04x\t1f\t        fb000000\t\n", devices[i].place,
                          devices[i].vendor, devices[i].number);
    tree_put(root, "/proc/bus/pci/devices", "%s", tni_buffer_text(&text));
    tni_buffer_release(&text);
}

static const struct device bridge = {0, 0, 0x8086, 0x0d57, 0x060000};
static const struct device gpu = {0, 0x3b00, 0x10de, 0x2335, 0x030200};
static const struct device sound = {0, 0x3b01, 0x10de, 0x228e, 0x040300};

static void bus_without_devices_has_none(void **state)
{
    const char *root = look_root();
    (void)state;
    look_expect(at(root, "10de"), -1, 0, "no PCI bus found: /sys/bus/pci/devices does not exist");
    tree_put(root, "/proc/bus/pci/devices", "%s", "");
    look_expect(at(root, "10de"), -1, 0, "no PCI bus found: /sys/bus/pci/devices does not exist");
    tree_put(root, "/sys/bus/pci/devices/.gitkeep", "%s", "");
    look_expect(at(root, "10de"), 0, 0, "absent");
}

static void one_device_is_found_by_either_list(void **state)
{
    const char *root = look_root();
    (void)state;
    put_device(root, &gpu);
    for (int i = 0; i < 2; i++) {
        look_expect(at(root, "10de"), 1, 1, "1 device, 0000:3b:00.0 (10de:2335)");
        look_expect(at(root, "10DE:03"), 1, 1, "1 device, 0000:3b:00.0 (10de:2335)");
        look_expect(at(root, "1002|10de:0302"), 1, 1, "1 device, 0000:3b:00.0 (10de:2335)");
        look_expect(at(root, "10de:04"), 0, 0, "absent");
        look_expect(at(root, "1002"), 0, 0, "absent");
        put_list(root, &gpu, 1);
    }
}

/* With a list that lacks the vendor, the devices are not even opened. */
static void list_without_the_vendor_is_enough(void **state)
{
    const char *root = look_root();
    (void)state;
    put_device(root, &gpu);
    put_list(root, &bridge, 1);
    look_expect(at(root, "10de"), 0, 0, "absent");
}

static void list_that_does_not_tell_is_not_trusted(void **state)
{
    static const char *const lists[] = {"", "garbage\n", "0000\t80860d57\n\n"};
    const char *root = look_root();
    (void)state;
    put_device(root, &gpu);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        tree_put(root, "/proc/bus/pci/devices", "%s", lists[i]);
        look_expect(at(root, "10de:03"), 1, 1, "1 device, 0000:3b:00.0 (10de:2335)");
    }
    tree_put_huge(root, "/proc/bus/pci/devices", 64 << 20);
    look_expect(at(root, "10de:03"), 1, 1, "1 device, 0000:3b:00.0 (10de:2335)");
}

static void vendor_without_a_class_in_sight_is_not_known(void **state)
{
    const char *root = look_root();
    const struct device both[] = {gpu, sound};
    (void)state;
    put_list(root, both, 2);
    look_expect(at(root, "10de:03"), -1, 0,
                "2 of that vendor, but /sys/bus/pci/devices does not show their class");
    put_device(root, &bridge);
    look_expect(at(root, "10de:03"), -1, 0,
                "2 of that vendor, but /sys/bus/pci/devices does not show their class");
    look_expect(at(root, "1002:03"), 0, 0, "absent");
}

/* The list does not tell domains apart: of what is at one place in two, each is asked. */
static void domains_are_told_apart(void **state)
{
    const char *root = look_root();
    const struct device other = {0x10000, 0x3b00, 0x1002, 0x740c, 0x038000};
    const struct device both[] = {gpu, other};
    (void)state;
    put_device(root, &gpu);
    put_device(root, &other);
    put_list(root, both, 2);
    look_expect(at(root, "10de:03"), 1, 1, "1 device, 0000:3b:00.0 (10de:2335)");
    look_expect(at(root, "1002"), 1, 1, "1 device, 10000:3b:00.0 (1002:740c)");
    look_expect(at(root, "1002|10de"), 1, 2, "2 devices, the first 0000:3b:00.0 (10de:2335)");
}

static void damaged_devices_are_said(void **state)
{
    static const char vendor[] =
        "/sys/bus/pci/devices/0000:3b:00.0/vendor: not a number of at most ffff";
    static const char *const garbage[] = {"", "\n", "nvidia\n", "0x10000\n", "-1\n", "0x10de 1\n"};
    const char *root = look_root();
    (void)state;
    put_device(root, &gpu);
    put_device(root, &sound);
    put_fact(root, &gpu, "class", "0x3020000\n");
    look_expect(at(root, "10de:03"), -1, 0,
                "/sys/bus/pci/devices/0000:3b:00.0/class: not a number of at most ffffff");
    look_expect(at(root, "10de"), 1, 2, "2 devices, the first 0000:3b:00.0 (10de:2335)");
    look_expect(at(root, "10de:04"), 1, 1,
                "1 device, 0000:3b:00.1 (10de:228e); 1 more could not be read");
    look_expect(at(root, "1002"), 0, 0, "absent");
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
        put_fact(root, &gpu, "vendor", garbage[i]);
        look_expect(at(root, "1002"), -1, 0, vendor);
    }
    put_device(root, &gpu);
    put_fact(root, &gpu, "device", "?\n");
    look_expect(at(root, "10de:03"), 1, 1, "1 device, 0000:3b:00.0 (10de)");
    assert_int_equal(remove(look_below(root, "/sys/bus/pci/devices/0000:3b:00.0/vendor")), 0);
    assert_contains(at(root, "1002").text, "/sys/bus/pci/devices/0000:3b:00.0/vendor: ");
}

enum { MANY = 300 };

static void draw_devices(struct device devices[MANY])
{
    static const unsigned vendors[] = {0x8086, 0x10de, 0x1002, 0x15b3, 0x1af4, 0x8086, 0x8086};
    static const unsigned kinds[] = {0x030200, 0x030000, 0x038000, 0x120000, 0x060400, 0x020000};
    for (unsigned i = 0; i < MANY; i++) {
        unsigned mix = i * 2654435761u >> 16;
        devices[i] = (struct device){i / 150, (i % 150) * 0x123 & 0xffff, vendors[mix % 7],
                                     0x1000 + i, kinds[mix / 7 % 6]};
    }
}

static void check_many(const char *root, const struct device devices[MANY])
{
    static const struct {
        const char *ids;
        unsigned vendor, kind, shift, other;
    } rows[] = {
        {"10de", 0x10de, 0, 24, 0},
        {"10de:03", 0x10de, 3, 16, 0},
        {"1002:0380", 0x1002, 0x380, 8, 0},
        {"8086:030000", 0x8086, 0x30000, 0, 0},
        {"1af4|10de:03", 0x10de, 3, 16, 0x1af4},
        {"1234", 0x1234, 0, 24, 0},
        {"10de:99", 0x10de, 0x99, 16, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int count = 0;
        char first[64] = "";
        for (int j = 0; j < MANY; j++) {
            const struct device *d = &devices[j];
            if ((d->vendor != rows[i].vendor || d->kind >> rows[i].shift != rows[i].kind) &&
                (!rows[i].other || d->vendor != rows[i].other))
                continue;
            char name[64];
            snprintf(name, sizeof name, "%04x:%02x:%02x.%x (%04x:%04x)", d->domain, d->place >> 8,
                     d->place >> 3 & 31, d->place & 7, d->vendor, d->number);
            if (count++ == 0 || strcmp(name, first) < 0)
                memcpy(first, name, sizeof first);
        }
        tni_look look = at(root, rows[i].ids);
        assert_int_equal(look.holds, count > 0);
        assert_int_equal(look.count, count);
        assert_contains(look.text, count ? first : "absent");
    }
}

static void three_hundred_functions_are_counted(void **state)
{
    static struct device devices[MANY];
    const char *root = look_root();
    (void)state;
    draw_devices(devices);
    for (int i = 0; i < MANY; i++)
        put_device(root, &devices[i]);
    check_many(root, devices);
    put_list(root, devices, MANY);
    check_many(root, devices);
}

/* As many of each vendor as there are files that say so. */
static void real_bus_is_counted(void **state)
{
    unsigned vendor;
    int count, lines = 0;
    FILE *pipe = popen("cat /sys/bus/pci/devices/*/vendor 2>&1 | sort | uniq -c", "r");
    (void)state;
    assert_non_null(pipe);
    while (fscanf(pipe, "%d 0x%x", &count, &vendor) == 2) {
        char ids[16];
        snprintf(ids, sizeof ids, "%04x", vendor);
        tni_look look = at(NULL, ids);
        print_message("%s: %s\n", ids, look.text);
        assert_int_equal(look.count, count);
        lines++;
    }
    (void)pclose(pipe);
    look_sound(at(NULL, "ffff"));
    if (lines == 0)
        skip_because("no PCI bus is to be seen here: %s", at(NULL, "8086").text);
}

static void looks_survive_every_fault(void **state)
{
    const char *root = look_root();
    const struct device all[] = {bridge, gpu, sound};
    (void)state;
    for (int i = 0; i < 3; i++)
        put_device(root, &all[i]);
    look_survives_all(at, root, "10de:03", 20, 8);
    put_list(root, all, 3);
    look_survives_all(at, root, "10de:03", 20, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_vendors_and_classes),
        cmocka_unit_test(ids_fit_by_the_beginning_of_a_class),
        cmocka_unit_test(addresses_have_places),
        cmocka_unit_test(list_of_the_bus_gives_places),
        cmocka_unit_test(bus_without_devices_has_none),
        cmocka_unit_test(one_device_is_found_by_either_list),
        cmocka_unit_test(list_without_the_vendor_is_enough),
        cmocka_unit_test(list_that_does_not_tell_is_not_trusted),
        cmocka_unit_test(vendor_without_a_class_in_sight_is_not_known),
        cmocka_unit_test(domains_are_told_apart),
        cmocka_unit_test(damaged_devices_are_said),
        cmocka_unit_test(three_hundred_functions_are_counted),
        cmocka_unit_test(real_bus_is_counted),
        cmocka_unit_test(looks_survive_every_fault),
    };
    look_begin();
    int failed = run_suite("unit.look_pci", tests);
    look_end();
    return failed;
}
