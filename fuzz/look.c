/* The parsers used to find libraries and devices. The first byte selects: the loader's cache,
 * preceded by a zero-terminated name; the list of the PCI bus, preceded by zero-terminated ids; ids
 * and an address; names of libraries. */
#include "os/look/look_read.h"

#include "base/utf8.h"
#include "tenon/alloc.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void require_line(const char *text)
{
    size_t left = strlen(text);
    require(left > 0 && left < sizeof((tni_look *)0)->text);
    while (left > 0) {
        size_t size = tni_utf8_size(text, left);
        require(size > 0 && (unsigned char)*text >= ' ' && *text != '\177');
        text += size;
        left -= size;
    }
}

/* A result must be a path inside the bytes, including its terminator. */
static void try_cache(tni_span name, tni_span bytes)
{
    tni_loader_cache cache;
    tn_error err = {0};
    tn_status status = tni_loader_cache_parse(bytes, &cache, &err);
    if (status) {
        require((status == TN_CORRUPT || status == TN_INCOMPATIBLE) && err.message[0]);
        return;
    }
    const char *path = tni_loader_cache_find(&cache, name);
    if (!path)
        return;
    const char *end = bytes.text + bytes.length;
    require(path > bytes.text && path < end && path[0] == '/');
    require(memchr(path, '\0', (size_t)(end - path)) != NULL);
}

/* A device must be counted at its place, and only for ids that name its vendor. */
static void try_places(tni_span ids, tni_span list)
{
    static tni_pci_places places;
    tni_span wrong;
    int32_t set = 0;
    if (!tni_pci_ids_check(ids, &wrong)) {
        require(wrong.text >= ids.text && wrong.length <= ids.length);
        return;
    }
    if (!tni_pci_places_parse(list, ids, &places))
        return;
    for (uint32_t i = 0; i < TNI_PCI_PLACES; i++)
        set += tni_pci_places_has(&places, i);
    require(set <= places.count && (set > 0) == (places.count > 0));
    require(!tni_pci_places_has(&places, TNI_PCI_PLACES));
}

/* Ids that match without device number and class must match with any; a match must have its vendor
 * named. */
static void try_ids(tni_span ids)
{
    static const int32_t kinds[] = {-1, 0, 0x030200, 0x120000, 0xffffff};
    uint32_t vendor = 0, place = 0;
    for (size_t i = 0; i + 1 < ids.length; i++) {
        vendor = (vendor << 4 | (uint32_t)(ids.text[i] & 15)) & 0xffff;
        bool any = tni_pci_ids_fit(ids, vendor, -1, -1), named = tni_pci_ids_name(ids, vendor);
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            bool fits = tni_pci_ids_fit(ids, vendor, kinds[k] & 0xffff, kinds[k]);
            require((!any || fits) && (!fits || named));
        }
    }
    if (tni_pci_address_parse(ids, &place))
        require(place < TNI_PCI_PLACES && ids.length >= 12);
}

/* Below a root that does not exist nothing must be found, and one line must say so. */
static void try_looks(tni_span words)
{
    char *text = malloc(words.length + 1);
    tni_look look;
    require(text != NULL);
    memcpy(text, words.text, words.length);
    text[words.length] = '\0';
    bool sound = tni_library_names_check(tni_span_of(text));
    tni_look_library("/nowhere", text, text, &look);
    require(look.holds == (sound ? 0 : -1) || (sound && look.holds == -1 && strchr(text, '/')));
    require_line(look.text);
    tni_look_pci("/nowhere", text, &look);
    require(look.holds == -1);
    require_line(look.text);
    tni_look_file("/nowhere", text, &look);
    require(look.holds == 0 || look.holds == -1);
    require_line(look.text);
    tni_look_system(text, &look);
    require_line(look.text);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    tni_span text = {(const char *)data + 1, size - 1}, first;
    switch (data[0]) {
    case 'c':
        if (tni_span_next(&text, '\0', &first) && text.text)
            try_cache(first, text);
        break;
    case 'p':
        if (tni_span_next(&text, '\0', &first) && text.text)
            try_places(first, text);
        break;
    case 'i': try_ids(text); break;
    case 'l': try_looks(text); break;
    default: break;
    }
    require(tn_allocator_blocks() == 0);
    return 0;
}
