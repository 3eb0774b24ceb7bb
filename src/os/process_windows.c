#include "process.h"

tn_status tni_process_run(const char *program, const char *const *arguments, int64_t limit_ns,
                          tni_buffer *answer, tni_process_end *out_end, tn_error *err)
{
    (void)arguments, (void)limit_ns, (void)answer, (void)out_end;
    return tn_fail(err, TN_UNSUPPORTED, 0, program,
                   "modules are not probed in a child process on this system");
}

void tni_process_answer(const char *text, size_t length)
{
    (void)text, (void)length;
}

void tni_process_spare(unsigned seconds)
{
    (void)seconds;
}

void tni_process_machine(tni_buffer *to)
{
    tni_buffer_add(to, "windows");
}
