/* The explanation of a call: its parts. */
#include "attention_video.h"

#include "base/alloc.h"

#include <string.h>

tn_status tni_video_add_part(tni_video_call *c, const char *stage, tn_status status, tn_error *err)
{
    tn_attention_video_plan *plan = c->plan;
    tn_decision *decision = c->decision;
    void *parts = plan->parts;
    c->decision = NULL;
    if (status)
        return status;
    if (!tni_array_reserve(&parts, &plan->room, plan->info.parts, plan->info.parts + 1,
                           sizeof *plan->parts)) {
        tn_decision_release(decision);
        return tni_no_memory(err, "tn_attention_video", "an explanation");
    }
    plan->parts = parts;
    const tn_candidate *chosen = tn_decision_chosen(decision);
    tni_video_part *part = &plan->parts[plan->info.parts++];
    part->problem = tni_text_copy(tn_decision_problem(decision));
    part->kernel = tni_text_copy(chosen ? chosen->kernel : "");
    part->face = (tn_attention_video_part){.struct_size = sizeof part->face,
                                           .stage = stage,
                                           .problem = part->problem,
                                           .kernel = part->kernel};
    tn_decision_release(decision);
    return part->problem && part->kernel
               ? TN_OK
               : tni_no_memory(err, "tn_attention_video", "an explanation");
}

void tn_attention_video_plan_release(tn_attention_video_plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->info.parts; i++) {
        tni_release(plan->parts[i].problem);
        tni_release(plan->parts[i].kernel);
    }
    tni_release(plan->parts);
    tni_release(plan);
}

tn_status tn_attention_video_info_get(const tn_attention_video_plan *plan,
                                      tn_attention_video_info *out, tn_error *err)
{
    const size_t needed = TN_UP_TO(tn_attention_video_info, parts);
    if (!plan || !out || out->struct_size < needed)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_attention_video_info_get",
                       "expected a plan and an out whose struct_size is at least %zu", needed);
    const size_t size = out->struct_size;
    memcpy(out, &plan->info, needed);
    out->struct_size = size;
    return TN_OK;
}

const tn_attention_video_part *tn_attention_video_part_get(const tn_attention_video_plan *plan,
                                                           size_t index)
{
    return plan && index < plan->info.parts ? &plan->parts[index].face : NULL;
}
