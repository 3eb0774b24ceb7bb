/* The evidence for and against one platform, merged into a verdict.
 * Thread-safety: Safe. */
#ifndef TNI_DEVICE_PLATFORM_REPORT_H
#define TNI_DEVICE_PLATFORM_REPORT_H

#include "platforms.h"

enum { TNI_EVIDENCE_MAX = 40 };

/* The texts are stored in the struct. */
typedef struct tni_evidence {
    char what[192];
    char found[256];
    const char *shows;
    int32_t holds;
    bool is_trace; /* of hardware, driver or library; not of a setting or the module */
    bool is_path;  /* `found` is its path */
} tni_evidence;

/* Result of the checks for one thing: none was made, all found nothing, one could not be made, one
 * found it. */
typedef enum tni_seen {
    TNI_SEEN_NOTHING_ASKED,
    TNI_SEEN_ABSENT,
    TNI_SEEN_UNKNOWN,
    TNI_SEEN
} tni_seen;

/* The findings that the verdict depends on. */
typedef struct tni_traces {
    tni_seen hardware;
    tni_seen driver;
    tni_seen library;
    bool denied;     /* present, but this process cannot open it */
    bool hides_all;  /* the variable hides all devices */
    bool offered;    /* a module's rows are valid */
    bool ready;      /* its probe found a device, or it can be given some */
    tn_status probe; /* result of the module's probe; TN_NOT_READY if not run */
} tni_traces;

typedef struct tni_platform_report {
    tni_traces traces;
    tn_platform_verdict verdict;
    char reason[416];
    char remedy[416];
    const char *module;
    char of_module[256]; /* what the module found, or why it found nothing */
    char denied[192];    /* what this process may not open */
    tni_evidence evidence[TNI_EVIDENCE_MAX];
    size_t evidence_count;
} tni_platform_report;

/* tni_platform_gather collects the evidence anew; tni_platform_examine also determines the
 * verdict. */
void tni_platform_gather(const tn_platform *platform, tni_platform_report *out);
void tni_platform_examine(const tn_platform *platform, tni_platform_report *out);

/* The rule for the verdict. */
tn_platform_verdict tni_platform_judge(const tni_traces *traces);

#endif
