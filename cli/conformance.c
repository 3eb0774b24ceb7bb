/* `tenon conformance`: holds a platform to every rule of the device interface. */
#include "conformance/host.h"
#include "conformance/result.h"
#include "devices.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum { PATIENCE = 30 };

typedef struct conformance_wish {
    option_values module, platform, files, out, unsupported, expected, cases, seed, patience, lose;
    bool list;
    bool as_json;
} conformance_wish;

static const char *value_of(const option_values *values)
{
    return values->count > 0 ? values->texts[0] : NULL;
}

/* Everything but the module and the platform, read and checked. */
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
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, name, "%s needs %llu to %llu, found \"%s\"",
                       name, (unsigned long long)least, (unsigned long long)most, text);
    *out = number;
    return TN_OK;
}

static tn_status read_lists(const conformance_wish *wish, conformance_setup *out, tn_error *err)
{
    tn_status status = TN_OK;
    if (wish->unsupported.count > 0)
        status = name_list_read(wish->unsupported.texts[0], &out->unsupported, err);
    if (!status && wish->expected.count > 0)
        status = name_list_read(wish->expected.texts[0], &out->expected, err);
    for (size_t i = 0; !status && i < wish->cases.count; i++)
        status = name_list_add(&out->only, wish->cases.texts[i], "--case", err);
    return status;
}

static tn_status read_setup(const conformance_wish *wish, conformance_setup *out, tn_error *err)
{
    uint64_t seed = (uint64_t)time(NULL) * UINT64_C(2654435761) % UINT32_MAX, patience = PATIENCE;
    tn_status status = read_lists(wish, out, err);
    if (!status)
        status = read_number(&wish->seed, "--seed", 0, UINT32_MAX, &seed, err);
    if (!status)
        status = read_number(&wish->patience, "--patience", 1, 3600, &patience, err);
    out->options = (suite_options){.seed = seed,
                                   .patience = (double)patience,
                                   .lose = value_of(&wish->lose),
                                   .only = &out->only,
                                   .unsupported = &out->unsupported,
                                   .expected = &out->expected};
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

/* A file is wrong use when it cannot be read, as an option's value is. */
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

/* The row of the module that the program added, or of the one of that name. */
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

/* Where the run's texts are from, and which platforms it is about. */
typedef struct target {
    tn_module_list *modules;
    tn_platform_list *platforms;
    const tn_platform *chosen[RUN_PLATFORMS];
    size_t count;
} target;

static void target_release(target *t)
{
    tn_platform_list_release(t->platforms);
    tn_module_list_release(t->modules);
}

/* Every platform that the module serves. */
static int choose_by_module(const char *file, target *out, run *of)
{
    tn_error err;
    if (tn_module_file_add(file, 0, &err) || tn_module_list_create(&out->modules, &err) ||
        tn_platform_list_create(&out->platforms, &err))
        return report_error(&err);
    of->module = find_module(out->modules, NULL);
    if (!of->module) {
        fprintf(stderr, "tenon conformance: %s did not come in: `tenon modules` says why\n", file);
        return EXIT_INTERNAL;
    }
    if (of->module->status)
        return refuse_module(of->module);
    for (size_t i = 0; i < tn_platform_list_count(out->platforms); i++) {
        const tn_platform_report *report = tn_platform_list_get(out->platforms, i);
        if (strcmp(report->module, of->module->name) == 0 && out->count < RUN_PLATFORMS)
            out->chosen[out->count++] = report->platform;
    }
    if (out->count > 0)
        return EXIT_DONE;
    fprintf(stderr, "tenon conformance: module %s serves no platform; %s\n", of->module->name,
            of->module->platforms > 0 ? "another module serves its own"
                                      : "the suite is about platforms");
    return EXIT_UNAVAILABLE;
}

/* The one that is named, or the current one. */
static int choose_by_name(const char *name, target *out, run *of)
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
    out->chosen[out->count++] = platform;
    return EXIT_DONE;
}

static void say_nothing(void *user, const suite_result *result)
{
    (void)user;
    (void)result;
}

static int run_platform(const tn_platform *platform, const conformance_setup *setup, bool quietly,
                        run *of)
{
    tn_error err;
    suite_report *report = &of->platforms[of->platform_count];
    if (tn_platform_select(tn_platform_name(platform), &err))
        return report_absent(&err);
    if (!quietly && tn_platform_device_count(platform) > 0)
        print_begin(of, platform);
    tn_status status = suite_run(platform, &setup->options, quietly ? say_nothing : print_case,
                                 NULL, report, &err);
    if (status)
        return report_absent(&err);
    of->platform_count++;
    if (!quietly)
        print_end(of, report);
    return EXIT_DONE;
}

/* One that is not here does not keep the others from it. */
static int run_all(const target *on, const conformance_setup *setup, bool quietly, run *of)
{
    int code = EXIT_DONE;
    for (size_t i = 0; i < on->count; i++) {
        int ended = run_platform(on->chosen[i], setup, quietly, of);
        code = code ? code : ended;
    }
    return code;
}

static int tell(const conformance_wish *wish, const command *self, const run *of)
{
    tn_error err;
    if (wish->as_json)
        write_run(of, self->name);
    if (wish->out.count > 0 && save_run(of, wish->out.texts[0], &err))
        return report_file(&err);
    return !run_is_sound(of)  ? EXIT_FAILURES_FOUND
           : run_is_empty(of) ? EXIT_UNAVAILABLE
                              : EXIT_DONE;
}

/* Threads that never ended are still in there: the process ends around them. */
static int finish(run *of, int code)
{
    size_t late = 0;
    for (size_t i = 0; i < of->platform_count; i++)
        late += of->platforms[i].late;
    if (late > 0) {
        bool lost = fflush(stdout) != 0 || ferror(stdout);
        _Exit(lost ? EXIT_INTERNAL : code);
    }
    for (size_t i = 0; i < of->platform_count; i++)
        suite_report_release(&of->platforms[i]);
    return code;
}

/* What a search needs, and finds. */
typedef struct search {
    const conformance_wish *wish;
    target *on;
    run *of;
    int code;
} search;

static void look(void *user)
{
    search *s = user;
    const conformance_wish *wish = s->wish;
    s->code = add_device_files(&wish->files);
    if (!s->code)
        s->code = wish->module.count > 0 ? choose_by_module(wish->module.texts[0], s->on, s->of)
                                         : choose_by_name(value_of(&wish->platform), s->on, s->of);
}

/* Probes, and what devices tell of themselves, are held to the patience for a case too. */
static int find_target(search *s, double patience)
{
    host_crash_words(
        "tenon conformance: crashed while devices were sought: in an entry, a probe or "
        "device_properties\n");
    host_ending ending = host_run_for(look, s, patience);
    host_crash_words(NULL);
    if (ending == HOST_ENDED)
        return s->code;
    fprintf(stderr,
            ending == HOST_LATE
                ? "tenon conformance: devices were not found within %g s: an entry, a probe "
                  "or device_properties waits for ever\n"
                : "tenon conformance: the system gives no thread to look for devices on\n",
            patience);
    (void)fflush(NULL);
    _Exit(ending == HOST_LATE ? EXIT_FAILURES_FOUND : EXIT_INTERNAL); /* around that thread */
}

static int run_wish(const conformance_wish *wish, const command *self)
{
    static conformance_setup setup;
    static run of;
    static target on;
    static search finding;
    tn_error err;
    if (read_setup(wish, &setup, &err) ||
        (wish->out.count > 0 && check_out(wish->out.texts[0], &err)))
        return report_file(&err);
    of.seed = setup.options.seed;
    read_date(of.date);
    finding = (search){.wish = wish, .on = &on, .of = &of};
    int code = find_target(&finding, setup.options.patience);
    if (!code)
        code = run_all(&on, &setup, wish->as_json, &of);
    if (of.platform_count > 0) {
        int told = tell(wish, self, &of);
        code = told == EXIT_FAILURES_FOUND || !code ? told : code;
    }
    code = finish(&of, code);
    target_release(&on);
    return code;
}

static int list_cases(const conformance_wish *wish, const command *self)
{
    static run none;
    read_date(none.date);
    if (wish->as_json)
        write_run(&none, self->name);
    for (size_t i = 0; !wish->as_json && i < suite_count(); i++)
        printf("%-28s %s\n", suite_at(i)->name, suite_at(i)->rule);
    return EXIT_DONE;
}

int run_conformance(const command *self, int count, char **arguments)
{
    conformance_wish wish = {0};
    const option_row rows[] = {
        {"--module", "FILE", "every platform that this module serves", NULL, &wish.module, 1},
        {"--platform", "NAME", "this platform; without either, the current one", NULL,
         &wish.platform, 1},
        {"--device-file", "F", "also the devices that F describes; may be given again", NULL,
         &wish.files, OPTION_VALUES_MAX},
        {"--unsupported", "FILE", "cases that may be unsupported, one a line", NULL,
         &wish.unsupported, 1},
        {"--expected", "FILE", "cases that are expected to fail, one a line", NULL, &wish.expected,
         1},
        {"--out", "FILE", "also write the result there, to be published", NULL, &wish.out, 1},
        {"--case", "NAME", "only this case, or those that begin so; may be given again", NULL,
         &wish.cases, OPTION_VALUES_MAX},
        {"--seed", "N", "of the random data, to repeat a run", NULL, &wish.seed, 1},
        {"--patience", "S", "seconds that a case may take; 30", NULL, &wish.patience, 1},
        {"--lose", "COMMAND", "a command line that loses the device, for the cases lost.*", NULL,
         &wish.lose, 1},
        {"--list", NULL, "every case and its rule, and nothing else", &wish.list, NULL, 0},
        {"--json", NULL, "as a JSON document", &wish.as_json, NULL, 0},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN)
        return code;
    if (wish.module.count > 0 && wish.platform.count > 0) {
        fprintf(stderr, "tenon %s: --module and --platform exclude each other\n", self->name);
        return EXIT_WRONG_USE;
    }
    return wish.list ? list_cases(&wish, self) : run_wish(&wish, self);
}
