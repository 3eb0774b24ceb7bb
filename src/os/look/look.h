/* Traces of hardware, drivers and libraries, looked for without opening a library or waking a
 * device: files, the PCI bus, what the loader would find.
 * Thread-safety: Safe. Nothing here fails: what cannot be looked at says so. */
#ifndef TNI_OS_LOOK_H
#define TNI_OS_LOOK_H

#include "tenon/base.h"

#include <stdbool.h>

typedef struct tni_look {
    int32_t holds;  /* 1 it is there, 0 it is not, -1 it could not be looked at            */
    int32_t count;  /* how many, where several count; else 1 or 0                          */
    int32_t denied; /* 1 when it is there, but this process may not open it for use        */
    char text[512]; /* what was found, for people: "present", "absent", "2 devices, the first
                       0000:3b:00.0 (10de:2335)", "/usr/lib/.../libcuda.so.1", ... cut to fit */
} tni_look;

/* `root` is NULL for the running system, else a folder that stands for "/"; links in it that begin
 * with "/" lead out of it. */

/* A path from the root on; one that ends in "*" stands for every entry of its folder that begins
 * so. A device node (or any file below /dev) that may not be opened for reading and writing is
 * denied; of several, when none may. Nothing is opened to find out. */
void tni_look_file(const char *root, const char *path, tni_look *out);

/* Devices on the PCI bus. `ids` are "VENDOR" or "VENDOR:CLASS" in hexadecimal, separated by "|": a
 * vendor of four digits; a class of one to six, which matches when the device's six begin with
 * it. Reads what the system keeps of a device, so that none is woken. */
void tni_look_pci(const char *root, const char *ids, tni_look *out);

/* A library by versioned names separated by "|", where the loader would find it: the folders of
 * `search` (LD_LIBRARY_PATH's value, or NULL), the loader's cache, the folders it always searches.
 * A name with a "/" is a path. The file must be there and be whole, as far as its headers tell, and
 * of this machine; what was passed over for want of that is said. */
void tni_look_library(const char *root, const char *files, const char *search, tni_look *out);

/* The same of the running system, as opening one of the names would have it: what is in this process comes before any
 * file, whatever its place. Whether it is that. */
bool tni_look_taken(const char *files, tni_look *out);

/* "linux/x86_64", "darwin/arm64", "windows/x86_64": whether the library was built for it. "amd64"
 * is "x86_64", and "aarch64" "arm64". */
void tni_look_system(const char *system, tni_look *out);

#endif
