/* The kernel module's own list of devices, below /proc/driver/nvidia: it counts and names them before any of NVIDIA's
 * libraries has started, in well under a millisecond. It tells no numbers: neither memory nor capability. */
#ifndef CUDA_PROC_H
#define CUDA_PROC_H

#include "visible.h"

/* Lists what this process may use: name, UUID, bus address, and the number that the management library has for it too.
 * A device that is excluded, or whose device file may not be opened, is not there for the libraries either.
 *
 * `root` stands before every path but `library`, "" for the machine itself; `library` is where the driver's library
 * lies. 0 when the list does not say all, and others are to be asked:
 *   - there is none, or it is empty (WSL, a Jetson, no kernel module);
 *   - the library is not of the module's version, or /dev/nvidiactl may not be opened;
 *   - a device has no name or UUID yet, as before its first use since the module was loaded;
 *   - a device is split into MIG instances;
 *   - a device file is missing, and the libraries could make it. */
int cuda_proc_list(const char *root, const char *library, cuda_listing *out);

#endif
