#include "admission_store.h"

#include "base/alloc.h"
#include "base/form.h"
#include "base/log.h"
#include "dispatch/thread_state.h"
#include "os/cache/cache.h"
#include "os/file.h"
#include "os/fork.h"
#include "os/pool.h"
#include "os/thread.h"
#include "settings/context.h"
#include "tenon/version.h"

#include <inttypes.h>

static const char where[] = "admission", kind[] = "admission";

/* A problem that a kernel was tested with, or one without a known verdict. */
typedef struct trial {
    struct trial *next;
    int32_t verdict; /* TNI_TRUST_PASSED, _UNTESTED */
    size_t count;
    uint64_t key[];
} trial;

enum { TRIALS_MOST = 1024 };

/* The verdicts on one kernel with one device. */
typedef struct entry {
    struct entry *next;
    tni_exam exam; /* without a problem */
    tni_trust trust;
    trial *trials; /* for an APART kernel */
    size_t trial_count;
    bool tested;   /* a thread is testing it, */
    unsigned fork; /* in the process with this fork generation */
} entry;

static tni_condition done = TNI_CONDITION_INIT;
static tni_fork_lock lock = {TNI_FORK_LOCK_INIT, .condition = &done};
static tni_once opened = TNI_ONCE_INIT;
static entry *entries;   /* under the lock */
static tni_cache *cache; /* once opened; NULL: nothing is stored beyond the process */

static void open_cache(void)
{
    cache = tni_cache_open_default("tests of kernels are");
}

/* Whether the cache folder exists: reading must not create it. */
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

/* Must be called with the lock held. Returns NULL if none exists. */
static entry *find_entry(const tni_exam *exam)
{
    entry *at = entries;
    while (at && !is_same(&at->exam, exam))
        at = at->next;
    return at;
}

/* Makes the key of the kernel's own plan for the problem. */
static size_t make_words(const tni_exam *exam, uint64_t out[TNI_KEY_MOST])
{
    tn_op op;
    tni_op_free(exam->op, exam->kernel->row->free_dims, &op);
    return tni_op_key_up_to(&op, exam->kernel->alignment, out);
}

/* Must be called with the lock held. Returns NULL if none exists. */
static trial *find_trial(const entry *of, const uint64_t *words, size_t count)
{
    trial *at = of->trials;
    while (at && (at->count != count || memcmp(at->key, words, count * sizeof *words) != 0))
        at = at->next;
    return at;
}

/* Writes the identity of a file: another build of it counts as another file. */
static void write_file(const char *path, tni_buffer *out)
{
    tni_file_id id;
    if (path && path[0] && !tni_file_identify(path, &id, NULL))
        tni_buffer_format(out, "%s %" PRIu64 " %" PRIu64 " %" PRId64 "\n", path, id.inode, id.size,
                          id.changed_ns);
}

/* Writes the identity of the individual device: a fault of one says nothing about another. */
static void write_device(const tn_device *device, tni_buffer *out)
{
    static const char described[] = "described in ";
    const tn_device_properties *is = tni_device_described(device);
    tni_buffer_format(out, "%s %s\n%s\n%s\n%s\n", device->platform->name, device->section,
                      is->architecture, is->name, is->uuid[0] ? is->uuid : device->id);
    if (device->origin && strncmp(device->origin, described, sizeof described - 1) == 0)
        write_file(device->origin + sizeof described - 1, out);
    if (device->offer)
        write_file(device->offer->record->path, out);
}

static void write_library(const tni_kernel *kernel, tni_buffer *out)
{
    tn_library_state state = {.struct_size = sizeof state};
    if (!kernel->library ||
        tn_library_state_get(kernel->library, tni_context_defaults(), &state, NULL))
        return;
    tni_buffer_format(out, "%s\n", state.version_text);
    write_file(state.path, out);
}

/* Writes everything that a verdict depends on. */
static void write_key(const tni_exam *exam, tni_buffer *out)
{
    const tn_kernel_row *row = exam->kernel->row;
    uint64_t words[TNI_KEY_MOST];
    size_t count = exam->op ? make_words(exam, words) : 0;
    tni_buffer_format(out, "2\n%s\n%s %u\n%s %s\n%" PRId64 "\n", tn_version(), row->name,
                      (unsigned)row->version, exam->kernel->record->name,
                      exam->kernel->record->version, exam->library_version);
    write_file(exam->kernel->record->path, out);
    write_library(exam->kernel, out);
    write_device(exam->device, out);
    for (size_t i = 0; i < count; i++)
        tni_buffer_format(out, "%" PRIx64 " ", words[i]);
}

static const struct {
    int32_t verdict;
    const char *word;
} verdict_words[] = {{TNI_TRUST_PASSED, "passed"},
                     {TNI_TRUST_QUARANTINED, "quarantined"},
                     {TNI_TRUST_APART, "apart"}};
enum { VERDICTS = sizeof verdict_words / sizeof verdict_words[0] };

/* Returns TNI_TRUST_UNTESTED for an unknown word. */
static int32_t read_verdict(const char *word)
{
    for (size_t i = 0; word && i < VERDICTS; i++) {
        if (strcmp(verdict_words[i].word, word) == 0)
            return verdict_words[i].verdict;
    }
    return TNI_TRUST_UNTESTED;
}

static const char *verdict_word(int32_t verdict)
{
    size_t i = 0;
    while (i + 1 < VERDICTS && verdict_words[i].verdict != verdict)
        i++;
    return verdict_words[i].word;
}

tn_status tni_trust_write(const tni_exam *exam, const tni_trust *trust, tni_buffer *to,
                          tn_error *err)
{
    tni_buffer problem = {0};
    tn_status status = tni_form_write_entry(to, "kernel", exam->kernel->row->name, err);
    if (exam->op)
        tni_problem_write(exam->op, NULL, &problem);
    if (!status && exam->op)
        status = tni_form_write_entry(to, "problem", tni_buffer_text(&problem), err);
    if (!status)
        status = tni_form_write_entry(to, "verdict", verdict_word(trust->verdict), err);
    if (!status && trust->verdict == TNI_TRUST_QUARANTINED)
        status = tni_form_write_entry(to, "why", trust->text, err);
    tni_buffer_release(&problem);
    return status;
}

tn_status tni_trust_read(const char *text, size_t length, tni_trust *out, tn_error *err)
{
    tni_form *form = NULL;
    tn_status status = tni_form_parse(text, length, where, &form, err);
    if (status)
        return status;
    const char *why = tni_form_find(form, "", "why");
    int32_t verdict = read_verdict(tni_form_find(form, "", "verdict"));
    bool bad = verdict == TNI_TRUST_QUARANTINED;
    if (verdict != TNI_TRUST_UNTESTED && (why || !bad)) {
        out->verdict = verdict;
        tn_text_fit(out->text, sizeof out->text, bad ? why : "");
    } else
        status = tn_fail(err, TN_CORRUPT, 0, where,
                         "verdict: expected passed, apart, or quarantined with a reason");
    tni_form_release(form);
    return status;
}

/* Reads the verdict from the cache directory; damaged files are ignored. */
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

/* Returns the entry of an exam's kernel, with the lock held. If none exists yet, makes it from
 * the stored verdict. If out of memory, returns NULL without the lock. */
static entry *lock_entry(const tni_exam *of)
{
    const tni_exam whole = {of->kernel, of->device, of->library_version, NULL}, *exam = &whole;
    tni_fork_lock_acquire(&lock);
    entry *found = find_entry(exam);
    if (found)
        return found;
    tni_fork_lock_release(&lock);
    entry *made = tni_alloc_zeroed(1, sizeof *made);
    if (!made)
        return NULL;
    made->exam = *exam;
    read_kept(exam, &made->trust);
    tni_fork_lock_acquire(&lock);
    found = find_entry(exam);
    if (!found) {
        made->next = entries;
        entries = found = made;
        made = NULL;
    }
    if (made) {
        tni_fork_lock_release(&lock);
        tni_release(made);
        tni_fork_lock_acquire(&lock);
    }
    return found;
}

/* Must be called with the lock held. */
static void forget_trials(entry *of)
{
    while (of->trials) {
        trial *gone = of->trials;
        of->trials = gone->next;
        tni_release(gone);
    }
    of->trial_count = 0;
}

/* Stores the verdict on an exam's problem; UNTESTED does not replace an existing verdict. If there
 * are too many, all are dropped. Returns false if out of memory. */
static bool note_trial(const tni_exam *exam, int32_t verdict)
{
    uint64_t words[TNI_KEY_MOST];
    size_t count = make_words(exam, words);
    trial *made = tni_alloc(sizeof *made + count * sizeof *words);
    entry *of = made ? lock_entry(exam) : NULL;
    if (!made || !of) {
        tni_release(made);
        return false;
    }
    made->verdict = verdict;
    made->count = count;
    memcpy(made->key, words, count * sizeof *words);
    trial *found = find_trial(of, words, count);
    if (found && verdict != TNI_TRUST_UNTESTED)
        found->verdict = verdict;
    if (!found) {
        if (of->trial_count >= TRIALS_MOST)
            forget_trials(of);
        made->next = of->trials;
        of->trials = made;
        of->trial_count++;
    }
    tni_fork_lock_release(&lock);
    if (found)
        tni_release(made);
    return true;
}

/* Returns the verdict on an exam's problem. */
static int32_t find_stored_trial(const tni_exam *exam)
{
    uint64_t words[TNI_KEY_MOST];
    size_t count = make_words(exam, words);
    tni_trust kept;
    entry *of = lock_entry(exam);
    if (!of)
        return TNI_TRUST_UNTESTED;
    const trial *found = find_trial(of, words, count);
    int32_t verdict = found ? found->verdict : TNI_TRUST_UNTESTED;
    bool known = found != NULL;
    tni_fork_lock_release(&lock);
    if (known)
        return verdict;
    read_kept(exam, &kept);
    verdict = kept.verdict == TNI_TRUST_PASSED ? TNI_TRUST_PASSED : TNI_TRUST_UNTESTED;
    (void)note_trial(exam, verdict);
    return verdict;
}

void tni_trust_lookup(const tni_exam *exam, tni_trust *out)
{
    *out = (tni_trust){.verdict = TNI_TRUST_UNTESTED};
    if (exam->op) {
        out->verdict = find_stored_trial(exam);
        return;
    }
    entry *found = lock_entry(exam);
    if (!found)
        return;
    *out = found->trust;
    tni_fork_lock_release(&lock);
}

/* Stores the verdict on a kernel in general. Returns false if out of memory. */
static bool note_kernel(const tni_exam *exam, const tni_trust *trust)
{
    entry *found = lock_entry(exam);
    if (!found)
        return false;
    found->trust = *trust;
    tni_fork_lock_release(&lock);
    return true;
}

tn_status tni_trust_store(const tni_exam *exam, const tni_trust *trust, bool keep, tn_error *err)
{
    if (exam->op ? !note_trial(exam, trust->verdict) : !note_kernel(exam, trust))
        return tni_no_memory(err, where, "a verdict");
    if (keep)
        write_kept(exam, trust);
    return TN_OK;
}

/* Must be called with the lock held. */
static bool is_settled(const entry *e, const tni_exam *exam)
{
    uint64_t words[TNI_KEY_MOST];
    if (e->trust.verdict != TNI_TRUST_APART)
        return e->trust.verdict != TNI_TRUST_UNTESTED;
    const trial *found = exam->op ? find_trial(e, words, make_words(exam, words)) : NULL;
    return found && found->verdict != TNI_TRUST_UNTESTED;
}

tn_status tni_trust_claim(const tni_exam *exam, bool *out_mine, tn_error *err)
{
    entry *found = lock_entry(exam);
    tn_status status = TN_OK;
    if (!found)
        return tni_no_memory(err, where, "a verdict");
    while (found->tested && found->fork == tni_fork_generation() && !status) {
        if (tni_thread_state_own.testing > 0 || tni_pool_inside() || tni_log_inside())
            status =
                tn_fail(err, TN_BUSY, 0, where,
                        "%s is being tested; a kernel, a task or a log sink cannot wait for it",
                        exam->kernel->row->name);
        else
            tni_condition_wait(&done, &lock.mutex);
    }
    bool settled = is_settled(found, exam);
    if (!status) {
        *out_mine = !settled;
        found->tested = !settled;
        found->fork = tni_fork_generation();
        tni_thread_state_own.testing += !settled;
    }
    tni_fork_lock_release(&lock);
    return status;
}

void tni_trust_unclaim(const tni_exam *exam)
{
    tni_fork_lock_acquire(&lock);
    entry *found = find_entry(exam);
    if (found)
        found->tested = false;
    tni_thread_state_own.testing--;
    tni_condition_wake_all(&done);
    tni_fork_lock_release(&lock);
}

void tni_trust_forget(void)
{
    tni_fork_lock_acquire(&lock);
    entry *at = entries;
    entries = NULL;
    tni_fork_lock_release(&lock);
    while (at) {
        entry *next = at->next;
        forget_trials(at);
        tni_release(at);
        at = next;
    }
}
