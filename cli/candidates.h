/* Candidates of a decision in words, shared by text, JSON and page. */
#ifndef TENON_CLI_CANDIDATES_H
#define TENON_CLI_CANDIDATES_H

#include "print/candidate_words.h"
#include "text.h"

#include <stdbool.h>

/* Whether it could be chosen: chosen, admitted or untested. */
bool candidate_may_run(const tn_candidate *candidate);

/* "812 ns", "12.3 us", "4.56 ms", "1.20 s". Returns `room`. */
enum { TEXT_TIME = TNI_TIME_ROOM };
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

/* tni_phrase_candidate, with the version of the library. */
void phrase_candidate(const tn_candidate *candidate, text_line *out);

#endif
