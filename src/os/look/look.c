#include "base/words.h"
#include "look_read.h"

#if defined(__linux__)
#define SYSTEM "linux"
#elif defined(__APPLE__)
#define SYSTEM "darwin"
#elif defined(_WIN32)
#define SYSTEM "windows"
#else
#define SYSTEM "another"
#endif

/* The system's own name for the architecture is first. */
#if defined(__x86_64__) || defined(_M_X64)
#define MACHINE "x86_64", "amd64"
#elif (defined(__aarch64__) || defined(_M_ARM64)) && defined(__linux__)
#define MACHINE "aarch64", "arm64"
#elif defined(__aarch64__) || defined(_M_ARM64)
#define MACHINE "arm64", "aarch64"
#elif defined(__riscv) && __riscv_xlen == 64
#define MACHINE "riscv64"
#else
#define MACHINE "another"
#endif

void tni_look_report(tni_look *out, int32_t holds, int32_t count, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    tni_text_format_list(text, sizeof text, format, arguments);
    va_end(arguments);
    tn_text_escape(text, sizeof text);
    *out = (tni_look){.holds = holds, .count = count};
    tn_text_fit(out->text, sizeof out->text, text);
}

const char *tni_look_root(const char *root)
{
    return root ? root : "";
}

bool tni_look_path(char out[TNI_LOOK_PATH], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(out, TNI_LOOK_PATH, format, arguments);
    va_end(arguments);
    return length >= 0 && length < TNI_LOOK_PATH;
}

const char *tni_look_why(const char *root, const tn_error *err)
{
    size_t length = strlen(root);
    return strncmp(err->message, root, length) == 0 ? err->message + length : err->message;
}

void tni_look_system(const char *system, tni_look *out)
{
    static const char *const machines[] = {MACHINE};
    tni_span machine = tni_span_of(system), name;
    bool same = tni_span_next(&machine, '/', &name) && tni_span_is(name, SYSTEM), holds = false;
    if (!machine.text) {
        tni_look_report(out, -1, 0, "\"%s\" is not a system: write it as " SYSTEM "/%s", system,
                        machines[0]);
        return;
    }
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        holds = holds || (same && tni_span_is(machine, machines[i]));
    tni_look_report(out, holds, holds, "this is " SYSTEM "/%s", machines[0]);
}
