/* A child process that answers within a time limit, or is ended. */
#ifndef TNI_OS_PROCESS_H
#define TNI_OS_PROCESS_H

#include "base/buffer.h"

/* Where the child writes its answer; its other standard descriptors lead nowhere. */
enum { TNI_PROCESS_ANSWER = 3 };

typedef struct tni_process_end {
    bool timed_out;
    bool answered_too_much; /* past 64 KiB it was ended */
    int32_t exit_code; /* -1 when it did not exit by itself, or the program's own reaper took it */
    int32_t signal;    /* that ended it, or 0 */
    bool from_outside; /* the signal is one that people and systems send, not its own fault */
} tni_process_end;

/* Starts `program` with `arguments` (NULL-ended, the program's name first) in a process group of
 * its own, with default signals and no inherited descriptors, and collects what it writes to
 * TNI_PROCESS_ANSWER until it ends. After `limit_ns` the whole group is killed; one that does not end
 * even then is not waited for. TN_OK says only
 * that it was started and has ended: `out_end` says how. TN_UNSUPPORTED where a system has none. */
tn_status tni_process_run(const char *program, const char *const *arguments, int64_t limit_ns,
                          tni_buffer *answer, tni_process_end *out_end, tn_error *err);

/* Writes all of `text` to the parent: for the child. Lost when something has closed or taken the
 * way there since the first call of this or tni_process_spare. */
void tni_process_answer(const char *text, size_t length);

/* Makes this process one that can be spared: it leaves no core file, ends with its parent, and ends
 * by itself after `seconds`. For the child. */
void tni_process_spare(unsigned seconds);

/* What is fixed while the machine is up and its drivers stay: kernel, boot, graphics drivers, as
 * one line of text. Something that a verdict was reached under. */
void tni_process_machine(tni_buffer *to);

#endif
