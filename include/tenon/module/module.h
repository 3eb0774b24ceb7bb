/* The interface of a module: the one symbol it exports, what the host provides to it, what it
 * returns.
 *
 * docs/modules.md has the numbered rules. In short: export tn_module_entry and nothing else, link
 * nothing of Tenon and no vendor library, run nothing before a probe, keep no host pointer in a
 * static variable (two copies of Tenon may share a process).
 *
 * Thread-safety: a module's tables are constant; the host's functions may be called from any
 * thread. */
#ifndef TENON_MODULE_MODULE_H
#define TENON_MODULE_MODULE_H

#include "machine.h"

/* While the major is 0, a module must be built for exactly the host's minor; from 1.0 on, either
 * side may be newer. */
#define TN_MODULE_ABI_MAJOR 0
#define TN_MODULE_ABI_MINOR 9

/* The sanitizer this file is compiled with. A host and a module with different sanitizers cannot
 * share a process; such a module is rejected before it is opened. */
#define TN_MODULE_SANITIZER_ADDRESS UINT64_C(1)
#define TN_MODULE_SANITIZER_THREAD  UINT64_C(2)
#define TN_MODULE_SANITIZER_MEMORY  UINT64_C(4)
#define TN_MODULE_SANITIZERS        UINT64_C(7)

#if defined(__has_feature)
#define TN_HAS_FEATURE_(x) __has_feature(x)
#else
#define TN_HAS_FEATURE_(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TN_HAS_FEATURE_(address_sanitizer)
#define TN_MODULE_BUILT_WITH TN_MODULE_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__) || TN_HAS_FEATURE_(thread_sanitizer)
#define TN_MODULE_BUILT_WITH TN_MODULE_SANITIZER_THREAD
#elif TN_HAS_FEATURE_(memory_sanitizer)
#define TN_MODULE_BUILT_WITH TN_MODULE_SANITIZER_MEMORY
#else
#define TN_MODULE_BUILT_WITH UINT64_C(0)
#endif

/* For a module's table: `{.struct_size = sizeof module, TN_MODULE_ABI, .name = ...}`. */
#define TN_MODULE_ABI                                                   \
    .abi_major = TN_MODULE_ABI_MAJOR, .abi_minor = TN_MODULE_ABI_MINOR, \
    .flags = TN_MODULE_BUILT_WITH

TN_BEGIN_DECLS

struct tn_platform_row;
struct tn_library_row;
struct tn_kernel_row;
struct tn_language_row;
struct tn_communicator_row;

/* Functions that the host provides to a module. Each module gets its own table, valid as long as
 * the process. Pass `self` as the first argument of every function. */
typedef struct tn_host {
    size_t struct_size;
    uint32_t abi_major;
    uint32_t abi_minor;
    void *self;

    /* Allocates host memory for the module's own data, from the allocator that the program set.
     * NULL if there is no memory. `align` is a power of two. */
    void *(*alloc)(void *self, size_t size, size_t align);
    void (*release)(void *self, void *memory); /* accepts NULL */

    /* Writes one line to the program's log sink. A module must not print. */
    void (*log)(void *self, int32_t level, const char *text);

    /* Opens a vendor library and fills `table` with the addresses of `symbols`. `files` are
     * versioned names, tried in order, separated by "|": "libacme.so.2|libacme.so.1". On failure
     * `table` is unchanged, and `err` has
     *   TN_UNAVAILABLE   no such file; lists the places searched. If the probe then fails, what to
     *                    install becomes the remedy in the module's report,
     *   TN_INCOMPATIBLE  opened, but a symbol is missing; names the file and the symbol.
     * The library stays open as long as the process. */
    tn_status (*library_bind)(void *self, const char *files, const tn_symbol *symbols, size_t count,
                              void *table, tn_error *err);

    /* Runs task(user, i) for every i in [0, count), in any order, on the pool that the program set;
     * returns when all are done. A task must not wait for another one. */
    void (*parallel_for)(void *self, int64_t count, tn_task *task, void *user);

    /* Returns the properties and current state of the machine. Set out->struct_size first. Fails
     * only if out of memory; a value that cannot be read is unknown, with the reason. */
    tn_status (*machine)(void *self, tn_machine_facts *out, tn_error *err);

    /* A cache between processes, for example for compiled code, in the one cache directory. Entries
     * are found by a kind (a word: "cubin") and a key of any bytes, which must include everything
     * that the data depends on. The memory that `get` returns must be freed with `release`;
     * TN_NOT_FOUND if there is no entry. Entries may be lost at any time. TN_UNAVAILABLE if there
     * is no directory. */
    tn_status (*cache_get)(void *self, const char *kind, const void *key, size_t key_size,
                           void **out, size_t *out_size, tn_error *err);
    tn_status (*cache_put)(void *self, const char *kind, const void *key, size_t key_size,
                           const void *data, size_t size, tn_error *err);

    /* Returns the file that library_bind would use for `files`, without opening any. A library that
     * is already in this process comes before one that the loader finds; *out_is_here is 1 for the
     * former. The path is truncated to `size` bytes. A name with a "/" is a path. If none exists,
     * fails with TN_NOT_FOUND and writes nothing. */
    tn_status (*library_look)(void *self, const char *files, char *out_path, size_t size,
                              int32_t *out_is_here, tn_error *err);

    /* To be called by a probe that is about to fail, on its own thread: sets the remedy for the
     * cause it found, instead of its row's remedy and of the one noted by library_bind. The text is
     * copied and truncated to 255 bytes; the last call counts. Has no effect anywhere else, or if
     * the probe succeeds. */
    void (*remedy_tell)(void *self, const char *text);
} tn_host;
TN_ENDS_WITH(tn_host, remedy_tell);

/* What the module returns. Lists are arrays of pointers that end with NULL, so that rows may grow;
 * a list may be NULL. Everything it points to is constant and valid as long as the process. */
typedef struct tn_module {
    size_t struct_size;
    uint32_t abi_major;
    uint32_t abi_minor;
    uint64_t flags;      /* TN_MODULE_BUILT_WITH; other bits are 0                   */
    const char *name;    /* "acme": a-z 0-9 - _, a letter or digit first; at most 48 */
    const char *version; /* the module's own: "1.0"                                  */
    const struct tn_platform_row *const *platforms;
    const struct tn_library_row *const *libraries;
    const struct tn_kernel_row *const *kernels;
    const struct tn_language_row *const *languages;
    const struct tn_communicator_row *const *communicators;
} tn_module;
TN_ENDS_WITH(tn_module, communicators);

/* The type of the exported function. Called once per copy of Tenon in the process, possibly from
 * different threads. Must set *out to a constant table and must not access hardware. */
typedef tn_status tn_module_entry_fn(const tn_host *host, const tn_module **out, tn_error *err);

#if defined(_WIN32)
#define TN_MODULE_EXPORT __declspec(dllexport)
#elif defined(__GNUC__) || defined(__clang__)
#define TN_MODULE_EXPORT __attribute__((visibility("default")))
#else
#define TN_MODULE_EXPORT
#endif

TN_MODULE_EXPORT tn_status tn_module_entry(const tn_host *host, const tn_module **out,
                                           tn_error *err);

TN_END_DECLS

#endif
