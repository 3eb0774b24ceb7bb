/* Modules: where they were searched for, which were found, and how far each got.
 *
 * Discovery runs once, when first needed, in this order: built-ins; files and folders that the
 * program added; the module folder of the library; the folders of TENON_MODULE_PATH, which is
 * ignored if the process has elevated privileges. Files are named tenon-NAME.so and sorted by name.
 * Every candidate has a row in the report, whatever its result.
 *
 * Thread-safety: Safe. */
#ifndef TENON_MODULE_H
#define TENON_MODULE_H

#include "base.h"
#include "module/module.h"

TN_BEGIN_DECLS

/* How far a module got. */
typedef int32_t tn_module_stage;
enum {
    TN_STAGE_FOUND = 0,  /* a file with a matching name exists                         */
    TN_STAGE_OPENED,     /* its code is loaded into the process                        */
    TN_STAGE_NEGOTIATED, /* its ABI matches and its rows are valid; plans may use them */
    TN_STAGE_PROBED,     /* its platforms were probed for devices                      */
    TN_STAGE_READY       /* in use                                                     */
};

/* "found", "opened", "negotiated", "probed", "ready"; "unknown" otherwise. Static text. */
TN_API const char *tn_module_stage_name(tn_module_stage stage);

/* One candidate. Strings are valid until the list is released. */
typedef struct tn_module_report {
    size_t struct_size;
    const char *name;    /* its own name; the file's name if not known yet              */
    const char *version; /* its own version; "" if not known yet                        */
    const char *path;    /* NULL for a built-in                                         */
    const char *origin;  /* "built-in", "program", "module folder", "TENON_MODULE_PATH" */
    const char *message; /* why it failed, or what it offers; never NULL                */
    const char *remedy;  /* how to fix it; "" if nothing is needed                      */
    tn_module_stage stage;
    tn_status status; /* TN_OK exactly when `stage` is TN_STAGE_READY */
    uint32_t abi_major;
    uint32_t abi_minor;
    int32_t platforms; /* number of rows offered */
    int32_t libraries;
    int32_t kernels;
    int32_t languages;
    int32_t communicators;
    int32_t devices; /* number of devices its probes found */
    double ms;       /* time spent on it, in this process and in its probe process */
} tn_module_report;
TN_ENDS_WITH(tn_module_report, ms);

/* One place that was searched for modules. */
typedef struct tn_module_place {
    size_t struct_size;
    const char *path;
    const char *origin;
    const char *message; /* "3 modules", "no such folder", "ignored: raised privileges" */
    tn_status status;
    int32_t modules; /* candidates found there */
} tn_module_place;
TN_ENDS_WITH(tn_module_place, modules);

/* Flags for tn_module_folder_add and tn_module_file_add. */
#define TN_MODULE_TRUSTED UINT64_C(1) /* probe in this process, without a child process first */

/* Adds a folder to search, or the file of one module; a relative path is relative to the folder
 * that is current now. After discovery the module is loaded at once; before, together with the
 * others. Fails only if memory or file descriptors run out or the path is invalid; every other
 * result is in the module's row. */
TN_API tn_status tn_module_folder_add(const char *folder, uint64_t flags, tn_error *err);
TN_API tn_status tn_module_file_add(const char *file, uint64_t flags, tn_error *err);

/* Unknown modules are first probed in a child process, and the result is remembered for the same
 * state of the file, the drivers and the boot. This call makes discovery ignore remembered results.
 * Call it before anything else of this header; later it fails with TN_BUSY. */
TN_API tn_status tn_module_verdicts_ignore(tn_error *err);

/* Finds and loads modules, unless already done. Waits while another thread does it, except inside a
 * probe, a parallel loop's task or a log sink: there it returns at once, with the modules loaded so
 * far. Fails only if memory or file descriptors run out (TN_OUT_OF_MEMORY, TN_BUSY), and then
 * continues at the next call. A module that fails does not stop the others. */
TN_API tn_status tn_module_discover(tn_error *err);

/* Creates a snapshot of all rows and all places searched; runs discovery first. The caller must
 * release it. */
typedef struct tn_module_list tn_module_list;
TN_API tn_status tn_module_list_create(tn_module_list **out, tn_error *err);
TN_API void tn_module_list_release(tn_module_list *list);

/* Borrowed until the list is released; NULL past the end, 0 for a NULL list. */
TN_API size_t tn_module_list_count(const tn_module_list *list);
TN_API const tn_module_report *tn_module_list_get(const tn_module_list *list, size_t index);
TN_API size_t tn_module_list_place_count(const tn_module_list *list);
TN_API const tn_module_place *tn_module_list_place_get(const tn_module_list *list, size_t index);

/* Registers a module that is part of the program: `entry` is its tn_module_entry under another
 * name. It is loaded at once, with the same checks as a file, and probed in this process. A
 * platform name that is already served fails with TN_ALREADY_EXISTS unless `flags` has
 * TN_MODULE_REPLACE; then the new module serves the platform until it is released or replaced in
 * turn. A platform of another kind fails with TN_INVALID_ARGUMENT, whatever the flags. The report
 * row and the returned status both have the result.
 *
 * Releasing undoes the registration: the replaced module serves the platform again; if there was
 * none, the platform has no devices. The row is removed, and memory that Tenon kept for reuse is
 * returned to the module at once. Handles that the program still has stay valid: operations on them
 * fail with TN_UNAVAILABLE, but releasing or freeing them still calls the module, so its code must
 * stay in the process. Accepts NULL; a second release is a use after free.
 *
 * To keep handles valid, a few KiB per registration are never freed, plus about 16 KiB for each of
 * its devices that memory was allocated from. This does not slow down look-ups. */
#define TN_MODULE_REPLACE UINT64_C(2)
typedef struct tn_registration tn_registration;
TN_API tn_status tn_module_register(tn_module_entry_fn *entry, uint64_t flags,
                                    tn_registration **out, tn_error *err);
TN_API void tn_registration_release(tn_registration *registration);

/* Changes whenever a module is loaded; caches built from module rows compare it. */
TN_API uint64_t tn_module_generation(void);

TN_END_DECLS

#endif
