/* The tests' modules. Each build of this file is one of them, named by STUB; all but STUB_GOOD have
 * one fault. When the variable STUB_TRACE names a file, every run of the constructor, the entry and
 * the probe adds its letter there, so that a test sees what ran, in whichever process. */
#include "tenon/module/communicator.h"
#include "tenon/module/kernel.h"
#include "tenon/module/language.h"
#include "tenon/module/library.h"
#include "tenon/module/op/matmul.h"
#include "tenon/module/platform.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    STUB_GOOD,
    STUB_OTHER_MINOR,
    STUB_OTHER_MAJOR,
    STUB_SMALL_TABLE,
    STUB_UNKNOWN_FLAGS,
    STUB_SANITIZER_FLAG,
    STUB_BAD_NAME,
    STUB_NO_VERSION,
    STUB_NULL_TABLE,
    STUB_FAILING_ENTRY,
    STUB_CRASHING_ENTRY,
    STUB_BAD_PLATFORM,
    STUB_BAD_LIBRARY,
    STUB_BAD_KERNEL,
    STUB_BAD_LANGUAGE,
    STUB_BAD_COMMUNICATOR,
    STUB_BORROWED_NAME,
    STUB_NO_ROWS,
    STUB_UNAVAILABLE,
    STUB_WORDLESS_PROBE,
    STUB_FAILING_PROBE,
    STUB_STARVING_PROBE,
    STUB_FOREIGN_WORDS,
    STUB_TELLING_PROBE,
    STUB_NO_DEVICE,
    STUB_NEGATIVE_DEVICES,
    STUB_ENDLESS_DEVICES,
    STUB_HALF_THERE,
    STUB_CRASHING_PROBE,
    STUB_EXITING_PROBE,
    STUB_HANGING_PROBE,
    STUB_STRAYING_PROBE,
    STUB_LOGGING_PROBE,
    STUB_CRASHING_PROPERTIES,
    STUB_HANGING_PROPERTIES,
    STUB_CRASHING_DESTRUCTOR,
    STUB_HANGING_DESTRUCTOR,
    STUB_EXITING_DESTRUCTOR,
    STUB_CRASHING_CONSTRUCTOR,
    STUB_HANGING_CONSTRUCTOR,
    STUB_VENDOR
};

#ifndef STUB_VENDOR_FILES
#define STUB_VENDOR_FILES "libstub-nowhere.so.1"
#endif

#ifdef STUB_USES_MISSING
void stub_nowhere(void); /* defined nowhere */
#endif

static void trace(char letter)
{
    const char *path = getenv("STUB_TRACE");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return;
    if (write(file, &letter, 1) != 1)
        _exit(99);
    close(file);
}

/* By the signal itself: a sanitizer would turn a wild read into a report of its own. */
static void crash(void)
{
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static void hang(void)
{
    for (;;)
        pause();
}

__attribute__((constructor)) static void construct(void)
{
    trace('c');
    if (STUB == STUB_CRASHING_CONSTRUCTOR)
        crash();
    if (STUB == STUB_HANGING_CONSTRUCTOR)
        hang();
}

__attribute__((destructor)) static void destroy(void)
{
    if (STUB == STUB_CRASHING_DESTRUCTOR)
        crash();
    if (STUB == STUB_HANGING_DESTRUCTOR)
        hang();
    if (STUB == STUB_EXITING_DESTRUCTOR)
        _exit(7);
}

/* The devices that the vendor's library counts. */
static tn_status ask_vendor(const tn_host *host, int32_t *out_devices, tn_error *err)
{
    struct vendor {
        int (*answer)(void);
        int (*missing)(void);
    } vendor;
    static const tn_symbol used[] = {{"stub_answer@STUB_1", offsetof(struct vendor, answer)},
                                     {"?stub_missing", offsetof(struct vendor, missing)}};
    tn_status status = host->library_bind(host->self, STUB_VENDOR_FILES, used, 2, &vendor, err);
    if (!status)
        *out_devices = vendor.missing ? -1 : vendor.answer();
    return status;
}

/* Its last word on what helps counts, before its rows' and before that of a library which was not found. */
static tn_status tell(const tn_host *host, tn_error *err)
{
    int32_t devices;
    (void)ask_vendor(host, &devices, err);
    host->remedy_tell(host->self, "turn the stub card round");
    host->remedy_tell(host->self, "push the stub card\nfirmly");
    return tn_fail(err, TN_UNAVAILABLE, 0, "stub: probe", "the stub card is loose");
}

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    const char *where = "stub: probe";
    trace('p');
    *out_self = NULL;
    *out_devices = 2;
    switch (STUB) {
    case STUB_UNAVAILABLE: return tn_fail(err, TN_UNAVAILABLE, 0, where, "no stub card is fitted");
    case STUB_WORDLESS_PROBE: return TN_DEVICE_LOST;
    case STUB_FAILING_PROBE: return tn_fail(err, 4711, 0, where, "a status of its own");
    case STUB_STARVING_PROBE:
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, where, "no memory left on the card");
    case STUB_FOREIGN_WORDS: return tn_fail(err, TN_UNAVAILABLE, 0, where, "ger\xe4t fehlt\nganz");
    case STUB_TELLING_PROBE: return tell(host, err);
    case STUB_NO_DEVICE: *out_devices = 0; break;
    case STUB_NEGATIVE_DEVICES: *out_devices = -3; break;
    case STUB_ENDLESS_DEVICES: *out_devices = INT32_MAX; break;
    case STUB_CRASHING_PROBE: crash(); break;
    case STUB_EXITING_PROBE: exit(7);
    case STUB_HANGING_PROBE: hang(); break;
    case STUB_STRAYING_PROBE:
        (void)setpgid(0, getpgid(getppid()));
        hang();
        break;
    case STUB_LOGGING_PROBE: host->log(host->self, TN_LOG_INFO, "two cards say hello"); break;
    case STUB_VENDOR: return ask_vendor(host, out_devices, err);
    default: break;
    }
    return TN_OK;
}

static tn_status probe_nothing(const tn_host *host, void **out_self, int32_t *out_devices,
                               tn_error *err)
{
    (void)host, (void)out_self, (void)out_devices;
    return tn_fail(err, TN_UNAVAILABLE, 0, "stub: probe", "the second kind of card is absent");
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device, (void)bytes, (void)out;
    return tn_fail(err, TN_UNSUPPORTED, 0, "stub: memory", "stub cards have no memory");
}

static void memory_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device, (void)memory;
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)job;
    return tn_fail(err, TN_UNSUPPORTED, 0, "stub: copy", "stub cards have no memory");
}

static tn_status device_properties(void *self, int32_t device, tn_device_properties *out,
                                   tn_error *err)
{
    (void)self, (void)err;
    if (STUB == STUB_CRASHING_PROPERTIES && device == 1)
        crash();
    if (STUB == STUB_HANGING_PROPERTIES && device == 1)
        hang();
    tn_text_fit(out->name, sizeof out->name, "stub card");
    return TN_OK;
}

static tn_status run(const struct tn_run *run, tn_error *err)
{
    (void)run;
    return tn_fail(err, TN_UNSUPPORTED, 0, "stub: run", "stub cards do not compute");
}

static tn_status version(const tn_host *host, uint32_t *out_major, uint32_t *out_minor,
                         tn_error *err)
{
    (void)host, (void)err;
    *out_major = 1;
    *out_minor = 0;
    return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, TN_DTYPE_NONE};

/* Not constant, unlike a real module's, as the entry spoils one field of them. */
static tn_platform_row platform = {.struct_size = sizeof platform,
                                   .name = "stub",
                                   .kind = TN_PLATFORM_OOT,
                                   .remedy = "fit a stub card",
                                   .probe = probe,
                                   .memory_alloc = memory_alloc,
                                   .memory_free = memory_free,
                                   .copy = copy,
                                   .device_properties = device_properties},
                       second = {.struct_size = sizeof second,
                                 .name = "stub2",
                                 .kind = TN_PLATFORM_OOT,
                                 .probe = probe_nothing,
                                 .memory_alloc = memory_alloc,
                                 .memory_free = memory_free,
                                 .copy = copy};
static tn_library_row library = {.struct_size = sizeof library,
                                 .name = "stubvendor",
                                 .platform = "stub",
                                 .files = STUB_VENDOR_FILES,
                                 .remedy = "install the stub vendor's package"};
static tn_kernel_row kernel = {.struct_size = sizeof kernel,
                               .name = "stub.matmul.f32",
                               .platform = "stub",
                               .op = TN_OP_MATMUL,
                               .version = 1,
                               .dtypes = dtypes,
                               .flops_per_us = 1,
                               .bytes_per_us = 1,
                               .run = run};
static tn_language_row language = {
    .struct_size = sizeof language, .name = "stub-c", .platform = "stub", .version = version};
static tn_communicator_row communicator = {.struct_size = sizeof communicator,
                                           .name = "stub-ring",
                                           .platform = "stub",
                                           .version = version};

static const tn_platform_row *platforms[] = {&platform, NULL, NULL};
static const tn_library_row *const libraries[] = {&library, NULL};
static const tn_kernel_row *const kernels[] = {&kernel, NULL};
static const tn_language_row *const languages[] = {&language, NULL};
static const tn_communicator_row *const communicators[] = {&communicator, NULL};

static tn_module module = {.struct_size = sizeof module,
                           TN_MODULE_ABI,
                           .name = STUB_NAME,
                           .version = "1.2",
                           .platforms = platforms,
                           .libraries = libraries,
                           .kernels = kernels,
                           .languages = languages,
                           .communicators = communicators};

static void spoil(void)
{
    switch (STUB) {
    case STUB_OTHER_MINOR: module.abi_minor = TN_MODULE_ABI_MINOR + 1; break;
    case STUB_OTHER_MAJOR: module.abi_major = TN_MODULE_ABI_MAJOR + 7; break;
    case STUB_SMALL_TABLE: module.struct_size = TN_UP_TO(tn_module, languages); break;
    case STUB_UNKNOWN_FLAGS: module.flags |= UINT64_C(1) << 40; break;
    case STUB_SANITIZER_FLAG: module.flags ^= TN_MODULE_SANITIZER_MEMORY; break;
    case STUB_BAD_NAME: module.name = "Stub Nr. 1"; break;
    case STUB_NO_VERSION: module.version = ""; break;
    case STUB_BAD_PLATFORM: platform.kind = TN_PLATFORM_KIND_COUNT; break;
    case STUB_BAD_LIBRARY: library.files = ""; break;
    case STUB_BAD_KERNEL: kernel.version = 0; break;
    case STUB_BAD_LANGUAGE: language.version = NULL; break;
    case STUB_BAD_COMMUNICATOR: communicator.platform = "Stub"; break;
    case STUB_BORROWED_NAME: platform.name = "cpu"; break;
    case STUB_NO_ROWS: platforms[0] = NULL; break;
    case STUB_HALF_THERE:
        platform.name = "stub1"; /* its neighbours serve "stub" */
        platforms[1] = &second;
        break;
    case STUB_ENDLESS_DEVICES:
        second.probe = probe;
        platforms[1] = &second;
        break;
    default: break;
    }
    if (STUB == STUB_NO_ROWS)
        module.libraries = NULL, module.kernels = NULL, module.languages = NULL,
        module.communicators = NULL;
}

tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host;
    trace('e');
#ifdef STUB_USES_MISSING
    stub_nowhere();
#endif
    if (STUB == STUB_CRASHING_ENTRY)
        crash();
    if (STUB == STUB_FAILING_ENTRY)
        return tn_fail(err, TN_REFUSED, 0, "stub: entry", "the stub's licence has run out");
    spoil();
    if (STUB != STUB_NULL_TABLE)
        *out = &module;
    return TN_OK;
}
