/* Tenon: the layer between a tensor program and the machine it runs on.
 *
 * Conventions:
 * - A function that can fail returns tn_status, 0 for success, and writes the details into the
 *   caller's tn_error, its last parameter, which may be NULL. On failure outputs are unchanged.
 * - _get returns a borrowed object; _create, _add and _derive return one that the caller owns;
 *   _release and _leave give it back, never fail and accept NULL or a zeroed struct.
 * - Structs that may grow begin with struct_size, which the code that allocates them must set.
 * - A calling thread needs 64 KiB of stack, also for first calls. Vendor libraries are opened on
 *   a separate thread. If one then computes on the calling thread, that thread needs the stack
 *   that the library needs: 64 KiB are enough for OpenBLAS and hwloc; GPU libraries and oneDNN
 *   may need more.
 * - The library never prints, aborts or exits, and reads the environment only where documented.
 * - The header of each type has a Thread-safety line. "Safe" means: any calls from any threads.
 *
 * Every header here compiles alone, as C11 and as C++17, and does not depend on how the library was
 * built. */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include "alloc.h"
#include "attention.h"
#include "attention_backend.h"
#include "attention_quantized.h"
#include "attention_sparse.h"
#include "attention_sparse_backward.h"
#include "attention_video.h"
#include "base.h"
#include "cache.h"
#include "capability.h"
#include "check.h"
#include "context.h"
#include "cpu.h"
#include "device.h"
#include "dlpack.h"
#include "dtype.h"
#include "einsum.h"
#include "elementwise.h"
#include "event.h"
#include "explain.h"
#include "fft.h"
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

/* Calls X(name) for each operator: tn_name, tn_name_explain and tn_name_prepare with a
 * tn_name_args. */
/* clang-format off */
#define TN_OPERATOR_LIST(X) \
    X(attention) \
    X(attention_backward) \
    X(attention_merge) \
    X(attention_quantized) \
    X(attention_sparse) \
    X(attention_sparse_backward) \
    X(binary) \
    X(cast) \
    X(fft) \
    X(fill) \
    X(matmul) \
    X(norm) \
    X(permute) \
    X(reduce) \
    X(rotary) \
    X(softmax) \
    X(unary)
/* clang-format on */

#endif
