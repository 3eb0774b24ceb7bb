/* Candidates of a decision in words: what text, JSON and page say of a kernel. */
#ifndef TENON_CLI_CANDIDATES_H
#define TENON_CLI_CANDIDATES_H

#include "text.h"

#include <stdbool.h>

int paint_of_candidate(const tn_candidate *candidate);

/* Chosen, admitted or untested: it could be taken. */
bool candidate_may_run(const tn_candidate *candidate);

/* The time it is ordered by, and how that is known: "measured", else "modelled" by the row's cost, else
 * "predicted" by its figures. */
double candidate_us(const tn_candidate *candidate);
const char *candidate_us_source(const tn_candidate *candidate);

/* "812 ns", "12.3 us", "4.56 ms", "1.20 s". Returns `room`. */
enum { TEXT_TIME = 24 };
const char *text_time(double us, char room[TEXT_TIME]);

/* "1.25 TFLOP/s", "850 GB/s": of 10^9 a second; "-" for none. Returns `room`. */
enum { TEXT_RATE = 32 };
const char *text_rate(double giga, const char *unit, char room[TEXT_RATE]);

/* How far samples spread, as a part of their median; NaN of a single one. */
double spread_of(const tn_bench_result *result);

/* Whether a time means anything when its samples spread so far: up to a half of it. */
bool is_measurable(double spread);

/* The version of a library, as its vendor writes it; "" when it is unknown or there is none. Asked once for each library,
 * as that may seek its files: what was found holds for the rest of the run. */
const char *library_version_of(const char *library);

/* What a kernel declares of its numbers, one by one: NULL past the end. */
const char *numerics_word(uint64_t numerics, size_t index);

/* Each adds to a line. Of a version the first word: "openblas 0.3.21, run-to-run, workspace 64 KiB" */
void phrase_candidate(const tn_candidate *candidate, text_line *out);
/* "shape: k needs 32, found 30; pad it"; what is there or not is told without its numbers. */
void phrase_refusal(const tn_refusal *why, text_line *out);
/* "by the rule avoid:library:openblas"; or nothing. */
void phrase_rule(const tn_candidate *candidate, text_line *out);

#endif
