#include "admission_store.h"

#include "base/alloc.h"
#include "base/form.h"
#include "base/log.h"
#include "os/cache/cache.h"
#include "os/file.h"
#include "os/fork.h"
#include "os/pool.h"
#include "os/thread.h"
#include "tenon/version.h"

#include <inttypes.h>

static const char where[] = "admission", kind[] = "admission";

/* What is known of one kernel with one device. */
typedef struct entry {
    struct entry *next;
    tni_exam exam;
    tni_trust trust;
    bool tested;   /* a thread is at it,         */
    unsigned fork; /* in a process of that fork() */
} entry;

static tni_mutex lock = TNI_MUTEX_INIT;
static tni_condition done = TNI_CONDITION_INIT;
static tni_once begun = TNI_ONCE_INIT, opened = TNI_ONCE_INIT;
static entry *entries;   /* under the lock */
static tni_cache *cache; /* once opened; NULL: nothing is kept beyond the process */

/* A kernel under test runs on this thread: it may not wait for another one's test. */
static _Thread_local int32_t testing;

static void before_fork(void)
{
    tni_mutex_lock(&lock);
}

static void after_fork(void)
{
    tni_mutex_unlock(&lock);
}

/* Threads that waited are not in the child, whose condition may still count them. */
static void after_fork_in_child(void)
{
    tni_condition_init(&done);
    tni_mutex_unlock(&lock);
}

static const tni_fork_hook hook = {before_fork, after_fork, after_fork_in_child};

static void begin(void)
{
    tni_fork_watch(&hook);
}

static void open_cache(void)
{
    cache = tni_cache_open_default("tests of kernels are");
}

/* Whether there can be anything in it: reading does not make the folder. */
static bool has_cache(void)
{
    tni_buffer folder = {0};
    const char *reason;
    tni_file_id id;
    bool there = tni_cache_default_folder(&folder, &reason) && !folder.failed &&
                 tni_file_identify(folder.text, &id, NULL) == TN_OK;
    tni_buffer_release(&folder);
    return there;
}

static bool is_same(const tni_exam *a, const tni_exam *b)
{
    return a->kernel == b->kernel && a->device == b->device &&
           a->library_version == b->library_version;
}

/* With the lock held; or NULL. */
static entry *find(const tni_exam *exam)
{
    entry *at = entries;
    while (at && !is_same(&at->exam, exam))
        at = at->next;
    return at;
}

/* All that a verdict depends on. */
static void write_key(const tni_exam *exam, tni_buffer *out)
{
    const tn_kernel_row *row = exam->kernel->row;
    const tn_device_properties *device = &exam->device->properties;
    tni_buffer_format(out, "1\n%s\n%s %u\n%s %s\n%" PRId64 "\n%s\n%s\n%s\n", tn_version(),
                      row->name, (unsigned)row->version, exam->kernel->record->name,
                      exam->kernel->record->version, exam->library_version,
                      exam->device->platform->name, device->architecture, device->name);
}

tn_status tni_trust_write(const tni_exam *exam, const tni_trust *trust, tni_buffer *to,
                          tn_error *err)
{
    bool passed = trust->verdict == TNI_TRUST_PASSED;
    tn_status status = tni_form_write_entry(to, "kernel", exam->kernel->row->name, err);
    if (!status)
        status = tni_form_write_entry(to, "verdict", passed ? "passed" : "quarantined", err);
    if (!status && !passed)
        status = tni_form_write_entry(to, "why", trust->text, err);
    return status;
}

tn_status tni_trust_read(const char *text, size_t length, tni_trust *out, tn_error *err)
{
    tni_form *form = NULL;
    tn_status status = tni_form_parse(text, length, where, &form, err);
    if (status)
        return status;
    const char *verdict = tni_form_find(form, "", "verdict"), *why = tni_form_find(form, "", "why");
    bool passed = verdict && strcmp(verdict, "passed") == 0;
    bool bad = verdict && strcmp(verdict, "quarantined") == 0 && why;
    if (passed || bad) {
        out->verdict = passed ? TNI_TRUST_PASSED : TNI_TRUST_QUARANTINED;
        tn_text_fit(out->text, sizeof out->text, bad ? why : "");
    } else
        status =
            tn_fail(err, TN_CORRUPT, 0, where, "a verdict needs passed, or quarantined and why");
    tni_form_release(form);
    return status;
}

/* What the cache directory has; what is damaged counts as nothing. */
static void read_kept(const tni_exam *exam, tni_trust *out)
{
    tni_buffer key = {0};
    void *text = NULL;
    size_t size;
    *out = (tni_trust){.verdict = TNI_TRUST_UNTESTED};
    if (!has_cache())
        return;
    tni_once_run(&opened, open_cache);
    write_key(exam, &key);
    if (cache && !key.failed &&
        tni_cache_get(cache, kind, key.text, key.length, &text, &size, NULL) == TN_OK)
        (void)tni_trust_read(text, size, out, NULL);
    tni_release(text);
    tni_buffer_release(&key);
}

static void write_kept(const tni_exam *exam, const tni_trust *trust)
{
    tni_buffer key = {0}, text = {0};
    tni_once_run(&opened, open_cache);
    write_key(exam, &key);
    if (cache && !key.failed && tni_trust_write(exam, trust, &text, NULL) == TN_OK)
        (void)tni_cache_put(cache, kind, key.text, key.length, text.text, text.length, NULL);
    tni_buffer_release(&text);
    tni_buffer_release(&key);
}

/* The entry of an exam, with the lock held then; made, with what is kept of it, when there is none yet.
 * NULL, and no lock, for want of memory. */
static entry *enter(const tni_exam *exam)
{
    tni_once_run(&begun, begin);
    tni_mutex_lock(&lock);
    entry *found = find(exam);
    if (found)
        return found;
    tni_mutex_unlock(&lock);
    entry *made = tni_alloc_zeroed(1, sizeof *made);
    if (!made)
        return NULL;
    made->exam = *exam;
    read_kept(exam, &made->trust);
    tni_mutex_lock(&lock);
    found = find(exam);
    if (!found) {
        made->next = entries;
        entries = found = made;
        made = NULL;
    }
    if (made) {
        tni_mutex_unlock(&lock);
        tni_release(made);
        tni_mutex_lock(&lock);
    }
    return found;
}

void tni_trust_recall(const tni_exam *exam, tni_trust *out)
{
    entry *found = enter(exam);
    *out = (tni_trust){.verdict = TNI_TRUST_UNTESTED};
    if (!found)
        return;
    *out = found->trust;
    tni_mutex_unlock(&lock);
}

tn_status tni_trust_remember(const tni_exam *exam, const tni_trust *trust, bool keep, tn_error *err)
{
    entry *found = enter(exam);
    if (!found)
        return tni_no_memory(err, where, "a verdict");
    found->trust = *trust;
    tni_mutex_unlock(&lock);
    if (keep)
        write_kept(exam, trust);
    return TN_OK;
}

tn_status tni_trust_claim(const tni_exam *exam, bool *out_mine, tn_error *err)
{
    entry *found = enter(exam);
    tn_status status = TN_OK;
    if (!found)
        return tni_no_memory(err, where, "a verdict");
    while (found->tested && found->fork == tni_fork_generation() && !status) {
        if (testing > 0 || tni_pool_inside() || tni_log_inside())
            status = tn_fail(err, TN_BUSY, 0, where,
                             "%s is being tested, and a kernel, a task or a log sink cannot wait",
                             exam->kernel->row->name);
        else
            tni_condition_wait(&done, &lock);
    }
    bool settled = found->trust.verdict != TNI_TRUST_UNTESTED;
    if (!status) {
        *out_mine = !settled;
        found->tested = !settled;
        found->fork = tni_fork_generation();
        testing += !settled;
    }
    tni_mutex_unlock(&lock);
    return status;
}

void tni_trust_unclaim(const tni_exam *exam)
{
    tni_mutex_lock(&lock);
    entry *found = find(exam);
    if (found)
        found->tested = false;
    testing--;
    tni_condition_wake_all(&done);
    tni_mutex_unlock(&lock);
}

void tni_trust_forget(void)
{
    tni_mutex_lock(&lock);
    entry *at = entries;
    entries = NULL;
    tni_mutex_unlock(&lock);
    while (at) {
        entry *next = at->next;
        tni_release(at);
        at = next;
    }
}
