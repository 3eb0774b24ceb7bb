/* Verbosity of libraries. */
#include "base/log.h"
#include "base/words.h"
#include "context.h"
#include "library.h"
#include "table.h"

static tn_status set_verbosity(const tn_library_row *row, void *self, int32_t level, tn_error *err)
{
    tn_error why = {0};
    if (!row->verbose)
        return tn_fail(err, TN_UNSUPPORTED, 0, "library", "%s has no diagnostic output", row->name);
    tn_status status = tni_library_sanitize(row->verbose(self, level, &why), &why);
    return status ? tn_fail(err, status, why.native_code, "library", "%s: %s", row->name,
                            tni_words_of(&why))
                  : TN_OK;
}

tn_status tni_library_verbose(const tn_library *library, int32_t level, tn_error *err)
{
    void *self = NULL;
    tni_libraries_lock();
    const tni_library_offer *offer = tni_library_served(library);
    bool is_open = offer && offer->trial.stage == TNI_TRIAL_OPEN;
    if (is_open)
        self = offer->trial.self;
    tni_libraries_unlock();
    if (!is_open)
        return tn_fail(err, TN_UNAVAILABLE, 0, "library", "%s is not open", library->name);
    return set_verbosity(offer->row, self, level, err);
}

tni_library_offer *tni_library_talker(const tn_library *library, const tni_record *record)
{
    tni_libraries_lock();
    tni_library_offer *offer = tni_library_offer_of(library, record);
    tni_libraries_unlock();
    return offer && offer->talk >= 0 ? offer : NULL;
}

void tni_library_apply_verbosity(tni_library_offer *offer, const tn_context *context)
{
    int32_t wanted = (int32_t)context->value[offer->talk];
    tn_error err = {0};
    if (atomic_exchange(&offer->told, wanted) == wanted)
        return;
    tni_libraries_lock();
    void *self = offer->trial.self;
    tni_libraries_unlock();
    if (set_verbosity(offer->row, self, wanted, &err))
        tni_log(TN_LOG_WARNING, "%s=%d has no effect: %s", offer->row->verbose_setting, (int)wanted,
                err.message);
}
