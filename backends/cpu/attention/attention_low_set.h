/* The set that computes bf16 directly. The includer must define multiply_scores and multiply_values
 * (attention_low_pipe.h); BEGIN and END, called by a thread before and after its steps, or NULL;
 * SET, its name. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_LOW_SET_H
#define TENON_BACKENDS_CPU_ATTENTION_LOW_SET_H

#include "attention_low.h"
#include "attention_low_finish.h"
#include "attention_low_pipe.h"

const tni_at_set SET = {
    .rows = TNI_AT_ROWS_MOST,
    .keys = PANEL_KEYS,
    .columns = SIDE,
    .lanes = 1,
    .real = sizeof(float),
    .few = 6,
    .whole = SIDE,
    .panels = 1,
    .looks = true,
    .q_row = q_row,
    .k_panel = k_panel,
    .v_line = 64,
    .room = 2 * (SCORES_BYTES + WEIGHTS_BYTES),
    .pack_rows = pack_rows,
    .pack = pack,
    .step = step,
    .finish = finish,
    .begin = BEGIN,
    .end = END,
};

#endif
