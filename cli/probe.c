/* tenon-probe FILE: opens an untrusted module in an expendable process. Reports each stage to its
 * parent on descriptor 3, so that even a crash or a hang is attributed to the right stage. Run by
 * the library, not by users. */
#include "base/buffer.h"
#include "os/process.h"
#include "registry/host.h"
#include "registry/load.h"
#include "registry/verdict.h"

#include <stdlib.h>

/* The process ends without releasing its memory: no search for leaks. */
TN_MODULE_EXPORT int __lsan_is_turned_off(void); // NOLINT(bugprone-reserved-identifier)
int __lsan_is_turned_off(void)                   // NOLINT(bugprone-reserved-identifier)
{
    return 1;
}

static void send_stage(void *user, const tni_record *record)
{
    char line[32];
    (void)user;
    int length = snprintf(line, sizeof line, "stage = %d\n", (int)record->stage);
    tni_process_answer(line, (size_t)length);
}

static void send_verdict(const tni_record *record)
{
    tni_buffer text = {0};
    tni_verdict verdict;
    tni_verdict_from_record(&verdict, record);
    if (tni_verdict_write(&verdict, &text, NULL) == TN_OK && !text.failed)
        tni_process_answer(text.text, text.length);
    tni_buffer_release(&text);
}

static void load(tni_record *record)
{
    tni_host_fill(record);
    if (tni_load_inspect(record) || tni_load_open(record))
        return;
    send_stage(NULL, record);
    if (tni_load_negotiate(record))
        return;
    send_stage(NULL, record);
    if (!tni_load_probe(record, send_stage, NULL))
        tni_load_try_devices(record);
}

int main(int count, char **arguments)
{
    enum { LONGEST_LIFE_S = 60 };
    if (count != 2) {
        fprintf(stderr, "usage: tenon-probe FILE\n");
        return 2;
    }
    tni_process_spare(LONGEST_LIFE_S);
    tni_process_answer("stage = 0\n", 10); /* from here on, any failure is the module's */
    tni_record *record = tni_record_create(arguments[1], TNI_ORIGIN_PROGRAM);
    if (!record)
        return 1;
    load(record);
    send_verdict(record);
    exit(0); /* runs the module's destructors: a crash there is the module's, too */
}
