/* Rules of the settings that name unknown things. */
#ifndef TENON_CLI_RULES_H
#define TENON_CLI_RULES_H

/* Reports every library and kernel that a rule names but that neither a module nor Tenon knows,
 * with the nearest known name: a misspelled name requests something that can never be chosen, or
 * forbids nothing. `text` is valid only during the call. Loads modules if there are rules. */
typedef void rules_tell(void *to, const char *text);
void rules_find_unknown(rules_tell *tell, void *to);

/* Prints the same to stderr. */
void rules_say_unknown(void);

#endif
