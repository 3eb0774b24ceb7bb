/* A decision as JSON. */
#include "explain.h"

#include "candidates.h"

static void write_why(json *to, const tn_refusal *why)
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

static void write_conditions(json *to, const tn_sdpa_report *report)
{
    if (!report) {
        json_null(to, "conditions");
        return;
    }
    json_begin_list(to, "conditions");
    for (size_t i = 0; i < report->count; i++) {
        const tn_sdpa_check *check = &report->checks[i];
        json_begin_object(to, NULL);
        json_text(to, "name", check->name);
        json_text(to, "outcome", tn_sdpa_outcome_name(check->outcome));
        write_why(to, check->why.code ? &check->why : NULL);
        json_end_object(to);
    }
    json_end_list(to);
}

static void write_backends(json *to, const tn_decision *decision)
{
    json_begin_list(to, "backends");
    for (size_t i = 0; i < tn_decision_backend_count(decision); i++) {
        const tn_backend *backend = tn_decision_backend(decision, i);
        json_begin_object(to, NULL);
        json_text(to, "name", backend->name);
        json_known_text(to, "family", backend->family);
        json_text(to, "verdict", tn_verdict_name(backend->verdict));
        json_known_text(to, "kernel", backend->kernel);
        write_why(to, backend->why);
        write_conditions(to, backend->conditions);
        json_end_object(to);
    }
    json_end_list(to);
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
    for (size_t i = 0; (word = tni_numerics_word(candidate->numerics, i)); i++)
        json_text(to, NULL, word);
    json_end_list(to);
    json_known_text(to, "note", candidate->note);
    write_why(to, candidate->why);
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
    const found_device *known = explained_device(&world->found, tn_device_id(device));
    json_text(to, "problem", tn_decision_problem(problem->now));
    json_text(to, "device", tn_device_id(device));
    json_known_text(to, "device_name", tn_device_name(device));
    json_known_text(to, "architecture", known ? known->architecture : NULL);
    json_begin_list(to, "candidates");
    for (size_t i = 0; i < tn_decision_count(problem->now); i++)
        write_candidate(to, tn_decision_candidate(problem->now, i));
    json_end_list(to);
    write_backends(to, problem->now);
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
