/* A decision as text that can be pasted into a bug report, with what it was made from. */
#include "explain.h"

#include "candidates.h"
#include "phrases.h"
#include "rules.h"

enum { LABEL = 10 };

const found_device *explained_device(const findings *found, const char *id)
{
    for (size_t i = 0; i < found->device_count; i++) {
        if (strcmp(found->devices[i].id, id) == 0)
            return &found->devices[i];
    }
    return NULL;
}

static void print_device(const explained_world *world, const tn_decision *decision)
{
    const char *id = tn_device_id(tn_decision_device(decision));
    const found_device *device = explained_device(&world->found, id);
    text_line line = {0}, facts = {0};
    text_add(&line, "%s", id);
    if (device && device->name[0])
        text_add_item(&line, "%s", device->name);
    if (device && device->capability[0])
        text_add_item(&line, "capability %s", device->capability);
    if (device)
        phrase_device(&world->found, device, &facts);
    if (facts.length > 0)
        text_add_item(&line, "%s", facts.text);
    text_wrapped(0, "device", LABEL, line.text);
}

static void print_unknown(void *to, const char *text)
{
    (void)to;
    text_wrapped(LABEL, "unknown: ", 9, text);
}

static void print_settings(const explained_world *world)
{
    text_line line = {0};
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const found_setting *row = &world->settings.rows[i];
        if (is_changed(row))
            text_add_item(&line, "%s=%s (%s)", row->facts->key, row->value, row->origin.text);
    }
    text_wrapped(0, "settings", LABEL, line.length ? line.text : "all at their defaults");
    const char *problem;
    for (size_t i = 0; (problem = tn_settings_problem(i)); i++)
        text_wrapped(LABEL, "ignored: ", 9, problem);
    rules_find_unknown(print_unknown, NULL);
}

/* Whether an earlier candidate uses the same library. */
static bool is_repeated_library(const tn_decision *decision, size_t index)
{
    const char *library = tn_decision_candidate(decision, index)->library;
    for (size_t i = 0; i < index; i++) {
        if (strcmp(tn_decision_candidate(decision, i)->library, library) == 0)
            return true;
    }
    return false;
}

/* Prints the versions as the vendors write them; they can be long. */
static void print_libraries(const tn_decision *decision)
{
    text_line line = {0};
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        const char *library = tn_decision_candidate(decision, i)->library;
        if (!is_repeated_library(decision, i) && library_version_of(library)[0])
            text_add_item(&line, "%s %s", library, library_version_of(library));
    }
    if (line.length > 0)
        text_wrapped(0, "libraries", LABEL, line.text);
}

static void print_head(const explained_world *world, const tn_decision *decision)
{
    const tn_build *build = tn_build_get();
    char lock[4096];
    text_line line = {0};
    print_device(world, decision);
    text_add(&line, "%s (module ABI %u.%u, %s, %s, sanitizer %s)", tn_version(),
             (unsigned)build->module_abi_major, (unsigned)build->module_abi_minor, build->target,
             build->compiler, build->sanitizer);
    text_wrapped(0, "tenon", LABEL, line.text);
    print_libraries(decision);
    print_settings(world);
    if (tn_lock_used(lock, sizeof lock) > 0)
        text_wrapped(0, "lock", LABEL, lock);
}

static void print_offenders(const explained_world *world, const explained *problem)
{
    const char *class = explained_class(world);
    const tn_candidate *before = tn_decision_chosen(problem->before);
    text_line line = {0};
    for (size_t i = 0; class && i < tn_decision_count(problem->now); i++) {
        const tn_candidate *candidate = tn_decision_candidate(problem->now, i);
        bool was = before && strcmp(before->kernel, candidate->kernel) == 0;
        if (is_offender(candidate))
            text_add_item(&line, "%s%s", candidate->kernel, was ? " (selected without --set)" : "");
    }
    if (!class)
        return;
    text_line label = {0};
    text_add(&label, "not %s: ", class);
    text_wrapped(0, label.text, (int)label.length, line.length ? line.text : "none of them");
}

/* Adds what runs: "KERNEL", "KERNEL (once tested: KERNEL)" or "nothing". */
static void add_running_kernels(text_line *line, const tn_decision *decision)
{
    const tn_candidate *now = tn_decision_runs_now(decision);
    const tn_candidate *once_tested = tn_decision_runs_once_tested(decision);
    text_add(line, "%s", now ? now->kernel : "nothing");
    if (once_tested)
        text_add(line, " (once tested: %s)", once_tested->kernel);
}

/* Prints how --set changes what runs. */
static void print_change(const explained *problem)
{
    text_line before = {0}, now = {0}, line = {0};
    add_running_kernels(&before, problem->before);
    add_running_kernels(&now, problem->now);
    if (strcmp(before.text, now.text) == 0)
        text_add(&line, "the same without --set");
    else
        text_add(&line, "%s -> %s because of --set", before.text, now.text);
    text_wrapped(0, "dry run: ", 9, line.text);
}

void explained_print(const explained_world *world, const explained *problem)
{
    const tni_sheet *to = text_sheet();
    const tn_print_args how = {.struct_size = sizeof how,
                               .columns = to->columns,
                               .colors = to->colors,
                               .full = world->full};
    print_head(world, problem->now);
    (void)tn_decision_print(problem->now, &how, to->write, to->user, NULL);
    print_offenders(world, problem);
    if (problem->before)
        print_change(problem);
}
