/* Runs a child process that must answer within a time limit; otherwise it is killed. */
#ifndef TNI_OS_PROCESS_H
#define TNI_OS_PROCESS_H

#include "base/buffer.h"

/* The descriptor to which the child writes its answer; its standard descriptors are /dev/null. */
enum { TNI_PROCESS_ANSWER = 3 };

typedef struct tni_process_end {
    bool timed_out;
    bool answered_too_much; /* killed after 64 KiB */
    int32_t exit_code; /* -1 if it did not exit by itself, or the program's own code reaped it */
    int32_t signal;    /* signal that ended it, or 0 */
    bool from_outside; /* a signal that users or the system send, not a fault of the child */
} tni_process_end;

/* Starts `program` with `arguments` (NULL-terminated, the program's name first) in its own process
 * group, with default signals and no inherited descriptors, and collects what it writes to
 * TNI_PROCESS_ANSWER until it ends. After `limit_ns` the whole group is killed; a child that does
 * not end even then is not waited for. TN_OK means only that it was started and is over: `out_end`
 * says how it ended. Fails with TN_UNSUPPORTED if the system has no child processes. */
tn_status tni_process_run(const char *program, const char *const *arguments, int64_t limit_ns,
                          tni_buffer *answer, tni_process_end *out_end, tn_error *err);

/* For the child: writes all of `text` to the parent. The text is lost if other code closed or
 * replaced the descriptor since the first call of this function or tni_process_spare. */
void tni_process_answer(const char *text, size_t length);

/* For the child: makes this process expendable. It leaves no core file, ends with its parent, and
 * ends by itself after `seconds`. */
void tni_process_spare(unsigned seconds);

/* Appends what stays the same while the machine is up and its drivers do not change: boot, kernel
 * and graphics drivers, as one line of text. Verdicts are valid only under the same text. */
void tni_process_machine(tni_buffer *to);

#endif
