/* A lost device: what it reports, that nothing hangs, and that it can be reopened. The command line
 * of --lose causes the loss, once for each case. */
#include "block.h"
#include "host.h"
#include "suite.h"

static bool lose(trial *t)
{
    char how[128];
    return host_command(t->on->lose, how, sizeof how) ||
           trial_fail(t, "--lose: the command %s: %s", how, t->on->lose);
}

/* Bytes of an allocation that is lost with the device. Memory from before a reset is never used
 * again or freed. */
enum { BYTES = 1 << 16 };

static bool alloc_and_lose(trial *t, void **out)
{
    return DO(t, tn_memory_alloc(t->device, BYTES, "conformance", out, &t->err)) && lose(t);
}

/* A loss must show within a few calls: some calls only queue work. */
static bool is_noticed(trial *t, void *memory)
{
    tn_status status = TN_OK;
    for (int i = 0; i < 100 && !status; i++) {
        trial_clear(t);
        status = tn_memory_fill(
            TN_ARGS(memory_fill, .device = t->device, .to = memory, .bytes = BYTES), &t->err);
        if (!status)
            status = tn_device_synchronize(t->device, &t->err);
    }
    return trial_refused(t, TN_DEVICE_LOST, status, "filling and waiting, 100 times,");
}

static void reset_device(void *owner, void *what)
{
    (void)what;
    (void)tn_device_reset(owner, NULL);
}

static bool sticky(trial *t)
{
    void *memory = NULL, *none = NULL;
    tn_stream *stream = NULL;
    char cause[sizeof t->err.message];
    if (!trial_keep(t, reset_device, t->device, NULL) || !alloc_and_lose(t, &memory) ||
        !is_noticed(t, memory) || !REFUSES(t, TN_DEVICE_LOST, tn_device_health(t->device, &t->err)))
        return false;
    memcpy(cause, t->err.message, sizeof cause);
    return REFUSES(t, TN_DEVICE_LOST, tn_memory_alloc(t->device, 1, NULL, &none, &t->err)) &&
           trial_says(t, cause) &&
           REFUSES(t, TN_DEVICE_LOST, tn_stream_create(t->device, NULL, &stream, &t->err)) &&
           trial_says(t, cause) &&
           REFUSES(t, TN_DEVICE_LOST, tn_device_synchronize(t->device, &t->err)) &&
           trial_says(t, cause) && REFUSES(t, TN_DEVICE_LOST, tn_device_health(t->device, &t->err));
}

static bool reset(trial *t)
{
    void *memory = NULL;
    block fresh;
    return trial_keep(t, reset_device, t->device, NULL) && alloc_and_lose(t, &memory) &&
           is_noticed(t, memory) && DO(t, tn_device_reset(t->device, &t->err)) &&
           DO(t, tn_device_health(t->device, &t->err)) &&
           block_make(t, t->device, 100003, &fresh) &&
           block_fill(t, &fresh, 0, 100003, trial_bits(t), 1, NULL) &&
           block_check(t, &fresh, "memory filled after the reset");
}

const suite_case cases_lost[] = {
    {"lost.sticky", "a lost device stays lost and keeps the first cause", sticky, NEED_LOSS},
    {"lost.reset", "a lost device can be reset and used again", reset, NEED_LOSS},
    {0},
};
