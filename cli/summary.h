/* The findings of the doctor on one screen: the verdict, what is broken, and the figures that people
 * look for first. */
#ifndef TENON_CLI_SUMMARY_H
#define TENON_CLI_SUMMARY_H

#include "findings.h"

enum { SUMMARY_LINES = 40, SUMMARY_BROKEN = 12 };

/* Prints the verdict and the broken things, each with its reason and its remedy, in at most `lines`
 * lines: SUMMARY_BROKEN, or INT_MAX for everything. Returns the number of lines. */
int print_verdict(const findings *found, int lines);

/* Prints at most SUMMARY_LINES - 1 lines: the path of a page may follow. */
void print_summary(const findings *found);

/* The part about kernels, in at most `lines` lines. Returns the number of lines: 0 if no kernel was
 * examined. */
int print_summary_kernels(const found_kernels *kernels, int lines);

#endif
