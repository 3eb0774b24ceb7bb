/* The policies of dispatch, in the order in which they are asked. */
#include "policies.h"

const tni_policy *const tni_policies[] = {
    &tni_torch_numerics_policy, &tni_backend_names_policy, &tni_rules_policy,    &tni_lock_policy,
    &tni_admission_policy,      &tni_tuning_policy,        &tni_backends_policy, NULL};
