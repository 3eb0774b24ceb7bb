/* Shared by `tenon devices` and `tenon doctor`. */
#ifndef TENON_CLI_DEVICES_H
#define TENON_CLI_DEVICES_H

#include "findings.h"
#include "options.h"

/* Adds the devices of each description file. Reports the first invalid file and returns its exit
 * code; otherwise returns EXIT_DONE. */
int add_device_files(const option_values *files);

/* The exit code for the choice of the current platform: EXIT_UNAVAILABLE if a requested platform
 * cannot be used. */
int code_of_choice(const findings *found);

#endif
