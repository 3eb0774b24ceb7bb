#include "look_read.h"

/* Parses text of exactly `digits` hexadecimal digits. */
static bool take_hex(tni_span text, size_t digits, uint32_t *out)
{
    int64_t value;
    if (text.length != digits || tni_span_begins(text, "0x") || !tni_span_hex(text, &value))
        return false;
    *out = (uint32_t)value;
    return true;
}

typedef struct pci_id {
    uint32_t vendor;
    uint32_t rest; /* device, or the first digits of a class */
    size_t digits; /* digits of `rest`; 0: any device of the vendor */
    bool is_device;
} pci_id;

static bool parse_id(tni_span text, pci_id *out)
{
    pci_id id = {.is_device = text.length > 4 && text.text[4] == '/'};
    tni_span vendor, rest = text;
    if (!tni_span_next(&rest, id.is_device ? '/' : ':', &vendor) ||
        !take_hex(vendor, 4, &id.vendor))
        return false;
    if (rest.text) {
        id.digits = rest.length;
        if ((id.is_device ? rest.length != 4 : rest.length > 6) ||
            !take_hex(rest, rest.length, &id.rest))
            return false;
    }
    *out = id;
    return true;
}

bool tni_pci_ids_check(tni_span ids, tni_span *out_wrong)
{
    tni_span text;
    pci_id id;
    while (tni_span_next(&ids, '|', &text)) {
        if (parse_id(text, &id))
            continue;
        *out_wrong = text;
        return false;
    }
    return true;
}

bool tni_pci_ids_name(tni_span ids, uint32_t vendor)
{
    tni_span text;
    pci_id id;
    while (tni_span_next(&ids, '|', &text)) {
        if (parse_id(text, &id) && id.vendor == vendor)
            return true;
    }
    return false;
}

bool tni_pci_ids_fit(tni_span ids, uint32_t vendor, int32_t device, int32_t device_class)
{
    tni_span text;
    pci_id id;
    while (tni_span_next(&ids, '|', &text)) {
        if (!parse_id(text, &id) || id.vendor != vendor)
            continue;
        if (id.digits == 0 || (id.is_device && device >= 0 && (uint32_t)device == id.rest))
            return true;
        if (!id.is_device && device_class >= 0 &&
            (uint32_t)device_class >> 4 * (6 - id.digits) == id.rest)
            return true;
    }
    return false;
}

/* A line with tabs, "3b00 10de2335 ...": bus and devfn, vendor and device; the rest is ignored. */
static bool parse_line(tni_span line, uint32_t *out_place, uint32_t *out_vendor)
{
    tni_span place, id;
    uint32_t vendor_device;
    if (!tni_span_next(&line, '\t', &place) || !tni_span_next(&line, '\t', &id) ||
        !take_hex(place, 4, out_place) || !take_hex(id, 8, &vendor_device))
        return false;
    *out_vendor = vendor_device >> 16;
    return true;
}

bool tni_pci_places_parse(tni_span text, tni_span ids, tni_pci_places *out)
{
    tni_span line;
    uint32_t place, vendor;
    memset(out, 0, sizeof *out);
    while (tni_span_next(&text, '\n', &line)) {
        if (line.length == 0 && !text.text)
            break;
        if (!parse_line(line, &place, &vendor))
            return false;
        if (!tni_pci_ids_name(ids, vendor))
            continue;
        out->bits[place / 64] |= UINT64_C(1) << place % 64;
        out->count++;
    }
    return true;
}

bool tni_pci_places_has(const tni_pci_places *places, uint32_t place)
{
    return place < TNI_PCI_PLACES && (places->bits[place / 64] >> place % 64 & 1);
}

bool tni_pci_address_parse(tni_span name, uint32_t *out_place)
{
    tni_span domain, bus, device;
    uint32_t unused, numbers[3];
    if (!tni_span_next(&name, ':', &domain) || !tni_span_next(&name, ':', &bus) ||
        !tni_span_next(&name, '.', &device))
        return false;
    if (domain.length < 4 || domain.length > 8 || !take_hex(domain, domain.length, &unused) ||
        !take_hex(bus, 2, &numbers[0]) || !take_hex(device, 2, &numbers[1]) ||
        !take_hex(name, 1, &numbers[2]) || numbers[1] > 31 || numbers[2] > 7)
        return false;
    *out_place = numbers[0] << 8 | numbers[1] << 3 | numbers[2];
    return true;
}
