/* What the looks share, and the parsers behind them: pure functions over bytes that others own.
 * Thread-safety: Safe. */
#ifndef TNI_OS_LOOK_READ_H
#define TNI_OS_LOOK_READ_H

#include "look.h"
#include "os/span.h"

enum { TNI_LOOK_PATH = 4096 };

/* The whole answer, not denied; `count` of what is there. The text becomes one line of UTF-8. */
void tni_look_say(tni_look *out, int32_t holds, int32_t count, const char *format, ...)
    TN_PRINTF(4, 5);

/* What stands before every path: "" for the running system. */
const char *tni_look_root(const char *root);

/* False when the path is too long, which is as good as absent: the system opens none such. */
bool tni_look_path(char out[TNI_LOOK_PATH], const char *format, ...) TN_PRINTF(2, 3);

/* What a call on a file below `root` said, with the path as it is seen from there. */
const char *tni_look_why(const char *root, const tn_error *err);

/* Whether the process may open what is at `path` for reading and writing, as far as its mode tells;
 * rules that only an attempt would meet, such as a control group's, are not known. */
bool tni_look_may_open(const char *path);

/* "VENDOR", "VENDOR:CLASS" and "VENDOR/DEVICE" between "|": of four digits, a class of one to six.
 * False for anything else, and *out_wrong is the first that is not so. */
bool tni_pci_ids_check(tni_span ids, tni_span *out_wrong);

/* Whether an id of a sound list names the vendor; whether one fits a device, of which number and
 * class may be unknown, -1: then only those that ask for neither fit. */
bool tni_pci_ids_name(tni_span ids, uint32_t vendor);
bool tni_pci_ids_fit(tni_span ids, uint32_t vendor, int32_t device, int32_t device_class);

/* Places on buses: bus << 8 | device << 3 | function. Domains are not told apart. */
enum { TNI_PCI_PLACES = 1 << 16 };
typedef struct tni_pci_places {
    uint64_t bits[TNI_PCI_PLACES / 64];
    int32_t count; /* of devices, which may share a place in two domains */
} tni_pci_places;

/* The places that /proc/bus/pci/devices has for vendors that `ids` name. False when a line of it
 * makes no sense. */
bool tni_pci_places_parse(tni_span text, tni_span ids, tni_pci_places *out);
bool tni_pci_places_has(const tni_pci_places *places, uint32_t place);

/* "0000:3b:00.0", as /sys/bus/pci/devices names them; false for anything else. */
bool tni_pci_address_parse(tni_span name, uint32_t *out_place);

/* The loader's cache, /etc/ld.so.cache. Lends the bytes it was read from. */
typedef struct tni_loader_cache {
    tni_span data;  /* from the header on: what offsets count from */
    uint32_t count; /* of entries, all inside of it                */
} tni_loader_cache;

/* TN_CORRUPT when it is none, or is cut short; TN_INCOMPATIBLE for another byte order. */
tn_status tni_loader_cache_parse(tni_span bytes, tni_loader_cache *out, tn_error *err);

/* The path of a library for this machine, or NULL: the first entry of that name that asks for no
 * instruction set of its own. Entries that lead outside of the cache are passed over. */
const char *tni_loader_cache_find(const tni_loader_cache *cache, tni_span name);

/* Names of libraries between "|": none is empty, nor longer than library_bind takes. */
bool tni_library_names_check(tni_span names);

#endif
