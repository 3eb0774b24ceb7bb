/* Findings as text for a terminal: the parts from which commands compose their output. */
#ifndef TENON_CLI_REPORT_H
#define TENON_CLI_REPORT_H

#include "findings.h"

void print_machine(const findings *found);
void print_devices(const findings *found);
void print_choice(const findings *found); /* which platform is current, and why */
void print_platforms(const findings *found, bool with_evidence);
void print_modules(const findings *found);
void print_libraries(const findings *found);      /* all of them */
void print_libraries_here(const findings *found); /* present ones, and the names of the others */
void print_kernels(const findings *found);        /* prints nothing if no kernel was examined */
void print_attention(const findings *found);      /* nothing if no backend was asked for */

#endif
