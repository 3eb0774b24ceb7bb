/* Rules of the settings that speak of what is not here. */
#ifndef TENON_CLI_RULES_H
#define TENON_CLI_RULES_H

/* Tells of every library and kernel that a rule names and that neither a module nor Tenon knows, with the
 * nearest: a misspelt name asks for what can never be taken, and forbids nothing. `text` is valid during
 * the call. Loads modules, where there are rules. */
typedef void rules_tell(void *to, const char *text);
void rules_find_unknown(rules_tell *tell, void *to);

/* The same on stderr. */
void rules_say_unknown(void);

#endif
