/* Everything that is broken, with its remedy. */
#include "candidates.h"
#include "findings.h"

typedef struct visitor {
    void (*visit)(void *to, const broken_thing *thing);
    void *to;
} visitor;

static void visit_one(const visitor *by, const char *kind, const char *name, const char *why,
                      const char *remedy)
{
    const broken_thing thing = {kind, name, why, remedy};
    by->visit(by->to, &thing);
}

static void visit_platforms(const findings *found, const visitor *by)
{
    for (size_t i = 0; i < found->platform_count; i++) {
        const tn_platform_report *report = &found->platforms[i].report;
        if (platform_is_broken(report))
            visit_one(by, "platform", report->name, report->reason, report->remedy);
    }
}

static void visit_modules(const findings *found, const visitor *by)
{
    for (size_t i = 0; i < found->module_count; i++) {
        const tn_module_report *module = &found->modules[i];
        if (module_is_broken(module))
            visit_one(by, "module", module->name, module->message, module->remedy);
    }
    for (size_t i = 0; i < found->place_count; i++) {
        const tn_module_place *place = &found->places[i];
        if (place_is_broken(place))
            visit_one(by, "place", place->path, place->message, "");
    }
}

static void visit_libraries(const findings *found, const visitor *by)
{
    for (size_t i = 0; i < found->library_count; i++) {
        const tn_library_state *library = &found->libraries[i];
        if (library_is_broken(library))
            visit_one(by, "library", library->name, library->reason, library->remedy);
    }
}

static void visit_decision(const found_decision *decision, const visitor *by)
{
    if (decision_is_broken(decision))
        visit_one(by, "deciding", decision->problem, decision->message, "");
    for (size_t k = 0; k < decision->count; k++) {
        const found_kernel *kernel = &decision->kernels[k];
        text_line name = {0}, why = {0};
        if (!kernel_is_broken(kernel))
            continue;
        text_add(&name, "%s for %s", kernel->candidate.kernel, decision->problem);
        phrase_kernel_fault(kernel, &why);
        visit_one(by, "kernel", name.text, why.text, "");
    }
}

void findings_visit_broken(const findings *found,
                           void (*visit)(void *to, const broken_thing *thing), void *to)
{
    const visitor by = {visit, to};
    visit_platforms(found, &by);
    visit_modules(found, &by);
    visit_libraries(found, &by);
    for (size_t d = 0; d < found->kernels.count; d++)
        visit_decision(&found->kernels.decisions[d], &by);
    for (size_t i = 0; i < found->problem_count; i++)
        visit_one(&by, "setting", "ignored", tn_settings_problem(i), "");
}
