/* The current settings, and functions that print them. */
#ifndef TENON_CLI_SETTINGS_H
#define TENON_CLI_SETTINGS_H

#include "json.h"

#include <tenon/tenon.h>

typedef struct found_setting {
    const tn_setting_facts *facts;
    tn_setting number;
    char *value;     /* as it would be set */
    char *effective; /* the value in effect; if the row inherits, the inherited value */
    tn_origin origin;
    tn_setting_use use; /* of settings_gather_uses only */
} found_setting;

typedef struct found_settings {
    found_setting rows[TN_SETTING_COUNT];
} found_settings;

/* Takes one consistent snapshot. On failure `out` is empty. Release it in either case. */
tn_status settings_gather(found_settings *out, tn_error *err);

/* Like settings_gather, with the use of setting `one`, or of all if it is TN_SETTING_COUNT. The values of
 * a setting are tried on every kernel; for all settings that takes several times as long as starting the
 * command. */
tn_status settings_gather_uses(found_settings *out, tn_setting one, tn_error *err);
void settings_release(found_settings *found);

/* "(empty)" for an empty value. */
const char *settings_shown(const char *value);

/* Prints a manual: grouped by the first word of the keys, each with value, effect and allowed
 * values. */
void settings_print(const found_settings *found);

/* Prints the tables of docs/settings.md. Only the readers depend on the machine: they are those of
 * the loaded modules. */
void settings_print_markdown(const found_settings *found);

void settings_write_row(json *to, const found_setting *row);

#endif
