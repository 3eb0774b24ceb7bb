/* What the suites about files and environments of settings share. Both are read once, so that each case
 * is a child with an environment of its own; the suite itself reads none. */
#ifndef TENON_TEST_SETTINGS_CHILD_H
#define TENON_TEST_SETTINGS_CHILD_H

#include "settings_check.h"

#include "scratch.h"
#include "settings/views.h"

static char scratch[SCRATCH_PATH], config_file[SCRATCH_PATH + 16],
    config_variable[SCRATCH_PATH + 32];

/* A child's environment, besides which it has none of Tenon's, and what it is to do. */
typedef struct world {
    const char *variables[8]; /* NULL-ended */
    child_fn *run;
    const void *user;
} world;

/* Every row that has not its default, and every problem. */
static inline void say_all(FILE *say, const void *user)
{
    (void)user;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        tn_origin origin = {.struct_size = sizeof origin};
        if (tn_setting_origin(NULL, i, &origin, NULL) != TN_OK)
            fprintf(say, "no origin\n");
        if (origin.level != TN_LEVEL_DEFAULT && !tn_setting_info(i)->view && origin.from == i)
            fprintf(say, "%s=%s [%s]\n", key_of(i), text_in(NULL, i), origin.text);
    }
    for (size_t i = 0; tn_settings_problem(i); i++)
        fprintf(say, "! %s\n", tn_settings_problem(i));
}

static inline void live(FILE *say, const void *user)
{
    const world *in = user;
    for (size_t i = 0; i < sizeof in->variables / sizeof in->variables[0] && in->variables[i]; i++)
        (void)putenv(strdup(in->variables[i]));
    (in->run ? in->run : say_all)(say, in->user);
}

static inline const char *ask(const world *in)
{
    assert_int_equal(atomic_load(&tni_settings_generation), 0); /* nothing was read here */
    return child_says(live, in);
}

static inline const char *ask_run(const char *one, const char *two, child_fn *run, const void *user)
{
    return ask(&(world){.variables = {one, two}, .run = run, .user = user});
}

static inline const char *ask_with(const char *one, const char *two)
{
    return ask_run(one, two, NULL, NULL);
}

static inline void write_file(const char *path, const char *text)
{
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    assert_int_equal(fwrite(text, 1, strlen(text), to), strlen(text));
    assert_int_equal(fclose(to), 0);
}

/* What a file of this text leads to, each "FILE" in the answer standing for its path. */
static inline const char *ask_file(const char *text)
{
    static char said[CHILD_SAYS];
    size_t used = 0, length = strlen(config_file);
    said[0] = '\0';
    write_file(config_file, text);
    for (const char *at = ask_with(config_variable, NULL); *at;) {
        bool is_path = strncmp(at, config_file, length) == 0;
        used += (size_t)snprintf(said + used, sizeof said - used, is_path ? "FILE" : "%c", *at);
        at += is_path ? length : 1;
    }
    return said;
}

/* What is said when one row, or those behind a view, have a value from `origin`. */
static inline void expect(tn_setting setting, const char *value, const char *origin, char *out)
{
    char text[ROW_TEXT];
    tn_change rows[TNI_VIEW_MOST];
    size_t used = 0;
    snprintf(text, sizeof text, "%s=%s", key_of(setting), value);
    tn_change change = parsed(text);
    size_t count = tni_change_rows(&change, rows);
    for (size_t i = 0; i < count; i++) {
        const tni_setting_row *row = tni_setting_row_of(rows[i].setting);
        used += (size_t)snprintf(out + used, ROW_TEXT - used, "%s=%s [%s]\n", row->facts.key,
                                 row->facts.view || count > 1 || rows[i].setting != setting
                                     ? row->words->words[rows[i].value]
                                     : value,
                                 origin);
    }
}

/* A suite in a folder of its own; `config_variable` makes `config_file` the configuration file. */
#define run_sources(name, tests) (sources_begin(), sources_end(run_suite(name, tests)))

static inline void sources_begin(void)
{
    forget_settings();
    scratch_make(scratch);
    snprintf(config_file, sizeof config_file, "%s/config", scratch);
    snprintf(config_variable, sizeof config_variable, "TENON_CONFIG=%s", config_file);
}

static inline int sources_end(int failed)
{
    scratch_remove(scratch);
    return failed;
}

#endif
