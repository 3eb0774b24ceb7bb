/* Which kernel computes which problem, as text: what tuning keeps, and what a lock holds.
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
 * What is left out is unknown, or there is none. Thread-safety: a text that was read is constant. */
#ifndef TNI_DISPATCH_SELECTION_H
#define TNI_DISPATCH_SELECTION_H

#include "base/buffer.h"
#include "base/form.h"

enum { TNI_SELECTIONS_FORMAT = 1, TNI_SELECTIONS_LIMIT = 64 << 20 };

/* A device with what drives it. */
typedef struct tni_setup {
    const char *id; /* "cpu:0" */
    const char *name;
    const char *architecture;
    const char *driver;
    int64_t threads;       /* that loops on it use; 0 where there are no such */
    const char *libraries; /* that its selections go through: "openblas 0.3.21, ..." */
    uint32_t line;         /* where it was read */
} tni_setup;

typedef struct tni_selection {
    const char *problem; /* canonical, without a device */
    const char *device;  /* the id of a setup */
    const char *kernel;
    int64_t version; /* of the row */
    const char *module;
    const char *library;     /* "" for none */
    int64_t library_version; /* -1: unknown, or none */
    uint64_t numerics;       /* TN_NUM_... */
    const char *settings;    /* "key=value; ...", of those that are not as they are by default */
    int64_t ns;              /* that it took; 0: not timed */
    uint32_t line;
} tni_selection;

/* A text that was read; whatever points to text points into the form. */
typedef struct tni_selections {
    tni_form *form;
    const char *tenon;
    int64_t strict;
    tni_setup *setups;
    size_t setup_count;
    tni_selection *selections;
    size_t count;
} tni_selections;

/* Reads it. TN_CORRUPT when a byte of it was changed since it was written, and for whatever else it
 * should not have, with "origin:line", what was found and what was expected; TN_INCOMPATIBLE for another
 * format. Nothing is read of a text whose checksum is wrong. Problems are canonical, and every device
 * has its setup. No kernel stands twice for one problem of a device. */
tn_status tni_selections_parse(const char *text, size_t length, const char *origin,
                               tni_selections *out, tn_error *err);
tn_status tni_selections_read(const char *path, tni_selections *out, tn_error *err);
void tni_selections_release(tni_selections *selections); /* accepts what is zeroed */

/* NULL for none. */
const tni_setup *tni_selections_setup(const tni_selections *selections, const char *id);

/* Writing it: begin an empty buffer, setups, selections; sign it at the end. TN_INVALID_ARGUMENT for
 * text that is no UTF-8; TN_OUT_OF_MEMORY is sticky, so that it can be left to the last. */
tn_status tni_selections_begin(tni_buffer *to, bool strict, tn_error *err);
tn_status tni_selections_add_setup(tni_buffer *to, const tni_setup *setup, tn_error *err);
tn_status tni_selections_add(tni_buffer *to, const tni_selection *selection, tn_error *err);
tn_status tni_selections_sign(tni_buffer *to, tn_error *err);

/* "run-to-run, batch-invariant" for TN_NUM_... bits; "" for none. */
void tni_numerics_write(uint64_t numerics, tni_buffer *out);

#endif
