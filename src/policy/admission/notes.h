/* Lists with notes on kernels: which are known to be bad, which were tested. known_bad.form shows
 * the format. */
#ifndef TNI_POLICY_ADMISSION_NOTES_H
#define TNI_POLICY_ADMISSION_NOTES_H

#include "base/form.h"
#include "dispatch/kernels.h"
#include "tenon/device.h"

enum { TNI_NOTE_WORDS = 8 };
enum { TNI_NOTE_EITHER, TNI_NOTE_YES, TNI_NOTE_NO };

/* Ends with an empty word. */
typedef struct tni_note_words {
    char word[TNI_NOTE_WORDS + 1][32];
} tni_note_words;

/* One section. Fields that it does not set are NULL, 0 or empty. Texts point into the form. */
typedef struct tni_note {
    const char *name;
    const char *library; /* "none": kernels that use no library */
    const char *kernel;
    const char *platform;
    const char *reason;
    const char *source;
    int64_t version_low, version_high; /* -1: any */
    int32_t op;
    uint64_t uses;
    int64_t keys;   /* minimum number of keys of attention */
    int32_t causal; /* TNI_NOTE_..., for attention */
    tn_dtype dtypes[TN_DEVICE_DTYPES_MAX];
    tni_note_words architectures;
    tni_note_words without; /* last parts of names of kernels that it does not cover */
} tni_note;

/* A parsed list; immutable. A zeroed struct is an empty list. */
typedef struct tni_notes {
    tni_form *form;
    tni_note *notes;
    size_t count;
} tni_notes;

/* Parses a list. Fails with TN_CORRUPT and a message with "origin:line", the found and the expected
 * value. On failure *out is unchanged. */
tn_status tni_notes_parse(const char *text, size_t length, const char *origin, tni_notes *out,
                          tn_error *err);
void tni_notes_release(tni_notes *notes);

/* Returns the first note that applies to a kernel with that library version (-1: unknown), to an op
 * (NULL: any) and to such a device; or NULL. A note on specific versions does not apply to an
 * unknown one. */
const tni_note *tni_notes_find(const tni_notes *notes, const tni_kernel *kernel, const tn_op *op,
                               const char *platform, const char *architecture,
                               int64_t library_version);

/* Whether the lists that ship with Tenon vouch for the kernel on such a device. */
bool tni_tested(const tni_kernel *kernel, const tn_device *device, int64_t library_version);

/* The lists that ship with Tenon; the build generates these from the files. */
extern const unsigned char tni_embedded_known_bad[], tni_embedded_tested[];
extern const size_t tni_embedded_known_bad_size, tni_embedded_tested_size;

#endif
