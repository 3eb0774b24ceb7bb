/* Kernels of attention for devices that are only described, so that what is chosen does not depend on the
 * machine or on what Tenon's own modules bring. By platform, the faster ones first:
 *
 *     tpu    flash    FLASH_ATTN: f32, bf16; causal, groups, log-sum-exp
 *            narrow   math: f16, bf16; sums in 16 bits
 *            plain    math: f32, f16, bf16; everything
 *            own      ACME_ATTN: f64
 *            backward plain alone
 *     acme   flash    f16, bf16
 *            own      no backend, out of tree
 *     cuda   flash, efficient, cudnn              } only where attention_rows_of_gpus is set
 *     rocm   flash, efficient; ck, a library      } before the first use
 *
 * Devices: "pod" of tpu, "acme:0", "bare" of xpu without a kernel; h200, a100, mi300x as the repository
 * describes them; and "sm49", ... for each capability, "gfx1101", ... for each architecture at an edge. */
#ifndef TENON_TEST_ATTENTION_ROWS_H
#define TENON_TEST_ATTENTION_ROWS_H

#include "test.h"

#include "tenon/tenon.h"

#include <stdbool.h>

extern bool attention_rows_of_gpus;

/* How often tpu's flash was asked whether it takes a problem. */
extern int attention_rows_asked;

/* Registers kernels and devices, once for the process; nothing is tested before it is taken. */
void attention_rows(void);

tn_device *described(const char *name);

#endif
