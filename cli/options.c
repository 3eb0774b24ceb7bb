#include "options.h"
#include "text.h"

#include "base/words.h"

#include <stdarg.h>

const char *suggestion(const char *word, const char *const *names, size_t count)
{
    static char text[TNI_HINT];
    return tni_words_hint(tni_words_nearest(word, names, count), text);
}

/* The option of every command. */
static option_values sets;
static const option_row set_row = {
    "--set", "KEY=VALUE", "change a setting for this run; may be repeated",
    NULL,    &sets,       OPTION_VALUES_MAX};

size_t options_sets(void)
{
    return sets.count;
}

/* Prints the invalid settings in environment and file, which are ignored. */
static void print_problems(void)
{
    const char *problem;
    for (size_t i = 0; (problem = tn_settings_problem(i)); i++)
        fprintf(stderr, "tenon: settings: %s\n", problem);
}

int options_apply(void)
{
    tn_error err;
    print_problems();
    for (size_t i = 0; i < sets.count; i++) {
        if (tn_settings_set(sets.texts[i], &err))
            return report_request(": --set", &err);
    }
    return OPTIONS_RUN;
}

/* Returns "--device-file F" in a static buffer. */
static const char *name_with_word(const option_row *row)
{
    static char text[64];
    snprintf(text, sizeof text, "%s%s%s", row->name, row->word ? " " : "",
             row->word ? row->word : "");
    return text;
}

static void print_help(const command *self, const option_row *rows, size_t row_count)
{
    int width = (int)strlen(name_with_word(&set_row));
    for (size_t i = 0; i < row_count; i++) {
        int length = (int)strlen(name_with_word(&rows[i]));
        width = length > width ? length : width;
    }
    printf("usage: tenon %s%s%s\n\n%s\n\n", self->name, self->usage[0] ? " " : "", self->usage,
           self->summary);
    for (size_t i = 0; i < row_count; i++)
        printf("  %-*s %s\n", width, name_with_word(&rows[i]), rows[i].help);
    printf("  %-*s %s\n", width, name_with_word(&set_row), set_row.help);
    printf("  %-*s %s\n", width, "--help", "print this help");
}

/* Returns the row that takes words, or NULL. */
static const option_row *find_word_row(const option_row *rows, size_t row_count)
{
    for (size_t i = 0; i < row_count; i++) {
        if (rows[i].name[0] != '-')
            return &rows[i];
    }
    return NULL;
}

static int refuse_word(const command *self, const option_row *rows, size_t row_count, char *word)
{
    const char *names[16] = {"--help", set_row.name};
    size_t count = 2;
    for (size_t i = 0; i < row_count && count < sizeof names / sizeof names[0]; i++) {
        if (rows[i].name[0] == '-')
            names[count++] = rows[i].name;
    }
    if (word[0] != '-') {
        const option_row *row = find_word_row(rows, row_count);
        if (row)
            fprintf(stderr, "tenon %s: expected at most %zu word%s, got also \"%s\"\n", self->name,
                    row->most, row->most == 1 ? "" : "s", text_clean(word));
        else
            fprintf(stderr, "tenon %s: expected no argument, got \"%s\"\n", self->name,
                    text_clean(word));
        return EXIT_WRONG_USE;
    }
    word[strcspn(word, "=")] = '\0';
    fprintf(stderr, "tenon %s: unknown option \"%s\"; options:", self->name, text_clean(word));
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "%s %s", i ? "," : "", names[i]);
    fprintf(stderr, "%s\n", suggestion(word, names, count));
    return EXIT_WRONG_USE;
}

/* `self` is NULL before a command's name. */
TN_PRINTF(3, 4)
static int refuse_option(const command *self, const option_row *row, const char *format, ...)
{
    va_list rest;
    fprintf(stderr, "tenon%s%s: %s: expected ", self ? " " : "", self ? self->name : "", row->name);
    va_start(rest, format);
    vfprintf(stderr, format, rest);
    va_end(rest);
    fputc('\n', stderr);
    return EXIT_WRONG_USE;
}

static const option_row *find_row(const option_row *rows, size_t row_count, const char *argument)
{
    size_t length = strcspn(argument, "=");
    for (size_t i = 0; i < row_count && argument[0] == '-'; i++) {
        if (strlen(rows[i].name) == length && strncmp(rows[i].name, argument, length) == 0)
            return &rows[i];
    }
    return NULL;
}

/* Parses the option at arguments[*at], and its value; advances *at if the value is the next
 * argument. */
static int parse_option(const command *self, const option_row *row, int count, char **arguments,
                        int *at)
{
    const char *value = strchr(arguments[*at], '=');
    if (row->given) {
        *row->given = true;
        return value ? refuse_option(self, row, "no value, got \"%.80s\"", text_clean(value + 1))
                     : OPTIONS_RUN;
    }
    if (value) {
        value++;
    } else if (*at + 1 < count && strncmp(arguments[*at + 1], "--", 2) != 0) {
        *at += 1;
        value = arguments[*at];
    }
    if (!value || !value[0])
        return refuse_option(self, row, "a value, got nothing: %s", name_with_word(row));
    if (row == &set_row && !strchr(value, '='))
        return refuse_option(self, row, "%s, got \"%.80s\"", row->word, text_clean(value));
    if (row->values->count == row->most)
        return refuse_option(self, row, "at most %zu value%s, got also \"%.80s\"", row->most,
                             row->most == 1 ? "" : "s", text_clean(value));
    row->values->texts[row->values->count++] = value;
    return OPTIONS_RUN;
}

int options_parse(const command *self, const option_row *rows, size_t row_count, int count,
                  char **arguments)
{
    int code = OPTIONS_RUN;
    for (int a = 0; a < count && code == OPTIONS_RUN; a++) {
        if (strcmp(arguments[a], "--help") == 0 || strcmp(arguments[a], "-h") == 0) {
            print_help(self, rows, row_count);
            return EXIT_DONE;
        }
        const option_row *row = find_row(rows, row_count, arguments[a]);
        if (!row)
            row = find_row(&set_row, 1, arguments[a]);
        const option_row *words = find_word_row(rows, row_count);
        if (words && arguments[a][0] != '-' && words->values->count < words->most)
            words->values->texts[words->values->count++] = arguments[a];
        else
            code = row ? parse_option(self, row, count, arguments, &a)
                       : refuse_word(self, rows, row_count, arguments[a]);
    }
    return code;
}

int options_read(const command *self, const option_row *rows, size_t row_count, int count,
                 char **arguments)
{
    int code = options_parse(self, rows, row_count, count, arguments);
    return code == OPTIONS_RUN ? options_apply() : code;
}

/* Prints what was expected of the words, and what they are. `action` may be "". */
static void refuse_words(const command *self, const char *action, const char *expected,
                         const char *const *words, size_t count)
{
    const char *space = action[0] ? " " : "";
    fprintf(stderr, "tenon %s%s%s: expected %s, got ", self->name, space, action,
            expected[0] ? expected : "nothing more");
    if (count > 0)
        fprintf(stderr, "\"%.80s\"", text_clean(words[0]));
    else
        fputs("nothing", stderr);
    if (count > 1)
        fprintf(stderr, " and %zu more", count - 1);
    fprintf(stderr, ": tenon %s%s%s %s\n", self->name, space, action,
            action[0] ? expected : self->usage);
}

int options_need(const command *self, const option_row *row, size_t least)
{
    if (row->values->count >= least)
        return OPTIONS_RUN;
    refuse_words(self, "", row->name, row->values->texts, row->values->count);
    return EXIT_WRONG_USE;
}

static int reject_action(const command *self, const option_action *actions, size_t count,
                         const char *name)
{
    const char *names[OPTION_ACTIONS_MAX];
    fprintf(stderr, "tenon %s: unknown action \"%.80s\": expected", self->name, text_clean(name));
    for (size_t i = 0; i < count; i++) {
        names[i] = actions[i].name;
        fprintf(stderr, "%s %s", i == 0 ? "" : i + 1 < count ? "," : " or", names[i]);
    }
    fprintf(stderr, "%s\n", suggestion(name, names, count));
    return -1;
}

int options_action(const command *self, const option_action *actions, size_t count,
                   const option_values *words)
{
    size_t at = 0;
    while (words->count > 0 && at < count && strcmp(actions[at].name, words->texts[0]) != 0)
        at++;
    if (at == count)
        return reject_action(self, actions, count, words->texts[0]);
    const option_action *action = &actions[at];
    if (words->count == 0 || (words->count >= action->least && words->count <= action->most))
        return (int)at;
    refuse_words(self, action->name, action->takes, words->texts + 1, words->count - 1);
    return -1;
}

int options_begin(int count, char **arguments, int *out_used)
{
    int code = OPTIONS_RUN, at = 0;
    for (; at < count && code == OPTIONS_RUN && find_row(&set_row, 1, arguments[at]); at++)
        code = parse_option(NULL, &set_row, count, arguments, &at);
    *out_used = at;
    return code;
}
