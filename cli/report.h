/* Findings as text for a terminal: the parts that commands put together. */
#ifndef TENON_CLI_REPORT_H
#define TENON_CLI_REPORT_H

#include "findings.h"

void print_machine(const findings *found);
void print_devices(const findings *found);
void print_choice(const findings *found); /* which platform is current, and why */
void print_platforms(const findings *found, bool with_evidence);
void print_modules(const findings *found);
void print_libraries(const findings *found);      /* every one */
void print_libraries_here(const findings *found); /* and the names of the others */
void print_kernels(const findings *found);        /* nothing where none was looked at */
void print_problems(const findings *found);       /* of settings; nothing where there is none */

#endif
