/* Checks what a kernel row declares: the same bits in a second run, the size of its workspace, and
 * whether calls may be recorded into a graph. */
#ifndef TNI_CHECK_DECLARED_H
#define TNI_CHECK_DECLARED_H

#include "check.h"

/* The first run of a trial. */
typedef struct tni_first_run {
    const tni_trial *trial;
    const tni_operands *operands;
    unsigned char *const *block; /* the outputs, copied from the device; NULL for inputs */
} tni_first_run;

/* Runs the kernel once more on the same inputs: recorded into a graph, if its row and the device
 * permit it, and in a workspace that is exactly as large as the row requested, has other contents
 * than before, and is followed by guard bytes. There is no second run without memory for that
 * workspace. Sets out->ok to 0 and explains it in out->text if
 * the kernel fails or writes the guard bytes, or if it declares TN_NUM_RUN_TO_RUN and the outputs
 * differ from those of the first run. */
tn_status tni_declared_check(const tni_first_run *first, tn_check_result *out, tn_error *err);

#endif
