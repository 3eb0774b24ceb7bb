#include "tenon/version.h"

#include "tenon/module/module.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

#if defined(__clang__)
#define COMPILER \
    "clang " TEXT(__clang_major__) "." TEXT(__clang_minor__) "." TEXT(__clang_patchlevel__)
#elif defined(__GNUC__)
#define COMPILER "gcc " TEXT(__GNUC__) "." TEXT(__GNUC_MINOR__) "." TEXT(__GNUC_PATCHLEVEL__)
#else
#define COMPILER "unknown"
#endif

#if defined(_WIN32)
#define SYSTEM "windows"
#elif defined(__linux__)
#define SYSTEM "linux"
#elif defined(__APPLE__)
#define SYSTEM "darwin"
#else
#define SYSTEM "other"
#endif

#if defined(__x86_64__) || defined(_M_X64)
#define MACHINE "x86_64"
#elif defined(__aarch64__)
#define MACHINE "aarch64"
#elif defined(__riscv)
#define MACHINE "riscv"
#else
#define MACHINE "other"
#endif

static const char *sanitizer_name(void)
{
    switch (TN_MODULE_BUILT_WITH) {
    case TN_MODULE_SANITIZER_ADDRESS: return "address";
    case TN_MODULE_SANITIZER_THREAD: return "thread";
    case TN_MODULE_SANITIZER_MEMORY: return "memory";
    default: return "none";
    }
}

const char *tn_version(void)
{
    return TEXT(TN_VERSION_MAJOR) "." TEXT(TN_VERSION_MINOR) "." TEXT(TN_VERSION_PATCH);
}

tn_status tn_build_get(tn_build *out, tn_error *err)
{
    if (!out || out->struct_size < TN_UP_TO(tn_build, sanitizer))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_build_get",
                       "out->struct_size needs at least %zu, found %zu",
                       TN_UP_TO(tn_build, sanitizer), out ? out->struct_size : (size_t)0);
    const tn_build build = {
        .struct_size = sizeof build,
        .major = TN_VERSION_MAJOR,
        .minor = TN_VERSION_MINOR,
        .patch = TN_VERSION_PATCH,
        .module_abi_major = TN_MODULE_ABI_MAJOR,
        .module_abi_minor = TN_MODULE_ABI_MINOR,
        .compiler = COMPILER,
        .target = SYSTEM "-" MACHINE,
        .sanitizer = sanitizer_name(),
    };
    *out = build;
    return TN_OK;
}
