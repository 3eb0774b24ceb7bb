/* `tenon conformance`: checks a platform against every rule of the device interface, and kernels
 * against the reference. */
#include "conformance/host.h"
#include "conformance/kernel_cases.h"
#include "conformance/result.h"
#include "devices.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum { PATIENCE = 30 };

typedef struct conformance_request {
    option_values module, platform, files, out, unsupported, expected, cases, seed, patience, lose;
    bool kernels;
    bool list;
    bool as_json;
} conformance_request;

static const char *value_of(const option_values *values)
{
    return values->count > 0 ? values->texts[0] : NULL;
}

/* All options except module and platform, parsed and validated. */
typedef struct conformance_setup {
    suite_options options;
    name_list only, unsupported, expected;
} conformance_setup;

static tn_status read_number(const option_values *values, const char *name, uint64_t least,
                             uint64_t most, uint64_t *out, tn_error *err)
{
    const char *text = value_of(values);
    char *end = NULL;
    if (!text)
        return TN_OK;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno || text[0] < '0' || text[0] > '9' || *end || number < least || number > most)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, name,
                       "%s: expected a number from %llu to %llu, got \"%s\"", name,
                       (unsigned long long)least, (unsigned long long)most, text);
    *out = number;
    return TN_OK;
}

static tn_status read_lists(const conformance_request *request, conformance_setup *out,
                            tn_error *err)
{
    tn_status status = TN_OK;
    if (request->unsupported.count > 0)
        status = name_list_read(request->unsupported.texts[0], &out->unsupported, err);
    if (!status && request->expected.count > 0)
        status = name_list_read(request->expected.texts[0], &out->expected, err);
    for (size_t i = 0; !status && i < request->cases.count; i++)
        status = name_list_add(&out->only, request->cases.texts[i], "--case", err);
    return status;
}

static tn_status read_setup(const conformance_request *request, conformance_setup *out,
                            tn_error *err)
{
    uint64_t seed = (uint64_t)time(NULL) * UINT64_C(2654435761) % UINT32_MAX, patience = PATIENCE;
    tn_status status = read_lists(request, out, err);
    if (!status)
        status = read_number(&request->seed, "--seed", 0, UINT32_MAX, &seed, err);
    if (!status)
        status = read_number(&request->patience, "--patience", 1, 3600, &patience, err);
    out->options = (suite_options){.seed = seed,
                                   .patience = (double)patience,
                                   .lose = value_of(&request->lose),
                                   .only = &out->only,
                                   .unsupported = &out->unsupported,
                                   .expected = &out->expected,
                                   .kernels_only = request->kernels};
    return status;
}

static void read_date(char out[24])
{
    time_t now = time(NULL);
    const struct tm *parts = now == (time_t)-1 ? NULL : gmtime(&now);
    out[0] = '\0';
    if (parts)
        strftime(out, 24, "%Y-%m-%dT%H:%MZ", parts);
}

/* An unreadable file is wrong use, because it is the value of an option. */
static int report_file(const tn_error *err)
{
    int code = report_error(err);
    return err->status == TN_IO ? EXIT_WRONG_USE : code;
}

static int report_absent(const tn_error *err)
{
    int code = report_error(err);
    return err->status == TN_NOT_FOUND ? EXIT_UNAVAILABLE : code;
}

/* Finds the module that the program added (`name` NULL), or the loaded one with that name. */
static const tn_module_report *find_module(const tn_module_list *list, const char *name)
{
    const tn_module_report *found = NULL;
    for (size_t i = 0; i < tn_module_list_count(list); i++) {
        const tn_module_report *report = tn_module_list_get(list, i);
        bool is_it = name ? report->status == TN_OK && strcmp(report->name, name) == 0
                          : strcmp(report->origin, "program") == 0;
        if (is_it)
            found = report;
    }
    return found;
}

static int refuse_module(const tn_module_report *module)
{
    fprintf(stderr, "tenon: module %s stopped at %s: %s: %s%s%s\n", module->name,
            tn_module_stage_name(module->stage), tn_status_name(module->status), module->message,
            module->remedy[0] ? "; " : "", module->remedy);
    return module->status == TN_UNAVAILABLE ? EXIT_UNAVAILABLE : EXIT_FAILURES_FOUND;
}

/* One platform under test. */
typedef struct target_platform {
    const tn_platform *platform;
    bool kernels_only; /* another module provides the platform */
    kernel_cases kernels;
} target_platform;

/* Owners of the run's texts, and the platforms under test. */
typedef struct target {
    tn_module_list *modules;
    tn_platform_list *platforms;
    target_platform chosen[RUN_PLATFORMS];
    size_t count;
} target;

static void target_release(target *t)
{
    for (size_t i = 0; i < t->count; i++)
        kernel_cases_release(&t->chosen[i].kernels);
    tn_platform_list_release(t->platforms);
    tn_module_list_release(t->modules);
}

static int choose_served(target *out, const run *of)
{
    tn_error err;
    for (size_t i = 0; i < tn_platform_list_count(out->platforms); i++) {
        const tn_platform_report *report = tn_platform_list_get(out->platforms, i);
        target_platform *next = &out->chosen[out->count];
        bool serves = strcmp(report->module, of->module->name) == 0;
        if (out->count == RUN_PLATFORMS)
            break;
        *next = (target_platform){.platform = report->platform, .kernels_only = !serves};
        if (of->module->kernels > 0 &&
            kernel_cases_find(report->platform, of->module->name, &next->kernels, &err)) {
            kernel_cases_release(&next->kernels);
            return report_error(&err);
        }
        if (serves || next->kernels.count > 0)
            out->count++;
        else
            kernel_cases_release(&next->kernels);
    }
    return EXIT_DONE;
}

/* Chooses every platform that the module provides or has kernels for. */
static int choose_by_module(const char *file, target *out, run *of)
{
    tn_error err;
    if (tn_module_file_add(file, 0, &err) || tn_module_list_create(&out->modules, &err) ||
        tn_platform_list_create(&out->platforms, &err))
        return report_error(&err);
    of->module = find_module(out->modules, NULL);
    if (!of->module) {
        fprintf(stderr, "tenon conformance: %s was not loaded: `tenon modules` shows why\n",
                text_clean(file));
        return EXIT_INTERNAL;
    }
    if (of->module->status)
        return refuse_module(of->module);
    int code = choose_served(out, of);
    if (code || out->count > 0)
        return code;
    fprintf(
        stderr,
        "tenon conformance: module %s has no platform and no kernel that can be used here: %s\n",
        of->module->name, of->module->message);
    return EXIT_UNAVAILABLE;
}

/* Chooses the named platform, or the current one; with all of its kernels, if requested. */
static int choose_by_name(const char *name, bool kernels, target *out, run *of)
{
    tn_error err;
    const tn_platform *platform = NULL;
    if (name ? tn_platform_get(name, &platform, &err) : tn_platform_current(&platform, &err))
        return report_absent(&err);
    if (tn_module_list_create(&out->modules, &err) ||
        tn_platform_list_create(&out->platforms, &err))
        return report_error(&err);
    for (size_t i = 0; i < tn_platform_list_count(out->platforms); i++) {
        const tn_platform_report *report = tn_platform_list_get(out->platforms, i);
        if (report->platform == platform)
            of->module = find_module(out->modules, report->module);
    }
    target_platform *only = &out->chosen[out->count++];
    *only = (target_platform){.platform = platform};
    if (kernels && kernel_cases_find(platform, NULL, &only->kernels, &err))
        return report_error(&err);
    return EXIT_DONE;
}

static void ignore_result(void *user, const suite_result *result)
{
    (void)user;
    (void)result;
}

static int run_platform(const target_platform *on, const conformance_setup *setup, bool quietly,
                        run *of)
{
    tn_error err;
    const tn_platform *platform = on->platform;
    suite_options options = setup->options;
    options.kernels = on->kernels.cases;
    options.kernel_count = on->kernels.count;
    options.kernels_only = options.kernels_only || on->kernels_only;
    suite_report *report = &of->platforms[of->platform_count];
    if (tn_platform_select(tn_platform_name(platform), &err))
        return report_absent(&err);
    if (!quietly && tn_platform_device_count(platform) > 0)
        print_begin(of, platform);
    int width = name_width(options.kernels, options.kernel_count);
    tn_status status =
        suite_run(platform, &options, quietly ? ignore_result : print_case, &width, report, &err);
    if (status)
        return report_absent(&err);
    of->platform_count++;
    if (!quietly)
        print_end(of, report);
    return EXIT_DONE;
}

/* Runs every platform, even if one is unavailable. Returns the first error's exit code. */
static int run_all(const target *on, const conformance_setup *setup, bool quietly, run *of)
{
    int code = EXIT_DONE;
    for (size_t i = 0; i < on->count; i++) {
        int ended = run_platform(&on->chosen[i], setup, quietly, of);
        code = code ? code : ended;
    }
    return code;
}

static int report_run(const conformance_request *request, const command *self, const run *of)
{
    tn_error err;
    if (request->as_json)
        write_run(of, self->name);
    if (request->out.count > 0 && save_run(of, request->out.texts[0], &err))
        return report_file(&err);
    return !run_is_sound(of)  ? EXIT_FAILURES_FOUND
           : run_is_empty(of) ? EXIT_UNAVAILABLE
                              : EXIT_DONE;
}

/* If threads of abandoned cases are still running, ends the process without cleaning up. */
static int finish(run *of, int code)
{
    size_t late = 0;
    for (size_t i = 0; i < of->platform_count; i++)
        late += of->platforms[i].late;
    if (late > 0) {
        bool lost = fflush(stdout) != 0 || ferror(stdout);
        host_end(lost ? EXIT_INTERNAL : code);
    }
    for (size_t i = 0; i < of->platform_count; i++)
        suite_report_release(&of->platforms[i]);
    return code;
}

/* Input and result of a search. */
typedef struct search {
    const conformance_request *request;
    bool kernels; /* also search for kernels of a named platform */
    target *on;
    run *of;
    int code;
} search;

static void find_devices(void *user)
{
    search *s = user;
    const conformance_request *request = s->request;
    s->code = add_device_files(&request->files);
    if (!s->code)
        s->code = request->module.count > 0
                      ? choose_by_module(request->module.texts[0], s->on, s->of)
                      : choose_by_name(value_of(&request->platform), s->kernels, s->on, s->of);
}

/* Probes, device properties and what kernels admit must also finish within the patience of a case. */
static int find_target(search *s, double patience)
{
    host_place("while searching for devices: in an entry, a probe or device_properties");
    host_ending ending = host_run_for(find_devices, s, patience);
    if (ending == HOST_ENDED) {
        host_place(NULL);
        return s->code;
    }
    if (ending == HOST_LATE)
        fprintf(
            stderr,
            "tenon conformance: blocked for %g s %s; on a busy machine, --patience %g allows more\n",
            patience, host_place_now(), 10 * patience);
    else
        fprintf(stderr,
                "tenon conformance: the system could not create a thread to search for devices\n");
    (void)fflush(NULL);
    /* That thread still runs. */
    host_end(ending == HOST_LATE ? EXIT_FAILURES_FOUND : EXIT_INTERNAL);
    return EXIT_INTERNAL;
}

static bool names_kernels(const name_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (is_kernel_case(list->names[i]))
            return true;
    }
    return false;
}

/* Whether all requested kernel cases exist; reports those that do not. */
static int check_kernels(const conformance_setup *setup, const target *on)
{
    const name_list *lists[] = {&setup->only, &setup->unsupported, &setup->expected};
    const char *stray = NULL;
    size_t count = 0, used = 0;
    for (size_t i = 0; i < on->count; i++)
        count += on->chosen[i].kernels.count;
    const char **names = calloc(count + 1, sizeof *names);
    if (!names) {
        fprintf(stderr, "tenon conformance: no memory for the kernels\n");
        return EXIT_INTERNAL;
    }
    for (size_t i = 0; i < on->count; i++) {
        for (size_t k = 0; k < on->chosen[i].kernels.count; k++)
            names[used++] = on->chosen[i].kernels.cases[k]->name;
    }
    for (size_t i = 0; i < 3 && !stray; i++)
        stray = name_list_stray(lists[i], names, count);
    if (setup->options.kernels_only && count == 0)
        fprintf(stderr, "tenon conformance: there is no kernel to check\n");
    else if (stray)
        fprintf(stderr,
                "tenon conformance: unknown case \"%s\"%s; list them with --list --kernels\n",
                text_clean(stray), suggestion(stray, names, count));
    free(names);
    return setup->options.kernels_only && count == 0 ? EXIT_UNAVAILABLE
           : stray                                   ? EXIT_WRONG_USE
                                                     : EXIT_DONE;
}

/* Lists the cases of the device interface; with --kernels, those of the kernels that were found. */
static int list_cases(const conformance_request *request, const command *self, run *of)
{
    if (request->as_json)
        write_run(of, self->name);
    for (size_t i = 0; !request->as_json && !request->kernels && i < suite_count(); i++)
        print_rule(suite_at(i));
    for (size_t i = 0; !request->as_json && i < of->kernel_sets; i++) {
        for (const suite_case *const *c = of->kernels[i]; *c; c++)
            print_rule(*c);
    }
    return EXIT_DONE;
}

static int test_target(const conformance_request *request, const command *self)
{
    static conformance_setup setup;
    static run of;
    static target on;
    static search finding;
    tn_error err;
    if (read_setup(request, &setup, &err) ||
        (request->out.count > 0 && check_out(request->out.texts[0], &err)))
        return report_file(&err);
    host_supervise();
    of.seed = setup.options.seed;
    read_date(of.date);
    bool by_name = names_kernels(&setup.only);
    finding =
        (search){.request = request, .kernels = request->kernels || by_name, .on = &on, .of = &of};
    int code = find_target(&finding, setup.options.patience);
    for (size_t i = 0; i < on.count && !code; i++) {
        if (on.chosen[i].kernels.count > 0)
            of.kernels[of.kernel_sets++] = on.chosen[i].kernels.cases;
    }
    if (!code && (finding.kernels || request->module.count > 0))
        code = check_kernels(&setup, &on);
    if (!code)
        code = request->list ? list_cases(request, self, &of)
                             : run_all(&on, &setup, request->as_json, &of);
    if (of.platform_count > 0) {
        int told = report_run(request, self, &of);
        code = told == EXIT_FAILURES_FOUND || !code ? told : code;
    }
    code = finish(&of, code);
    target_release(&on);
    return code;
}

int run_conformance(const command *self, int count, char **arguments)
{
    conformance_request request = {0};
    const option_row rows[] = {
        {"--module", "FILE", "test every platform and kernel of this module", NULL, &request.module,
         1},
        {"--platform", "NAME", "test this platform; default: the current one", NULL,
         &request.platform, 1},
        {"--device-file", "F", "also use the devices described in F; may be repeated", NULL,
         &request.files, OPTION_VALUES_MAX},
        {"--unsupported", "FILE", "file with cases that may be unsupported, one per line", NULL,
         &request.unsupported, 1},
        {"--expected", "FILE", "file with cases that are expected to fail, one per line", NULL,
         &request.expected, 1},
        {"--out", "FILE", "also write the result to FILE, for publication", NULL, &request.out, 1},
        {"--case", "NAME", "run only this case, or all with this prefix; may be repeated", NULL,
         &request.cases, OPTION_VALUES_MAX},
        {"--seed", "N", "seed of the random data, to repeat a run", NULL, &request.seed, 1},
        {"--patience", "S", "time limit per case in seconds; default 30", NULL, &request.patience,
         1},
        {"--lose", "COMMAND", "command that makes the device fail, for the cases lost.*", NULL,
         &request.lose, 1},
        {"--kernels", NULL, "test only kernels: the module's, or all of the platform",
         &request.kernels, NULL, 0},
        {"--list", NULL, "only list the cases with their rules; with --kernels those of kernels",
         &request.list, NULL, 0},
        {"--json", NULL, "print JSON", &request.as_json, NULL, 0},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN)
        return code;
    if (request.module.count > 0 && request.platform.count > 0) {
        fprintf(stderr, "tenon %s: use either --module or --platform, not both\n", self->name);
        return EXIT_WRONG_USE;
    }
    if (!request.list || request.kernels)
        return test_target(&request, self);
    static run none;
    read_date(none.date);
    return list_cases(&request, self, &none);
}
