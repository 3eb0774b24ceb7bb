#include "look_read.h"

#include "base/alloc.h"
#include "base/out_of_line.h"
#include "os/file.h"

/* A line of the bus's list has about 300 bytes; a machine has at most hundreds of them. */
enum { LONGEST_LIST = 4 << 20, LONGEST_NUMBER = 64 };

static const char devices[] = "/sys/bus/pci/devices";

typedef struct walk {
    const char *root;
    tni_span ids;
    int32_t visited;
    int32_t count;  /* devices that match */
    int32_t unread; /* devices that could not be read */
    char first[64]; /* "0000:3b:00.0 (10de:2335)" */
    tn_error why;   /* error of the first unread device */
} walk;

/* Reads one attribute that the system has stored for a device, so that the device is not accessed:
 * no other file is opened. */
static bool read_fact(const char *root, const char *device, const char *fact, uint32_t most,
                      uint32_t *out, tn_error *err)
{
    char path[TNI_LOOK_PATH], *text;
    size_t size;
    int64_t value;
    if (!tni_look_path(path, "%s%s/%s/%s", root, devices, device, fact)) {
        tn_fail(err, TN_IO, 0, "look", "%s/%s: the path is too long", devices, device);
        return false;
    }
    if (tni_file_read(path, LONGEST_NUMBER, &text, &size, err))
        return false;
    bool sound = tni_span_hex(tni_span_trim((tni_span){text, size}), &value) && value <= most;
    if (sound)
        *out = (uint32_t)value;
    else
        tn_fail(err, TN_CORRUPT, 0, "look", "%s: not a number of at most %x", path, (unsigned)most);
    tni_release(text);
    return sound;
}

static void count_device(walk *to, const char *device, uint32_t vendor)
{
    uint32_t number;
    if (to->count++ > 0)
        return;
    if (read_fact(to->root, device, "device", 0xFFFF, &number, NULL))
        snprintf(to->first, sizeof to->first, "%s (%04x:%04x)", device, (unsigned)vendor,
                 (unsigned)number);
    else
        snprintf(to->first, sizeof to->first, "%s (%04x)", device, (unsigned)vendor);
}

/* Matches by device number and class, as far as they can be read. Returns false if an unreadable
 * attribute could change the result. */
static bool fits_closely(walk *to, const char *device, uint32_t vendor, bool *out_fits,
                         tn_error *err)
{
    uint32_t number, kind;
    bool numbered = read_fact(to->root, device, "device", 0xFFFF, &number, err);
    bool classed = read_fact(to->root, device, "class", 0xFFFFFF, &kind, err);
    *out_fits = tni_pci_ids_fit(to->ids, vendor, numbered ? (int32_t)number : -1,
                                classed ? (int32_t)kind : -1);
    return *out_fits || (numbered && classed);
}

/* Reads more than the vendor only if that can change the result. */
static void visit(walk *to, const char *device)
{
    uint32_t vendor;
    tn_error err;
    bool read = read_fact(to->root, device, "vendor", 0xFFFF, &vendor, &err), fits = false;
    to->visited++;
    if (read && tni_pci_ids_fit(to->ids, vendor, -1, -1))
        fits = true;
    else if (read && tni_pci_ids_name(to->ids, vendor))
        read = fits_closely(to, device, vendor, &fits, &err);
    if (fits)
        count_device(to, device, vendor);
    if (!read && to->unread++ == 0)
        to->why = err;
}

/* The list of the whole bus is one file. Usually it has no matching vendor, and then no other file
 * need be opened. Returns false if it is unusable, for example empty in a container. */
static TNI_OUT_OF_LINE bool read_places(const char *root, tni_span ids, tni_pci_places *out)
{
    char path[TNI_LOOK_PATH], *text;
    size_t size;
    if (!tni_look_path(path, "%s/proc/bus/pci/devices", root) ||
        tni_file_read(path, LONGEST_LIST, &text, &size, NULL))
        return false;
    bool sound = size && tni_pci_places_parse((tni_span){text, size}, ids, out);
    tni_release(text);
    return sound;
}

static void report_devices(const walk *seen, tni_look *out)
{
    char unread[48] = "";
    if (seen->unread)
        snprintf(unread, sizeof unread, "; %d more could not be read", (int)seen->unread);
    if (seen->count == 0 && seen->unread)
        tni_look_report(out, -1, 0, "%s", tni_look_why(seen->root, &seen->why));
    else if (seen->count == 0)
        tni_look_report(out, 0, 0, "absent");
    else
        tni_look_report(out, 1, seen->count, "%d device%s %s%s", (int)seen->count,
                        seen->count == 1 ? "," : "s, the first", seen->first, unread);
}

/* If `places` is not NULL, visits only the devices that may be at one of them. */
static tn_status walk_devices(walk *to, const tni_pci_places *places, tn_error *err)
{
    char path[TNI_LOOK_PATH];
    tni_names *names = NULL;
    uint32_t place;
    tn_status status = tni_look_path(path, "%s%s", to->root, devices)
                           ? tni_folder_list(path, "", "", &names, err)
                           : TN_NOT_FOUND;
    for (size_t i = 0; !status && i < names->count; i++) {
        if (tni_pci_address_parse(tni_span_of(names->names[i]), &place) &&
            (!places || tni_pci_places_has(places, place)))
            visit(to, names->names[i]);
    }
    tni_release(names);
    return status;
}

static void search_bus(walk *to, const tni_pci_places *places, tni_look *out)
{
    tn_error err;
    tn_status status = walk_devices(to, places, &err);
    if (status && status != TN_NOT_FOUND)
        tni_look_report(out, -1, 0, "%s", tni_look_why(to->root, &err));
    else if (places && to->visited == 0)
        tni_look_report(out, -1, 0, "%d of that vendor, but %s does not show their class",
                        (int)places->count, devices);
    else if (status)
        tni_look_report(out, -1, 0, "no PCI bus found: %s does not exist", devices);
    else
        report_devices(to, out);
}

void tni_look_pci(const char *root, const char *ids, tni_look *out)
{
    walk to = {.root = tni_look_root(root), .ids = tni_span_of(ids)};
    tni_pci_places places;
    tni_span wrong;
    if (!tni_pci_ids_check(to.ids, &wrong)) {
        tni_look_report(
            out, -1, 0,
            "\"%.*s\" is not a PCI id: expected VENDOR, VENDOR:CLASS or VENDOR/DEVICE, such as "
            "10de:03",
            (int)(wrong.length < 64 ? wrong.length : 64), wrong.text);
        return;
    }
    bool known = read_places(to.root, to.ids, &places);
    if (known && places.count == 0)
        tni_look_report(out, 0, 0, "absent");
    else
        search_bus(&to, known ? &places : NULL, out);
}
