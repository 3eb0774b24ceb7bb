/* Admission as a policy: refuses kernels that are known to be wrong, and has others tested. */
#include "admission.h"
#include "sample.h"

static bool admit_candidate(const tni_question *question, int64_t version, tni_contender *to)
{
    if (tni_known_bad(to->kernel, question->op, tni_device_described(question->device), version,
                      &to->why))
        return false;
    switch (tni_trust_of(question, to->kernel, version, &to->why)) {
    case TNI_TRUST_QUARANTINED: to->verdict = TN_VERDICT_QUARANTINED; return false;
    case TNI_TRUST_UNTESTABLE: return false;
    case TNI_TRUST_UNTESTED: to->verdict = TN_VERDICT_UNTESTED; return true;
    default: return true;
    }
}

static tn_status test_candidate(const tni_question *question, const tni_contender *candidate,
                                int64_t version, tn_error *err)
{
    return tni_trust_examine(question, candidate->kernel, version, err);
}

const tni_policy tni_admission_policy = {.name = "admission",
                                         .admit = admit_candidate,
                                         .test = test_candidate,
                                         .watch = &tni_sample_watch};
