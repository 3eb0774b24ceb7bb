/* A platform for tests of dispatch: "toy", one device whose memory is the host's, whose streams say that
 * they queue but do everything at once, and that can be lost. Its matmul kernels, by predicted time:
 *
 *     toy.matmul.tf32  reads f32 as tf32
 *     toy.matmul.fast  f32; k a multiple of 4; no bias, no activation, nothing of determinism; has a plan,
 *                      which serves every m and n, and 4096 bytes of workspace
 *     toy.matmul.slow  f32 and f64; everything; promises run-to-run
 */
#ifndef TENON_TEST_TOY_H
#define TENON_TEST_TOY_H

#include "test.h"

#include "dispatch/plan.h"
#include "tenon/tenon.h"

/* What the kernels have seen, and what the next ones do. */
typedef struct toy_state {
    _Atomic int64_t plans; /* made and not given back */
    _Atomic int64_t plans_made;
    _Atomic int64_t runs;
    _Atomic int64_t slow_runs; /* of toy.matmul.slow */
    _Atomic int64_t syncs;
    const char *_Atomic last; /* the name of the kernel that ran last */
    void *_Atomic last_workspace;
    _Atomic bool lose;       /* the next wait finds the device lost   */
    _Atomic int lies;        /* so many runs give one more than is right */
    _Atomic tn_status fails; /* what the next run gives               */
    _Atomic double cost_us;  /* what toy.matmul.fast says of its time; 0 at first */
    _Atomic int64_t cost_asked;
    _Atomic int64_t packs;         /* made by toy.matmul.fast and not given back */
    _Atomic int64_t packed_runs;   /* with one                                   */
    _Atomic tn_status pack_fails;  /* what the next pack gives                   */
    _Atomic int64_t many_runs;     /* of several at once, by toy.matmul.fast     */
    _Atomic int64_t fails_at;      /* which of these fails, from 1; 0: none; -1: no single one */
    _Atomic tn_status plan_fails;  /* what the next plan of toy.matmul.fast gives */
    _Atomic bool plan_invalidates; /* the next plan of it makes all choices stale */
} toy_state;
extern toy_state toy;

/* Registers it, once for the process; kernels are taken without being tested. */
tn_device *toy_device(void);

/* A dense tensor on a device, of small whole numbers by `seed`. */
tn_tensor toy_tensor(tn_device *device, tn_dtype dtype, int64_t rows, int64_t columns, int seed);

/* The kernel that a problem's text would be run with; "" when none would. */
const char *toy_choice(const tn_context *context, const char *problem);

/* `context` changed by "key=value"; the caller releases it. */
tn_context *toy_with(const char *setting);

#endif
