/* All readers of settings, in every layer. */
#include "device/platform/platforms.h"
#include "op/op.h"

static const tn_setting of_plans[] = {TN_SETTING_PLAN_CACHE_SIZE,
                                      TN_SETTING_PLAN_CACHE_BYTES,
                                      TN_SETTING_PLAN_ONLY_PREPARED,
                                      TN_SETTING_DEBUG_SYNC,
                                      TN_SETTING_DEBUG_SAMPLE,
                                      TN_SETTING_MAY_CROSS_DEVICES,
                                      -1};

static const tni_setting_reader plans = {"plans", of_plans};
static const tni_setting_reader matmul = {"matmul", tni_matmul_settings};
static const tni_setting_reader attention = {"attention", tni_attention_settings};
static const tn_setting of_sdpa[] = {TN_SETTING_INFERENCE, -1};
static const tni_setting_reader sdpa = {"attention conditions", of_sdpa};
static const tni_setting_reader elementwise = {"elementwise and row operators",
                                               tni_elementwise_settings};

const tni_setting_reader *const tni_setting_readers[] = {&tni_cpu_reader,
                                                         &tni_library_reader,
                                                         &tni_platform_reader,
                                                         &plans,
                                                         &matmul,
                                                         &attention,
                                                         &sdpa,
                                                         &elementwise,
                                                         NULL};
