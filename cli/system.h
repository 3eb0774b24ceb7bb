/* What the command asks of the system and the C library does not tell. */
#ifndef TENON_CLI_SYSTEM_H
#define TENON_CLI_SYSTEM_H

#include <stdbool.h>
#include <stdio.h>

bool system_is_terminal(FILE *file);

/* Columns of the terminal that `file` is; 0 when it is none, or nobody knows. */
int system_columns(FILE *file);

/* True when something is at `path` that a file must not be put in the place of: a device, a pipe,
 * a folder. */
bool system_is_special(const char *path);

/* 0 when a file could be put at `path`, or what is there be written into; else errno. Writes nothing. */
int system_can_write(const char *path);

/* rename(), also over a file that is there. 0, or -1 and errno. */
int system_replace(const char *from, const char *to);

/* The file that `path` leads to, links followed: to be freed; NULL when there is none. */
char *system_real_path(const char *path);

/* Gives an open file the permissions of another one, where that exists. */
void system_copy_mode(FILE *file, const char *like);

/* Seconds since some moment that stays the same. */
double system_seconds(void);

/* A folder of one's own. 0, or -1 and errno: EEXIST when something is there. */
int system_make_folder(const char *path);

#endif
