/* Temporary files beside a file that is replaced, PATH.tmp-BOOT-PID-TURN. The writer holds a lock (flock) on its
 * file until it has been renamed or removed; the system releases the lock when the process dies. So a file that
 * can be locked has no writer. That holds for this running system only: some network file systems
 * keep locks on each machine alone. BOOT says which system wrote the file; it is 0 if the writer could not lock it.
 * POSIX only. Thread-safety: Safe, also between processes. */
#ifndef TNI_OS_BESIDE_H
#define TNI_OS_BESIDE_H

#include <stddef.h>
#include <sys/types.h>

/* Characters that the temporary name adds to `path`, including the terminator. */
enum { TNI_BESIDE_ROOM = 64 };

/* Creates and opens a file for writing under a name that no other writer has; writes the name to `out_name`, which
 * has strlen(path) + TNI_BESIDE_ROOM characters. The caller renames or removes the file before it closes it, since that
 * releases the lock. Returns the descriptor, or -1 with errno. */
int tni_beside_create(const char *path, mode_t mode, char *out_name);

/* Removes the temporary files beside `path` whose writers are gone: at once those that this running system wrote, and
 * those of other systems, or without locks, one hour after the last change. Never removes a file that its writer holds
 * a lock on. What cannot be read or removed stays. */
void tni_beside_clean(const char *path);

#endif
