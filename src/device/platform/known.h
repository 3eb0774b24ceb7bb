/* What Tenon knows about a kind of platform without any module: its names, the variable that hides
 * its devices, the traces it leaves. A module's row takes precedence.
 * Thread-safety: constants. */
#ifndef TNI_DEVICE_PLATFORM_KNOWN_H
#define TNI_DEVICE_PLATFORM_KNOWN_H

#include "tenon/platform.h"

typedef struct tni_known {
    int32_t kind;
    const char *word;        /* the kind's name; also the platform's, except OOT and UNSPECIFIED */
    const char *device_name; /* NULL: the platform's name */
    const char *device_type; /* NULL: the platform's name */
    const char *dispatch_key;
    const char *visible_variable;           /* "" for none */
    const char *also_visible[2];            /* other variables that its runtime reads; NULL */
    const char *thing;                      /* "NVIDIA GPU": what one of its devices is called */
    const char *driver_remedy;              /* what to do if hardware is present without a driver */
    const tn_evidence_row *const *evidence; /* NULL-ended */
} tni_known;

/* Of the unspecified platform: its names are "". */
extern const tni_known tni_known_unspecified;

/* By TN_PLATFORM_...; the unspecified one for an unknown kind. */
const tni_known *tni_known_get(int32_t kind);

/* Position of a kind in the order of preference for the current platform, from 0: out-of-tree
 * platforms come after all other kinds but the CPU, which is last. */
int32_t tni_known_rank(int32_t kind);

#endif
