/* Opening a library: once, by one thread, with no lock held while its module is called. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/words.h"
#include "library.h"
#include "os/bind.h"
#include "os/fork.h"
#include "os/pool.h"
#include "os/thread.h"

static const char where[] = "tn_library_try";

/* True while a module's function runs on this thread. The thread must not wait for another thread's
 * trial, which may be waiting for what this one opens. */
static _Thread_local bool opening;

tn_status tni_library_sanitize(tn_status status, tn_error *err)
{
    if (status == TN_OK)
        return TN_OK;
    err->where[sizeof err->where - 1] = '\0';
    err->message[sizeof err->message - 1] = '\0';
    tn_text_escape(err->message, sizeof err->message);
    return status > TN_OK && status < TN_STATUS_COUNT ? status : TN_CORRUPT;
}

/* Whether a failure is temporary: the same call may succeed later. */
static bool is_for_now(tn_status status)
{
    return status == TN_OUT_OF_MEMORY || status == TN_BUSY;
}

/* The loader's message ends with the row's remedy, which is stored separately. */
static void store_reason(const char *said, const char *remedy, tni_library_trial *to)
{
    size_t length = strlen(said), end = remedy ? strlen(remedy) + 2 : 0;
    bool has = end > 2 && length > end && strcmp(said + length - end + 2, remedy) == 0;
    tni_text_format(to->reason, sizeof to->reason, "%.*s", (int)(has ? length - end : length),
                    said);
}

static void query_version(const tn_library_row *row, tni_library_trial *to)
{
    char text[sizeof to->version_text] = "";
    int64_t number = -1;
    tn_error err = {0};
    to->version = -1;
    if (!row->version)
        return;
    tn_status status =
        tni_library_sanitize(row->version(to->self, &number, text, sizeof text, &err), &err);
    if (status) {
        tni_text_format(to->reason, sizeof to->reason, "its version is unknown: %s",
                        tni_words_of(&err));
        return;
    }
    text[sizeof text - 1] = '\0';
    tni_words_clean(text);
    tn_text_fit(to->version_text, sizeof to->version_text, text);
    to->version = number < 0 ? -1 : number;
}

/* Opening a loaded file again finds the same one and returns its path. */
static tn_status open_files(const tn_library_row *row, tni_library_trial *to, tn_error *err)
{
    char *file = NULL;
    tn_status status = tni_bind(row->files, NULL, 0, row->remedy, NULL, &file, err);
    if (!status && file)
        tn_text_fit(to->path, sizeof to->path, file);
    tni_release(file);
    return status;
}

static tn_status open_it(const tni_library_offer *offer, tni_library_trial *to, tn_error *err)
{
    const tn_library_row *row = offer->row;
    tn_status status = row->files ? tni_library_openmp_check(row->files, err) : TN_OK;
    if (status)
        return status;
    if (!row->open)
        return row->files ? open_files(row, to, err) : TN_OK;
    status = tni_library_sanitize(row->open(&offer->record->host, &to->self, err), err);
    if (!status && row->files)
        (void)open_files(row, to, NULL);
    return status;
}

/* Adds the module's message, if any. A message with a failure status is left over from an earlier
 * attempt of the module and is ignored. */
static void write_open_reason(const tni_library_offer *offer, tn_error *said,
                              tni_library_trial *out)
{
    bool says = said->status == TN_OK && said->message[0];
    said->message[sizeof said->message - 1] = '\0';
    tn_text_escape(said->message, sizeof said->message);
    tni_text_format(out->reason, sizeof out->reason, "opened for module %s%s%s",
                    offer->record->name, says ? "; " : "", says ? said->message : "");
}

/* On failure, which is only temporary, *err is set. A permanent failure is TN_OK, with the reason
 * in *out. */
static tn_status run_trial(const tni_library_offer *offer, tni_library_trial *out, tn_error *err)
{
    tn_error why = {0};
    *out = (tni_library_trial){.version = -1};
    tn_status status = open_it(offer, out, &why);
    if (is_for_now(status))
        return tn_fail(err, status, why.native_code, where, "%s: %s", offer->row->name,
                       tni_words_of(&why));
    if (status) {
        *out = (tni_library_trial){.stage = TNI_TRIAL_FAILED, .status = status, .version = -1};
        store_reason(tni_words_of(&why), offer->row->remedy, out);
        return TN_OK;
    }
    out->stage = TNI_TRIAL_OPEN;
    if (offer->row->files)
        write_open_reason(offer, &why, out);
    query_version(offer->row, out);
    return TN_OK;
}

/* fork() waits for a trial: a child could not use a library that is half initialized. */
static tn_status run_trial_gated(const tni_library_offer *offer, tni_library_trial *out,
                                 tn_error *err)
{
    tni_fork_loading_begin();
    tn_status status = run_trial(offer, out, err);
    tni_fork_loading_end();
    return status;
}

/* A trial on its own thread: libraries may need more stack than the caller has (cudnnGetVersion of
 * cuDNN 9 takes 64 KiB). */
typedef struct trial_thread {
    const tni_library_offer *offer;
    tni_library_trial *out;
    tn_error *err;
    tn_status status;
} trial_thread;

static void run_trial_thread(void *user)
{
    trial_thread *it = user;
    opening = true;
    it->status = run_trial_gated(it->offer, it->out, it->err);
}

/* Runs on the calling thread if no thread can be created. */
static tn_status run_trial_apart(const tni_library_offer *offer, tni_library_trial *out,
                                 tn_error *err)
{
    trial_thread it = {.offer = offer, .out = out, .err = err};
    tni_thread thread;
    if (tni_thread_create(&thread, run_trial_thread, &it, NULL) == TN_OK)
        tni_thread_join(thread);
    else
        it.status = run_trial_gated(offer, out, err);
    return it.status;
}

/* Code that a trial may depend on must not wait for it: a module that is being opened, a task, a
 * log sink. */
static bool may_not_wait(void)
{
    return opening || tni_pool_inside() || tni_log_inside();
}

/* Makes sure that the offer was tried. Must be called with the lock held; releases it during the
 * trial. */
static tn_status ensure_tried(tni_library_offer *offer, tn_error *err)
{
    tni_library_trial trial;
    while (tni_library_is_being_tried(offer)) {
        if (may_not_wait())
            return tn_fail(
                err, TN_BUSY, 0, where,
                "%s is being opened, and a module, a task or a log sink cannot wait for that",
                offer->row->name);
        tni_libraries_wait();
    }
    if (offer->trial.stage >= TNI_TRIAL_OPEN)
        return TN_OK;
    offer->trial.stage = TNI_TRIAL_RUNS;
    offer->fork = tni_fork_generation();
    tni_libraries_unlock();
    bool outer = opening;
    opening = true;
    tn_status status = run_trial_apart(offer, &trial, err);
    opening = outer;
    tni_libraries_lock();
    offer->trial = trial;
    tni_libraries_wake();
    return status;
}

tn_status tn_library_try(const tn_library *library, tn_error *err)
{
    tn_library_state state;
    tn_status status = TN_OK, verdict = TN_UNAVAILABLE;
    if (!library)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the library is NULL");
    tni_libraries_lock();
    tni_library_offer *offer = tni_library_served(library);
    if (offer)
        status = ensure_tried(offer, err);
    if (offer && !status)
        verdict = offer->trial.status;
    tni_libraries_unlock();
    if (status || !verdict)
        return status;
    tni_library_describe(library, &state);
    if (state.available == TN_AVAILABLE_YES)
        return TN_OK;
    return tn_fail(err, verdict, 0, where, "%s is not available: %s%s%s", library->name,
                   state.reason, state.remedy[0] ? "; " : "", state.remedy);
}

tni_library_offer *tni_library_offer_of(const tn_library *library, const tni_record *record)
{
    tni_library_offer *offer = library->offers;
    while (offer && offer->record != record)
        offer = offer->next;
    return offer;
}

tn_status tni_library_open(const tn_library *library, const tni_record *record, void **out_self,
                           int64_t *out_version, tn_error *err)
{
    tn_status status = TN_OK;
    tni_libraries_lock();
    tni_library_offer *offer = tni_library_offer_of(library, record);
    if (!offer)
        status = tn_fail(err, TN_UNAVAILABLE, 0, where, "module %s offers no library %s",
                         record->name, library->name);
    else
        status = ensure_tried(offer, err);
    if (!status && offer->trial.status)
        status = tn_fail(err, offer->trial.status, 0, where, "%s is not available: %s%s%s",
                         library->name, offer->trial.reason, offer->row->remedy ? "; " : "",
                         offer->row->remedy ? offer->row->remedy : "");
    if (!status) {
        *out_self = offer->trial.self;
        *out_version = offer->trial.version;
    }
    tni_libraries_unlock();
    return status;
}
