/* Detects hardware, drivers and libraries without opening a library or waking a device: checks
 * files, the PCI bus, and what the loader would find. Thread-safety: Safe. These functions never
 * fail: if something cannot be checked, the result says so. */
#ifndef TNI_OS_LOOK_H
#define TNI_OS_LOOK_H

#include "tenon/base.h"

#include <stdbool.h>

typedef struct tni_look {
    int32_t holds;  /* 1 present, 0 absent, -1 could not be checked */
    int32_t count;  /* number found, if several can match; else 1 or 0 */
    int32_t denied; /* 1 if present, but this process cannot open it */
    char text[512]; /* what was found, for people: "present", "absent", "2 devices, the first
                       0000:3b:00.0 (10de:2335)", "/usr/lib/.../libcuda.so.1", ... cut to fit */
} tni_look;

/* `root` is NULL for the running system, else a folder used in place of "/". Symbolic links in it
 * that begin with "/" point outside of it. */

/* Checks a path that starts at the root; a path that ends in "*" matches every entry of its folder
 * that begins with the part before "*". A device node (or any file below /dev) is denied if this
 * process may not open it for reading and writing; several matches are denied if none may be
 * opened. Opens nothing. */
void tni_look_file(const char *root, const char *path, tni_look *out);

/* Checks for devices on the PCI bus. `ids` are "VENDOR", "VENDOR:CLASS" or "VENDOR/DEVICE" in
 * hexadecimal, separated by "|": vendor and device have four digits; a class has one to six, which
 * must be the first digits of the device's class. Reads only what the system has stored about a
 * device, so that no device wakes. */
void tni_look_pci(const char *root, const char *ids, tni_look *out);

/* Checks for a library by versioned names separated by "|", where the loader would find it: the
 * folders of `search` (the value of LD_LIBRARY_PATH, or NULL), the loader's cache, the loader's
 * default folders. A name with a "/" is a path. The file must exist, be complete as far as its
 * headers show, and be for this machine; the text mentions a file that was skipped because it is
 * not. */
void tni_look_library(const char *root, const char *files, const char *search, tni_look *out);

/* As tni_look_library for the running system, but resolves the names as opening them would: a
 * library already loaded in this process takes precedence over any file, wherever either is.
 * Returns true if it is already loaded. */
bool tni_look_loaded(const char *files, tni_look *out);

/* Whether Tenon was built for a system: "linux/x86_64", "darwin/arm64", "windows/x86_64". "amd64"
 * is accepted for "x86_64", and "aarch64" for "arm64". */
void tni_look_system(const char *system, tni_look *out);

#endif
