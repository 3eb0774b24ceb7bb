/* The settings as they stand, and the ways to tell them. */
#ifndef TENON_CLI_SETTINGS_H
#define TENON_CLI_SETTINGS_H

#include "json.h"

#include <tenon/tenon.h>

typedef struct found_setting {
    const tn_setting_facts *facts;
    tn_setting number;
    char *value;     /* as it would be set                                        */
    char *effective; /* what holds: of a row that inherits, what it inherits      */
    tn_origin origin;
} found_setting;

typedef struct found_settings {
    found_setting rows[TN_SETTING_COUNT];
} found_settings;

/* All of one moment. On failure `out` is empty. Release it either way. */
tn_status settings_gather(found_settings *out, tn_error *err);
void settings_release(found_settings *found);

/* "(empty)" for a value that has no text. */
const char *settings_shown(const char *value);

/* As a manual: by the first word of the keys, each with value, effect and what is allowed. */
void settings_print(const found_settings *found);

/* The tables of docs/settings.md, which are the same on every machine. */
void settings_print_markdown(void);

void settings_write_row(json *to, const found_setting *row);

#endif
