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

#define SANITIZER                                                     \
    (TN_MODULE_BUILT_WITH == TN_MODULE_SANITIZER_ADDRESS  ? "address" \
     : TN_MODULE_BUILT_WITH == TN_MODULE_SANITIZER_THREAD ? "thread"  \
     : TN_MODULE_BUILT_WITH == TN_MODULE_SANITIZER_MEMORY ? "memory"  \
                                                          : "none")

const char *tn_version(void)
{
    return TEXT(TN_VERSION_MAJOR) "." TEXT(TN_VERSION_MINOR) "." TEXT(TN_VERSION_PATCH);
}

const tn_build *tn_build_get(void)
{
    static const tn_build build = {
        .struct_size = sizeof build,
        .major = TN_VERSION_MAJOR,
        .minor = TN_VERSION_MINOR,
        .patch = TN_VERSION_PATCH,
        .module_abi_major = TN_MODULE_ABI_MAJOR,
        .module_abi_minor = TN_MODULE_ABI_MINOR,
        .compiler = COMPILER,
        .target = SYSTEM "-" MACHINE,
        .sanitizer = SANITIZER,
    };
    return &build;
}
