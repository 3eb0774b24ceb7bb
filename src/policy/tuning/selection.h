/* Which kernel computes which problem, as text: the form of tuning results and locks.
 *
 *     checksum = sha256:6b0c...         of all that follows, CR LF counting as LF
 *     format = 1
 *     tenon = 0.1.0                     who wrote it
 *     strict = 0
 *     [machine cpu:0]                   one for each device
 *     name = ...                        and architecture, driver, threads, libraries
 *     [selection]                       one for each kernel of a problem
 *     problem = matmul:f32:m=64,n=64,k=64
 *     device = cpu:0                    and kernel, version, module, library, library_version, ...
 *
 * Omitted entries are unknown or do not apply. Thread-safety: a text that was read is constant. */
#ifndef TNI_POLICY_TUNING_SELECTION_H
#define TNI_POLICY_TUNING_SELECTION_H

#include "base/buffer.h"
#include "base/form.h"

enum { TNI_SELECTIONS_FORMAT = 1, TNI_SELECTIONS_LIMIT = 64 << 20 };

/* A device and its software environment. */
typedef struct tni_setup {
    const char *id; /* "cpu:0" */
    const char *name;
    const char *architecture;
    const char *driver;
    int64_t threads;       /* number of threads that loops on it use; 0 if it has none */
    const char *libraries; /* used by its selections: "openblas 0.3.21, ..." */
    uint32_t line;         /* of the text it was read from */
} tni_setup;

typedef struct tni_selection {
    const char *problem; /* canonical, without a device */
    const char *device;  /* the id of a setup */
    const char *kernel;
    int64_t version; /* of the row */
    const char *module;
    const char *library;     /* "" if none */
    int64_t library_version; /* -1: unknown, or no library */
    uint64_t numerics;       /* TN_NUM_... */
    const char *settings;    /* "key=value; ...": the settings that differ from their defaults */
    int64_t ns;              /* measured time; 0: not timed */
    uint32_t line;
} tni_selection;

/* A parsed text; all strings point into the form. */
typedef struct tni_selections {
    tni_form *form;
    const char *tenon;
    int64_t strict;
    tni_setup *setups;
    size_t setup_count;
    tni_selection *selections;
    size_t count;
} tni_selections;

/* Parses a text. Fails with TN_CORRUPT if it was changed since it was written or is invalid
 * otherwise; the message has "origin:line", the expected and the found value. Fails with
 * TN_INCOMPATIBLE for another format. A text with a wrong checksum is not parsed at all. In the
 * result, problems are canonical, every device has its setup, and no kernel occurs twice for one
 * problem of a device. */
tn_status tni_selections_parse(const char *text, size_t length, const char *origin,
                               tni_selections *out, tn_error *err);
tn_status tni_selections_read(const char *path, tni_selections *out, tn_error *err);
void tni_selections_release(tni_selections *selections); /* accepts a zeroed struct */

/* Returns NULL if none exists. */
const tni_setup *tni_selections_setup(const tni_selections *selections, const char *id);

/* To write: begin with an empty buffer, add setups, then selections, and sign at the end. Fails
 * with TN_INVALID_ARGUMENT for text that is not UTF-8. TN_OUT_OF_MEMORY is sticky, so it need only
 * be checked at the end. */
tn_status tni_selections_begin(tni_buffer *to, bool strict, tn_error *err);
tn_status tni_selections_add_setup(tni_buffer *to, const tni_setup *setup, tn_error *err);
tn_status tni_selections_add(tni_buffer *to, const tni_selection *selection, tn_error *err);
tn_status tni_selections_sign(tni_buffer *to, tn_error *err);

/* Writes the names of TN_NUM_... bits, as in "run-to-run, batch-invariant"; "" if none is set. */
void tni_numerics_write(uint64_t numerics, tni_buffer *out);

#endif
