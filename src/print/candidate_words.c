#include "candidate_words.h"

#include "tenon/library.h"

#include <string.h>

int tni_candidate_color(const tn_candidate *candidate)
{
    switch (candidate->verdict) {
    case TN_VERDICT_CHOSEN: return TNI_COLOR_GOOD;
    case TN_VERDICT_ADMITTED: return TNI_COLOR_NONE;
    case TN_VERDICT_UNTESTED: return TNI_COLOR_ODD;
    case TN_VERDICT_QUARANTINED: return TNI_COLOR_BAD;
    default: return TNI_COLOR_SOFT;
    }
}

double tni_candidate_us(const tn_candidate *candidate)
{
    return candidate->tuned_us > 0 ? candidate->tuned_us : candidate->predicted_us;
}

const char *tni_candidate_us_source(const tn_candidate *candidate)
{
    if (candidate->tuned_us > 0)
        return "measured";
    return strcmp(candidate->predicted_by, "cost") == 0 ? "modelled" : "predicted";
}

const char *tni_numerics_word(uint64_t numerics, size_t index)
{
    static const struct {
        uint64_t bit;
        const char *word;
    } words[] = {{TN_NUM_RUN_TO_RUN, "run-to-run"},
                 {TN_NUM_BATCH_INVARIANT, "batch-invariant"},
                 {TN_NUM_CROSS_DEVICE, "cross-device"},
                 {TN_NUM_ROUNDS_F32_TF32, "rounds-f32-to-tf32"},
                 {TN_NUM_ROUNDS_F32_BF16, "rounds-f32-to-bf16"},
                 {TN_NUM_REDUCED_REDUCTION, "reduced-reduction"},
                 {TN_NUM_SPLIT_SUMS, "split-sums"},
                 {TN_NUM_F16_SUMS, "f16-sums"},
                 {TN_NUM_ROUNDS_PRODUCT, "rounds-product"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if ((numerics & words[i].bit) && index-- == 0)
            return words[i].word;
    }
    return NULL;
}

void tni_library_version(const char *library, char room[TNI_VERSION_ROOM])
{
    const tn_library *found;
    tn_library_state state = {.struct_size = sizeof state};
    const bool known = library[0] && !tn_library_get(library, &found, NULL) &&
                       !tn_library_state_get(found, NULL, &state, NULL);
    tn_text_fit(room, TNI_VERSION_ROOM, known ? state.version_text : "");
}

void tni_phrase_candidate(const tn_candidate *candidate, const char *version, tni_line *out)
{
    char bytes[TNI_BYTES_ROOM];
    const char *word;
    if (candidate->library[0])
        tni_line_add_item(out, "%s", candidate->library);
    if (version[0])
        tni_line_add(out, " %.*s", (int)strcspn(version, " "), version);
    if (candidate->backend[0])
        tni_line_add_item(out, "backend %s", candidate->backend);
    for (size_t i = 0; (word = tni_numerics_word(candidate->numerics, i)); i++)
        tni_line_add_item(out, "%s", word);
    if (candidate->workspace_bytes > 0 && candidate->workspace_bytes <= INT64_MAX)
        tni_line_add_item(out, "workspace %s",
                          tni_bytes_text((int64_t)candidate->workspace_bytes, bytes));
    if (candidate->note[0])
        tni_line_add_item(out, "%s", candidate->note);
}

void tni_phrase_refusal(const tn_refusal *why, tni_line *out)
{
    tni_line_add(out, "%s: %s", tn_refusal_name(why->code), why->text);
}

void tni_phrase_rule(const tn_candidate *candidate, tni_line *out)
{
    static const char *const says[] = {"avoided by the rule ",
                                       "affected by rule: ", "preferred by the rule "};
    bool told = candidate->why && candidate->why->code == TN_REFUSE_RULE;
    if (!candidate->rule[0] || (told && !candidate->overruled[0]))
        return;
    tni_line_add(out, "%s%s", says[candidate->standing + 1], candidate->rule);
    if (candidate->overruled[0])
        tni_line_add(out, ", which has priority over %s", candidate->overruled);
}
