/* Lists that say something of kernels: which are known to be bad, which were tested. known_bad.form shows
 * what stands in one. */
#ifndef TNI_DISPATCH_NOTES_H
#define TNI_DISPATCH_NOTES_H

#include "base/form.h"
#include "dispatch/kernels.h"
#include "tenon/device.h"

enum { TNI_NOTE_WORDS = 8 };
enum { TNI_NOTE_EITHER, TNI_NOTE_YES, TNI_NOTE_NO };

/* One section. What it does not say is NULL, 0 or empty. Texts lie in the form. */
typedef struct tni_note {
    const char *name;
    const char *library; /* "none": kernels that go through none */
    const char *kernel;
    const char *platform;
    const char *reason;
    const char *source;
    int64_t version_low, version_high; /* -1: any */
    int32_t op;
    uint64_t uses;
    int64_t keys;   /* that attention has at least */
    int32_t causal; /* TNI_NOTE_..., of attention  */
    tn_dtype dtypes[TNI_NOTE_WORDS + 1];
    char architectures[TNI_NOTE_WORDS + 1][32];
} tni_note;

/* A list that was read; constant. Zeroed is empty. */
typedef struct tni_notes {
    tni_form *form;
    tni_note *notes;
    size_t count;
} tni_notes;

/* TN_CORRUPT with "origin:line", what was found and what is needed. On failure *out is untouched. */
tn_status tni_notes_parse(const char *text, size_t length, const char *origin, tni_notes *out,
                          tn_error *err);
void tni_notes_release(tni_notes *notes);

/* The first note that speaks of a kernel with that library version, -1 for unknown, and of an op, NULL
 * for any, on such a device; or NULL. A note of some versions does not speak of an unknown one. */
const tni_note *tni_notes_find(const tni_notes *notes, const tni_kernel *kernel, const tn_op *op,
                               const char *platform, const char *architecture,
                               int64_t library_version);

/* Whether what ships with Tenon vouches for the kernel on such a device. */
bool tni_tested(const tni_kernel *kernel, const tn_device *device, int64_t library_version);

/* The lists that ship with Tenon: made by the build from the files. */
extern const unsigned char tni_embedded_known_bad[], tni_embedded_tested[];
extern const size_t tni_embedded_known_bad_size, tni_embedded_tested_size;

#endif
