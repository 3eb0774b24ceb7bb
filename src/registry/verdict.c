#include "verdict.h"

#include "base/alloc.h"
#include "base/form.h"
#include "os/process.h"
#include "tenon/version.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum { HANG_LIFE_S = 600 };

void tni_verdict_from_record(tni_verdict *out, const tni_record *record)
{
    *out = (tni_verdict){
        .stage = record->stage,
        .status = record->status,
        .abi_major = record->abi_major,
        .abi_minor = record->abi_minor,
    };
    tn_text_fit(out->name, sizeof out->name, record->name);
    tn_text_fit(out->version, sizeof out->version, record->version);
    tn_text_fit(out->message, sizeof out->message, record->message);
    tn_text_fit(out->remedy, sizeof out->remedy, record->remedy);
}

static tn_status write_number(tni_buffer *to, const char *key, int64_t value, tn_error *err)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return tni_form_write_entry(to, key, text, err);
}

tn_status tni_verdict_write(const tni_verdict *verdict, tni_buffer *to, tn_error *err)
{
    tn_status status = write_number(to, "stage", verdict->stage, err);
    if (!status)
        status = write_number(to, "status", verdict->status, err);
    if (!status)
        status = write_number(to, "abi_major", verdict->abi_major, err);
    if (!status)
        status = write_number(to, "abi_minor", verdict->abi_minor, err);
    if (!status)
        status = write_number(to, "ended_badly", verdict->ended_badly, err);
    if (!status)
        status = write_number(to, "until", verdict->until, err);
    if (!status)
        status = tni_form_write_entry(to, "name", verdict->name, err);
    if (!status)
        status = tni_form_write_entry(to, "version", verdict->version, err);
    if (!status)
        status = tni_form_write_entry(to, "message", verdict->message, err);
    if (!status)
        status = tni_form_write_entry(to, "remedy", verdict->remedy, err);
    if (!status)
        status = write_number(to, "complete", 1, err);
    return status;
}

static bool read_number(const tni_form *form, const char *key, int64_t most, int64_t *out)
{
    const char *text = tni_form_find(form, "", key);
    char *end;
    if (!text)
        return true; /* missing: keeps the default */
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || value < 0 || value > most)
        return false;
    *out = value;
    return true;
}

static void read_text(const tni_form *form, const char *key, char *out, size_t size)
{
    const char *text = tni_form_find(form, "", key);
    tn_text_fit(out, size, text ? text : "");
}

tn_status tni_verdict_read(const char *text, size_t length, tni_verdict *out, tn_error *err)
{
    tni_form *form = NULL;
    int64_t stage = TN_STAGE_FOUND, code = TN_INTERNAL, major = 0, minor = 0, badly = 0, until = 0;
    int64_t done = 0;
    tn_status status = tni_form_parse(text, length, "verdict", &form, err);
    if (status)
        return status;
    if (read_number(form, "stage", TN_STAGE_READY, &stage) &&
        read_number(form, "status", TN_STATUS_COUNT - 1, &code) &&
        read_number(form, "abi_major", UINT32_MAX, &major) &&
        read_number(form, "abi_minor", UINT32_MAX, &minor) &&
        read_number(form, "ended_badly", 1, &badly) &&
        read_number(form, "until", INT64_MAX, &until) && read_number(form, "complete", 1, &done)) {
        *out = (tni_verdict){
            .stage = (tn_module_stage)stage,
            .status = (tn_status)code,
            .abi_major = (uint32_t)major,
            .abi_minor = (uint32_t)minor,
            .ended_badly = badly == 1,
            .until = until,
            .complete = done == 1,
        };
        read_text(form, "name", out->name, sizeof out->name);
        read_text(form, "version", out->version, sizeof out->version);
        read_text(form, "message", out->message, sizeof out->message);
        read_text(form, "remedy", out->remedy, sizeof out->remedy);
    } else {
        status = tn_fail(err, TN_CORRUPT, 0, "verdict", "a number in it is invalid or too large");
    }
    tni_form_release(form);
    return status;
}

/* What the child was doing at its last reported stage. */
static const char *doing(tn_module_stage stage)
{
    switch (stage) {
    case TN_STAGE_FOUND: return "opening it (a constructor runs then)";
    case TN_STAGE_OPENED: return "its entry";
    case TN_STAGE_NEGOTIATED: return "its probe";
    default: return "its device_properties";
    }
}

/* Describes how a child ended while `what` ran. */
static void describe_end(const tni_process_end *end, const char *what, int64_t limit_ns,
                         tni_verdict *out)
{
    char *to = out->message;
    const size_t size = sizeof out->message;
    out->ended_badly = true;
    bool by_others = end->from_outside && !end->answered_too_much;
    out->status = end->timed_out ? TN_TIMEOUT : by_others ? TN_CANCELLED : TN_CRASHED;
    if (end->timed_out)
        snprintf(to, size, "%s did not finish within %.1f s and was ended", what,
                 (double)limit_ns / 1e9);
    else if (end->answered_too_much)
        snprintf(to, size, "%s wrote too much to its parent and was ended", what);
    else if (by_others)
        snprintf(to, size, "%s was ended from outside (signal %d)", what, (int)end->signal);
    else if (end->signal)
        snprintf(to, size, "%s crashed (signal %d)", what, (int)end->signal);
    else if (end->exit_code < 0)
        snprintf(
            to, size,
            "%s ended the process; the reason is unknown because the program waited for it first",
            what);
    else if (end->exit_code == 0)
        snprintf(to, size, "%s ended the process or closed the pipe to its parent", what);
    else
        snprintf(to, size, "%s ended the process (exit code %d)", what, (int)end->exit_code);
    tn_text_fit(out->remedy, sizeof out->remedy,
                "report this to the module's author; `tenon modules --fresh` probes it again");
}

/* Whether the child answered well and then crashed, hung or failed in the module's destructors. The
 * program that loads the module would do the same at its exit. */
static bool ended_badly_at_exit(const tni_verdict *verdict, const tni_process_end *end)
{
    return verdict->complete && verdict->status == TN_OK &&
           (end->timed_out || (end->signal && !end->from_outside) || end->exit_code > 0);
}

tn_status tni_verdict_probe(const char *probe, const char *file, int64_t limit_ns, tni_verdict *out,
                            tn_error *err)
{
    const char *arguments[] = {"tenon-probe", file, NULL};
    tni_buffer answer = {0};
    tni_process_end end;
    tni_verdict verdict = {.status = TN_INTERNAL};
    tn_status status = tni_process_run(probe, arguments, limit_ns, &answer, &end, err);
    /* An answer that does not parse is incomplete: the verdict depends on how the child ended. */
    if (!status && tni_verdict_read(tni_buffer_text(&answer), answer.length, &verdict, err) ==
                       TN_OUT_OF_MEMORY)
        status = TN_OUT_OF_MEMORY;
    if (!status && answer.length == 0 && !end.timed_out) /* an answer begins with the first stage */
        status = tn_fail(err, TN_IO, 0, probe, "the child process gave no answer");
    tni_buffer_release(&answer);
    if (status)
        return status;
    if (!verdict.complete)
        describe_end(&end, doing(verdict.stage), limit_ns, &verdict);
    else if (ended_badly_at_exit(&verdict, &end))
        describe_end(&end, "the end of its process (destructors run then)", limit_ns, &verdict);
    *out = verdict;
    return TN_OK;
}

/* Appends everything that a verdict depends on. False if a file cannot be identified. */
static bool make_key(const char *probe, const char *file, tni_buffer *key)
{
    const char *const files[] = {probe, file};
    tni_buffer_format(key, "2 %s %d.%d ", tn_version(), TN_MODULE_ABI_MAJOR, TN_MODULE_ABI_MINOR);
    for (size_t i = 0; i < 2; i++) {
        tni_file_id id;
        if (tni_file_identify(files[i], &id, NULL) != TN_OK)
            return false;
        tni_buffer_format(key, "%s %" PRIx64 ":%" PRIx64 " %" PRIu64 " %" PRId64 " %" PRId64 "; ",
                          files[i], id.device, id.inode, id.size, id.changed_ns, id.touched_ns);
    }
    tni_process_machine(key);
    return !key->failed;
}

/* False if it has expired, or if the clock was set back so that it would last longer than
 * allowed. */
static bool still_holds(const tni_verdict *verdict)
{
    int64_t left = verdict->until - (int64_t)time(NULL);
    return verdict->until == 0 || (left > 0 && left <= HANG_LIFE_S);
}

bool tni_verdict_recall(tni_cache *cache, const char *probe, const char *file, tni_verdict *out)
{
    tni_buffer key = {0};
    void *text = NULL;
    size_t size = 0;
    bool found = cache && make_key(probe, file, &key) &&
                 tni_cache_get(cache, "verdict", key.text, key.length, &text, &size, NULL) == TN_OK;
    tni_verdict verdict;
    found = found && tni_verdict_read(text, size, &verdict, NULL) == TN_OK && verdict.complete &&
            still_holds(&verdict);
    tni_release(text);
    tni_buffer_release(&key);
    if (found)
        *out = verdict;
    return found;
}

/* True for results that only another file, driver or boot can change. */
static bool is_lasting(const tni_verdict *verdict)
{
    const bool crashed_or_hung = verdict->ended_badly && verdict->status != TN_CANCELLED;
    return crashed_or_hung || verdict->status == TN_OK || verdict->status == TN_INCOMPATIBLE ||
           verdict->status == TN_INVALID_ARGUMENT;
}

void tni_verdict_remember(tni_cache *cache, const char *probe, const char *file,
                          const tni_verdict *verdict)
{
    tni_buffer key = {0}, text = {0};
    tni_verdict kept = *verdict;
    if (verdict->status == TN_TIMEOUT)
        kept.until = (int64_t)time(NULL) + HANG_LIFE_S;
    if (cache && is_lasting(verdict) && make_key(probe, file, &key) &&
        tni_verdict_write(&kept, &text, NULL) == TN_OK && !text.failed)
        (void)tni_cache_put(cache, "verdict", key.text, key.length, text.text, text.length, NULL);
    tni_buffer_release(&text);
    tni_buffer_release(&key);
}
