/* What `tenon devices` and `tenon doctor` share. */
#ifndef TENON_CLI_DEVICES_H
#define TENON_CLI_DEVICES_H

#include "findings.h"
#include "options.h"

/* Adds the devices of each description file. The exit code of the first that is bad, which is said;
 * else EXIT_DONE. */
int add_device_files(const option_values *files);

/* The exit code for how the current platform was chosen: a wish that cannot be met is
 * EXIT_UNAVAILABLE. */
int code_of_choice(const findings *found);

#endif
