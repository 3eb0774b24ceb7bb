/* JSON output to stdout, one value per line, indented by depth. */
#ifndef TENON_CLI_JSON_H
#define TENON_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>

/* A zeroed struct is ready to use. `key` is NULL inside a list and for the document itself. */
typedef struct json {
    int depth;
    bool filled; /* the innermost object or list already has a value */
} json;

/* The document that every command writes: schema and command are the first keys. */
void json_begin_document(json *to, const char *command_name);
void json_end_document(json *to);

void json_begin_object(json *to, const char *key);
void json_end_object(json *to);
void json_begin_list(json *to, const char *key);
void json_end_list(json *to);

/* NULL text is null. Bytes that are not UTF-8 become U+FFFD. */
void json_text(json *to, const char *key, const char *text);
void json_integer(json *to, const char *key, int64_t value);
void json_number(json *to, const char *key, double value);       /* 6 digits; null unless finite */
void json_exact_number(json *to, const char *key, double value); /* the same with all digits */
void json_bool(json *to, const char *key, bool value);
void json_null(json *to, const char *key);

/* Writes null for an unknown value: "" or NULL, or if `known` is false. */
void json_known_text(json *to, const char *key, const char *text);
void json_known_integer(json *to, const char *key, bool known, int64_t value);

#endif
