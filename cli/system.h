/* System services that the C library does not have. */
#ifndef TENON_CLI_SYSTEM_H
#define TENON_CLI_SYSTEM_H

#include <stdbool.h>
#include <stdio.h>

bool system_is_terminal(FILE *file);

/* Columns of the terminal that `file` is connected to; 0 if it is not a terminal or the width is
 * unknown. */
int system_columns(FILE *file);

/* Whether `path` is something that must not be replaced by a file: a device, a pipe, a folder. */
bool system_is_special(const char *path);

/* Returns 0 if a file could be created at `path`, or if the existing device or pipe could be
 * written; otherwise errno. Writes nothing. */
int system_can_write(const char *path);

/* rename(), replacing an existing file. Returns 0, or -1 and errno. */
int system_replace(const char *from, const char *to);

/* Resolves `path`, following links. The caller frees the result; NULL if there is no such file. */
char *system_real_path(const char *path);

/* Gives an open file the permissions of the file `like`, if that exists. */
void system_copy_mode(FILE *file, const char *like);

/* Seconds since a fixed but arbitrary moment. */
double system_seconds(void);

/* Creates a new folder. Returns 0, or -1 and errno: EEXIST if the path already exists. */
int system_make_folder(const char *path);

#endif
