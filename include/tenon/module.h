/* Modules: what was sought, what was found, and where each one stopped.
 *
 * Discovery runs once, at the first need, in this order: built-ins; files and folders the program
 * added; the module folder that belongs to the library; the folders of TENON_MODULE_PATH, which is
 * ignored when the process has raised privileges. Files are tenon-NAME.so, in the order of their
 * names. Every candidate keeps a row, whatever became of it.
 *
 * Thread-safety: Safe. */
#ifndef TENON_MODULE_H
#define TENON_MODULE_H

#include "base.h"
#include "module/module.h"

TN_BEGIN_DECLS

/* How far a module came. */
typedef int32_t tn_module_stage;
enum {
    TN_STAGE_FOUND = 0,  /* a file of the right name                                     */
    TN_STAGE_OPENED,     /* its code is in the process                                    */
    TN_STAGE_NEGOTIATED, /* its ABI fits and its rows are sound: they may be planned with */
    TN_STAGE_PROBED,     /* its platforms were asked for devices                          */
    TN_STAGE_READY       /* in use                                                        */
};

/* "found", "opened", "negotiated", "probed", "ready"; "unknown" otherwise. Static text. */
TN_API const char *tn_module_stage_name(tn_module_stage stage);

/* One candidate. Texts are lent by the list that holds the row. */
typedef struct tn_module_report {
    size_t struct_size;
    const char *name;    /* as it calls itself; the file's, until it has said               */
    const char *version; /* its own; "" until it has said                                    */
    const char *path;    /* NULL for a built-in                                              */
    const char *origin;  /* "built-in", "program", "module folder", "TENON_MODULE_PATH"      */
    const char *message; /* why it stopped, or what it offers; never NULL                    */
    const char *remedy;  /* what would help; "" when nothing is needed                       */
    tn_module_stage stage;
    tn_status status; /* TN_OK exactly when `stage` is TN_STAGE_READY */
    uint32_t abi_major;
    uint32_t abi_minor;
    int32_t platforms; /* rows offered */
    int32_t libraries;
    int32_t kernels;
    int32_t languages;
    int32_t communicators;
    int32_t devices; /* found by its probes */
    double ms;       /* spent on it, in this process and in its probe's */
} tn_module_report;
TN_ENDS_WITH(tn_module_report, ms);

/* One place where modules were sought. */
typedef struct tn_module_place {
    size_t struct_size;
    const char *path;
    const char *origin;
    const char *message; /* "3 modules", "no such folder", "ignored: raised privileges" */
    tn_status status;
    int32_t modules; /* candidates found there */
} tn_module_place;
TN_ENDS_WITH(tn_module_place, modules);

/* How the program vouches for a file it adds. */
#define TN_MODULE_TRUSTED UINT64_C(1) /* probe in this process, not in a child first */

/* Adds a folder to search, or one module's file; a relative path is of the folder that is current
 * now. After discovery the module is loaded at once; before, with the rest. The call fails only for
 * want of memory or descriptors or a path that cannot be: whatever becomes of the module is in its
 * row. */
TN_API tn_status tn_module_folder_add(const char *folder, uint64_t flags, tn_error *err);
TN_API tn_status tn_module_file_add(const char *file, uint64_t flags, tn_error *err);

/* Unknown modules are probed in a child process first, and what it found is remembered for one
 * state of the file, the drivers and the boot. This makes discovery ask anew; call it before
 * anything else of this header, or TN_BUSY. */
TN_API tn_status tn_module_verdicts_ignore(tn_error *err);

/* Finds and loads modules, if that has not been done. Waits when another thread is at it, but not
 * inside a probe, a loop's task or a log sink: there it shows what has come in so far. Fails only for
 * want of memory or descriptors (TN_OUT_OF_MEMORY, TN_BUSY), and then goes on at the next call; a
 * module that stops does not stop the rest. */
TN_API tn_status tn_module_discover(tn_error *err);

/* A snapshot of every row and every place sought; discovers first. Given: release it. */
typedef struct tn_module_list tn_module_list;
TN_API tn_status tn_module_list_create(tn_module_list **out, tn_error *err);
TN_API void tn_module_list_release(tn_module_list *list);

/* Lent until the list is released; NULL past the end, 0 for a NULL list. */
TN_API size_t tn_module_list_count(const tn_module_list *list);
TN_API const tn_module_report *tn_module_list_get(const tn_module_list *list, size_t index);
TN_API size_t tn_module_list_place_count(const tn_module_list *list);
TN_API const tn_module_place *tn_module_list_place_get(const tn_module_list *list, size_t index);

/* Registers a module that the program itself contains: `entry` is its tn_module_entry by another name.
 * It comes in at once, by the same checks as a file, and is probed in this process. A platform name
 * that is served already is refused (TN_ALREADY_EXISTS) unless `flags` has TN_MODULE_REPLACE; then the
 * new one serves until it is released, or another comes in its place. So is one that is of another kind
 * (TN_INVALID_ARGUMENT), whatever the flags. The report row says what became of it; so does the status
 * returned.
 *
 * Releasing undoes it: whom it replaced serves again, its platforms have no devices otherwise, and its
 * row is gone. What Tenon kept of its memory goes back at once. Handles that were given out stay valid:
 * what they are asked to do gives TN_UNAVAILABLE, and what is released or freed by them still reaches
 * the module. So the code must stay in the process. Accepts NULL; twice is a use after free.
 *
 * For the handles' sake a few KiB of every registration stay for good, and about 16 KiB more of every
 * device of it that was allocated from. Look-ups do not become slower by it. */
#define TN_MODULE_REPLACE UINT64_C(2)
typedef struct tn_registration tn_registration;
TN_API tn_status tn_module_register(tn_module_entry_fn *entry, uint64_t flags,
                                    tn_registration **out, tn_error *err);
TN_API void tn_registration_release(tn_registration *registration);

/* Changes whenever a module comes in: caches built over its rows compare it. */
TN_API uint64_t tn_module_generation(void);

TN_END_DECLS

#endif
