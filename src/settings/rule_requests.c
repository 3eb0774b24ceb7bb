/* Settings that choose kernels, expanded into rules. */
#include "base/words.h"
#include "views.h"

/* A switch: off forbids, on permits. A permit cancels what the same setting forbids on farther
 * levels. */
static const struct switch_row {
    tn_setting setting;
    const char *selector;
} switches[] = {
    {TN_SETTING_CUDNN_ENABLED, "library:cudnn"},
    {TN_SETTING_CUDNN_ENABLED, "library:miopen"},
    {TN_SETTING_MKLDNN_ENABLED, "library:mkldnn"},
    {TN_SETTING_NNPACK_ENABLED, "library:nnpack"},
    {TN_SETTING_CUDA_FLASH_SDP, "attention/backend:flash"},
    {TN_SETTING_CUDA_MEM_EFFICIENT_SDP, "attention/backend:mem_efficient"},
    {TN_SETTING_CUDA_MATH_SDP, "attention/backend:math"},
    {TN_SETTING_CUDA_CUDNN_SDP, "attention/backend:cudnn"},
    {TN_SETTING_CUDA_OVERRIDEABLE_SDP, "attention/backend:overrideable"},
};

/* A choice between words, of which the first means no choice: the chosen one gets the strength, the
 * others are permitted. */
static const struct choice_row {
    tn_setting setting;
    int32_t strength;
    const char *prefix;
} choices[] = {
    {TN_SETTING_CUDA_PREFERRED_BLAS_LIBRARY, TN_PREFER, "matmul/library:"},
    {TN_SETTING_CUDA_PREFERRED_LINALG_LIBRARY, TN_PREFER, "linalg/library:"},
    {TN_SETTING_CUDA_PREFERRED_ROCM_FA_LIBRARY, TN_PREFER, "attention/library:"},
    {TN_SETTING_QUANTIZED_ENGINE, TN_REQUIRE, "qlinear/backend:"},
};

enum {
    SWITCHES = sizeof switches / sizeof switches[0],
    CHOICES = sizeof choices / sizeof choices[0]
};

bool tni_setting_rules(tn_setting setting)
{
    int32_t kind = tni_setting_row_of(setting)->kind;
    bool found = kind == TN_VALUE_ORDER || kind == TN_VALUE_RULE || kind == TN_VALUE_RULES;
    for (size_t i = 0; i < SWITCHES && !found; i++)
        found = switches[i].setting == setting;
    for (size_t i = 0; i < CHOICES && !found; i++)
        found = choices[i].setting == setting;
    return found;
}

/* Returns the name in "library:NAME", of any op; NULL for other selectors. */
static const char *library_in(const char *selector)
{
    static const char kind[] = "library:";
    const char *at = strstr(selector, kind);
    return at ? at + strlen(kind) : NULL;
}

size_t tni_setting_libraries(tn_setting setting, const char *out[TNI_SETTING_LIBRARIES_MOST])
{
    const tni_word_list *words = tni_setting_row_of(setting)->words;
    size_t count = 0;
    for (size_t i = 0; i < SWITCHES; i++) {
        const char *name = library_in(switches[i].selector);
        if (switches[i].setting == setting && name && count < TNI_SETTING_LIBRARIES_MOST)
            out[count++] = name;
    }
    for (size_t i = 0; i < CHOICES; i++) {
        bool is = choices[i].setting == setting && library_in(choices[i].prefix);
        for (size_t w = 1; is && w < words->settable && count < TNI_SETTING_LIBRARIES_MOST; w++)
            out[count++] = words->words[w];
    }
    return count;
}

static void clear_setting(tni_rule_requests *requests, tn_setting setting)
{
    size_t kept = 0;
    for (size_t i = 0; i < requests->count; i++) { /* rules of an earlier change in the same call */
        if (requests->items[i].setting != setting)
            requests->items[kept++] = requests->items[i];
    }
    requests->count = kept;
    for (size_t i = 0; i < requests->clear_count; i++) {
        if (requests->clear[i] == setting)
            return;
    }
    requests->clear[requests->clear_count++] = setting;
}

/* Adds a rule whose selector is the first `length` bytes of request.selector; copies it if a longer
 * text follows. */
static tn_status add_rule(tni_rule_requests *requests, tni_rule_request request, size_t length,
                          const char *where, tn_error *err)
{
    char *at = requests->text + requests->used;
    size_t copied = request.selector[length] ? length + 1 : 0;
    if (requests->count == TNI_RULE_REQUESTS_MOST ||
        copied > sizeof requests->text - requests->used)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s: more than %d rules at once",
                       tni_setting_row_of(request.setting)->facts.key, TNI_RULE_REQUESTS_MOST);
    if (copied) {
        memcpy(at, request.selector, length);
        at[length] = '\0';
        requests->used += copied;
        request.selector = at;
    }
    requests->items[requests->count++] = request;
    return TN_OK;
}

static tn_status add_word(tni_rule_requests *requests, tn_setting setting, int32_t strength,
                          const char *prefix, const char *word, const char *where, tn_error *err)
{
    const tni_rule_request request = {word, strength, setting, prefix};
    return add_rule(requests, request, strlen(word), where, err);
}

static tn_status add_switch(tni_rule_requests *requests, const tn_change *change, const char *where,
                            tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < SWITCHES && !status; i++) {
        if (switches[i].setting == change->setting)
            status = add_word(requests, change->setting, change->value ? TN_PERMIT : TN_FORBID,
                              NULL, switches[i].selector, where, err);
    }
    return status;
}

/* The setting must be one of `choices`. */
static tn_status add_choice(tni_rule_requests *requests, const tn_change *change, const char *where,
                            tn_error *err)
{
    const tni_word_list *words = tni_setting_row_of(change->setting)->words;
    const struct choice_row *row = choices;
    tn_status status = TN_OK;
    while (row->setting != change->setting)
        row++;
    for (size_t i = 1; i < words->settable && !status; i++)
        status = add_word(requests, change->setting,
                          change->value == (int64_t)i ? row->strength : TN_PERMIT, row->prefix,
                          words->words[i], where, err);
    return status;
}

/* Prefers attention's backends in the given order. */
static tn_status add_order(tni_rule_requests *requests, const tn_change *change, const char *where,
                           tn_error *err)
{
    const tni_setting_row *row = tni_setting_row_of(change->setting);
    int64_t order = 0;
    tn_status status = tni_order_parse(row, change->text, &order, where, err);
    for (; order && !status; order >>= 4)
        status = add_word(requests, change->setting, TN_PREFER,
                          "attention/backend:", row->words->words[(order & 15) - 1], where, err);
    return status;
}

/* Moves to the next part between commas; returns its length without trailing blanks. */
static size_t next_part(const char **at)
{
    *at += strspn(*at, ", \t");
    size_t length = strcspn(*at, ",");
    while (length > 0 && ((*at)[length - 1] == ' ' || (*at)[length - 1] == '\t'))
        length--;
    return length;
}

static bool is_any(const char *part, size_t length)
{
    char word[4];
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : 0), part);
    return tni_words_same(word, "any");
}

/* "mkl, openblas": each with the change's strength. "any", alone and required or permitted, cancels
 * what the setting says on farther levels. */
static tn_status add_names(tni_rule_requests *requests, const tn_change *change, const char *where,
                           tn_error *err)
{
    const tni_setting_row *row = tni_setting_row_of(change->setting);
    tni_rule_request request = {change->text, change->strength, change->setting, row->prefix};
    size_t count = 0, any = 0;
    tn_status status = TN_OK;
    for (size_t length; !status && (length = next_part(&request.selector)) != 0;
         request.selector += length, count++) {
        any += is_any(request.selector, length);
        status = add_rule(requests, request, length, where, err);
    }
    if (status || (count > 0 && any == 0))
        return status;
    if (count != 1 || change->strength > TN_REQUIRE)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s cannot be \"%s:%.60s\"; allowed: %s",
                       row->facts.key, tn_strength_name(change->strength), change->text,
                       row->facts.allowed);
    request.strength = TN_PERMIT;
    request.selector = "*";
    requests->items[requests->count - 1] = request;
    return TN_OK;
}

static tn_status reject_strength(const char *part, size_t length, const char *word,
                                 const char *where, tn_error *err)
{
    char hint[TNI_HINT];
    return tn_fail(
        err, TN_INVALID_ARGUMENT, 0, where,
        "rules: \"%.*s\" does not begin with require:, prefer:, avoid:, forbid: or permit:%s",
        (int)(length < 80 ? length : 80), part, tni_words_hint(tni_strength_nearest(word), hint));
}

/* "forbid:library:cudnn, prefer:matmul/mkl". */
static tn_status add_list(tni_rule_requests *requests, const tn_change *change, const char *where,
                          tn_error *err)
{
    const char *at = change->text;
    tn_status status = TN_OK;
    for (size_t length; !status && (length = next_part(&at)) != 0; at += length) {
        char word[16];
        size_t colon = strcspn(at, ":");
        snprintf(word, sizeof word, "%.*s", (int)(colon < sizeof word ? colon : 0), at);
        const tni_rule_request request = {at + colon + 1, tni_strength_parse(word), change->setting,
                                          NULL};
        status = colon >= length || request.strength < 0
                     ? reject_strength(at, length, word, where, err)
                     : add_rule(requests, request, length - colon - 1, where, err);
    }
    return status;
}

tn_status tni_rule_requests_add(tni_rule_requests *requests, const tn_change *change,
                                const char *where, tn_error *err)
{
    int32_t kind = tni_setting_row_of(change->setting)->kind;
    if (kind == TN_VALUE_RULES && change->strength >= 0)
        return add_word(requests, change->setting, change->strength, NULL, change->text, where,
                        err);
    clear_setting(requests, change->setting);
    switch (kind) {
    case TN_VALUE_BOOL: return add_switch(requests, change, where, err);
    case TN_VALUE_ORDER: return add_order(requests, change, where, err);
    case TN_VALUE_RULE: return add_names(requests, change, where, err);
    case TN_VALUE_RULES: return add_list(requests, change, where, err);
    default: return add_choice(requests, change, where, err);
    }
}

/* The part of a rule's selector that is written in a RULE setting's value. */
static const char *name_in(const tni_rule *rule, const char *prefix)
{
    size_t length = prefix ? strlen(prefix) : 0;
    return length && strncmp(rule->text, prefix, length) == 0 ? rule->text + length : rule->text;
}

static size_t append_texts(char *out, size_t size, size_t used, const char *a, const char *b,
                           const char *c)
{
    bool room = used < size;
    return used +
           (size_t)snprintf(room ? out + used : NULL, room ? size - used : 0, "%s%s%s", a, b, c);
}

size_t tni_rules_write(const tn_context *context, tn_setting setting, char *out, size_t size)
{
    const tni_setting_row *row = tni_setting_row_of(setting);
    bool list = row->kind == TN_VALUE_RULES;
    size_t used = 0;
    int32_t depth = -1;
    if (size > 0)
        out[0] = '\0';
    for (size_t i = 0; i < tni_rules_count(context->rules); i++) {
        const tni_rule *rule = tni_rules_at(context->rules, i);
        if (rule->setting != setting || (!list && depth >= 0 && rule->depth != depth))
            continue;
        depth = rule->depth;
        if (!list && rule->strength == TN_PERMIT && strcmp(name_in(rule, row->prefix), "*") == 0)
            break;
        if (used)
            used = append_texts(out, size, used, ", ", "", "");
        if (list || !used)
            used = append_texts(out, size, used, tn_strength_name(rule->strength), ":", "");
        used = append_texts(out, size, used, name_in(rule, row->prefix), "", "");
    }
    return used || list ? used : append_texts(out, size, 0, "any", "", "");
}
