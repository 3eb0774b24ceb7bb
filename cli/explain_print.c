/* A decision as text that can be pasted into a bug report, and as JSON. */
#include "explain.h"

#include "candidates.h"
#include "phrases.h"
#include "rules.h"

enum { LABEL = 10 };

static const found_device *find_device(const findings *found, const char *id)
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
    const found_device *device = find_device(&world->found, id);
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
    text_wrapped(0, "problem", LABEL, tn_decision_problem(decision));
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

enum { VERDICT = 12, TIME = 8, SOURCE = 10, INDENT = 2 };

static int measure_names(const tn_decision *decision)
{
    enum { LEAST = 6 };
    int width = LEAST;
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        int columns = text_columns(tn_decision_candidate(decision, i)->kernel);
        width = columns > width ? columns : width;
    }
    return width;
}

static void print_candidate(const tn_candidate *candidate, int width)
{
    char time[TEXT_TIME];
    text_line facts = {0}, why = {0}, rule = {0};
    int column = INDENT + width + 2 + VERDICT + TIME + 1 + SOURCE + 1;
    printf("%*s%s", INDENT, "", paint(PAINT_STRONG));
    text_cell(candidate->kernel, width);
    printf("%s  %s%-*s%s%*s %-*s ", paint(PAINT_NONE), paint(paint_of_candidate(candidate)),
           VERDICT, tn_verdict_name(candidate->verdict), paint(PAINT_NONE), TIME,
           text_time(candidate_us(candidate), time), SOURCE, candidate_us_source(candidate));
    phrase_candidate(candidate, &facts);
    text_wrapped_on(column, "", 0, facts.text);
    if (candidate->why) {
        phrase_refusal(candidate->why, &why);
        text_wrapped(INDENT * 3, "", 0, why.text);
    }
    phrase_rule(candidate, &rule);
    if (rule.length > 0)
        text_wrapped(INDENT * 3, "", 0, rule.text);
}

/* Explains the words after the times, only those that were printed. */
static void print_time_words(const tn_decision *decision)
{
    static const char *const words[][2] = {
        {"measured", "timed on this device"},
        {"modelled", "from the kernel's cost function"},
        {"predicted", "from the kernel's compute rate and bandwidth"}};
    text_line line = {0};
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
        size_t i = 0;
        while (i < tn_decision_count(decision) &&
               strcmp(candidate_us_source(tn_decision_candidate(decision, i)), words[w][0]) != 0)
            i++;
        if (i < tn_decision_count(decision))
            text_add(&line, "%s%s = %s", line.length ? "; " : "", words[w][0], words[w][1]);
    }
    if (line.length > 0)
        text_wrapped(INDENT, "times: ", 7, line.text);
}

static void print_candidates(const tn_decision *decision)
{
    int width = measure_names(decision);
    putchar('\n');
    if (tn_decision_count(decision) == 0)
        printf("%*sno available kernel computes it\n", INDENT, "");
    else
        printf("%s%*s%-*s  %-*s%*s %-*s library, numerics%s\n", paint(PAINT_SOFT), INDENT, "",
               width, "kernel", VERDICT, "verdict", TIME, "time", SOURCE, "", paint(PAINT_NONE));
    for (size_t i = 0; i < tn_decision_count(decision); i++)
        print_candidate(tn_decision_candidate(decision, i), width);
    print_time_words(decision);
    putchar('\n');
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

static void print_selection(const tn_decision *decision)
{
    const tn_candidate *now = tn_decision_runs_now(decision);
    const tn_candidate *once_tested = tn_decision_runs_once_tested(decision);
    const char *message;
    text_line line = {0};
    tn_status status = tn_decision_status(decision, &message);
    if (now || once_tested)
        text_wrapped(0, "runs now: ", 10, now ? now->kernel : "nothing until a kernel is tested");
    if (once_tested)
        text_wrapped(0, "runs once tested: ", 18, once_tested->kernel);
    if (now || once_tested)
        return;
    text_add(&line, "%s: %s", tn_status_name(status), message);
    printf("%s", paint(PAINT_BAD));
    text_wrapped(0, "nothing selected: ", 18, line.text);
    printf("%s", paint(PAINT_NONE));
}

/* An unmet request is part of the answer: its kernels are refused above, or do not exist here. */
static void print_unmet(const tn_decision *decision)
{
    const char *rule = tn_decision_unmet(decision);
    text_line line = {0};
    if (!rule[0])
        return;
    text_add(&line, "%s: no candidate that it names can be used", rule);
    text_wrapped(0, "not met: ", 9, line.text);
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
    print_head(world, problem->now);
    print_candidates(problem->now);
    explained_print_backends(problem->now);
    print_offenders(world, problem);
    print_selection(problem->now);
    print_unmet(problem->now);
    if (problem->before)
        print_change(problem);
}

void explained_write_why(json *to, const tn_refusal *why)
{
    if (!why) {
        json_null(to, "why");
        return;
    }
    json_begin_object(to, "why");
    json_text(to, "code", tn_refusal_name(why->code));
    json_text(to, "what", why->what);
    json_integer(to, "needed", why->needed);
    json_integer(to, "found", why->found);
    json_text(to, "text", why->text);
    json_end_object(to);
}

static void write_candidate(json *to, const tn_candidate *candidate)
{
    const char *word;
    json_begin_object(to, NULL);
    json_text(to, "kernel", candidate->kernel);
    json_known_text(to, "library", candidate->library);
    json_known_text(to, "library_version", library_version_of(candidate->library));
    json_known_text(to, "backend", candidate->backend);
    json_text(to, "platform", candidate->platform);
    json_text(to, "module", candidate->module);
    json_text(to, "verdict", tn_verdict_name(candidate->verdict));
    json_known_text(to, "rule", candidate->rule);
    json_known_text(to, "overruled", candidate->overruled);
    json_integer(to, "standing", candidate->standing);
    json_number(to, "predicted_us", candidate->predicted_us);
    json_text(to, "predicted_by", candidate->predicted_by);
    if (candidate->tuned_us > 0)
        json_number(to, "tuned_us", candidate->tuned_us);
    else
        json_null(to, "tuned_us");
    json_integer(to, "workspace",
                 candidate->workspace_bytes > INT64_MAX ? INT64_MAX
                                                        : (int64_t)candidate->workspace_bytes);
    json_begin_list(to, "numerics");
    for (size_t i = 0; (word = numerics_word(candidate->numerics, i)); i++)
        json_text(to, NULL, word);
    json_end_list(to);
    json_known_text(to, "note", candidate->note);
    explained_write_why(to, candidate->why);
    json_end_object(to);
}

static void write_selection(json *to, const tn_decision *decision)
{
    const tn_candidate *taken = tn_decision_chosen(decision);
    const tn_candidate *now = tn_decision_runs_now(decision);
    const tn_candidate *once_tested = tn_decision_runs_once_tested(decision);
    const char *message = "";
    tn_status status = tn_decision_status(decision, &message);
    json_text(to, "chosen", taken ? taken->kernel : NULL);
    json_text(to, "runs_now", now ? now->kernel : NULL);
    json_text(to, "runs_once_tested", once_tested ? once_tested->kernel : NULL);
    json_text(to, "status", tn_status_name(status));
    json_text(to, "message", message);
    json_known_text(to, "unmet", tn_decision_unmet(decision));
}

void explained_write(json *to, const explained_world *world, const explained *problem)
{
    const tn_device *device = tn_decision_device(problem->now);
    const found_device *known = find_device(&world->found, tn_device_id(device));
    json_text(to, "problem", tn_decision_problem(problem->now));
    json_text(to, "device", tn_device_id(device));
    json_known_text(to, "device_name", tn_device_name(device));
    json_known_text(to, "architecture", known ? known->architecture : NULL);
    json_begin_list(to, "candidates");
    for (size_t i = 0; i < tn_decision_count(problem->now); i++)
        write_candidate(to, tn_decision_candidate(problem->now, i));
    json_end_list(to);
    explained_write_backends(to, problem->now);
    write_selection(to, problem->now);
    json_begin_list(to, "offenders");
    for (size_t i = 0; i < tn_decision_count(problem->now); i++) {
        if (is_offender(tn_decision_candidate(problem->now, i)))
            json_text(to, NULL, tn_decision_candidate(problem->now, i)->kernel);
    }
    json_end_list(to);
    if (!problem->before) {
        json_null(to, "without_set");
        return;
    }
    json_begin_object(to, "without_set");
    write_selection(to, problem->before);
    json_end_object(to);
}
