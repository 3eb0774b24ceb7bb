/* Writing a lock: decides each problem in the same way as explaining does. */
#include "lock.h"

#include "base/alloc.h"
#include "os/replace.h"
#include "policy/tuning/setup.h"
#include "settings/context.h"

static const char where[] = "tn_lock_write";

/* The decision for one problem. */
typedef struct pick {
    tn_device *device;
    char *problem;
    char *settings;
    const tni_kernel *kernel;
    int64_t library_version;
    int64_t ns;
} pick;

typedef struct picks {
    const tn_context *context;
    pick *list;
    size_t count;
    tni_choice choice; /* of the current problem */
} picks;

static tn_status check_args(const tn_lock_write_args *args, tn_error *err)
{
    if (!args || !TN_HAS(args, tn_lock_write_args, flags))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "args is NULL, or its struct_size is too small");
    if (!args->path || !args->path[0])
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "args.path is %s",
                       args->path ? "empty" : "NULL");
    if (!args->problems && args->count > 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "args.problems is NULL");
    if (args->flags & ~TN_LOCK_STRICT)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "args.flags has unknown bits: %#llx",
                       (unsigned long long)(args->flags & ~TN_LOCK_STRICT));
    return TN_OK;
}

static bool is_listed(const picks *in, const char *problem, const tn_device *device)
{
    for (size_t i = 0; i < in->count; i++) {
        if (in->list[i].device == device && strcmp(in->list[i].problem, problem) == 0)
            return true;
    }
    return false;
}

/* Takes ownership of both texts. */
static void add_pick(picks *to, tn_device *device, char *problem, char *settings)
{
    const tni_contender *first = &to->choice.candidates[0];
    to->list[to->count++] =
        (pick){.device = device,
               .problem = problem,
               .settings = settings,
               .kernel = first->kernel,
               .library_version = tni_kernel_library_version(first->kernel, device),
               .ns = (int64_t)(first->tuned_us * 1000 + 0.5)};
}

static tn_status pick_one(picks *to, const char *text, tn_error *err)
{
    tn_op op;
    tn_device *device;
    tni_buffer problem = {0}, settings = {0};
    tn_status status = tni_question_parse(text, &op, &device, err);
    if (status)
        return status;
    const tni_question question = {.context = to->context, .op = &op, .device = device};
    tni_problem_write(&op, NULL, &problem);
    tni_settings_differing(to->context, &op, false, &settings);
    tni_buffer_add(&settings, "");
    if (problem.failed || settings.failed) {
        status = tni_no_memory(err, where, "a problem");
        goto end;
    }
    if (is_listed(to, problem.text, device))
        goto end;
    status = tni_decide(&question, &to->choice, err);
    if (!status && to->choice.admitted == 0)
        status = tni_choice_refused(&question, &to->choice, err);
    if (!status)
        add_pick(to, device, tni_buffer_detach(&problem), tni_buffer_detach(&settings));
end:
    tni_buffer_release(&settings);
    tni_buffer_release(&problem);
    return status;
}

static tn_status pick_all(picks *to, const tn_lock_write_args *args, tn_error *err)
{
    tn_status status = TN_OK;
    to->list = tni_alloc_zeroed(args->count + 1, sizeof *to->list);
    if (!to->list)
        return tni_no_memory(err, where, "decisions");
    for (size_t i = 0; i < args->count && !status; i++)
        status = pick_one(to, args->problems[i], err);
    return status;
}

static bool is_first_of(const picks *in, size_t index, bool library)
{
    const pick *p = &in->list[index];
    for (size_t i = 0; i < index; i++) {
        const pick *q = &in->list[i];
        if (q->device == p->device && (!library || q->kernel->library == p->kernel->library))
            return false;
    }
    return true;
}

/* Writes the setup of one pick's device, with the libraries of all picks on that device. */
static tn_status write_setup(const picks *in, const pick *of, tni_buffer *text, tn_error *err)
{
    char room[TNI_SETUP_DRIVER];
    tni_setup setup;
    tni_buffer libraries = {0};
    for (size_t i = 0; i < in->count; i++) {
        const pick *p = &in->list[i];
        if (p->device == of->device && p->kernel->library && is_first_of(in, i, true))
            tni_setup_add_library(p->kernel->row->library, p->device, &libraries);
    }
    tni_setup_of(of->device, room, &setup);
    setup.libraries = tni_buffer_text(&libraries);
    tn_status status = libraries.failed ? tni_no_memory(err, where, "libraries")
                                        : tni_selections_add_setup(text, &setup, err);
    tni_buffer_release(&libraries);
    return status;
}

static tn_status write_pick(const pick *p, tni_buffer *text, tn_error *err)
{
    const tn_kernel_row *row = p->kernel->row;
    return tni_selections_add(text,
                              &(tni_selection){.problem = p->problem,
                                               .device = p->device->id,
                                               .kernel = row->name,
                                               .version = row->version,
                                               .module = p->kernel->record->name,
                                               .library = row->library ? row->library : "",
                                               .library_version = p->library_version,
                                               .numerics = row->numerics,
                                               .settings = p->settings,
                                               .ns = p->ns},
                              err);
}

static tn_status write_all(const picks *in, const tn_lock_write_args *args, tn_error *err)
{
    tni_buffer text = {0};
    tn_status status = tni_selections_begin(&text, args->flags & TN_LOCK_STRICT, err);
    for (size_t i = 0; i < in->count && !status; i++) {
        if (is_first_of(in, i, false))
            status = write_setup(in, &in->list[i], &text, err);
    }
    for (size_t i = 0; i < in->count && !status; i++)
        status = write_pick(&in->list[i], &text, err);
    if (!status)
        status = tni_selections_sign(&text, err);
    if (!status && text.length > TNI_SELECTIONS_LIMIT)
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s would be longer than %d bytes",
                         args->path, TNI_SELECTIONS_LIMIT);
    if (!status)
        status = tni_file_replace(args->path, text.text, text.length, err);
    tni_buffer_release(&text);
    return status;
}

static void release_picks(picks *gone)
{
    for (size_t i = 0; i < gone->count; i++) {
        tni_release(gone->list[i].problem);
        tni_release(gone->list[i].settings);
    }
    tni_release(gone->list);
    tni_release(gone);
}

tn_status tn_lock_write(const tn_context *context, const tn_lock_write_args *args, tn_error *err)
{
    tn_status status = check_args(args, err);
    if (status)
        return status;
    picks *all = tni_alloc_zeroed(1, sizeof *all);
    if (!all)
        return tni_no_memory(err, where, "a decision");
    tn_context *held = tn_context_retain((tn_context *)(uintptr_t)tni_context_or_current(context));
    all->context = held;
    status = pick_all(all, args, err);
    if (!status)
        status = write_all(all, args, err);
    tn_context_release(held);
    release_picks(all);
    return status;
}
