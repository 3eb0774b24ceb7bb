/* A made-up module whose driver ends its process when it is touched once the trap is armed: platform
 * "trap", kind OOT, two devices, every function of a row. */
#ifndef TENON_TEST_WORKER_TRAP_H
#define TENON_TEST_WORKER_TRAP_H

#include "world.h"

enum { TRAP_TOUCHED = 66 }; /* the exit code */

extern _Atomic bool trap_armed;

tni_builtin trap_builtin(void);

#endif
