#include "kernel_cases.h"

#include "../candidates.h"
#include "host.h"
#include "kernel_problems.h"

#include <inttypes.h>
#include <stdlib.h>

enum { KERNEL_NAME = 104, CASE_NAME = 192, REASON = 320, REPEATS = 3 };
enum { COMMAND = PROBLEM_TEXT + KERNEL_NAME + 64 };

static const tn_dtype dtypes[] = {
#define DTYPE(name, word, code, bits) name,
    TN_DTYPE_LIST(DTYPE)
#undef DTYPE
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* A kernel row, as decisions show it. */
typedef struct kernel_facts {
    char name[KERNEL_NAME];
    int32_t op;
    uint32_t dtypes;  /* bits: indices in the list above */
    uint32_t aspects; /* honoured aspects; bits: indices in the list */
    bool vendor;      /* it calls a library, which need not follow the rules for NaN and infinity */
    bool may_run;     /* with some problem of some aspect */
    char why[REASON]; /* the reason if it may not run */
} kernel_facts;

/* One case, with the data it needs while it runs. */
typedef struct kernel_case {
    suite_case as; /* must be first: trial.of points to it */
    char name[CASE_NAME];
    char rule[CASE_NAME];
    char device[96];
    kernel_facts kernel;
    const tn_check_aspect *aspect; /* NULL: the kernel cannot run here at all */
    tn_context *context;           /* borrowed */
} kernel_case;

typedef struct kernel_room {
    tn_context *context;
    kernel_case *cases;
} kernel_room;

bool is_kernel_case(const char *name)
{
    return strncmp(name, "kernels", 7) == 0 && (name[7] == '\0' || name[7] == '.');
}

/* State of a search for kernels. */
typedef struct kernel_search {
    const char *module;
    const char *device;
    tn_context *context;
    kernel_facts *found;
    size_t count, capacity;
    bool starved;
} kernel_search;

static kernel_facts *find_kernel(kernel_search *s, const char *name, int32_t op)
{
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->found[i].name, name) == 0)
            return &s->found[i];
    }
    if (s->count == s->capacity) {
        size_t larger = s->capacity ? 2 * s->capacity : 64;
        kernel_facts *moved = realloc(s->found, larger * sizeof *moved);
        s->starved = s->starved || !moved;
        if (!moved)
            return NULL;
        s->found = moved;
        s->capacity = larger;
    }
    kernel_facts *made = &s->found[s->count++];
    *made = (kernel_facts){.op = op};
    tn_text_fit(made->name, sizeof made->name, name);
    return made;
}

/* Whether the kernel could run the problem if it were requested by name. */
static bool could_run(const tn_candidate *candidate)
{
    return candidate_may_run(candidate) || candidate->verdict == TN_VERDICT_QUARANTINED;
}

static void phrase_why(const tn_candidate *candidate, char *out, size_t size)
{
    text_line line = {0};
    if (candidate->why)
        tni_phrase_refusal(candidate->why, &line);
    tn_text_fit(out, size, line.text);
}

/* Updates each kernel's facts from a decision on one problem of an aspect. */
static void note_candidates(kernel_search *s, const tn_decision *decision, int32_t op,
                            size_t aspect, size_t dtype)
{
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        const tn_candidate *candidate = tn_decision_candidate(decision, i);
        int32_t code = candidate->why ? candidate->why->code : TN_REFUSE_NONE;
        kernel_facts *kernel = NULL;
        if (!s->module || strcmp(candidate->module, s->module) == 0)
            kernel = find_kernel(s, candidate->kernel, op);
        if (!kernel)
            continue;
        bool is_general = code != TN_REFUSE_DTYPE && code != TN_REFUSE_FEATURE;
        if (!kernel->why[0] || is_general)
            phrase_why(candidate, kernel->why, sizeof kernel->why);
        if (code == TN_REFUSE_DTYPE)
            continue;
        kernel->vendor = candidate->library && candidate->library[0];
        kernel->dtypes |= UINT32_C(1) << dtype;
        if (code == TN_REFUSE_FEATURE)
            continue;
        kernel->aspects |= UINT32_C(1) << aspect;
        kernel->may_run = kernel->may_run || could_run(candidate);
    }
}

/* A medium size: only the features that a problem uses matter here. */
static size_t draw_half(void *unused, size_t below)
{
    (void)unused;
    return below / 2;
}

/* Whether the aspect has problems of the dtype: NaN and infinity need a real float. */
static bool aspect_has_dtype(const tn_check_aspect *aspect, tn_dtype dtype)
{
    const int32_t code = dtype & 0xFF;
    return !problem_is_nonfinite(aspect) || code == TN_DTYPE_CODE_FLOAT ||
           code == TN_DTYPE_CODE_BFLOAT;
}

/* Decides one problem of an aspect in every dtype it is defined for. */
static tn_status decide_template(kernel_search *s, int32_t op, size_t aspect, const char *template,
                                 tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t d = 0; d < DTYPES && !status; d++) {
        char problem[PROBLEM_TEXT];
        tn_decision *decision = NULL;
        if (!aspect_has_dtype(&tn_check_aspects(op)[aspect], dtypes[d]) ||
            !problem_write(op, template, dtypes[d], s->device, draw_half, NULL, problem))
            continue;
        status = tn_explain(s->context, problem, &decision, err);
        if (!status)
            note_candidates(s, decision, op, aspect, d);
        else if (status == TN_INVALID_ARGUMENT)
            status = TN_OK; /* the op does not support this for the dtype */
        tn_decision_release(decision);
    }
    return status;
}

static tn_status find_kernels(kernel_search *s, tn_error *err)
{
    tn_status status = TN_OK;
    for (int32_t op = TN_OP_NONE + 1; op < TN_OP_KIND_MAX; op++) {
        const tn_check_aspect *aspects = tn_check_aspects(op);
        for (size_t a = 0; aspects[a].word; a++) {
            for (size_t i = 0; aspects[a].templates[i] && !status; i++)
                status = decide_template(s, op, a, aspects[a].templates[i], err);
        }
    }
    if (!status && s->starved)
        status = tn_fail(err, TN_OUT_OF_MEMORY, 0, "conformance", "no memory for the kernels");
    return status;
}

/* Results so far of the problems of a case. */
typedef struct kernel_tally {
    size_t tried, refused, wrong;
    char first[TRIAL_TEXT - 64]; /* first wrong result */
    char refusal[REASON];        /* reason of the latest refusal */
    bool ended;                  /* stop trying further problems */
    bool late;                   /* stopped because time ran out */
} kernel_tally;

static const tn_candidate *find_candidate(const tn_decision *decision, const char *kernel)
{
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        const tn_candidate *candidate = tn_decision_candidate(decision, i);
        if (strcmp(candidate->kernel, kernel) == 0)
            return candidate;
    }
    return NULL;
}

/* Whether the kernel accepts the problem, according to a decision; if not, the tally gets the
 * reason. */
static bool takes_problem(const kernel_case *c, const char *problem, kernel_tally *tally)
{
    tn_decision *decision = NULL;
    if (tn_explain(c->context, problem, &decision, NULL))
        return false;
    const tn_candidate *candidate = find_candidate(decision, c->kernel.name);
    bool takes = candidate && could_run(candidate);
    if (candidate && !takes)
        phrase_why(candidate, tally->refusal, sizeof tally->refusal);
    tally->refused += !takes;
    tn_decision_release(decision);
    return takes;
}

/* Writes the command that repeats a check. */
static void write_command(const tn_check_args *args, char *out, size_t size)
{
    snprintf(out, size, "`tenon check '%s' --kernel %s --seed %" PRIu64 "%s`", args->problem,
             args->kernel, args->seed, args->flags & TN_CHECK_NONFINITE ? " --nonfinite" : "");
}

/* The place of a crash: the case, and the problem that it had come to. One case runs at a time. */
static void enter_problem(const kernel_case *c, const tn_check_args *args)
{
    static char place[COMMAND + CASE_NAME + 32];
    char command[COMMAND];
    write_command(args, command, sizeof command);
    snprintf(place, sizeof place, "in the case %s; %s repeats it", c->name, command);
    host_place(place);
}

TN_PRINTF(3, 4)
static void note_wrong(kernel_tally *tally, const tn_check_args *args, const char *format, ...)
{
    char words[320], command[COMMAND], whole[sizeof words + COMMAND + 16];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(words, sizeof words, format, arguments) < 0)
        words[0] = '\0';
    va_end(arguments);
    write_command(args, command, sizeof command);
    snprintf(whole, sizeof whole, "%s; %s repeats it", words, command);
    if (tally->wrong++ == 0)
        tn_text_fit(tally->first, sizeof tally->first, whole);
}

/* Whether the kernel itself wrote the message: such messages begin with its device. */
static bool is_message_of(const char *device, const char *message)
{
    size_t length = strlen(device);
    return strncmp(message, device, length) == 0 && message[length] == ':';
}

static void check_problem(const kernel_case *c, const tn_check_args *args, kernel_tally *tally)
{
    tn_check_result result = {.struct_size = sizeof result};
    tn_error err = {0};
    tn_status status = tn_check(c->context, args, &result, &err);
    bool is_refusal = status == TN_UNSUPPORTED || status == TN_REFUSED;
    if (is_refusal &&
        (!is_message_of(c->device, err.message) || !takes_problem(c, args->problem, tally))) {
        tn_text_fit(tally->refusal, sizeof tally->refusal, err.message);
        return;
    }
    tally->tried++;
    if (status) {
        note_wrong(tally, args, "it accepts the problem, then fails with %s: %s",
                   tn_status_name(status), err.message);
        tally->ended = status == TN_DEVICE_LOST;
    } else if (!result.ok) {
        note_wrong(tally, args, "%s", result.text);
    }
}

static size_t draw_random(void *user, size_t below)
{
    return trial_below(user, below);
}

/* Checks one template in every dtype of the kernel. A case uses at most half of the patience. */
static void check_template(trial *t, const kernel_case *c, const char *template, double until,
                           kernel_tally *tally)
{
    for (size_t d = 0; d < DTYPES && !tally->ended; d++) {
        char problem[PROBLEM_TEXT];
        const tn_check_args args = {.struct_size = sizeof args,
                                    .problem = problem,
                                    .kernel = c->kernel.name,
                                    .seed = trial_bits(t) | 1,
                                    .flags =
                                        problem_is_nonfinite(c->aspect) ? TN_CHECK_NONFINITE : 0};
        if (!(c->kernel.dtypes >> d & 1) || !aspect_has_dtype(c->aspect, dtypes[d]) ||
            !problem_write(c->kernel.op, template, dtypes[d], c->device, draw_random, t, problem))
            continue;
        enter_problem(c, &args);
        if (takes_problem(c, problem, tally))
            check_problem(c, &args, tally);
        tally->late = host_seconds() > until;
        tally->ended = tally->ended || tally->late;
    }
}

static bool run_kernel(trial *t)
{
    const kernel_case *c = (const kernel_case *)(const void *)t->of;
    kernel_tally tally = {0};
    const double until = host_seconds() + t->on->patience / 2;
    if (!c->aspect)
        return trial_unavailable(t, "it cannot run here: %s", c->kernel.why);
    for (const char *const *template = c->aspect->templates; *template && !tally.ended;
         template ++) {
        size_t times = problem_is_random(*template) ? REPEATS : 1;
        for (size_t i = 0; i < times && !tally.ended; i++)
            check_template(t, c, *template, until, &tally);
    }
    if (tally.wrong)
        return trial_fail(t, "%zu of %zu problems gave wrong results; the first: %s", tally.wrong,
                          tally.tried, tally.first);
    if (tally.late)
        snprintf(t->text, sizeof t->text,
                 "%zu problems took half of the time limit, and the rest were not tried; raise "
                 "--patience",
                 tally.tried);
    if (tally.tried == 0)
        return trial_unavailable(t, "it accepts none of %zu problems of this kind; the last: %s",
                                 tally.refused, tally.refusal);
    return true;
}

static void make_case(const kernel_search *s, const kernel_facts *kernel,
                      const tn_check_aspect *aspect, kernel_case *out)
{
    out->kernel = *kernel;
    out->aspect = aspect;
    out->context = s->context;
    tn_text_fit(out->device, sizeof out->device, s->device);
    snprintf(out->name, sizeof out->name, "kernels.%s%s%s", kernel->name, aspect ? "." : "",
             aspect ? aspect->word : "");
    snprintf(out->rule, sizeof out->rule, "%s by %s agrees with the reference: %s",
             tn_op_name(kernel->op), kernel->name, aspect ? aspect->word : "every problem");
    out->as = (suite_case){.name = out->name, .rule = out->rule, .run = run_kernel};
}

/* Builds each case, unless `room` is NULL; returns the number of cases. */
static size_t list_cases(const kernel_search *s, kernel_case *room)
{
    size_t count = 0;
    for (size_t k = 0; k < s->count; k++) {
        const kernel_facts *kernel = &s->found[k];
        const tn_check_aspect *aspects = tn_check_aspects(kernel->op);
        if (!kernel->may_run) {
            if (room)
                make_case(s, kernel, NULL, &room[count]);
            count++;
        }
        for (size_t a = 0; aspects[a].word && kernel->may_run; a++) {
            if (!(kernel->aspects >> a & 1) ||
                (kernel->vendor && problem_is_nonfinite(&aspects[a])))
                continue;
            if (room)
                make_case(s, kernel, &aspects[a], &room[count]);
            count++;
        }
    }
    return count;
}

static tn_status make_cases(const kernel_search *s, kernel_room *room, kernel_cases *out,
                            tn_error *err)
{
    size_t count = list_cases(s, NULL);
    room->cases = calloc(count + 1, sizeof *room->cases);
    out->cases = calloc(count + 1, sizeof *out->cases);
    if (!room->cases || !out->cases)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "conformance", "no memory for the kernels");
    out->count = list_cases(s, room->cases);
    for (size_t i = 0; i < count; i++)
        out->cases[i] = &room->cases[i].as;
    return TN_OK;
}

/* Derives settings that permit every kernel, whatever numeric properties it declares. */
static tn_status permit_all(tn_context **out, tn_error *err)
{
    tn_context *now = NULL;
    tn_status status = tn_context_capture(&now, err);
    if (!status)
        status = tn_context_derive(
            now,
            TN_CHANGES(tn_with_fp32_precision(TN_FP32_BF16),
                       tn_with_cuda_matmul_fp32_precision(TN_FP32_TF32),
                       tn_with_mkldnn_matmul_fp32_precision(TN_FP32_BF16),
                       tn_with_cuda_matmul_allow_fp16_reduced_precision_reduction(1),
                       tn_with_cuda_matmul_allow_fp16_reduced_precision_reduction_split_k(1),
                       tn_with_cuda_matmul_allow_bf16_reduced_precision_reduction(1),
                       tn_with_cuda_matmul_allow_bf16_reduced_precision_reduction_split_k(1),
                       tn_with_cuda_matmul_allow_fp16_accumulation(1),
                       tn_with_cuda_allow_fp16_bf16_reduction_math_sdp(1),
                       tn_with_cudnn_deterministic(0), tn_with_mkldnn_deterministic(0),
                       tn_with_determinism(TN_DETERMINISM_ANY)),
            out, err);
    tn_context_release(now);
    return status;
}

tn_status kernel_cases_find(const tn_platform *platform, const char *module, kernel_cases *out,
                            tn_error *err)
{
    tn_device *device = NULL;
    *out = (kernel_cases){0};
    if (tn_platform_device_get(platform, 0, &device, NULL) || tn_device_plans_only(device))
        return TN_OK;
    kernel_room *room = calloc(1, sizeof *room);
    if (!room)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "conformance", "no memory for the kernels");
    out->room = room;
    const char *before = host_place_now();
    host_place("while asking kernels what they accept: in `admit`, `workspace` or `cost`");
    tn_status status = permit_all(&room->context, err);
    kernel_search search = {
        .module = module, .device = tn_device_id(device), .context = room->context};
    if (!status)
        status = find_kernels(&search, err);
    if (!status)
        status = make_cases(&search, room, out, err);
    host_place(before[0] ? before : NULL);
    free(search.found);
    return status;
}

void kernel_cases_release(kernel_cases *cases)
{
    kernel_room *room = cases->room;
    if (room) {
        tn_context_release(room->context);
        free(room->cases);
    }
    free(room);
    free(cases->cases);
    *cases = (kernel_cases){0};
}
