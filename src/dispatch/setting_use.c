/* Whether a setting can change anything in this process: its values are tried on every kernel of the
 * loaded modules, with the policies that judge candidates. */
#include "judge.h"

#include "base/alloc.h"
#include "policy.h"
#include "settings/reader.h"
#include "settings/table.h"
#include "settings/views.h"

static const char where[] = "tn_setting_use_get";

/* The defaults with each value of one setting. */
enum { VALUES_MOST = 16 };
typedef struct trial {
    tn_setting setting;
    tn_context *contexts[VALUES_MOST];
    size_t count;
    bool writes_rules;
} trial;

/* Writes the n-th value of a setting with few values; false if there is none. No kernel is chosen by
 * a setting of the whole process alone. */
static bool find_value(const tni_setting_row *row, size_t index, tn_change *out)
{
    if (row->facts.process_only)
        return false;
    switch (row->kind) {
    case TN_VALUE_BOOL: out->value = (int64_t)index; return index < 2;
    case TN_VALUE_WORD: out->value = (int64_t)index; return index < row->words->settable;
    case TN_VALUE_ORDER:
        out->text = index < row->words->settable ? row->words->words[index] : NULL;
        return out->text != NULL;
    default: return false;
    }
}

static void release_trial(trial *t)
{
    while (t->count > 0)
        tn_context_release(t->contexts[--t->count]);
}

/* Release it in either case. */
static tn_status make_trial(tn_setting setting, trial *out, tn_error *err)
{
    const tni_setting_row *row = tni_setting_row_of(setting);
    const tn_context *from = tni_context_defaults();
    tn_change change = {.setting = setting};
    tn_status status = TN_OK;
    *out = (trial){.setting = setting, .writes_rules = tni_setting_rules(setting)};
    while (!status && out->count < VALUES_MOST && find_value(row, out->count, &change)) {
        status = tni_context_change(from, &change, 1, TN_LEVEL_CALL, tni_depth_within(from), where,
                                    &out->contexts[out->count], err);
        out->count += !status;
    }
    return status;
}

/* What the policies say of a candidate, without what depends on the machine or the sizes. */
typedef struct standing {
    bool permitted;
    int32_t says;
    int32_t order;
} standing;

static standing judge_kernel(const tn_context *context, const tn_op *op, const tni_kernel *kernel)
{
    const tni_question question = {.context = context, .op = op};
    tni_contender contender = {.kernel = kernel};
    bool permitted = true;
    TNI_POLICIES_EACH (policy) {
        if (policy->judge)
            policy->judge(&question, &contender);
        if (policy->permit)
            permitted = policy->permit(&question, &contender) && permitted;
    }
    return (standing){permitted, contender.judged.says, contender.judged.order};
}

static bool is_judged_by(const trial *t, const tn_op *op, const tni_kernel *kernel)
{
    const standing first = judge_kernel(t->contexts[0], op, kernel);
    for (size_t i = 1; i < t->count; i++) {
        const standing other = judge_kernel(t->contexts[i], op, kernel);
        if (other.permitted != first.permitted || other.says != first.says ||
            other.order != first.order)
            return true;
    }
    return false;
}

static int32_t sign_of(int32_t number)
{
    return (number > 0) - (number < 0);
}

/* Whether the setting's values order the kernel and another one of its platform differently. */
static bool is_ordered_by(const trial *t, const tni_kernel *kernel)
{
    const tni_kernel *other;
    for (size_t k = 0; (other = tni_kernel_at(k)); k++) {
        if (other->row->op != kernel->row->op ||
            strcmp(other->row->platform, kernel->row->platform) != 0)
            continue;
        const int32_t first =
            sign_of(tni_rules_compare(t->contexts[0]->rules, &kernel->names, &other->names, -1));
        for (size_t i = 1; i < t->count; i++) {
            const int32_t now = sign_of(
                tni_rules_compare(t->contexts[i]->rules, &kernel->names, &other->names, -1));
            if (now != first)
                return true;
        }
    }
    return false;
}

static bool class_has(const tni_op_class *class, tn_setting setting)
{
    const tn_setting *at = class->settings;
    const tni_plan_limit *limit = class->plan_limits;
    while (*at >= 0 && *at != setting)
        at++;
    while (limit && limit->platform && limit->setting != setting)
        limit++;
    return *at >= 0 || (limit && limit->platform);
}

/* Whether the kernel itself queries the setting, makes its library log by it, or has a limit of its plans. */
static bool is_queried_by(tn_setting setting, const tni_kernel *kernel)
{
    const tni_kernel_setting *row = tni_kernel_settings;
    if (kernel->talker && kernel->talker->talk == setting)
        return true;
    while (row->library &&
           (row->setting != setting || strcmp(row->library, kernel->names.library) != 0))
        row++;
    return row->library && class_has(tni_op_class_of(kernel->row->op), setting);
}

static bool depends_on(const trial *t, tn_op *op, const tni_kernel *kernel)
{
    if (is_queried_by(t->setting, kernel))
        return true;
    if (t->count == 0)
        return false;
    tni_op_init(op, tni_op_class_of(kernel->row->op));
    for (const tn_dtype *dtype = kernel->row->dtypes; *dtype; dtype++) {
        op->operand[0].dtype = *dtype;
        if (is_judged_by(t, op, kernel))
            return true;
    }
    return t->writes_rules && is_ordered_by(t, kernel);
}

/* Sets a bit for each group of operators with a loaded kernel that depends on the setting. */
static tn_status find_groups(tn_setting setting, uint32_t *out_groups, tn_error *err)
{
    const tni_kernel *kernel;
    uint32_t groups = 0;
    trial t;
    tn_status status = make_trial(setting, &t, err);
    tn_op *op = status ? NULL : tni_alloc_zeroed(1, sizeof *op);
    if (!status && !op)
        status = tni_no_memory(err, where, "an op");
    for (size_t i = 0; op && (kernel = tni_kernel_at(i)); i++) {
        const uint32_t bit = UINT32_C(1) << tni_op_class_of(kernel->row->op)->group;
        if (!(groups & bit) && depends_on(&t, op, kernel))
            groups |= bit;
    }
    tni_release(op);
    release_trial(&t);
    if (!status)
        *out_groups = groups;
    return status;
}

static bool is_of_dispatch(tn_setting setting)
{
    const int32_t kind = tni_setting_row_of(setting)->kind;
    const tn_setting *at = tni_settings_of_dispatch;
    while (*at >= 0 && *at != setting)
        at++;
    return *at >= 0 || kind == TN_VALUE_RULE;
}

/* Sets a bit for each reader of the setting that its values change something for. */
static uint64_t find_readers(tn_setting setting, uint32_t groups)
{
    const tni_setting_reader *reader;
    uint64_t readers = 0;
    for (size_t i = 0; (reader = tni_setting_reader_at(setting, i)); i++) {
        bool used =
            reader->reads == TNI_READS_ALWAYS || is_of_dispatch(setting) ||
            (reader->reads == TNI_READS_FOR_KERNELS ? groups != 0 : groups >> reader->reads & 1);
        readers |= (uint64_t)used << i;
    }
    return readers;
}

/* Writes "cudnn or miopen" and the platform that the libraries are for. */
static void write_libraries(const char *const *names, size_t count, tn_setting_use *out)
{
    tn_library_state state = {.struct_size = sizeof state};
    const tn_library *library = NULL;
    char list[96] = "";
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s",
                 i == 0          ? ""
                 : i + 1 < count ? ", "
                                 : " or ",
                 names[i]);
    }
    if (tn_library_get(names[count - 1], &library, NULL) == TN_OK)
        (void)tn_library_state_get(library, NULL, &state, NULL);
    snprintf(out->reason, sizeof out->reason, "no loaded module uses %s; a module for %s could",
             list, state.platform && state.platform[0] ? state.platform : "it");
}

static bool has_kernel_of(const char *const *libraries, size_t count)
{
    const tni_kernel *kernel;
    for (size_t i = 0; (kernel = tni_kernel_at(i)); i++) {
        for (size_t j = 0; j < count; j++) {
            if (strcmp(kernel->names.library, libraries[j]) == 0)
                return true;
        }
    }
    return false;
}

static void explain_unused(tn_setting setting, tn_setting_use *out)
{
    const char *libraries[TNI_SETTING_LIBRARIES_MOST];
    size_t count = tni_setting_libraries(setting, libraries);
    for (const tni_kernel_setting *row = tni_kernel_settings; row->library && count == 0; row++) {
        if (row->setting == setting)
            libraries[count++] = row->library;
    }
    if (!tn_setting_reader(setting, 0))
        snprintf(out->reason, sizeof out->reason, "this version has no operator that reads it");
    else if (count > 0 && !has_kernel_of(libraries, count))
        write_libraries(libraries, count, out);
    else
        snprintf(out->reason, sizeof out->reason, "no kernel of the loaded modules depends on it");
}

tn_status tn_setting_use_get(tn_setting setting, tn_setting_use *out, tn_error *err)
{
    tn_setting_use use = {0};
    uint32_t groups = 0;
    if (!out || !TN_HAS(out, tn_setting_use, reason))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s",
                       out ? "out->struct_size is too small" : "out is NULL");
    if (!tni_setting_row_of(setting))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "expected a setting from 0 to %d, got %d", TN_SETTING_COUNT - 1,
                       (int)setting);
    tn_status status = find_groups(setting, &groups, err);
    if (status)
        return status;
    use.readers = find_readers(setting, groups);
    use.used = use.readers != 0;
    if (!use.used)
        explain_unused(setting, &use);
    use.struct_size = out->struct_size < sizeof use ? out->struct_size : sizeof use;
    memcpy(out, &use, use.struct_size);
    return TN_OK;
}
