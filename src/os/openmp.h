/* Run-times of OpenMP that others brought into this process, and loops on their threads. Thread-safety: Safe. */
#ifndef TNI_OS_OPENMP_H
#define TNI_OS_OPENMP_H

#include "tenon/base.h"

#include <stdbool.h>

/* Whether a path or a name is that of GNU's, Intel's or LLVM's run-time, also as packagers rename them:
 * "libgomp-a34b3233.so.1". */
bool tni_openmp_is_runtime(const char *path);

/* Whether loops can run on a run-time's threads: those of the first that is in the process. None is ever loaded for
 * it; while there is none, it is looked for ten times a second at most, and that it is missing is logged once.
 * False in a child of fork(): whether its parent's threads had entered one nobody says. */
bool tni_openmp_ready(void);

/* Runs task(user, i) for every i in [0, count) on at most `most` of the run-time's threads, 0: all that it gives
 * the caller; returns when all are done. On the caller's thread alone where none was found, inside a task, and
 * while another thread's loop has them. Tasks have the caller's floating-point mode.
 *
 * The whole team takes part in every loop, also in short ones: GNU's run-time ends threads that a smaller team
 * leaves over, and its user's next loop would have to start them again. */
void tni_openmp_for(int32_t most, int64_t count, tn_task *task, void *user);

/* For a child of fork(): GNU's run-time would wait for threads that it does not have. */
void tni_openmp_forget(void);

/* How many threads the calling thread's loops would have; 1 where no run-time was found. */
int32_t tni_openmp_threads(void);

#endif
