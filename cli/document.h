/* Findings as JSON: the lists that docs/names.md names. */
#ifndef TENON_CLI_DOCUMENT_H
#define TENON_CLI_DOCUMENT_H

#include "findings.h"
#include "json.h"

void write_devices(json *to, const findings *found);
void write_platforms(json *to, const findings *found); /* and the choice */
void write_machine(json *to, const findings *found);
void write_topology(json *to, const findings *found);
void write_modules(json *to, const findings *found); /* and the places */
void write_libraries(json *to, const findings *found);
void write_kernels(json *to, const findings *found);
void write_problems(
    json *to); /* what of environment and file is not followed, and names that are not known */

#endif
