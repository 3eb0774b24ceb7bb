#include "options.h"

#include "base/words.h"

const char *suggestion(const char *word, const char *const *names, size_t count)
{
    static char text[128];
    const char *near = tni_words_nearest(word, names, count);
    if (!near)
        return "";
    snprintf(text, sizeof text, "; did you mean %s?", near);
    return text;
}

static void print_help(const command *self, const option_row *rows, size_t row_count)
{
    printf("usage: tenon %s%s%s\n\n%s\n\n", self->name, self->usage[0] ? " " : "", self->usage,
           self->summary);
    for (size_t i = 0; i < row_count; i++)
        printf("  %-12s %s\n", rows[i].name, rows[i].help);
    printf("  %-12s %s\n", "--help", "this text");
}

static int refuse(const command *self, const option_row *rows, size_t row_count, char *word)
{
    const char *names[16] = {"--help"};
    size_t count = 1;
    tni_words_clean(word);
    for (; count <= row_count && count < sizeof names / sizeof names[0]; count++)
        names[count] = rows[count - 1].name;
    if (word[0] != '-') {
        fprintf(stderr, "tenon %s: takes no argument, found \"%s\"\n", self->name, word);
        return EXIT_WRONG_USE;
    }
    fprintf(stderr, "tenon %s: no option \"%s\"; there are", self->name, word);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "%s %s", i ? "," : "", names[i]);
    fprintf(stderr, "%s\n", suggestion(word, names, count));
    return EXIT_WRONG_USE;
}

int options_read(const command *self, const option_row *rows, size_t row_count, int count,
                 char **arguments)
{
    for (int a = 0; a < count; a++) {
        bool known = false;
        if (strcmp(arguments[a], "--help") == 0 || strcmp(arguments[a], "-h") == 0) {
            print_help(self, rows, row_count);
            return EXIT_DONE;
        }
        for (size_t i = 0; i < row_count && !known; i++) {
            known = strcmp(arguments[a], rows[i].name) == 0;
            if (known)
                *rows[i].given = true;
        }
        if (!known)
            return refuse(self, rows, row_count, arguments[a]);
    }
    return OPTIONS_RUN;
}
