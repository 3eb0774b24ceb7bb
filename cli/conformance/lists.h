/* Lists of case names: one per line, '#' begins a comment. */
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

/* Reads a file. TN_IO has the system's error text; TN_INVALID_ARGUMENT names file and line, and for
 * an unknown case name also suggests the nearest one. */
tn_status name_list_read(const char *path, name_list *out, tn_error *err);

/* Adds a case or, if no case has that name, every case whose name begins with it and a dot. A name
 * of kernel cases is added unchecked, because the kernels are known only later. `where` is used in
 * messages. */
tn_status name_list_add(name_list *list, const char *name, const char *where, tn_error *err);

bool name_list_has(const name_list *list, const char *name);

/* Whether the list has the name, or an entry that the name begins with, followed by a dot. */
bool name_list_covers(const name_list *list, const char *name);

/* Returns the first kernel case name on the list that covers none of `cases`; NULL if every one
 * covers some. */
const char *name_list_stray(const name_list *list, const char *const *cases, size_t count);

#endif
