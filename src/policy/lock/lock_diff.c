/* Compares locks with machines and with each other. */
#include "base/alloc.h"
#include "lock.h"
#include "policy/tuning/setup.h"
#include "settings/context.h"

#include <stdlib.h>

static const char *shown(const char *text)
{
    return text[0] ? text : "none";
}

/* A fact that is unknown on one side is not a difference. */
static void compare_fact(const char *id, const char *fact, const char *first, const char *second,
                         const char *there, const char *here, tn_lock_report *to)
{
    if (!first[0] || !second[0] || strcmp(first, second) == 0)
        return;
    tni_lock_report_add(
        to,
        &(tni_lock_line){
            .kind = TN_LOCK_ROW_MACHINE, .problem = id, .locked = first, .found = second},
        "%s: %s is %s %s, %s %s", id, fact, first, there, second, here);
}

void tni_lock_compare_setups(const tni_setup *first, const tni_setup *second, const char *there,
                             const char *here, tn_lock_report *to)
{
    char a[24] = "", b[24] = "";
    if (first->threads > 0)
        snprintf(a, sizeof a, "%lld", (long long)first->threads);
    if (second->threads > 0)
        snprintf(b, sizeof b, "%lld", (long long)second->threads);
    compare_fact(first->id, "name", first->name, second->name, there, here, to);
    compare_fact(first->id, "architecture", first->architecture, second->architecture, there, here,
                 to);
    compare_fact(first->id, "driver", first->driver, second->driver, there, here, to);
    compare_fact(first->id, "number of threads", a, b, there, here, to);
    compare_fact(first->id, "libraries", first->libraries, second->libraries, there, here, to);
}

/* Checking against a machine. */

typedef struct checking {
    const tn_context *context;
    const tni_selections *locked;
    tn_device *device; /* for all problems, or NULL */
    tni_choice *choice;
    tn_lock_report *to;
} checking;

static tn_status find_device(const checking *c, const char *id, tn_device **out, tn_error *err)
{
    if (!c->device)
        return tn_device_get(id, out, err);
    *out = c->device;
    return TN_OK;
}

static bool is_first_library(const tni_selections *in, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (strcmp(in->selections[i].device, in->selections[index].device) == 0 &&
            strcmp(in->selections[i].library, in->selections[index].library) == 0)
            return false;
    }
    return true;
}

static tn_status check_setup(const checking *c, const tni_setup *locked, tn_error *err)
{
    char room[TNI_SETUP_DRIVER];
    tn_device *device;
    tni_setup here;
    tni_buffer libraries = {0};
    tn_error why;
    tn_status status = find_device(c, locked->id, &device, &why);
    if (status == TN_OUT_OF_MEMORY)
        return tni_no_memory(err, "tn_lock_check", locked->id);
    if (status) {
        tni_lock_report_add(c->to,
                            &(tni_lock_line){.kind = TN_LOCK_ROW_MACHINE,
                                             .problem = locked->id,
                                             .locked = locked->name,
                                             .found = ""},
                            "%s", why.message);
        return TN_OK;
    }
    for (size_t i = 0; i < c->locked->count; i++) {
        const tni_selection *s = &c->locked->selections[i];
        if (s->library[0] && strcmp(s->device, locked->id) == 0 && is_first_library(c->locked, i))
            tni_setup_add_library(s->library, device, &libraries);
    }
    tni_setup_of(device, room, &here);
    here.libraries = tni_buffer_text(&libraries);
    tni_lock_compare_setups(locked, &here, "in the lock", "here", c->to);
    status = libraries.failed ? tni_no_memory(err, "tn_lock_check", "libraries") : TN_OK;
    tni_buffer_release(&libraries);
    return status;
}

static const tni_contender *find_candidate(const tni_choice *choice, const char *kernel)
{
    for (size_t i = 0; i < choice->count; i++) {
        if (strcmp(choice->candidates[i].kernel->row->name, kernel) == 0)
            return &choice->candidates[i];
    }
    return NULL;
}

/* Adds the reason why the locked kernel cannot be taken: it does not exist here, or it was
 * refused. */
static void add_refused(const checking *c, const tni_lock_line *line, const tni_contender *verdict)
{
    if (!verdict)
        tni_lock_report_add(c->to, line, "%s: locked to %s, but no module has that kernel",
                            line->problem, line->locked);
    else
        tni_lock_report_add(
            c->to, line, "%s: locked to %s, which is %s: %s: %s; without the lock: %s",
            line->problem, line->locked, tn_verdict_name(verdict->verdict),
            tn_refusal_name(verdict->why.code), verdict->why.text, shown(line->found));
}

/* The numerics that a kernel declares belong to its version. */
static void add_numerics(tn_lock_report *to, const tni_lock_line *line, uint64_t first,
                         uint64_t second, const char *there, const char *here)
{
    tni_buffer a = {0}, b = {0};
    tni_numerics_write(first, &a);
    tni_numerics_write(second, &b);
    tni_lock_report_add(to, line, "%s: %s declares %s %s, %s %s", line->problem, line->locked,
                        shown(tni_buffer_text(&a)), there, shown(tni_buffer_text(&b)), here);
    tni_buffer_release(&a);
    tni_buffer_release(&b);
}

/* Returns true if a version differs, after reporting it. Library versions of a device for planning
 * only are unknown. */
static bool add_version(const checking *c, tni_lock_line *line, const tni_selection *s,
                        const tni_kernel *kernel, const tn_device *device)
{
    int64_t library = tni_kernel_library_version(kernel, device);
    char locked[TNI_LOCK_VERSION], here[TNI_LOCK_VERSION];
    line->kind = TN_LOCK_ROW_VERSION;
    if (s->version != kernel->row->version) {
        tni_lock_report_add(c->to, line, "%s: %s has version %lld in the lock, %lld here",
                            line->problem, s->kernel, (long long)s->version,
                            (long long)kernel->row->version);
        return true;
    }
    if (s->numerics != kernel->row->numerics) {
        add_numerics(c->to, line, s->numerics, kernel->row->numerics, "in the lock", "here");
        return true;
    }
    if (s->library_version == library || device->plans_only)
        return false;
    tni_lock_report_add(c->to, line, "%s: %s uses %s of %s in the lock, %s here", line->problem,
                        s->kernel, tni_lock_version(s->library_version, locked), shown(s->library),
                        tni_lock_version(library, here));
    return true;
}

/* For a kernel that could be taken. */
static void add_taken(const checking *c, tni_lock_line *line, const tni_selection *s,
                      const tni_contender *locked, const char *settings, const tn_device *device)
{
    if (add_version(c, line, s, locked->kernel, device))
        return;
    if (strcmp(line->found, line->locked) != 0) {
        line->kind = TN_LOCK_ROW_KERNEL;
        tni_lock_report_add(c->to, line, "%s: locked to %s; without the lock, %s would be chosen",
                            line->problem, line->locked, line->found);
    } else if (strcmp(settings, s->settings) != 0) {
        line->kind = TN_LOCK_ROW_SETTINGS;
        tni_lock_report_add(c->to, line,
                            "%s: %s was chosen with the settings %s, but here they are %s",
                            line->problem, line->locked, shown(s->settings), shown(settings));
    } else {
        line->kind = TN_LOCK_ROW_SAME;
        tni_lock_report_add(c->to, line, "%s: %s", line->problem, line->locked);
    }
}

static tn_status compare_decision(const checking *c, const tni_selection *s, const tn_op *op,
                                  tn_device *device, const char *problem, tn_error *err)
{
    const tni_question question = {.context = c->context, .op = op, .device = device};
    tni_buffer settings = {0};
    tni_lock_ignore(true);
    tn_status status = tni_decide(&question, c->choice, err);
    tni_lock_ignore(false);
    if (status)
        return status;
    const tni_contender *locked = find_candidate(c->choice, s->kernel);
    tni_lock_line line = {
        .kind = TN_LOCK_ROW_REFUSED,
        .problem = problem,
        .locked = s->kernel,
        .found = c->choice->admitted > 0 ? c->choice->candidates[0].kernel->row->name : ""};
    tni_settings_differing(c->context, op, false, &settings);
    if (settings.failed)
        status = tni_no_memory(err, "tn_lock_check", "settings");
    else if (!locked || locked->why.code)
        add_refused(c, &line, locked);
    else
        add_taken(c, &line, s, locked, tni_buffer_text(&settings), device);
    tni_buffer_release(&settings);
    return status;
}

static tn_status check_selection(const checking *c, const tni_selection *s, tn_error *err)
{
    tn_op op;
    char none[8];
    tn_device *device = NULL;
    tn_error why;
    tni_buffer problem = {0};
    tn_status status = tni_problem_parse(s->problem, &op, none, sizeof none, err);
    if (status)
        return status;
    tn_status found = find_device(c, s->device, &device, &why);
    tni_problem_write(&op, found ? s->device : device->id, &problem);
    if (problem.failed || found == TN_OUT_OF_MEMORY)
        status = tni_no_memory(err, "tn_lock_check", s->problem);
    else if (found)
        tni_lock_report_add(c->to,
                            &(tni_lock_line){.kind = TN_LOCK_ROW_REFUSED,
                                             .problem = problem.text,
                                             .locked = s->kernel,
                                             .found = ""},
                            "%s: %s", problem.text, why.message);
    else
        status = compare_decision(c, s, &op, device, problem.text, err);
    tni_buffer_release(&problem);
    return status;
}

static tn_status check_all(const checking *c, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < c->locked->setup_count && !status; i++)
        status = check_setup(c, &c->locked->setups[i], err);
    for (size_t i = 0; i < c->locked->count && !status; i++)
        status = check_selection(c, &c->locked->selections[i], err);
    if (!status && tni_lock_report_failed(c->to))
        status = tni_no_memory(err, "tn_lock_check", "the report");
    return status;
}

tn_status tn_lock_check(const tn_context *context, const char *path, tn_device *device,
                        tn_lock_report **out, tn_error *err)
{
    tni_selections locked = {0};
    if (!path || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_lock_check", "%s is NULL",
                       path ? "out" : "path");
    tn_context *held = tn_context_retain((tn_context *)(uintptr_t)tni_context_or_current(context));
    checking c = {.context = held,
                  .locked = &locked,
                  .device = device,
                  .choice = tni_alloc(sizeof *c.choice),
                  .to = tni_lock_report_create()};
    tn_status status = c.choice && c.to ? tni_lock_read(path, &locked, err)
                                        : tni_no_memory(err, "tn_lock_check", "the report");
    if (!status)
        status = check_all(&c, err);
    if (status)
        tn_lock_report_release(c.to);
    else
        *out = c.to;
    tni_selections_release(&locked);
    tni_release(c.choice);
    tn_context_release(held);
    return status;
}

/* Comparing two files. */

static int by_problem(const void *a, const void *b)
{
    const tni_selection *x = a, *y = b;
    int order = strcmp(x->problem, y->problem);
    return order != 0 ? order : strcmp(x->device, y->device);
}

static void compare_both(const tni_selection *a, const tni_selection *b, const char *problem,
                         tn_lock_report *to)
{
    tni_lock_line line = {.problem = problem, .locked = a->kernel, .found = b->kernel};
    if (strcmp(a->kernel, b->kernel) != 0) {
        line.kind = TN_LOCK_ROW_KERNEL;
        tni_lock_report_add(to, &line, "%s: %s in the first, %s in the second", problem, a->kernel,
                            b->kernel);
    } else if (a->version != b->version) {
        line.kind = TN_LOCK_ROW_VERSION;
        tni_lock_report_add(to, &line, "%s: %s has version %lld in the first, %lld in the second",
                            problem, a->kernel, (long long)a->version, (long long)b->version);
    } else if (a->numerics != b->numerics) {
        line.kind = TN_LOCK_ROW_VERSION;
        add_numerics(to, &line, a->numerics, b->numerics, "in the first", "in the second");
    } else if (a->library_version != b->library_version) {
        char first[TNI_LOCK_VERSION], second[TNI_LOCK_VERSION];
        line.kind = TN_LOCK_ROW_VERSION;
        tni_lock_report_add(to, &line, "%s: %s uses %s of %s in the first, %s in the second",
                            problem, a->kernel, tni_lock_version(a->library_version, first),
                            a->library[0] ? a->library : b->library,
                            tni_lock_version(b->library_version, second));
    } else if (strcmp(a->settings, b->settings) != 0) {
        line.kind = TN_LOCK_ROW_SETTINGS;
        tni_lock_report_add(to, &line,
                            "%s: %s was chosen with the settings %s in the first, %s in the second",
                            problem, a->kernel, shown(a->settings), shown(b->settings));
    } else {
        line.kind = TN_LOCK_ROW_SAME;
        tni_lock_report_add(to, &line, "%s: %s", problem, a->kernel);
    }
}

/* If `b` is NULL, the selection is in one file only. */
static bool compare_selection(const tni_selection *a, const tni_selection *b, bool first,
                              tn_lock_report *to)
{
    tni_buffer problem = {0};
    tni_buffer_format(&problem, "%s@%s", a->problem, a->device);
    bool fits = !problem.failed;
    if (fits && b)
        compare_both(a, b, problem.text, to);
    else if (fits)
        tni_lock_report_add(
            to,
            &(tni_lock_line){.kind = first ? TN_LOCK_ROW_FIRST_ONLY : TN_LOCK_ROW_SECOND_ONLY,
                             .problem = problem.text,
                             .locked = first ? a->kernel : "",
                             .found = first ? "" : a->kernel},
            "%s: only the %s has it, with %s", problem.text, first ? "first" : "second", a->kernel);
    tni_buffer_release(&problem);
    return fits;
}

static void compare_heads(const tni_selections *a, const tni_selections *b, tn_lock_report *to)
{
    const char *const words[] = {"0", "1"};
    if (a->strict != b->strict)
        tni_lock_report_add(to,
                            &(tni_lock_line){.kind = TN_LOCK_ROW_STRICT,
                                             .problem = "",
                                             .locked = words[a->strict],
                                             .found = words[b->strict]},
                            "only the %s is strict", a->strict ? "first" : "second");
    for (size_t i = 0; i < a->setup_count; i++) {
        const tni_setup *other = tni_selections_setup(b, a->setups[i].id);
        if (other)
            tni_lock_compare_setups(&a->setups[i], other, "in the first", "in the second", to);
    }
}

/* Sorts both files the same way, so that one pass compares them. */
static bool compare_files(tni_selections *a, tni_selections *b, tn_lock_report *to)
{
    bool fits = true;
    qsort(a->selections, a->count, sizeof *a->selections, by_problem);
    qsort(b->selections, b->count, sizeof *b->selections, by_problem);
    compare_heads(a, b, to);
    for (size_t i = 0, j = 0; fits && (i < a->count || j < b->count);) {
        const tni_selection *x = i < a->count ? &a->selections[i] : NULL;
        const tni_selection *y = j < b->count ? &b->selections[j] : NULL;
        int order = !x ? 1 : !y ? -1 : by_problem(x, y);
        fits = order > 0 ? compare_selection(y, NULL, false, to)
                         : compare_selection(x, order == 0 ? y : NULL, true, to);
        i += order <= 0;
        j += order >= 0;
    }
    return fits && !tni_lock_report_failed(to);
}

tn_status tn_lock_diff(const char *first, const char *second, tn_lock_report **out, tn_error *err)
{
    static const char where[] = "tn_lock_diff";
    tni_selections a = {0}, b = {0};
    if (!first || !second || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL",
                       !first    ? "first"
                       : !second ? "second"
                                 : "out");
    tn_status status = tni_lock_read(first, &a, err);
    if (!status)
        status = tni_lock_read(second, &b, err);
    tn_lock_report *made = status ? NULL : tni_lock_report_create();
    if (!status && (!made || !compare_files(&a, &b, made)))
        status = tni_no_memory(err, where, "the report");
    if (status)
        tn_lock_report_release(made);
    else
        *out = made;
    tni_selections_release(&a);
    tni_selections_release(&b);
    return status;
}
