#include "kernels.h"

#include "candidates.h"
#include "system.h"

#include <stdlib.h>

/* Small enough for a scalar reference, large enough to measure a rate. */
static const struct {
    const char *text;
    bool is_headline; /* see found_decision */
} problems[] = {
    {"matmul:f32:m=16,n=16,k=16", false},
    {"matmul:f32:m=512,n=512,k=512", true},
    {"matmul:f64:m=96,n=96,k=96", false},
    {"matmul:bf16:m=96,n=96,k=96", true},
    {"matmul:f16:m=96,n=96,k=96", false},
    {"matmul:c64:m=64,n=64,k=64", false},
    {"matmul:i8:m=96,n=96,k=96", true},
    {"permute:f32:shape=256x256,order=1;0", false},
    {"cast:f32:shape=65536,to=bf16", false},
    {"fill:f32:shape=65536,value=1", false},
    {"unary:f32:kind=gelu,shape=65536", false},
    {"binary:f32:kind=add,shape=65536", true},
    {"reduce:f32:kind=sum,shape=64x1024,axes=1", true},
    {"softmax:f32:shape=64x1024", true},
    {"fft:c64:shape=64x1024", true},
    {"norm:f32:kind=layer,shape=64x1024,weight=1,bias=1", false},
    {"norm:bf16:kind=rms,shape=64x1024,weight=1", true},
    {"rotary:f32:kind=halves,shape=64x8x64", true},
    {"attention:f32:b=1,h=2,l=128,d=64", true},
    {"attention:bf16:b=1,h=2,l=128,d=64,mask=causal", true},
    {"attention-backward:f32:b=1,h=2,l=64,d=64", true},
    {"attention-merge:f32:b=1,h=2,l=128,d=64", false},
    {"attention-quantized:f32:b=1,h=2,l=128,d=64,weights=u8", false},
    {"attention-sparse:f32:b=1,h=2,l=128,d=64,bq=32,entries=16", false},
    {"attention-sparse-backward:f32:b=1,h=2,l=64,d=64,bq=16,entries=16", false},
};
enum { PROBLEMS = sizeof problems / sizeof problems[0] };

static const double seconds_each = 0.02; /* timing of one kernel */
static const double slowest_us = 20000;  /* longest predicted call that is timed */
static const double seconds_most = 20;   /* no kernel is timed after this */

static tn_status no_memory(tn_error *err)
{
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, "kernels", "no memory for the results");
}

static tn_status add_candidates(tn_decision *decision, found_decision *to, tn_error *err)
{
    size_t count = tn_decision_count(decision);
    const tn_candidate *taken = tn_decision_chosen(decision);
    to->lender = decision;
    to->problem = tn_decision_problem(decision);
    to->taken = taken ? taken->kernel : "";
    (void)tn_decision_status(decision, &to->message);
    to->kernels = calloc(count, sizeof *to->kernels);
    if (!to->kernels)
        return no_memory(err);
    for (; to->count < count; to->count++)
        to->kernels[to->count].candidate = *tn_decision_candidate(decision, to->count);
    return TN_OK;
}

/* Absent or busy devices are not the kernel's fault. Lack of memory counts as a fault: a kernel
 * that cannot run is broken. */
static bool is_own_fault(tn_status status)
{
    return status && status != TN_UNAVAILABLE && status != TN_BUSY && status != TN_UNSUPPORTED &&
           status != TN_REFUSED;
}

static void set_failure(const char *problem, const tn_error *error, found_decision *to)
{
    to->problem = problem;
    to->taken = "";
    to->error = *error;
    to->message = to->error.message;
}

/* A problem without any kernel on the platform is skipped: it says nothing about this machine. */
static tn_status decide(const tn_device *device, size_t problem, found_kernels *to, tn_error *err)
{
    char text[256];
    tn_decision *decision = NULL;
    snprintf(text, sizeof text, "%s@%s", problems[problem].text, tn_device_id(device));
    tn_status status = tn_explain(NULL, text, &decision, err);
    to->decisions[to->count].is_headline = problems[problem].is_headline;
    if (!status && tn_decision_count(decision) > 0)
        return add_candidates(decision, &to->decisions[to->count++], err);
    tn_decision_release(decision);
    if (is_own_fault(status))
        set_failure(problems[problem].text, err, &to->decisions[to->count++]);
    return status == TN_OUT_OF_MEMORY ? status : TN_OK;
}

static bool has_failed(const found_kernels *kernels)
{
    return kernels->count > 0 && decision_is_broken(&kernels->decisions[kernels->count - 1]);
}

static bool is_looked_at(const tn_device *device)
{
    return tn_device_index(device) == 0 && !tn_device_plans_only(device) &&
           tn_device_health(device, NULL) == TN_OK;
}

/* A lock that cannot be read refuses everything, so nothing else needs to be tried. */
static void check_lock(found_kernels *to)
{
    char path[4096];
    tn_lock_report *report = NULL;
    tn_error err;
    if (tn_lock_used(path, sizeof path) > 0 && tn_lock_diff(path, path, &report, &err))
        set_failure("TENON_LOCK", &err, &to->decisions[to->count++]);
    tn_lock_report_release(report);
}

static tn_status decide_all(found_kernels *to, tn_error *err)
{
    size_t devices = 0;
    tn_status status = tn_device_count(&devices, err);
    if (status)
        return status;
    to->decisions = calloc(devices * PROBLEMS + 1, sizeof *to->decisions);
    if (!to->decisions)
        return no_memory(err);
    check_lock(to);
    for (size_t d = 0; d < devices && !status; d++) {
        const tn_device *device = tn_device_at(d);
        for (size_t p = 0; device && is_looked_at(device) && p < PROBLEMS; p++) {
            if (!status && !has_failed(to))
                status = decide(device, p, to, err);
        }
    }
    return status;
}

/* Checks and times one kernel. Slow kernels are timed only on the smaller problems. */
static void try(const found_decision *decision, double until, found_kernel *kernel)
{
    const tn_check_args check = {.struct_size = sizeof check,
                                 .problem = decision->problem,
                                 .kernel = kernel->candidate.kernel,
                                 .seed = 1};
    const tn_bench_args bench = {.struct_size = sizeof bench,
                                 .problem = decision->problem,
                                 .kernel = kernel->candidate.kernel,
                                 .seconds = seconds_each};
    kernel->check.struct_size = sizeof kernel->check;
    kernel->bench.struct_size = sizeof kernel->bench;
    kernel->checked =
        tn_check(NULL, &check, &kernel->check, &kernel->error) ? TRIAL_FAILED : TRIAL_DONE;
    if (kernel->checked == TRIAL_FAILED || tni_candidate_us(&kernel->candidate) > slowest_us ||
        system_seconds() > until)
        return;
    kernel->timed =
        tn_bench(NULL, &bench, &kernel->bench, &kernel->error) ? TRIAL_FAILED : TRIAL_DONE;
}

static size_t count_trials(const found_kernels *kernels)
{
    size_t count = 0;
    for (size_t d = 0; d < kernels->count; d++) {
        for (size_t k = 0; k < kernels->decisions[d].count; k++)
            count += candidate_may_run(&kernels->decisions[d].kernels[k].candidate);
    }
    return count;
}

static void try_all(kernels_progress *tell, void *to, found_kernels *kernels)
{
    size_t done = 0, count = count_trials(kernels);
    double until = system_seconds() + seconds_most;
    for (size_t d = 0; d < kernels->count; d++) {
        found_decision *decision = &kernels->decisions[d];
        for (size_t k = 0; k < decision->count; k++) {
            found_kernel *kernel = &decision->kernels[k];
            if (!candidate_may_run(&kernel->candidate))
                continue;
            if (tell)
                tell(to, done, count, kernel->candidate.kernel);
            try(decision, until, kernel);
            done++;
        }
    }
    if (tell)
        tell(to, done, count, NULL);
}

tn_status kernels_gather(kernels_progress *tell, void *to, found_kernels *out, tn_error *err)
{
    memset(out, 0, sizeof *out);
    tn_status status = decide_all(out, err);
    if (status)
        kernels_release(out);
    else
        try_all(tell, to, out);
    return status;
}

tn_status kernels_gather_lock(found_kernels *out, tn_error *err)
{
    memset(out, 0, sizeof *out);
    out->decisions = calloc(1, sizeof *out->decisions);
    if (!out->decisions)
        return no_memory(err);
    check_lock(out);
    return TN_OK;
}

void kernels_release(found_kernels *kernels)
{
    for (size_t i = 0; i < kernels->count; i++) {
        free(kernels->decisions[i].kernels);
        tn_decision_release(kernels->decisions[i].lender);
    }
    free(kernels->decisions);
    memset(kernels, 0, sizeof *kernels);
}

bool decision_is_broken(const found_decision *decision)
{
    return decision->error.status != TN_OK;
}

bool kernel_is_broken(const found_kernel *kernel)
{
    bool is_wrong = kernel->checked == TRIAL_DONE && !kernel->check.ok;
    bool has_failed = (kernel->checked == TRIAL_FAILED || kernel->timed == TRIAL_FAILED) &&
                      is_own_fault(kernel->error.status);
    return is_wrong || has_failed || kernel->candidate.verdict == TN_VERDICT_QUARANTINED;
}

int kernels_count_broken(const found_kernels *kernels)
{
    int broken = 0;
    for (size_t d = 0; d < kernels->count; d++) {
        broken += decision_is_broken(&kernels->decisions[d]);
        for (size_t k = 0; k < kernels->decisions[d].count; k++)
            broken += kernel_is_broken(&kernels->decisions[d].kernels[k]);
    }
    return broken;
}

size_t kernels_count_checked(const found_kernels *kernels)
{
    size_t checked = 0;
    for (size_t d = 0; d < kernels->count; d++) {
        for (size_t k = 0; k < kernels->decisions[d].count; k++)
            checked += kernels->decisions[d].kernels[k].checked == TRIAL_DONE;
    }
    return checked;
}

const char *kernel_word(const found_kernel *kernel)
{
    if (!candidate_may_run(&kernel->candidate))
        return tn_verdict_name(kernel->candidate.verdict);
    switch (kernel->checked) {
    case TRIAL_DONE:
        return !kernel->check.ok ? "wrong" : kernel->timed == TRIAL_FAILED ? "failed" : "ok";
    case TRIAL_FAILED: return "failed";
    default: return "not checked";
    }
}

/* Whether an operator's cost is its operations rather than its memory traffic. */
static bool is_product(const char *problem)
{
    static const char *const words[] = {"matmul:", "attention:", "attention-backward:"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strncmp(problem, words[i], strlen(words[i])) == 0)
            return true;
    }
    return false;
}

double kernel_rate(const found_decision *decision, const found_kernel *kernel,
                   const char **out_unit)
{
    bool computes = is_product(decision->problem);
    *out_unit = computes ? "FLOP" : "B";
    if (kernel->timed != TRIAL_DONE)
        return 0;
    return computes ? kernel->bench.gflops : kernel->bench.gbps;
}

void phrase_kernel_fault(const found_kernel *kernel, text_line *out)
{
    if (kernel->candidate.why)
        tni_phrase_refusal(kernel->candidate.why, out);
    else if (kernel->checked == TRIAL_FAILED || kernel->timed == TRIAL_FAILED)
        text_add(out, "%s: %s", tn_status_name(kernel->error.status), kernel->error.message);
    else if (kernel->checked == TRIAL_DONE && !kernel->check.ok)
        text_add(out, "%s", kernel->check.text);
}

void phrase_kernel_figures(const found_kernel *kernel, text_line *out)
{
    if (kernel->checked == TRIAL_DONE)
        text_add_item(out, "error %.3g%% of its bound", kernel->check.error * 100);
    if (kernel->timed == TRIAL_DONE && kernel->bench.runs == 1)
        text_add_item(out, "one run");
    else if (kernel->timed == TRIAL_DONE)
        text_add_item(out, "spread %.0f%%%s", kernel->bench.spread * 100,
                      is_measurable(kernel->bench.spread) ? "" : ": not measurable here");
    else if (kernel->checked == TRIAL_DONE && kernel->timed == TRIAL_NONE)
        text_add_item(out, "not timed");
}
