/* The state of the process that a vendor's library finds when it starts: other users of it, and
 * environment variables. */
#ifndef TENON_BACKENDS_CPU_CPU_PROCESS_H
#define TENON_BACKENDS_CPU_CPU_PROCESS_H

#include "tenon/module/module.h"

#include <stdbool.h>

/* Returns whether one of the files, "a|b" as for tn_host.library_bind, is already loaded in the
 * process, so that someone else may be using it. Returns true if that cannot be determined. */
bool tni_cpu_process_has(const char *files);

/* Returns whether the environment has the variable, even if it is empty. */
bool tni_cpu_variable_is_set(const char *name);

/* The variable's value as a verbosity level: 0 if it is unset or empty, 1 if it is not a number. */
int32_t tni_cpu_variable_level(const char *name);

/* Calls call(user) while the environment also has `entry`, "NAME=value", a text that must live as
 * long as the process. Returns false, without calling, if there is no memory or the environment
 * cannot be changed safely.
 *
 * This is for libraries that take an instruction set only from a variable. setenv() may move the
 * list of variables while a thread reads it. Here readers find the old list or a new one, both
 * complete, and neither is ever freed. If another thread changes the environment at the same time,
 * C libraries give no guarantees, neither for setenv() nor for this. */
bool tni_cpu_call_with(const char *entry, void (*call)(void *user), void *user);

/* Returns whether the usable instruction sets, as reported by the host, include all of `features`
 * ("avx2,fma"). */
bool tni_cpu_machine_has(const tn_machine_facts *facts, const char *features);

/* Reads the host's facts; returns false if it has none. */
bool tni_cpu_machine_read(const tn_host *host, tn_machine_facts *out);

#endif
