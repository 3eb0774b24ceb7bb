/* `tenon modules`: which modules loaded, which failed, and how to fix them. */
#include "document.h"
#include "options.h"
#include "report.h"
#include "rules.h"

int run_modules(const command *self, int count, char **arguments)
{
    bool as_json = false, fresh = false;
    findings found;
    tn_error err;
    const option_row rows[] = {
        {"--json", NULL, "print JSON", &as_json, NULL, 0},
        {"--fresh", NULL, "probe unknown modules again, ignoring cached results", &fresh, NULL, 0},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN)
        return code;
    if ((fresh && tn_module_verdicts_ignore(&err)) || findings_gather(FIND_MODULES, &found, &err))
        return report_error(&err);
    rules_say_unknown();
    if (as_json) {
        json to = {0};
        json_begin_document(&to, self->name);
        write_modules(&to, &found);
        json_end_document(&to);
    } else {
        print_modules(&found);
    }
    findings_release(&found);
    return EXIT_DONE;
}
