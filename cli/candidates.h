/* Candidates of a decision in words, shared by text, JSON and page. */
#ifndef TENON_CLI_CANDIDATES_H
#define TENON_CLI_CANDIDATES_H

#include "text.h"

#include <stdbool.h>

int paint_of_candidate(const tn_candidate *candidate);

/* Whether it could be chosen: chosen, admitted or untested. */
bool candidate_may_run(const tn_candidate *candidate);

/* The time used for ordering, and its source: "measured", else "modelled" by the row's cost
 * function, else "predicted" from its rates. */
double candidate_us(const tn_candidate *candidate);
const char *candidate_us_source(const tn_candidate *candidate);

/* "812 ns", "12.3 us", "4.56 ms", "1.20 s". Returns `room`. */
enum { TEXT_TIME = 24 };
const char *text_time(double us, char room[TEXT_TIME]);

/* "1.25 TFLOP/s", "850 GB/s"; `giga` is in 10^9 per second; "-" for none. Returns `room`. */
enum { TEXT_RATE = 32 };
const char *text_rate(double giga, const char *unit, char room[TEXT_RATE]);

/* Spread of the samples, relative to their median; NaN for a single sample. */
double spread_of(const tn_bench_result *result);

/* Whether a time is meaningful with this spread: at most half of the median. */
bool is_measurable(double spread);

/* The version of a library, as its vendor writes it; "" if it is unknown or none exists. Queried
 * once for each library, because that may search for its files; the result is kept for the rest of
 * the run. */
const char *library_version_of(const char *library);

/* The names of the numeric properties that a kernel declares, by index; NULL past the end. */
const char *numerics_word(uint64_t numerics, size_t index);

/* Each function adds to a line. Only the first word of a version is shown: "openblas 0.3.21,
 * run-to-run, workspace 64 KiB" */
void phrase_candidate(const tn_candidate *candidate, text_line *out);
/* "shape: k needs 32, found 30; pad it"; if something is just present or absent, the text has no
 * numbers. */
void phrase_refusal(const tn_refusal *why, text_line *out);
/* "by the rule avoid:library:openblas"; or nothing. */
void phrase_rule(const tn_candidate *candidate, text_line *out);

#endif
