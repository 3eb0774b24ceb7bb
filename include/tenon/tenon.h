/* Tenon: the joint between a tensor program and the machine under it.
 *
 * Held throughout:
 * - A fallible call returns tn_status, 0 for success, and writes the details into the caller's
 *   tn_error, its last parameter, which may be NULL. On failure outputs are untouched.
 * - _get lends; _create, _add, _derive give; _release and _leave take back, never fail and accept
 *   NULL or a zeroed struct.
 * - Structs that may grow begin with struct_size, set by whoever allocates them.
 * - A calling thread needs 64 KiB of stack, also for first calls. Vendors' libraries are opened on a thread of
 *   their own. Where one then computes on the calling thread, the thread needs what that library does: with
 *   OpenBLAS and hwloc 64 KiB are enough; GPUs' libraries and oneDNN may need more.
 * - The library never prints, aborts or exits, and reads the environment only where its page says.
 * - Each type's header has a Thread-safety line. Safe: any calls from any threads.
 *
 * Every header here compiles alone, as C11 and as C++17, and does not change with how the library
 * was built. */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include "alloc.h"
#include "attention.h"
#include "attention_backend.h"
#include "base.h"
#include "cache.h"
#include "capability.h"
#include "check.h"
#include "context.h"
#include "cpu.h"
#include "device.h"
#include "dlpack.h"
#include "dtype.h"
#include "elementwise.h"
#include "event.h"
#include "explain.h"
#include "graph.h"
#include "library.h"
#include "lock.h"
#include "log.h"
#include "machine.h"
#include "matmul.h"
#include "memory.h"
#include "module.h"
#include "norm.h"
#include "parallel.h"
#include "plan.h"
#include "platform.h"
#include "random.h"
#include "reduce.h"
#include "rule.h"
#include "sdpa.h"
#include "setting.h"
#include "settings_table.h"
#include "status.h"
#include "stream.h"
#include "tensor.h"
#include "version.h"
#include "worker.h"

#endif
