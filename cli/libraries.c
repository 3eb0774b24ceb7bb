/* `tenon libraries`: which vendor libraries are available, and why others are not. */
#include "document.h"
#include "options.h"
#include "report.h"
#include "rules.h"

/* Only lack of memory is an error; any other result is a fact about the library. */
static tn_status try_all(tn_error *err)
{
    const tn_library *library;
    size_t count = 0;
    tn_status status = tn_library_count(&count, err);
    for (size_t i = 0; !status && i < count && (library = tn_library_at(i)); i++) {
        if (tn_library_try(library, err) == TN_OUT_OF_MEMORY)
            status = TN_OUT_OF_MEMORY;
    }
    return status;
}

int run_libraries(const command *self, int count, char **arguments)
{
    bool as_json = false, try = false;
    findings found;
    tn_error err;
    const option_row rows[] = {
        {"--json", NULL, "print JSON", &as_json, NULL, 0},
        {"--try", NULL, "open libraries that were not tried yet and query their versions", &try,
         NULL, 0},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN)
        return code;
    if ((try && try_all(&err)) || findings_gather(FIND_LIBRARIES, &found, &err))
        return report_error(&err);
    rules_say_unknown();
    if (as_json) {
        json to = {0};
        json_begin_document(&to, self->name);
        write_libraries(&to, &found);
        json_end_document(&to);
    } else {
        print_libraries(&found);
    }
    findings_release(&found);
    return EXIT_DONE;
}
