/* Every policy. Only the table includes this. */
#ifndef TNI_TABLES_POLICIES_H
#define TNI_TABLES_POLICIES_H

#include "dispatch/policy.h"

extern const tni_policy tni_torch_numerics_policy; /* PyTorch's switches for precision */
extern const tni_policy tni_backend_names_policy;  /* the attention backend that is requested */
extern const tni_policy tni_rules_policy;          /* the rules of the context */
extern const tni_policy tni_lock_policy;           /* TENON_LOCK */
extern const tni_policy tni_admission_policy; /* kernels that are known, tested or in quarantine */
extern const tni_policy tni_tuning_policy;    /* measured times */
extern const tni_policy tni_backends_policy;  /* verdicts by backend name, for explanations */

#endif
