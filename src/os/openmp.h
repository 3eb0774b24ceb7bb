/* OpenMP run-times that other code loaded into this process, and loops on their threads.
 * Thread-safety: Safe. */
#ifndef TNI_OS_OPENMP_H
#define TNI_OS_OPENMP_H

#include "file.h"
#include "tenon/base.h"

#include <stdbool.h>
#include <string.h>

/* Whether a path or a name is that of GNU's, Intel's or LLVM's run-time, also if a packager renamed
 * it: "libgomp-a34b3233.so.1". */
static inline bool tni_openmp_is_runtime(const char *path)
{
    static const char *const stems[] = {"libgomp", "libiomp5", "libomp5", "libomp"};
    const char *name = tni_path_name(path);
    for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++) {
        size_t length = strlen(stems[i]);
        if (strncmp(name, stems[i], length) == 0 && (name[length] == '.' || name[length] == '-'))
            return true;
    }
    return false;
}

/* Whether loops can run on the threads of an OpenMP run-time: the first one loaded in the process.
 * Never loads one; while none exists, searches at most ten times a second, and logs once that it
 * is missing. False in a child of fork(): it cannot be known whether the parent's threads were
 * inside a run-time. */
bool tni_openmp_ready(void);

/* Runs task(user, i) for every i in [0, count) on at most `most` of the run-time's threads (0: all
 * that it gives the caller); returns when all are done. Runs on the caller's thread alone if there
 * is no run-time, inside a task, or while another thread's loop uses it. Tasks have the caller's
 * floating-point mode.
 *
 * The whole team takes part in every loop, even a short one: GNU's run-time ends the threads that a
 * smaller team does not need, and the next loop of another user would have to start them again. */
void tni_openmp_for(int32_t most, int64_t count, tn_task *task, void *user);

/* For a child of fork(): GNU's run-time would wait for threads that the child does not have. */
void tni_openmp_forget(void);

/* Number of threads for loops of the calling thread; 1 if no run-time was found. */
int32_t tni_openmp_threads(void);

#endif
