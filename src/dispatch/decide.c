/* Judges every kernel of a platform for one op. Calls and explanations share this code. */
#include "base/dtype.h"
#include "declined.h"
#include "judge.h"
#include "os/cpu.h"
#include "os/cpu_level.h"
#include "os/parallel.h"
#include "policy.h"
#include "settings/context.h"
#include "settings/table.h"

#include <inttypes.h>
#include <math.h>

static const tn_layout *first_operand(const tn_op *op)
{
    int32_t i = 0;
    while (i + 1 < op->count && !op->operand[i].dtype)
        i++;
    return &op->operand[i];
}

static bool computes_with(const tn_kernel_row *row, tn_dtype dtype)
{
    const tn_dtype *it = row->dtypes;
    while (*it && *it != dtype)
        it++;
    return *it != 0;
}

static bool is_cpu_here(const tn_device *device)
{
    return device->platform->known->kind == TN_PLATFORM_CPU && !device->plans_only;
}

static void judge_contender(const tni_question *question, tni_contender *to)
{
    TNI_POLICIES_EACH (policy) {
        if (policy->judge)
            policy->judge(question, to);
    }
}

static bool policies_permit(const tni_question *question, tni_contender *to)
{
    TNI_POLICIES_EACH (policy) {
        if (policy->permit && !policy->permit(question, to))
            return false;
    }
    return true;
}

/* Returns whether only a permission of the operating system is missing for the kernel to run. */
static bool waits_for_permission(const tni_question *question, const tni_kernel *kernel)
{
    const uint64_t amx = TN_CPU_BIT(AMX_TILE) | TN_CPU_BIT(AMX_INT8) | TN_CPU_BIT(AMX_BF16);
    uint64_t lacks = kernel->row->cpu_needs & ~tni_cpu_features();
    if (!lacks || lacks & ~(amx & tni_cpu_mask()) ||
        !computes_with(kernel->row, first_operand(question->op)->dtype))
        return false;
    if (question->only)
        return kernel == question->only;
    tni_contender candidate = {.kernel = kernel};
    judge_contender(question, &candidate);
    return policies_permit(question, &candidate);
}

void tni_decide_request(const tni_question *question)
{
    const tni_kernel *const *kernels = NULL;
    if (!tni_cpu_why_not(TN_CPU_INDEX_AMX_TILE) || !is_cpu_here(question->device) ||
        tni_kernels_of(question->device->platform->name, question->op->kind, &kernels, NULL))
        return;
    while (*kernels && !waits_for_permission(question, *kernels))
        kernels++;
    if (*kernels)
        (void)tni_cpu_amx_request();
}

/* Appends a word to a list of `*used` bytes, if it fits. */
static void list_add(const char *word, char *list, size_t size, size_t *used)
{
    size_t length = strlen(word), gap = *used > 0 ? 2 : 0;
    if (*used + gap + length >= size)
        return;
    memcpy(list + *used, ", ", gap);
    memcpy(list + *used + gap, word, length + 1);
    *used += gap + length;
}

static bool dtype_permits(const tni_asking *asking, const tn_kernel_row *row, tn_refusal *why)
{
    tn_dtype found = first_operand(asking->question->op)->dtype;
    char list[96] = "";
    size_t used = 0;
    if (computes_with(row, found))
        return true;
    for (const tn_dtype *dtype = row->dtypes; *dtype; dtype++)
        list_add(tn_dtype_name(*dtype), list, sizeof list, &used);
    const char *const words[] = {"it computes with ", list, NULL};
    return tni_refuse_words(why, TN_REFUSE_DTYPE, tn_dtype_name(found), words);
}

/* Writes the names of the set bits; unnamed bits are skipped. */
static void write_uses(const tni_asking *asking, uint64_t bits, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (int32_t bit = 0; asking->class->uses[bit]; bit++) {
        if (bits >> bit & 1)
            list_add(asking->class->uses[bit], out, size, &used);
    }
}

static bool features_permit(const tni_asking *asking, const tn_kernel_row *row, tn_refusal *why)
{
    uint64_t lacks = asking->question->op->uses & ~row->honours;
    char words[128], first[32];
    if (!lacks)
        return true;
    write_uses(asking, lacks & (~lacks + 1), first, sizeof first);
    write_uses(asking, lacks, words, sizeof words);
    return tni_refuse(why, TN_REFUSE_FEATURE, first[0] ? first : "unknown", 1, 0,
                      "the kernel does not support %s",
                      words[0] ? words : "a feature without a name in this version");
}

/* Whether the kernel is as reproducible as the setting demands. */
static bool determinism_permits(const tni_question *question, const tni_kernel *kernel,
                                tn_refusal *why)
{
    static const struct {
        const char *word;
        uint64_t bit;
    } classes[] = {[TN_RUN_TO_RUN] = {"run-to-run", TN_NUM_RUN_TO_RUN},
                   [TN_BATCH_INVARIANT] = {"batch-invariant", TN_NUM_BATCH_INVARIANT},
                   [TN_CROSS_DEVICE] = {"cross-device", TN_NUM_CROSS_DEVICE}};
    const int64_t required = tn_setting_value(question->context, TN_SETTING_DETERMINISM);
    for (int64_t i = TN_RUN_TO_RUN; i <= required; i++) {
        if (!(kernel->row->numerics & classes[i].bit))
            return tni_refuse(why, TN_REFUSE_DETERMINISM, classes[i].word, 1, 0,
                              "it does not guarantee %s, which %s=%s requires", classes[i].word,
                              tni_setting_row_of(TN_SETTING_DETERMINISM)->facts.key,
                              classes[required].word);
    }
    return true;
}

bool tni_mask_permits(const tn_kernel_row *row, tn_refusal *why)
{
    if (!row->library || !tni_cpu_is_masked())
        return true;
    return tni_refuse(why, TN_REFUSE_DEVICE, "instructions", 1, 0,
                      "%s chooses its own instructions and may exceed %s, the limit set by "
                      "cpu.isa_mask; unset it, or use a kernel of Tenon",
                      row->library, tni_cpu_level());
}

static bool cpu_permits(const tni_asking *asking, const tn_kernel_row *row, tn_refusal *why)
{
    uint64_t lacks = row->cpu_needs & ~asking->cpu_features;
    const char *reason = "";
    char words[96];
    if (!lacks)
        return !is_cpu_here(asking->question->device) || tni_mask_permits(row, why);
    for (int i = 0; i < TN_CPU_FEATURE_COUNT; i++) {
        if (lacks >> i & 1 && tni_cpu_why_not(i))
            reason = tni_cpu_why_not(i);
    }
    if (asking->question->device->plans_only)
        reason = "the description has no such features";
    else if (!(lacks & ~tni_cpu_possible()))
        reason = "cpu.isa_mask hides them";
    tni_cpu_features_write(lacks, words, sizeof words);
    return tni_refuse(why, TN_REFUSE_DEVICE, "instructions", 1, 0,
                      "it needs instructions that are not usable here: %s%s%s", words,
                      *reason ? "; " : "", reason);
}

/* Shortens a text: first removes phrases that the following words repeat, then whole clauses from
 * the end. Only a first clause that is too long by itself is cut. */
static void shorten_text(char *text, size_t room)
{
    static const char needless[] = "cannot open shared object file: ";
    char copy[sizeof(tn_error)];
    char *found;
    while (strlen(text) > room && (found = strstr(text, needless))) {
        const char *rest = found + strlen(needless);
        memmove(found, rest, strlen(rest) + 1);
    }
    while (strlen(text) > room && (found = strrchr(text, ';')))
        *found = '\0';
    tn_text_fit(copy, sizeof copy, text);
    tn_text_fit(text, room + 1, copy);
}

/* Returns how to get the kernel's library; "" if unknown. */
static const char *remedy_of(const tni_kernel *kernel)
{
    tni_libraries_lock();
    const tni_library_offer *offer = tni_library_offer_of(kernel->library, kernel->record);
    const char *remedy = offer ? offer->row->remedy : NULL;
    tni_libraries_unlock();
    return remedy ? remedy : "";
}

/* Says why a library is unavailable and how to get it. The remedy is more useful than the list of
 * places that were searched. `said` ends with the remedy, and is shortened. */
static bool refuse_library(const tni_kernel *kernel, char *said, tn_refusal *why)
{
    const char *remedy = remedy_of(kernel);
    size_t length = strlen(said), end = strlen(remedy), room = sizeof why->text - 1;
    bool has =
        end > 0 && end < room / 2 && length > end + 2 && strcmp(said + length - end, remedy) == 0;
    if (has) {
        said[length - end - 2] = '\0';
        room -= end + 2;
    }
    shorten_text(said, room);
    return tni_refuse(why, TN_REFUSE_LIBRARY, kernel->row->library, 1, 0, "%s%s%s", said,
                      has ? "; " : "", has ? remedy : "");
}

/* Whether a library could be available on a device for planning only: assumed so, unless the
 * description names a processor that the library is not made for. */
static bool library_fits(const tni_asking *asking, const tni_kernel *kernel, tn_refusal *why)
{
    const char *found = tni_device_described(asking->question->device)->architecture;
    const tni_library_known *known = kernel->library ? kernel->library->known : NULL;
    if (!known || known->kind != TNI_LIBRARY_X86 || !found[0] || strcmp(found, "x86_64") == 0)
        return true;
    const char *const words[] = {known->name, " needs x86_64, but the description says ", found,
                                 NULL};
    return tni_refuse_words(why, TN_REFUSE_LIBRARY, known->name, words);
}

/* Opens the library and leaves it open. */
static bool library_permits(const tni_asking *asking, const tni_kernel *kernel,
                            int64_t *out_version, tn_refusal *why)
{
    void *self;
    tn_error err;
    *out_version = -1;
    if (!kernel->row->library)
        return true;
    if (asking->question->device->plans_only)
        return library_fits(asking, kernel, why);
    if (!kernel->library)
        return tni_refuse(why, TN_REFUSE_LIBRARY, kernel->row->library, 1, 0,
                          "no module provides %s", kernel->row->library);
    tn_status status = tni_library_open(kernel->library, kernel->record, &self, out_version, &err);
    if (!status)
        return true;
    if (status == TN_BUSY || status == TN_OUT_OF_MEMORY)
        return tni_refuse(why, TN_REFUSE_BUSY, kernel->row->library, 1, 0, "%s", err.message);
    return refuse_library(kernel, err.message, why);
}

/* Asks the row's own `admit`. The row's texts are cut to their buffers. If the row admits the
 * problem, its text is kept as a note. */
static bool row_permits(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    tn_refusal said = {.struct_size = sizeof said, .code = TN_REFUSE_OTHER};
    bool admits = !row->admit || row->admit(row, query, &said) == TN_OK;
    said.what[sizeof said.what - 1] = '\0';
    said.text[sizeof said.text - 1] = '\0';
    if (admits) {
        tn_text_fit(why->text, sizeof why->text, said.text);
        return true;
    }
    *why = said;
    if (why->code <= TN_REFUSE_NONE || why->code >= TN_REFUSE_COUNT)
        why->code = TN_REFUSE_OTHER;
    return false;
}

static bool workspace_permits(const tni_asking *asking, const tn_kernel_row *row,
                              const tn_query *query, uint64_t *out, tn_refusal *why)
{
    int64_t limit = tn_setting_value(asking->question->context, TN_SETTING_WORKSPACE_LIMIT);
    *out = row->workspace ? row->workspace(row, query) : 0;
    if (limit < 0 || *out <= (uint64_t)limit)
        return true;
    int64_t needed = *out > INT64_MAX ? INT64_MAX : (int64_t)*out;
    return tni_refuse(why, TN_REFUSE_MEMORY, "workspace bytes", needed, limit,
                      "workspace.limit=%" PRId64 " permits it", needed);
}

bool tni_choice_is_fixed(const tni_question *question)
{
    return tn_setting_value(question->context, TN_SETTING_DETERMINISM) >= TN_BATCH_INVARIANT;
}

/* Returns the cost that the row's own function predicts; 0 if it has no function or no
 * prediction. */
static double cost_of(const tni_asking *asking, const tn_kernel_row *row)
{
    const tn_op *op = asking->question->op;
    tn_query query;
    if (!row->cost || op->uses & ~row->honours || !computes_with(row, first_operand(op)->dtype))
        return 0;
    tni_query_make(asking, -1, &query);
    double us = row->cost(row, &query);
    return us > 0 && us < HUGE_VAL ? us : 0;
}

static void predict_time(const tni_asking *asking, const tn_kernel_row *row, tni_contender *to)
{
    double compute = asking->flops / row->flops_per_us, move = asking->bytes / row->bytes_per_us;
    double own = cost_of(asking, row);
    to->by_cost = own > 0;
    to->predicted_us = to->by_cost ? own : row->overhead_us + (compute > move ? compute : move);
    to->order_us = tni_choice_is_fixed(asking->question) ? 1 / row->flops_per_us : to->predicted_us;
}

static bool is_capable(const tni_asking *asking, const tni_kernel *kernel, int64_t *out_version,
                       tni_contender *to)
{
    tn_query query;
    const tn_kernel_row *row = kernel->row;
    if (!cpu_permits(asking, row, &to->why) ||
        !library_permits(asking, kernel, out_version, &to->why))
        return false;
    tni_query_make(asking, *out_version, &query);
    return row_permits(row, &query, &to->why) &&
           workspace_permits(asking, row, &query, &to->workspace, &to->why);
}

static bool is_admitted(const tni_contender *v)
{
    return v->verdict == TN_VERDICT_ADMITTED || v->verdict == TN_VERDICT_UNTESTED;
}

static void explain_incapable(const tni_question *question, tni_contender *to)
{
    TNI_POLICIES_EACH (policy) {
        if (policy->explain)
            policy->explain(question, to);
    }
}

/* Asks the policies about a candidate that can compute the problem. */
static void admit_capable(const tni_question *question, int64_t version, tni_contender *to)
{
    to->verdict = TN_VERDICT_ADMITTED;
    TNI_POLICIES_EACH (policy) {
        if (!policy->admit || policy->admit(question, version, to))
            continue;
        if (is_admitted(to))
            to->verdict = TN_VERDICT_REFUSED;
        return;
    }
    TNI_POLICIES_EACH (policy) {
        if (policy->rank)
            policy->rank(question, to);
    }
}

/* Runs the tests in order of cost, the cheapest first. */
static void run_tests(const tni_asking *asking, const tni_kernel *kernel, tni_contender *to)
{
    const tni_question *q = asking->question;
    const bool free = q->only != NULL; /* no policies */
    int64_t version = -1;
    if (!free)
        judge_contender(q, to);
    if (!dtype_permits(asking, kernel->row, &to->why) ||
        !features_permit(asking, kernel->row, &to->why) ||
        (!free && (!determinism_permits(q, kernel, &to->why) || !policies_permit(q, to))))
        return;
    const bool capable = is_capable(asking, kernel, &version, to);
    if (free)
        to->verdict = capable ? TN_VERDICT_ADMITTED : TN_VERDICT_REFUSED;
    else if (!capable)
        explain_incapable(q, to);
    else if (!tni_declined(q, to, &to->why))
        admit_capable(q, version, to);
}

static void judge_kernel(const tni_asking *asking, const tni_kernel *kernel, tni_contender *to)
{
    *to = (tni_contender){
        .kernel = kernel, .verdict = TN_VERDICT_REFUSED, .why = {.struct_size = sizeof to->why}};
    tni_alignments_set(asking->shown, tni_alignments_of(asking->question->op, kernel->alignment));
    predict_time(asking, kernel->row, to);
    run_tests(asking, kernel, to);
    if (to->why.code)
        tni_refusal_complete(&to->why);
}

/* Measured candidates sort before unmeasured ones: a prediction is less reliable than a
 * measurement. */
static bool comes_before(const tni_question *question, const tni_contender *a,
                         const tni_contender *b)
{
    if (is_admitted(a) != is_admitted(b))
        return is_admitted(a);
    if (!is_admitted(a))
        return false;
    int32_t ruled = tni_rules_compare(question->context->rules, &a->kernel->names,
                                      &b->kernel->names, tni_op_replaces(question->op));
    if (ruled)
        return ruled < 0;
    if ((a->tuned_us > 0) != (b->tuned_us > 0))
        return a->tuned_us > 0;
    if (a->level_us != b->level_us)
        return a->level_us < b->level_us;
    return a->order_us < b->order_us;
}

/* A stable sort. */
static void sort_contenders(const tni_question *question, tni_choice *choice)
{
    for (size_t i = 1; i < choice->count; i++) {
        for (size_t j = i;
             j > 0 && comes_before(question, &choice->candidates[j], &choice->candidates[j - 1]);
             j--) {
            tni_contender moved = choice->candidates[j];
            choice->candidates[j] = choice->candidates[j - 1];
            choice->candidates[j - 1] = moved;
        }
    }
}

/* Returns the number of threads that a loop on the host uses; for a processor that is only
 * described, its number of cores. */
static int32_t threads_of(const tn_device *device)
{
    int64_t cores = tni_device_described(device)->multi_processor_count;
    if (device->platform->known->kind != TN_PLATFORM_CPU)
        return 0;
    if (!device->plans_only)
        return tni_parallel_threads_hint();
    return cores > 0 && cores < INT32_MAX ? (int32_t)cores : 1;
}

static void init_asking(const tni_question *question, tn_op *shown, tni_asking *out)
{
    bool here = is_cpu_here(question->device);
    tni_op_copy(question->op, shown);
    *out = (tni_asking){.question = question,
                        .shown = shown,
                        .class = tni_op_class_of(question->op->kind),
                        .cpu_features = here ? tni_cpu_features() : question->device->cpu_features,
                        .threads = threads_of(question->device)};
    out->class->cost(question->op, &out->flops, &out->bytes);
}

/* Judges all candidates by the same lock, verdicts and times: if one of them changes meanwhile,
 * starts again. */
static void judge_all(const tni_asking *asking, const tni_kernel *const *kernels, tni_choice *out)
{
    enum { TRIES = 16 };
    const tni_question *question = asking->question;
    uint64_t before = tni_dispatch_generation(), after;
    for (int32_t i = 0; i < TRIES; i++, before = after) {
        out->count = out->admitted = 0;
        for (size_t k = 0; kernels[k] && out->count < TNI_CANDIDATES_MOST; k++) {
            if (!question->only || kernels[k] == question->only)
                judge_kernel(asking, kernels[k], &out->candidates[out->count++]);
        }
        after = tni_dispatch_generation();
        if (after == before)
            return;
    }
}

static tn_status check_policies(const tni_question *question, tn_error *err)
{
    tn_status status = TN_OK;
    TNI_POLICIES_EACH (policy) {
        if (!status && policy->check)
            status = policy->check(question, err);
    }
    return status;
}

tn_status tni_decide(const tni_question *question, tni_choice *out, tn_error *err)
{
    const tni_kernel *const *kernels;
    tni_asking asking;
    tn_op shown;
    tn_status status =
        tni_kernels_of(question->device->platform->name, question->op->kind, &kernels, err);
    if (!status && !question->only)
        status = check_policies(question, err);
    if (status)
        return status;
    tni_decide_request(question);
    init_asking(question, &shown, &asking);
    judge_all(&asking, kernels, out);
    sort_contenders(question, out);
    while (out->admitted < out->count && is_admitted(&out->candidates[out->admitted]))
        out->admitted++;
    if (out->admitted > 0 && out->candidates[0].verdict == TN_VERDICT_ADMITTED)
        out->candidates[0].verdict = TN_VERDICT_CHOSEN;
    return TN_OK;
}

static bool is_asked_for(const tni_question *question, const tni_contender *v)
{
    TNI_POLICIES_EACH (policy) {
        if (policy->asks_for && policy->asks_for(question, v))
            return true;
    }
    return false;
}

/* Returns how many tests a candidate passed before it was refused. A candidate that a policy asks
 * for ranks above all others. */
static int32_t count_passed(const tni_question *question, const tni_contender *v)
{
    enum { ASKED_FOR = 20 };
    return (is_asked_for(question, v) ? ASKED_FOR : 0) + tni_refusal_progress(v->why.code);
}

/* Returns the refused candidate that passed the most tests. */
static const tni_contender *closest_contender(const tni_question *question,
                                              const tni_choice *choice)
{
    const tni_contender *best = &choice->candidates[0];
    for (size_t i = 1; i < choice->count; i++) {
        if (count_passed(question, &choice->candidates[i]) > count_passed(question, best))
            best = &choice->candidates[i];
    }
    return best;
}

static bool is_by_request(int32_t code)
{
    return code == TN_REFUSE_RULE || code == TN_REFUSE_PRECISION || code == TN_REFUSE_DETERMINISM ||
           code == TN_REFUSE_LOCK || code == TN_REFUSE_MEMORY || code == TN_REFUSE_SETTING;
}

tn_status tni_choice_refused(const tni_question *question, const tni_choice *choice, tn_error *err)
{
    const tni_op_class *class = tni_op_class_of(question->op->kind);
    bool request = false, busy = false;
    tni_buffer text = {0};
    tn_status told = TN_OK;
    TNI_POLICIES_EACH (policy) {
        if (!told && !question->only && policy->refused)
            told = policy->refused(question, choice, err);
    }
    if (told)
        return told;
    if (choice->count == 0)
        return tn_fail(err, TN_UNSUPPORTED, 0, class->where, "%s has no kernel for %s",
                       question->device->id, class->word);
    for (size_t i = 0; i < choice->count; i++) {
        request = request || is_by_request(choice->candidates[i].why.code);
        busy = busy || choice->candidates[i].why.code == TN_REFUSE_BUSY;
    }
    const tni_contender *v = closest_contender(question, choice);
    tni_problem_write(question->op, question->device->id, &text);
    tn_status status =
        tn_fail(err,
                busy      ? TN_BUSY
                : request ? TN_REFUSED
                          : TN_UNSUPPORTED,
                0, class->where, "no kernel can compute it; the closest of %zu, %s: %s: %s; %.200s",
                choice->count, v->kernel->row->name, tn_refusal_name(v->why.code), v->why.text,
                tni_buffer_text(&text));
    tni_buffer_release(&text);
    return status;
}
