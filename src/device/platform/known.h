/* What Tenon knows of a kind of platform without any module: its words, the variable that hides its
 * devices, the traces it leaves. A module's row goes before.
 * Thread-safety: constants. */
#ifndef TNI_DEVICE_PLATFORM_KNOWN_H
#define TNI_DEVICE_PLATFORM_KNOWN_H

#include "tenon/platform.h"

typedef struct tni_known {
    int32_t kind;
    const char *word;        /* of the kind; for all but OOT and UNSPECIFIED the platform's name */
    const char *device_name; /* NULL: the platform's name */
    const char *device_type; /* NULL: the platform's name */
    const char *dispatch_key;
    const char *visible_variable;           /* "" for none */
    const char *also_visible[2];            /* further ones that its run-time reads; NULL */
    const char *thing;                      /* "NVIDIA GPU": what a device of it is        */
    const char *driver_remedy;              /* what helps when hardware is there without a driver */
    const tn_evidence_row *const *evidence; /* NULL-ended */
} tni_known;

/* Of the platform that stands for none: its words are "". */
extern const tni_known tni_known_unspecified;

/* By TN_PLATFORM_...; the unspecified one for what is no kind. */
const tni_known *tni_known_get(int32_t kind);

/* Where a kind stands in the order that the current platform is chosen by, from 0: out of tree
 * behind all other kinds but the CPU, which is last. */
int32_t tni_known_rank(int32_t kind);

#endif
