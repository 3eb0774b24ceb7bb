/* Shared functions and parsers of the detection in look.h: pure functions over bytes that the
 * caller owns. Thread-safety: Safe. */
#ifndef TNI_OS_LOOK_READ_H
#define TNI_OS_LOOK_READ_H

#include "look.h"
#include "os/span.h"

enum { TNI_LOOK_PATH = 4096 };

/* Sets the whole result, with `denied` 0; `count` is the number found. The text becomes one line of
 * UTF-8. */
void tni_look_report(tni_look *out, int32_t holds, int32_t count, const char *format, ...)
    TN_PRINTF(4, 5);

/* Prefix of every path: "" for the running system. */
const char *tni_look_root(const char *root);

/* Returns false if the path is too long; treat it as absent, since the system cannot open it. */
bool tni_look_path(char out[TNI_LOOK_PATH], const char *format, ...) TN_PRINTF(2, 3);

/* Message of a failed call on a file below `root`, with the path relative to the root. */
const char *tni_look_why(const char *root, const tn_error *err);

/* Whether the process may open `path` for reading and writing, as far as its mode shows. Rules that
 * apply only when it is opened, such as those of a control group, are not checked. */
bool tni_look_may_open(const char *path);

/* Checks a list of "VENDOR", "VENDOR:CLASS" and "VENDOR/DEVICE" separated by "|": four hexadecimal
 * digits each, one to six for a class. If one is invalid, returns false and *out_wrong is the first
 * such. */
bool tni_pci_ids_check(tni_span ids, tni_span *out_wrong);

/* Whether an id of a valid list names the vendor; whether one matches a device. `device` or
 * `device_class` is -1 if unknown; then ids that ask for it do not match. */
bool tni_pci_ids_name(tni_span ids, uint32_t vendor);
bool tni_pci_ids_fit(tni_span ids, uint32_t vendor, int32_t device, int32_t device_class);

/* Positions on buses: bus << 8 | device << 3 | function. Domains are not distinguished. */
enum { TNI_PCI_PLACES = 1 << 16 };
typedef struct tni_pci_places {
    uint64_t bits[TNI_PCI_PLACES / 64];
    int32_t count; /* devices; two in different domains may share a position */
} tni_pci_places;

/* The positions in /proc/bus/pci/devices of the vendors that `ids` name. Returns false if a line is
 * malformed. */
bool tni_pci_places_parse(tni_span text, tni_span ids, tni_pci_places *out);
bool tni_pci_places_has(const tni_pci_places *places, uint32_t place);

/* Parses "0000:3b:00.0", as entries of /sys/bus/pci/devices are named; false for anything else. */
bool tni_pci_address_parse(tni_span name, uint32_t *out_place);

/* The loader's cache, /etc/ld.so.cache. Refers to the bytes it was parsed from; does not own
 * them. */
typedef struct tni_loader_cache {
    tni_span data;  /* from the header on: offsets are relative to it */
    uint32_t count; /* entries, all of them inside `data` */
} tni_loader_cache;

/* Fails with TN_CORRUPT if the bytes are not a cache or are truncated, with TN_INCOMPATIBLE for
 * another byte order. */
tn_status tni_loader_cache_parse(tni_span bytes, tni_loader_cache *out, tn_error *err);

/* Returns the path of a library for this machine, or NULL: the first entry of that name that
 * requires no specific instruction set. Skips entries that point outside of the cache. */
const char *tni_loader_cache_find(const tni_loader_cache *cache, tni_span name);

/* Checks library names separated by "|": none may be empty or longer than library_bind accepts. */
bool tni_library_names_check(tni_span names);

#endif
