#include "admission.h"

#include "admission_store.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/out_of_line.h"
#include "check/check.h"
#include "dispatch/judge.h"
#include "notes.h"
#include "os/clock.h"
#include "settings/context.h"
#include "smoke.h"

static const char where[] = "admission";

/* Limits of a test: its time, except that the current problem is finished, and the bytes of its
 * workspace. */
enum { TEST_MS = 2000, WORKSPACE_MOST = 64 << 20 };

/* Limits of a problem that is used as the test because the kernel supports no small one. */
enum { PROBLEM_BYTES_MOST = 256 << 20 };
static const double problem_flops_most = 2e11;

/* Whether the kernel may be taken without a test. */
static bool is_exempt(const tn_context *context, const tni_exam *exam)
{
    int64_t request = context->value[TN_SETTING_ADMISSION];
    if (exam->kernel->reference || request == TN_ADMISSION_NEVER)
        return true;
    return request == TN_ADMISSION_AUTO &&
           tni_tested(exam->kernel, exam->device, exam->library_version);
}

static bool refuse_test(const char *what, double needed, double most, tn_refusal *why)
{
    int64_t found = needed < (double)INT64_MAX / 2 ? (int64_t)needed : INT64_MAX;
    return tni_refuse(why, TN_REFUSE_SETTING, what, found, (int64_t)most,
                      "it is untested, and cannot be tested with a smaller problem than this "
                      "one; admission=never uses it untested");
}

/* Whether the problem is within the limits of a test. */
static bool is_testable(const tn_op *op, tn_refusal *why)
{
    double flops, bytes, needed = (double)tni_operands_bytes(op);
    tni_op_class_of(op->kind)->cost(op, &flops, &bytes);
    if (needed > PROBLEM_BYTES_MOST)
        return refuse_test("bytes of a test", needed, PROBLEM_BYTES_MOST, why);
    return flops <= problem_flops_most ||
           refuse_test("operations of a test", flops, problem_flops_most, why);
}

int32_t tni_trust_of(const tni_question *question, const tni_kernel *kernel,
                     int64_t library_version, tn_refusal *why)
{
    tni_exam exam = {kernel, question->device, library_version, NULL};
    tni_trust trust;
    if (kernel->reference)
        return TNI_TRUST_NEEDLESS;
    tni_trust_lookup(&exam, &trust);
    if (trust.verdict == TNI_TRUST_QUARANTINED) {
        (void)tni_refuse(why, TN_REFUSE_QUARANTINE, "test", 1, 0, "%s", trust.text);
        return TNI_TRUST_QUARANTINED;
    }
    if (is_exempt(question->context, &exam))
        return TNI_TRUST_NEEDLESS;
    if (trust.verdict != TNI_TRUST_APART)
        return trust.verdict;
    if (!is_testable(question->op, why))
        return TNI_TRUST_UNTESTABLE;
    exam.op = question->op;
    tni_trust_lookup(&exam, &trust);
    return trust.verdict;
}

void tni_trust_quarantine(const tni_kernel *kernel, const tn_device *device,
                          int64_t library_version, const char *text)
{
    const tni_exam exam = {kernel, device, library_version, NULL};
    tni_trust trust = {.verdict = TNI_TRUST_QUARANTINED};
    if (kernel->reference)
        return;
    tn_text_fit(trust.text, sizeof trust.text, text);
    tn_text_escape(trust.text, sizeof trust.text);
    if (tni_trust_store(&exam, &trust, true, NULL))
        return;
    tni_log(TN_LOG_WARNING, "%s on %s is quarantined: %s", kernel->row->name, device->id,
            trust.text);
    tni_dispatch_invalidate();
}

/* A test in progress. */
typedef struct session {
    tni_exam exam; /* with the question's problem */
    const tn_context *context;
    tn_device *device;
    tn_stream *stream;
    int64_t deadline;
    int64_t examined; /* number of problems so far */
    bool apart;       /* the kernel supports none of the small problems */
    bool flaky;       /* a result was wrong once but not again */
    bool wrong;
    char text[224]; /* the error */
    tn_op op;       /* the current small problem */
} session;

static tn_status try_once(const session *s, const tni_plan *plan, const tn_op *op, uint64_t seed,
                          tn_check_result *out, tn_error *err)
{
    const tni_trial trial = {
        .plan = plan, .op = op, .device = s->device, .stream = s->stream, .seed = seed};
    return tni_trial_run(&trial, out, err);
}

static void note_wrong(session *s, const tn_op *op, const tn_check_result *result)
{
    tni_buffer problem = {0};
    tni_problem_write(op, NULL, &problem);
    snprintf(s->text, sizeof s->text, "%.80s: %.120s", tni_buffer_text(&problem), result->text);
    tni_buffer_release(&problem);
}

/* A wrong result counts only if both the same inputs and other inputs give wrong results again;
 * anything else is chance. */
static TNI_OUT_OF_LINE tn_status try_again(session *s, const tni_plan *plan, const tn_op *op,
                                           const tn_check_result *first, tn_error *err)
{
    tn_check_result same = {0}, other = {0};
    note_wrong(s, op, first);
    tn_status status = try_once(s, plan, op, first->seed, &same, err);
    if (!status)
        status = try_once(s, plan, op, tni_seed_fresh(), &other, err);
    if (status)
        return status;
    s->wrong = !same.ok && !other.ok;
    s->flaky = s->flaky || !s->wrong;
    if (!s->wrong)
        tni_log(TN_LOG_WARNING, "%s on %s was wrong once, but right when run again: %s",
                s->exam.kernel->row->name, s->device->id, s->text);
    return TN_OK;
}

/* Tests one problem. TN_OK also if the kernel does not support it. */
static tn_status test_problem(session *s, const tn_op *op, tn_error *err)
{
    const tni_question question = {
        .context = s->context, .op = op, .device = s->device, .only = s->exam.kernel};
    tn_check_result result = {0};
    tni_plan *plan = NULL;
    tn_status status = tni_plan_make(&question, &plan, err);
    if (status == TN_UNSUPPORTED || status == TN_REFUSED)
        return TN_OK;
    if (status)
        return status;
    if (tni_plan_workspace(plan) <= WORKSPACE_MOST) {
        status = try_once(s, plan, op, tni_seed_fresh(), &result, err);
        s->examined += status == TN_OK;
        if (!status && !result.ok)
            status = try_again(s, plan, op, &result, err);
    }
    tni_plan_release(plan);
    return status;
}

/* Tests every problem of every dtype, the slow ones last, until a result is wrong or the time is
 * up. */
static tn_status test_problems(session *s, tn_error *err)
{
    const tn_kernel_row *row = s->exam.kernel->row;
    size_t count = tni_smoke_count(row->op);
    tn_status status = TN_OK;
    for (size_t i = 0; i < count; i++) {
        for (const tn_dtype *dtype = row->dtypes; *dtype; dtype++) {
            if (status || s->wrong || tni_clock_ns() > s->deadline)
                return status;
            if (tni_smoke_make(row->op, i, *dtype, &s->op) && !(s->op.uses & ~row->honours))
                status = test_problem(s, &s->op, err);
        }
    }
    return status;
}

/* An error is not a verdict: the cause may be temporary. */
static tn_status report_busy(const session *s, tn_status status, const tn_error *said,
                             tn_error *err)
{
    bool own = status == TN_OUT_OF_MEMORY || status == TN_BUSY || status == TN_DEVICE_LOST ||
               status == TN_UNAVAILABLE || status == TN_INCOMPATIBLE;
    return tn_fail(err, own ? status : TN_BUSY, said->native_code, where,
                   "%s could not be tested: %s", s->exam.kernel->row->name, said->message);
}

/* Tests the small problems, unless the kernel is known to support none of them; then the question's
 * own. */
static tn_status test_kernel(session *s, tn_error *err)
{
    tni_exam kernel = s->exam;
    tni_trust known;
    tn_refusal why = {.struct_size = sizeof why};
    kernel.op = NULL;
    tni_trust_lookup(&kernel, &known);
    s->apart = known.verdict == TNI_TRUST_APART;
    tn_status status = s->apart ? TN_OK : test_problems(s, err);
    s->apart = !status && s->examined == 0;
    if (s->apart && is_testable(s->exam.op, &why))
        status = test_problem(s, s->exam.op, err);
    return status;
}

/* Stores the result for a kernel that is tested with each problem. TN_UNSUPPORTED if nothing was
 * tested. */
static tn_status store_result_apart(const session *s, tn_error *err)
{
    const char *name = s->exam.kernel->row->name;
    tni_exam kernel = s->exam;
    tn_refusal why = {.struct_size = sizeof why};
    kernel.op = NULL;
    tn_status status =
        tni_trust_store(&kernel, &(tni_trust){.verdict = TNI_TRUST_APART}, true, err);
    if (status || !is_testable(s->exam.op, &why))
        return status;
    if (s->examined == 0)
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "%s supports none of the test problems, nor this problem", name);
    return tni_trust_store(&s->exam, &(tni_trust){.verdict = TNI_TRUST_PASSED}, !s->flaky, err);
}

static TNI_OUT_OF_LINE tn_status store_result(const session *s, tn_error *err)
{
    tni_exam kernel = s->exam;
    kernel.op = NULL;
    if (s->wrong) {
        tni_trust_quarantine(kernel.kernel, kernel.device, kernel.library_version, s->text);
        return TN_OK;
    }
    if (s->apart)
        return store_result_apart(s, err);
    return tni_trust_store(&kernel, &(tni_trust){.verdict = TNI_TRUST_PASSED}, !s->flaky, err);
}

/* The exam of the session must be claimed. */
static tn_status run_session(session *s, tn_error *err)
{
    tn_error said = {0};
    s->deadline = tni_clock_ns() + TEST_MS * INT64_C(1000000);
    tn_status status = tn_stream_create(s->device, NULL, &s->stream, &said);
    if (!status)
        status = test_kernel(s, &said);
    tn_stream_release(s->stream);
    return status ? report_busy(s, status, &said, err) : store_result(s, err);
}

tn_status tni_trust_examine(const tni_question *question, const tni_kernel *kernel,
                            int64_t library_version, tn_error *err)
{
    const tni_exam exam = {kernel, question->device, library_version, question->op};
    bool mine = false;
    session *s = tni_alloc_zeroed(1, sizeof *s);
    if (!s)
        return tni_no_memory(err, where, "a test");
    tn_status status = tni_trust_claim(&exam, &mine, err);
    if (!status && mine) {
        s->exam = exam;
        s->context = question->context;
        s->device = question->device;
        status = run_session(s, err);
        tni_trust_unclaim(&exam);
    }
    tni_release(s);
    return status;
}
