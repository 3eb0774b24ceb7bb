/* Findings as text for a terminal: the parts that commands put together. */
#ifndef TENON_CLI_REPORT_H
#define TENON_CLI_REPORT_H

#include "findings.h"

void print_machine(const findings *found);
void print_devices(const findings *found);
void print_choice(const findings *found); /* which platform is current, and why */
void print_platforms(const findings *found, bool with_evidence);
void print_modules(const findings *found);

#endif
