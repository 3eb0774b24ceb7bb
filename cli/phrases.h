/* Phrases shared by text and page. Each function fills a zeroed line. */
#ifndef TENON_CLI_PHRASES_H
#define TENON_CLI_PHRASES_H

#include "findings.h"
#include "text.h"

void phrase_processor(const findings *found, text_line *out); /* model, architecture, hypervisor */
void phrase_level(const findings *found, text_line *out);     /* of vector instructions         */
void phrase_structure(const findings *found, text_line *out); /* packages, cores, threads, nodes */
void phrase_caches(const findings *found, text_line *out);    /* "L1 2 x 32 KiB, ..."; or empty  */
void phrase_clock(const findings *found, text_line *out);     /* "up to 3.70 GHz"; or empty      */
void phrase_class(const tn_machine_class *class, text_line *out);
/* What sets a limit on the number of threads: "affinity", "the setting cpu.threads". */
const char *limit_source(const tn_machine_limit *limit);
void phrase_budget(const findings *found, text_line *out); /* number of threads, and its source */

/* Additional facts about a device: "x86_64, level avx2, 2 cores, ..."; or empty. */
void phrase_device(const findings *found, const found_device *device, text_line *out);

/* "cuda (absent), rocm (absent)": empty when every platform is ready. */
void phrase_not_ready(const findings *found, text_line *out);

/* "nothing is broken", "1 thing is broken", ... */
void phrase_verdict(const findings *found, text_line *out);

/* "1 of 9 platforms ready, 1 device, 2 of 3 modules ready" */
void phrase_counts(const findings *found, text_line *out);

/* The value of a limit: "2 threads", "unlimited", "unknown". */
void phrase_limit(const tn_machine_limit *limit, text_line *out);

#endif
