/* `tenon devices`: every device of every platform, and why a platform has none. */
#include "devices.h"

#include "document.h"
#include "phrases.h"
#include "report.h"
#include "rules.h"

int add_device_files(const option_values *files)
{
    tn_error err;
    for (size_t i = 0; i < files->count; i++) {
        if (tn_device_file_add(files->texts[i], &err) == TN_OK)
            continue;
        int code = report_error(&err);
        bool is_ours = err.status == TN_OUT_OF_MEMORY || err.status == TN_INTERNAL;
        return is_ours ? code : EXIT_WRONG_USE;
    }
    return EXIT_DONE;
}

int code_of_choice(const findings *found)
{
    switch (found->choice_status) {
    case TN_OK: return EXIT_DONE;
    case TN_UNAVAILABLE:
    case TN_NOT_FOUND: return EXIT_UNAVAILABLE;
    case TN_INVALID_ARGUMENT: return EXIT_WRONG_USE;
    case TN_REFUSED: return EXIT_REFUSED;
    default: return EXIT_INTERNAL;
    }
}

static void print_all(const findings *found, bool explain)
{
    text_line not_ready = {0};
    print_devices(found);
    putchar('\n');
    print_choice(found);
    if (explain) {
        putchar('\n');
        print_platforms(found, true);
        return;
    }
    phrase_not_ready(found, &not_ready);
    if (not_ready.length > 0) {
        text_add(&not_ready, "; --explain shows the evidence");
        text_wrapped(0, "not ready: ", 11, not_ready.text);
    }
}

static void write_all(const findings *found, const char *name)
{
    json to = {0};
    json_begin_document(&to, name);
    write_devices(&to, found);
    write_platforms(&to, found);
    json_end_document(&to);
}

int run_devices(const command *self, int count, char **arguments)
{
    bool as_json = false, explain = false;
    option_values files = {0};
    findings found;
    tn_error err;
    const option_row rows[] = {
        {"--explain", NULL, "show every platform with its verdict, remedy and evidence", &explain,
         NULL, 0},
        {"--json", NULL, "print JSON, including the evidence", &as_json, NULL, 0},
        {"--device-file", "F", "also use the devices described in F; may be repeated", NULL, &files,
         OPTION_VALUES_MAX},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN || (code = add_device_files(&files)))
        return code;
    if (findings_gather(FIND_PLATFORMS | (as_json ? 0 : FIND_MACHINE), &found, &err))
        return report_error(&err);
    rules_say_unknown();
    if (as_json)
        write_all(&found, self->name);
    else
        print_all(&found, explain);
    code = code_of_choice(&found);
    findings_release(&found);
    return code;
}
