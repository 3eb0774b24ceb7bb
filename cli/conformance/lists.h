/* Lists of cases: one name a line, '#' begins a comment. */
#ifndef TENON_CLI_CONFORMANCE_LISTS_H
#define TENON_CLI_CONFORMANCE_LISTS_H

#include <tenon/tenon.h>

#include <stdbool.h>

enum { LIST_NAME = 192, LIST_MOST = 256 };

/* Zeroed is empty. */
typedef struct name_list {
    char names[LIST_MOST][LIST_NAME];
    size_t count;
} name_list;

/* Reads a file. TN_IO with the system's words; TN_INVALID_ARGUMENT has file, line, and for a name that
 * no case has, the nearest one. */
tn_status name_list_read(const char *path, name_list *out, tn_error *err);

/* Adds a case or, when none has that name, every one whose name begins with it and a dot. A name
 * of kernels' cases is added as it is: which there are is known only later. `where` is for
 * messages. */
tn_status name_list_add(name_list *list, const char *name, const char *where, tn_error *err);

bool name_list_has(const name_list *list, const char *name);

/* Whether the list has the name, or one that it begins with and a dot. */
bool name_list_covers(const name_list *list, const char *name);

/* The first name of kernels' cases on the list that covers none of these; NULL when there is
 * none. */
const char *name_list_stray(const name_list *list, const char *const *cases, size_t count);

#endif
