/* What speaks for and against one platform, merged into a verdict.
 * Thread-safety: Safe. */
#ifndef TNI_DEVICE_PLATFORM_REPORT_H
#define TNI_DEVICE_PLATFORM_REPORT_H

#include "platforms.h"

enum { TNI_EVIDENCE_MAX = 40 };

/* Texts have room of their own. */
typedef struct tni_evidence {
    char what[192];
    char found[256];
    const char *shows;
    int32_t holds;
    bool is_trace; /* of hardware, driver or library: not a choice, and not the module */
    bool is_path;  /* `found` is where it is */
} tni_evidence;

/* What the looks for one thing came to: none was made, all found nothing, one could not be made, one
 * found it. */
typedef enum tni_seen {
    TNI_SEEN_NOTHING_ASKED,
    TNI_SEEN_ABSENT,
    TNI_SEEN_UNKNOWN,
    TNI_SEEN
} tni_seen;

/* What was seen, as far as the verdict needs it. */
typedef struct tni_traces {
    tni_seen hardware;
    tni_seen driver;
    tni_seen library;
    bool denied;     /* it is there, but this process may not open it               */
    bool hides_all;  /* the variable lets no device be seen                         */
    bool offered;    /* a module's rows are sound                                   */
    bool ready;      /* and its probe found a device, or it can be given some       */
    tn_status probe; /* of its module; TN_NOT_READY when it was not asked           */
} tni_traces;

typedef struct tni_platform_report {
    tni_traces traces;
    tn_platform_verdict verdict;
    char reason[416];
    char remedy[416];
    const char *module;
    char of_module[256]; /* what the module found, or why it did not */
    char denied[192];    /* what this process may not open           */
    tni_evidence evidence[TNI_EVIDENCE_MAX];
    size_t evidence_count;
} tni_platform_report;

/* Looks anew: the evidence and what it comes to, without the verdict; and with it. */
void tni_platform_gather(const tn_platform *platform, tni_platform_report *out);
void tni_platform_examine(const tn_platform *platform, tni_platform_report *out);

/* The one rule. */
tn_platform_verdict tni_platform_judge(const tni_traces *traces);

#endif
