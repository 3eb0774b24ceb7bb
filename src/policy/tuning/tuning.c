/* Tuning: which candidates are timed, when, and by which thread. */
#include "tuning.h"

#include "base/log.h"
#include "dispatch/policy.h"
#include "os/fork.h"
#include "os/pool.h"
#include "os/thread.h"
#include "setup.h"
#include "tuning_time.h"

/* A candidate whose prediction exceeds the best one by this factor is not run at all if even one
 * call would take long. */
static const double far_beyond = 32.0, long_us = 20000.0;

/* Only one thread tunes at a time: two would disturb each other. While kernels run, a flag marks
 * the turn as taken; the mutex is not held. */
static tni_condition ended = TNI_CONDITION_INIT;
static tni_fork_lock lock = {TNI_FORK_LOCK_INIT, .condition = &ended};
static uint64_t at_it; /* id of the tuning thread, or 0 */
static unsigned at_it_fork;

/* Must be called with the lock held. A turn whose thread was lost in fork() counts as free. */
static bool is_taken(void)
{
    return at_it != 0 && at_it_fork == tni_fork_generation();
}

/* Returns false if the caller may not wait, or if it is tuning itself: a kernel that it runs may
 * have led here. */
static bool acquire_turn(void)
{
    uint64_t self = tni_thread_id();
    bool patient = !tni_pool_inside() && !tni_log_inside();
    tni_fork_lock_acquire(&lock);
    while (patient && is_taken() && at_it != self)
        tni_condition_wait(&ended, &lock.mutex);
    bool taken = patient && !is_taken();
    if (taken) {
        at_it = self;
        at_it_fork = tni_fork_generation();
    }
    tni_fork_lock_release(&lock);
    return taken;
}

static void release_turn(void)
{
    tni_fork_lock_acquire(&lock);
    at_it = 0;
    tni_condition_wake_all(&ended);
    tni_fork_lock_release(&lock);
}

static bool is_requested(const tni_question *question)
{
    return !question->only && !question->device->plans_only && !tni_choice_is_fixed(question) &&
           tn_setting_value(question->context, TN_SETTING_TUNING_ENABLED);
}

/* Returns the best prediction of the admitted candidates. Not always the first one's: preferred
 * candidates sort first regardless of their prediction. */
static double best_prediction(const tni_choice *choice)
{
    double best = choice->candidates[0].predicted_us;
    for (size_t i = 1; i < choice->admitted; i++) {
        if (choice->candidates[i].predicted_us < best)
            best = choice->candidates[i].predicted_us;
    }
    return best;
}

/* Selects the kernels to time, in the order of the choice. Returns their number. */
static size_t pick_kernels(const tni_question *question, const tni_choice *choice,
                           const tni_kernel *out[TNI_CANDIDATES_MOST])
{
    int64_t limit = tn_setting_value(question->context, TN_SETTING_TUNING_LIMIT);
    size_t count = 0;
    if (choice->admitted == 0)
        return 0;
    double best = best_prediction(choice);
    for (size_t i = 0; i < choice->admitted && (limit == 0 || count < (size_t)limit); i++) {
        double us = choice->candidates[i].predicted_us;
        if (us <= long_us || us <= far_beyond * best)
            out[count++] = choice->candidates[i].kernel;
    }
    return count;
}

double tni_tuned_us(const tni_question *question, const tni_kernel *kernel, double *out_level_us)
{
    int64_t level = 0;
    int64_t ns = is_requested(question) ? tni_times_find(question, kernel, &level) : 0;
    *out_level_us = ns > 0 ? (double)level / 1000 : 0;
    return ns > 0 ? (double)ns / 1000 : 0;
}

bool tni_tuning_is_due(const tni_question *question, const tni_choice *choice)
{
    const tni_kernel *picked[TNI_CANDIDATES_MOST];
    if (!is_requested(question) || tni_pool_inside() || tni_log_inside())
        return false;
    int64_t level;
    size_t count = pick_kernels(question, choice, picked);
    for (size_t i = 0; count > 1 && i < count; i++) {
        if (tni_times_find(question, picked[i], &level) == TNI_TIME_UNKNOWN)
            return true;
    }
    return false;
}

static tn_status tune_problem(const tni_question *question, const tni_choice *choice, tn_error *err)
{
    const tni_kernel *picked[TNI_CANDIDATES_MOST];
    tni_timed timed[TNI_CANDIDATES_MOST];
    size_t count = pick_kernels(question, choice, picked);
    for (size_t i = 0; i < count; i++)
        timed[i] =
            (tni_timed){.kernel = picked[i],
                        .library_version = tni_kernel_library_version(picked[i], question->device)};
    tn_status status = tni_time_kernels(question, timed, count, err);
    if (!status)
        status = tni_times_keep(question, timed, count, err);
    if (!status)
        tni_dispatch_invalidate();
    return status;
}

tn_status tni_tune(const tni_question *question, const tni_choice *choice, tn_error *err)
{
    tn_status status = TN_OK;
    if (!acquire_turn())
        return tn_fail(err, TN_BUSY, 0, "tuning",
                       "tuning is in progress, and this call cannot wait for it");
    if (tni_tuning_is_due(question, choice))
        status = tune_problem(question, choice, err);
    release_turn();
    return status;
}

static void rank_candidate(const tni_question *question, tni_contender *to)
{
    to->tuned_us = tni_tuned_us(question, to->kernel, &to->level_us);
}

/* Without times, predictions are used. */
static bool measure_if_due(const tni_question *question, const tni_choice *choice)
{
    const bool due = tni_tuning_is_due(question, choice);
    if (due)
        (void)tni_tune(question, choice, NULL);
    return due;
}

const tni_policy tni_tuning_policy = {
    .name = "tuning", .rank = rank_candidate, .measure = measure_if_due};
