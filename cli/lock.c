/* `tenon lock`: selections written down, held against a machine, and against one another. */
#include "devices.h"
#include "json.h"
#include "text.h"

typedef struct lock_wish {
    option_values words; /* the action, and what it takes */
    option_values device;
    option_values files;
    bool strict;
    bool as_json;
} lock_wish;

static const char who[] = " lock";

/* Whether the row says that a problem would not be computed by the kernel that is locked. */
static bool is_unmet(const tn_lock_row *row)
{
    return row->kind == TN_LOCK_ROW_KERNEL || row->kind == TN_LOCK_ROW_VERSION ||
           row->kind == TN_LOCK_ROW_REFUSED;
}

static size_t count_unmet(const tn_lock_report *report)
{
    size_t unmet = 0;
    for (size_t i = 0; i < tn_lock_report_count(report); i++)
        unmet += is_unmet(tn_lock_report_row(report, i));
    return unmet;
}

static void write_report(const command *self, const lock_wish *wish, const tn_lock_report *report)
{
    json to = {0};
    json_begin_document(&to, self->name);
    json_text(&to, "action", wish->words.texts[0]);
    json_text(&to, "file", wish->words.texts[1]);
    json_integer(&to, "differences", (int64_t)tn_lock_report_differences(report));
    json_begin_list(&to, "rows");
    for (size_t i = 0; i < tn_lock_report_count(report); i++) {
        const tn_lock_row *row = tn_lock_report_row(report, i);
        json_begin_object(&to, NULL);
        json_text(&to, "kind", tn_lock_row_name(row->kind));
        json_known_text(&to, "problem", row->problem);
        json_known_text(&to, "locked", row->locked);
        json_known_text(&to, "found", row->found);
        json_text(&to, "text", row->text);
        json_end_object(&to);
    }
    json_end_list(&to);
    json_end_document(&to);
}

static void print_row(const tn_lock_row *row)
{
    enum { INDENT = 2, KIND = 13 };
    text_line line = {0};
    bool is_same = row->kind == TN_LOCK_ROW_SAME;
    int colour = is_same ? PAINT_GOOD : is_unmet(row) ? PAINT_BAD : PAINT_ODD;
    printf("%*s%s%-*s%s", INDENT, "", paint(colour), KIND, tn_lock_row_name(row->kind),
           paint(PAINT_NONE));
    if (is_same)
        text_add(&line, "%s: %s", row->problem, row->locked);
    else
        text_add(&line, "%s", row->text);
    text_wrapped_on(INDENT + KIND, "", 0, line.text);
}

static void print_report(const lock_wish *wish, const tn_lock_report *report)
{
    size_t differences = tn_lock_report_differences(report), count = tn_lock_report_count(report);
    text_line line = {0};
    for (size_t i = 0; i < count; i++)
        print_row(tn_lock_report_row(report, i));
    if (strcmp(wish->words.texts[0], "write") == 0)
        text_add(&line, "%zu problem%s written to %s", count, plural((int64_t)count),
                 wish->words.texts[1]);
    else if (differences == 0)
        text_add(&line, "no difference");
    else
        text_add(&line, "%zu difference%s", differences, plural((int64_t)differences));
    text_wrapped(0, "", 0, line.text);
}

static void tell(const command *self, const lock_wish *wish, const tn_lock_report *report)
{
    if (wish->as_json)
        write_report(self, wish, report);
    else
        print_report(wish, report);
}

/* What was written is read back, which also tells the kernels. */
static tn_status write_lock(const lock_wish *wish, tn_lock_report **out, tn_error *err)
{
    const tn_lock_write_args args = {.struct_size = sizeof args,
                                     .path = wish->words.texts[1],
                                     .problems = wish->words.texts + 2,
                                     .count = wish->words.count - 2,
                                     .flags = wish->strict ? TN_LOCK_STRICT : 0};
    tn_status status = tn_lock_write(NULL, &args, err);
    return status ? status : tn_lock_check(NULL, args.path, NULL, out, err);
}

static int code_of_write(const tn_lock_report *report)
{
    (void)report;
    return EXIT_DONE;
}

static tn_status check_lock(const lock_wish *wish, tn_lock_report **out, tn_error *err)
{
    tn_device *device = NULL;
    tn_status status =
        wish->device.count ? tn_device_get(wish->device.texts[0], &device, err) : TN_OK;
    return status ? status : tn_lock_check(NULL, wish->words.texts[1], device, out, err);
}

static int code_of_check(const tn_lock_report *report)
{
    return count_unmet(report) ? EXIT_REFUSED : EXIT_DONE;
}

static tn_status diff_locks(const lock_wish *wish, tn_lock_report **out, tn_error *err)
{
    return tn_lock_diff(wish->words.texts[1], wish->words.texts[2], out, err);
}

static int code_of_diff(const tn_lock_report *report)
{
    return tn_lock_report_differences(report) ? EXIT_FAILURES_FOUND : EXIT_DONE;
}

static const struct action {
    const char *name;
    const char *takes;
    size_t least, most; /* words, its own name included */
    tn_status (*run)(const lock_wish *wish, tn_lock_report **out, tn_error *err);
    int (*code)(const tn_lock_report *report);
} actions[] = {
    {"write", "FILE PROBLEM...", 3, OPTION_VALUES_MAX, write_lock, code_of_write},
    {"check", "FILE", 2, 2, check_lock, code_of_check},
    {"diff", "FILE FILE", 3, 3, diff_locks, code_of_diff},
};
enum { ACTIONS = sizeof actions / sizeof actions[0] };

/* NULL for a word that is none, which is said. */
static const struct action *find_action(const char *name)
{
    const char *names[ACTIONS];
    tn_error err;
    for (size_t i = 0; i < ACTIONS; i++) {
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
        names[i] = actions[i].name;
    }
    tn_fail(&err, TN_INVALID_ARGUMENT, 0, "", "no action \"%.80s\"; there are write, check, diff%s",
            name, suggestion(name, names, ACTIONS));
    (void)report_wish(who, &err);
    return NULL;
}

/* Whether the action and what was given with it go together; what does not is said. */
static bool is_sound(const struct action *action, const lock_wish *wish)
{
    if (wish->strict && action->run != write_lock)
        fprintf(stderr, "tenon%s: --strict belongs to write\n", who);
    else if (wish->device.count && action->run != check_lock)
        fprintf(stderr, "tenon%s: --device belongs to check\n", who);
    else if (wish->words.count < action->least || wish->words.count > action->most)
        fprintf(stderr, "tenon%s: %s takes %s: tenon lock %s %s\n", who, action->name,
                action->takes, action->name, action->takes);
    else
        return true;
    return false;
}

static int run_action(const command *self, const struct action *action, const lock_wish *wish)
{
    tn_lock_report *report = NULL;
    tn_error err;
    if (action->run(wish, &report, &err))
        return report_wish(who, &err);
    tell(self, wish, report);
    int code = action->code(report);
    tn_lock_report_release(report);
    return code;
}

int run_lock(const command *self, int count, char **arguments)
{
    lock_wish wish = {0};
    const option_row rows[] = {
        {"ACTION", NULL, "write FILE PROBLEM..., check FILE, or diff FILE FILE", NULL, &wish.words,
         OPTION_VALUES_MAX},
        {"--strict", NULL, "write: a problem that the lock does not name is refused", &wish.strict,
         NULL, 0},
        {"--device", "NAME", "check: every problem on this device, which may be described", NULL,
         &wish.device, 1},
        {"--device-file", "F", "also the devices that F describes; may be given again", NULL,
         &wish.files, OPTION_VALUES_MAX},
        {"--json", NULL, "as a JSON document", &wish.as_json, NULL, 0},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN || (code = options_need(self, &rows[0])) != OPTIONS_RUN)
        return code;
    const struct action *action = find_action(wish.words.texts[0]);
    if (!action || !is_sound(action, &wish))
        return EXIT_WRONG_USE;
    code = add_device_files(&wish.files);
    return code ? code : run_action(self, action, &wish);
}
