/* What a vendor's library finds in the process when it starts: others who use it, and variables. */
#ifndef TENON_BACKENDS_CPU_PROCESS_H
#define TENON_BACKENDS_CPU_PROCESS_H

#include "tenon/module/module.h"

#include <stdbool.h>

/* Whether one of the files, "a|b" as for tn_host.library_bind, is in the process already, so that someone
 * else may be using it. True where the system does not tell. */
bool tni_cpu_process_has(const char *files);

/* Whether the environment has the variable, be it empty. */
bool tni_cpu_variable_is_set(const char *name);

/* What it says as a level of talk: 0 when it is unset or empty, 1 for what is no number. */
int32_t tni_cpu_variable_level(const char *name);

/* Calls call(user) while the environment also has `entry`, "NAME=value", a text that lives as long as the
 * process. False, and nothing is called, for want of memory and where the environment cannot be changed
 * safely.
 *
 * This is for libraries that take an instruction set from a variable and from nothing else. setenv() may
 * move the list of variables under a thread that reads it. Here readers find the old list or a new one,
 * both whole, and neither is ever freed. A thread that itself changes the environment at the same time is
 * outside of what C libraries promise, with setenv() as with this. */
bool tni_cpu_call_with(const char *entry, void (*call)(void *user), void *user);

/* Whether the processor's usable instruction sets, by the host, have all of "avx2,fma". */
bool tni_cpu_machine_has(const tn_machine_facts *facts, const char *features);

/* The host's facts; false when it has none to tell. */
bool tni_cpu_machine_read(const tn_host *host, tn_machine_facts *out);

#endif
