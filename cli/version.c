#include "json.h"
#include "options.h"

int run_version(const command *self, int count, char **arguments)
{
    bool as_json = false;
    const tn_build *build = tn_build_get();
    const option_row rows[] = {{"--json", NULL, "print JSON", &as_json, NULL, 0}};
    int code = options_read(self, rows, 1, count, arguments);
    if (code != OPTIONS_RUN)
        return code;
    if (!as_json) {
        printf("tenon %s (module ABI %u.%u, %s, %s, sanitizer %s)\n", tn_version(),
               (unsigned)build->module_abi_major, (unsigned)build->module_abi_minor, build->target,
               build->compiler, build->sanitizer);
        return EXIT_DONE;
    }
    char abi[32];
    snprintf(abi, sizeof abi, "%u.%u", (unsigned)build->module_abi_major,
             (unsigned)build->module_abi_minor);
    json to = {0};
    json_begin_document(&to, self->name);
    json_text(&to, "version", tn_version());
    json_text(&to, "module_abi", abi);
    json_text(&to, "target", build->target);
    json_text(&to, "compiler", build->compiler);
    json_text(&to, "sanitizer", build->sanitizer);
    json_end_document(&to);
    return EXIT_DONE;
}
