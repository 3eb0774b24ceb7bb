/* Candidates of a decision in words, for every form in which they are printed. */
#ifndef TNI_PRINT_CANDIDATE_WORDS_H
#define TNI_PRINT_CANDIDATE_WORDS_H

#include "line.h"

int tni_candidate_color(const tn_candidate *candidate); /* TNI_COLOR_... */

/* The time used for ordering, and its source: "measured", else "modelled" by the row's cost
 * function, else "predicted" from its rates. */
double tni_candidate_us(const tn_candidate *candidate);
const char *tni_candidate_us_source(const tn_candidate *candidate);

/* The names of the numeric properties that a kernel declares, by index; NULL past the end. */
const char *tni_numerics_word(uint64_t numerics, size_t index);

/* Writes the version of a library, as its vendor writes it, to `room`; "" if it is unknown or there
 * is none. That may search for the library's files. */
enum { TNI_VERSION_ROOM = 96 };
void tni_library_version(const char *library, char room[TNI_VERSION_ROOM]);

/* Each function adds to a line. Only the first word of `version` is shown: "openblas 0.3.21,
 * run-to-run, workspace 64 KiB" */
void tni_phrase_candidate(const tn_candidate *candidate, const char *version, tni_line *out);
/* "shape: k: expected 32, got 30; pad it"; if something is just present or absent, the text has no
 * numbers. */
void tni_phrase_refusal(const tn_refusal *why, tni_line *out);
/* "avoided by the rule avoid:library:openblas"; or nothing. */
void tni_phrase_rule(const tn_candidate *candidate, tni_line *out);

#endif
