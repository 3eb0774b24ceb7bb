/* The kernel module's list of devices, below /proc/driver/nvidia: it counts and identifies them before any of
 * NVIDIA's libraries has started, in well under a millisecond. It contains no numbers: neither memory nor
 * capability. */
#ifndef CUDA_PROC_H
#define CUDA_PROC_H

#include "visible.h"

/* Lists the devices that this process may use: name, UUID, bus address, and the index that NVML uses, too. Skips a
 * device that is excluded or whose device file may not be opened: the libraries do not show it either.
 *
 * `root` is the prefix of every path except `library`, "" for the machine itself; `library` is the path of the
 * driver library. Returns 0 if the list is not sufficient and other sources must be queried:
 *   - there is no list, or it is empty (WSL, a Jetson, no kernel module);
 *   - the library's version differs from the kernel module's, or /dev/nvidiactl may not be opened;
 *   - a device has no name or UUID yet, as before its first use since the module was loaded;
 *   - a device is split into MIG instances;
 *   - a device file is missing, and the libraries could create it. */
int cuda_proc_list(const char *root, const char *library, cuda_listing *out);

#endif
