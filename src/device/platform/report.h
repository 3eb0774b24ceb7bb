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
} tni_evidence;

typedef struct tni_platform_report {
    tn_platform_verdict verdict;
    char reason[416];
    char remedy[416];
    const char *module;
    tni_evidence evidence[TNI_EVIDENCE_MAX];
    size_t evidence_count;
} tni_platform_report;

/* Looks anew. */
void tni_platform_examine(const tn_platform *platform, tni_platform_report *out);

/* What was seen, as far as the verdict needs it. */
typedef struct tni_traces {
    bool hardware_counts; /* its evidence has rows that show hardware */
    bool hardware;
    bool driver;
    bool library;
    bool hides_all;  /* the variable lets no device be seen */
    bool offered;    /* a module's rows are sound                             */
    bool ready;      /* and its probe found a device, or it can be given some */
    tn_status probe; /* of its module; TN_NOT_READY when it was not asked     */
} tni_traces;

/* The one rule. */
tn_platform_verdict tni_platform_judge(const tni_traces *traces);

#endif
