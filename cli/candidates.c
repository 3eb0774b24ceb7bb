#include "candidates.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

bool candidate_may_run(const tn_candidate *candidate)
{
    return candidate->verdict == TN_VERDICT_CHOSEN || candidate->verdict == TN_VERDICT_ADMITTED ||
           candidate->verdict == TN_VERDICT_UNTESTED;
}

int paint_of_candidate(const tn_candidate *candidate)
{
    switch (candidate->verdict) {
    case TN_VERDICT_CHOSEN: return PAINT_GOOD;
    case TN_VERDICT_ADMITTED: return PAINT_NONE;
    case TN_VERDICT_UNTESTED: return PAINT_ODD;
    case TN_VERDICT_QUARANTINED: return PAINT_BAD;
    default: return PAINT_SOFT;
    }
}

double candidate_us(const tn_candidate *candidate)
{
    return candidate->tuned_us > 0 ? candidate->tuned_us : candidate->predicted_us;
}

const char *candidate_us_source(const tn_candidate *candidate)
{
    if (candidate->tuned_us > 0)
        return "measured";
    return strcmp(candidate->predicted_by, "cost") == 0 ? "modelled" : "predicted";
}

/* Decimals that give three significant digits, without an exponent. */
static int digits_behind(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

const char *text_time(double us, char room[TEXT_TIME])
{
    static const struct {
        double us;
        const char *name;
    } units[] = {{1e-3, "ns"}, {1, "us"}, {1e3, "ms"}, {1e6, "s"}};
    size_t unit = 0;
    while (unit + 1 < sizeof units / sizeof units[0] && us / units[unit].us >= 999.5)
        unit++;
    double value = us / units[unit].us;
    snprintf(room, TEXT_TIME, "%.*f %s", digits_behind(value), value, units[unit].name);
    return room;
}

const char *text_rate(double giga, const char *unit, char room[TEXT_RATE])
{
    static const char prefixes[] = "KMGTP";
    double value = giga * 1e6;
    size_t at = 0;
    if (!(giga > 0)) {
        snprintf(room, TEXT_RATE, "-");
        return room;
    }
    while (at + 2 < sizeof prefixes && value >= 999.5) {
        value /= 1000;
        at++;
    }
    snprintf(room, TEXT_RATE, "%.*f %c%s/s", digits_behind(value), value, prefixes[at], unit);
    return room;
}

double spread_of(const tn_bench_result *result)
{
    return result->runs == 1 ? (double)NAN : result->spread;
}

bool is_measurable(double spread)
{
    return spread <= 0.5;
}

/* One cached library version. */
typedef struct asked_library {
    const tn_library *library;
    char version[sizeof((tn_library_state *)0)->version_text];
} asked_library;

const char *library_version_of(const char *library)
{
    enum { MOST = 64 }; /* if full, the last entry is replaced */
    static asked_library asked[MOST];
    static size_t count;
    const tn_library *found;
    tn_library_state state = {.struct_size = sizeof state};
    size_t i = 0;
    if (!library[0] || tn_library_get(library, &found, NULL))
        return "";
    while (i < count && asked[i].library != found)
        i++;
    if (i < count)
        return asked[i].version;
    asked_library *to = &asked[count < MOST ? count++ : MOST - 1];
    bool known = tn_library_state_get(found, NULL, &state, NULL) == TN_OK;
    to->library = found;
    tn_text_fit(to->version, sizeof to->version, known ? state.version_text : "");
    return to->version;
}

const char *numerics_word(uint64_t numerics, size_t index)
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

void phrase_candidate(const tn_candidate *candidate, text_line *out)
{
    char bytes[TEXT_BYTES];
    const char *word, *version = library_version_of(candidate->library);
    if (candidate->library[0])
        text_add_item(out, "%s", candidate->library);
    if (version[0])
        text_add(out, " %.*s", (int)strcspn(version, " "), version);
    if (candidate->backend[0])
        text_add_item(out, "backend %s", candidate->backend);
    for (size_t i = 0; (word = numerics_word(candidate->numerics, i)); i++)
        text_add_item(out, "%s", word);
    if (candidate->workspace_bytes > 0 && candidate->workspace_bytes <= INT64_MAX)
        text_add_item(out, "workspace %s", text_bytes((int64_t)candidate->workspace_bytes, bytes));
    if (candidate->note[0])
        text_add_item(out, "%s", candidate->note);
}

void phrase_refusal(const tn_refusal *why, text_line *out)
{
    text_add(out, "%s: %s", tn_refusal_name(why->code), why->text);
}

void phrase_rule(const tn_candidate *candidate, text_line *out)
{
    static const char *const says[] = {"avoided by the rule ",
                                       "affected by rule: ", "preferred by the rule "};
    bool told = candidate->why && candidate->why->code == TN_REFUSE_RULE;
    if (!candidate->rule[0] || (told && !candidate->overruled[0]))
        return;
    text_add(out, "%s%s", says[candidate->standing + 1], candidate->rule);
    if (candidate->overruled[0])
        text_add(out, ", which has priority over %s", candidate->overruled);
}
