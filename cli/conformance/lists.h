/* Lists of cases: one name a line, '#' begins a comment. */
#ifndef TENON_CLI_CONFORMANCE_LISTS_H
#define TENON_CLI_CONFORMANCE_LISTS_H

#include <tenon/tenon.h>

#include <stdbool.h>

enum { LIST_NAME = 64, LIST_MOST = 256 };

/* Zeroed is empty. */
typedef struct name_list {
    char names[LIST_MOST][LIST_NAME];
    size_t count;
} name_list;

/* Reads a file. TN_IO with the system's words; TN_INVALID_ARGUMENT has file, line, and for a name that
 * no case has, the nearest one. */
tn_status name_list_read(const char *path, name_list *out, tn_error *err);

/* Adds a case or, when none has that name, every one whose name begins with it and a dot. `where` is for
 * messages. */
tn_status name_list_add(name_list *list, const char *name, const char *where, tn_error *err);

bool name_list_has(const name_list *list, const char *name);

#endif
