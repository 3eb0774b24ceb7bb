/* A made-up /proc/driver/nvidia and /dev below a folder of a test's own, as the kernel module has them. */
#ifndef TESTS_CUDA_LISTING_H
#define TESTS_CUDA_LISTING_H

#include "scratch.h"

#define LISTING_VERSION "580.159.04"

/* The UUID of a device that was not used yet; escaped, as it has what C reads as trigraphs. */
#define LISTING_UNTOLD "GPU-???????\?-???\?-???\?-???\?-????????????"

enum { LISTING_PATH = SCRATCH_PATH + 256 };

/* Writes a file, and makes the folders before it. */
static inline void listing_put(const char *root, const char *path, const char *text)
{
    char whole[LISTING_PATH];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(whole, sizeof whole, "%s%.*s", root, (int)(slash - path), path);
        (void)mkdir(whole, 0755);
    }
    snprintf(whole, sizeof whole, "%s%s", root, path);
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(whole, 0666), 0);
}

static inline void listing_take_away(const char *root, const char *path)
{
    char whole[LISTING_PATH];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    assert_int_equal(remove(whole), 0);
}

typedef struct listing_device {
    const char *bus, *name, *uuid, *excluded;
    unsigned minor;
} listing_device;

/* A device's file, as driver 580 writes it. */
static inline void listing_add(const char *root, const listing_device *device)
{
    char path[256], text[1024];
    snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", device->bus);
    snprintf(text, sizeof text,
             "Model: \t\t %s\nIRQ:   \t\t 41\nGPU UUID: \t %s\nVideo BIOS: \t 96.00.a5.00.1a\n"
             "Bus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n"
             "Bus Location: \t %s\nDevice Minor: \t %u\nGPU Firmware: \t 580.159.04\n"
             "GPU Excluded:\t %s\n",
             device->name, device->uuid, device->bus, device->minor,
             device->excluded ? device->excluded : "No");
    listing_put(root, path, text);
    snprintf(path, sizeof path, "/dev/nvidia%u", device->minor);
    listing_put(root, path, "");
}

/* A machine without a device. */
static inline void listing_begin(const char *root)
{
    listing_put(root, "/proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " LISTING_VERSION
                "  Release Build  (builder@host)\nGCC version:  gcc version 12.2.0\n");
    listing_put(root, "/dev/nvidiactl", "");
}

/* A file that is called as the driver's library of that version is; "" for none. */
static inline void listing_library(const char *root, const char *version, char out[LISTING_PATH])
{
    char path[64], link[LISTING_PATH];
    snprintf(path, sizeof path, "/lib/libcuda.so%s%s", version[0] ? "." : "", version);
    listing_put(root, path, "");
    snprintf(link, sizeof link, "libcuda.so%s%s", version[0] ? "." : "", version);
    snprintf(out, LISTING_PATH, "%s/lib/libcuda.so.1", root);
    (void)unlink(out);
    assert_int_equal(symlink(link, out), 0);
}

#endif
