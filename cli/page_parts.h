/* The parts of the page, one section each. They write to `to` and only read `found`. */
#ifndef TENON_CLI_PAGE_PARTS_H
#define TENON_CLI_PAGE_PARTS_H

#include "findings.h"

extern const char *const page_style[]; /* the style sheet, line by line; ends with NULL */

void page_machine(FILE *to, const findings *found);
void page_topology(FILE *to, const findings *found); /* a figure inside the machine section */
void page_memory(FILE *to, const findings *found);
void page_threads(FILE *to, const findings *found);
void page_platforms(FILE *to, const findings *found);
void page_devices(FILE *to, const findings *found);
void page_modules(FILE *to, const findings *found);
void page_libraries(FILE *to, const findings *found);
void page_kernels(FILE *to, const findings *found);
void page_attention(FILE *to, const findings *found); /* nothing if no backend was asked for */
void page_notes(FILE *to, const findings *found);

#endif
