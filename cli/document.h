/* Findings as JSON: the lists documented in docs/names.md. */
#ifndef TENON_CLI_DOCUMENT_H
#define TENON_CLI_DOCUMENT_H

#include "findings.h"
#include "json.h"

void write_devices(json *to, const findings *found);
void write_platforms(json *to, const findings *found); /* and the choice of platform */
void write_machine(json *to, const findings *found);
void write_topology(json *to, const findings *found);
void write_modules(json *to, const findings *found); /* and the places searched */
void write_libraries(json *to, const findings *found);
void write_kernels(json *to, const findings *found);
void write_attention(json *to, const findings *found);
void write_problems(
    json *to); /* settings in environment and file that are ignored, and unknown names in rules */

#endif
