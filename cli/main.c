#include "command.h"
#include "options.h"
#include "text.h"

#include <stdlib.h>

static const command commands[] = {
    {"devices", "[--explain] [--json] [--device-file F]",
     "list all devices of all platforms and the current platform", run_devices},
    {"modules", "[--json] [--fresh]",
     "list all candidate modules: stage, status, message, remedy, time", run_modules},
    {"doctor", "[--json] [--full] [--html FILE] [--fresh] [--quick] [--device-file F]",
     "check the installation; exit 0 only if nothing present is broken", run_doctor},
    {"libraries", "[--json] [--try]",
     "list all vendor libraries: built, available, version, file, reason", run_libraries},
    {"settings", "[list [--markdown] | get KEY | origin KEY | set KEY=VALUE [--save]] [--json]",
     "list all settings: value, default, effect, and origin of the value", run_settings},
    {"explain", "PROBLEM... [--full] [--device-file F] [--mask-image FILE] [--head N] [--json]",
     "list all kernels for a problem: which is selected, and why the others are not", run_explain},
    {"einsum-path", "EQUATION SHAPES [--strategy S] [--memory-limit BYTES] [--json] [--svg FILE]",
     "show the order in which an einsum contracts its operands, and its cost", run_einsum_path},
    {"bench",
     "PROBLEM... [--kernel NAME | --all-kernels] [--against NAME] [--seconds S] [--device-file "
     "F] [--json]",
     "measure time, rate and spread of the selected kernel, or of all kernels", run_bench},
    {"check",
     "PROBLEM... [--kernel NAME | --all-kernels] [--seed N] [--nonfinite] [--dump F] "
     "[--device-file F] [--json]",
     "compare kernels with the reference on random inputs", run_check},
    {"lock",
     "write FILE PROBLEM... [--strict] | check FILE [--device NAME] | diff FILE FILE "
     "[--device-file F] [--json]",
     "record which kernel computes which problem, and check it", run_lock},
    {"warm", "FILE [--json]", "prepare the problems of a list or a lock before their first use",
     run_warm},
    {"cache", "[list | prune [--limit BYTES] | clear] [--json]",
     "list, prune or clear the data that Tenon keeps between processes", run_cache},
    {"conformance",
     "[--module FILE | --platform NAME] [--device-file F] [--unsupported FILE] [--expected FILE] "
     "[--out FILE] [--case NAME] [--seed N] [--patience S] [--lose COMMAND] [--kernels] [--list] "
     "[--json]",
     "test a platform against every rule of the device interface", run_conformance},
    {"new-module", "NAME --platform|--library|--kernel [--dir D] [--json]",
     "write a new module that builds, loads and passes the tests unchanged", run_new_module},
    {"version", "[--json]", "print the version and how Tenon was built", run_version},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

int code_of_status(tn_status status)
{
    switch (status) {
    case TN_OK: return EXIT_DONE;
    case TN_IO: /* of files that the user named; also the next cases */
    case TN_CORRUPT:
    case TN_NOT_PERMITTED:
    case TN_NOT_FOUND:
    case TN_ALREADY_EXISTS:
    case TN_INVALID_ARGUMENT: return EXIT_WRONG_USE;
    case TN_UNAVAILABLE:
    case TN_UNSUPPORTED:
    case TN_INCOMPATIBLE:
    case TN_OUT_OF_MEMORY:
    case TN_BUSY:
    case TN_TIMEOUT:
    case TN_DEVICE_LOST: return EXIT_UNAVAILABLE;
    case TN_REFUSED: return EXIT_REFUSED;
    default: return EXIT_INTERNAL;
    }
}

int report_error(const tn_error *err)
{
    fprintf(stderr, "tenon: %s: %s\n", tn_status_name(err->status), text_clean(err->message));
    return code_of_status(err->status);
}

int report_request(const char *who, const tn_error *err)
{
    fprintf(stderr, "tenon%s: %s\n", who, text_clean(err->message));
    return code_of_status(err->status);
}

static void print_usage(FILE *to)
{
    fprintf(to, "usage: tenon COMMAND [OPTIONS]\n\n");
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fprintf(
        to,
        "\n`tenon COMMAND --help` shows its options. `--set KEY=VALUE`, before or after any command,\n"
        "changes a setting for that run. TENON_LOG=error|warning|info|debug logs to stderr.\n"
        "Exit codes: 0 success, 1 failures found, 2 invalid usage, 3 unavailable here,\n"
        "4 refused by settings or lock, 5 internal error.\n");
}

static void log_to_stderr(void *user, int32_t level, const char *text)
{
    (void)user;
    fprintf(stderr, "tenon: %s: %s\n", tn_log_level_name(level), text);
}

/* TENON_LOG applies only to this command; a program installs its own sink. */
static int start_log(void)
{
    static tn_log_sink sink = {.struct_size = sizeof sink, .write = log_to_stderr};
    const char *level = getenv("TENON_LOG");
    tn_error err;
    if (!level || !level[0])
        return EXIT_DONE;
    if (tn_log_level_parse(level, &sink.level, &err) || tn_log_set(&sink, &err)) {
        fprintf(stderr, "tenon: TENON_LOG: %s\n", text_clean(err.message));
        return EXIT_WRONG_USE;
    }
    return EXIT_DONE;
}

static int unknown(const char *name)
{
    const char *names[COMMANDS];
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    fprintf(stderr, "tenon: unknown command \"%s\"; commands:", text_clean(name));
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(stderr, "%s %s", i ? "," : "", names[i]);
    fprintf(stderr, "%s\n", suggestion(name, names, COMMANDS));
    return EXIT_WRONG_USE;
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static int run(int count, char **arguments)
{
    int used = 0, begun = options_begin(count - 1, arguments + 1, &used);
    if (begun != OPTIONS_RUN)
        return begun;
    count -= used;
    arguments += used;
    if (count < 2) {
        print_usage(stderr);
        return EXIT_WRONG_USE;
    }
    char *name = arguments[1], help[] = "--help", version[] = "version";
    bool about = strcmp(name, "help") == 0;
    if (is_one_of(name, "--help", "-h") || (about && count == 2)) {
        print_usage(stdout);
        return EXIT_DONE;
    }
    if (is_one_of(name, "--version", "-V"))
        name = version;
    if (about) { /* tenon help COMMAND */
        name = arguments[2];
        arguments[2] = help;
    }
    int code = start_log();
    if (code)
        return code;
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run(&commands[i], count - 2, arguments + 2);
    }
    return unknown(name);
}

int main(int count, char **arguments)
{
    int code = run(count, arguments);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "tenon: cannot write the output\n");
        return EXIT_INTERNAL;
    }
    return code;
}
