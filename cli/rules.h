/* Rules of the settings that speak of what is not here. */
#ifndef TENON_CLI_RULES_H
#define TENON_CLI_RULES_H

/* Tells of every library that a rule names and that neither a module nor Tenon knows, with the nearest:
 * a misspelt name asks for what can never be taken. `text` is valid during the call. Loads modules. */
typedef void rules_tell(void *to, const char *text);
void rules_find_unknown(rules_tell *tell, void *to);

/* The same on stderr, for commands that decide. */
void rules_say_unknown(void);

#endif
