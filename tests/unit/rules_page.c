/* The tables of docs/rules.md: each row is set level by level, and judged. */
#include "test.h"

#include "settings/context.h"

enum { CELLS = 6, CELL = 160, CANDIDATES = 3 };

static const struct {
    const char *name;
    tni_candidate candidate;
} candidates[CANDIDATES] = {
    {"mkl", {"matmul", "cpu.matmul.mkl", "mkl", "", "cpu", "", "", NULL, NULL}},
    {"openblas", {"matmul", "cpu.matmul.openblas", "openblas", "", "cpu", "", "", NULL, NULL}},
    {"plain", {"matmul", "cpu.matmul.plain", "", "", "cpu", "", "", NULL, NULL}},
};

/* Columns of the first table, and the level of the first four. */
enum { MAY_RUN = 4, REFUSED_BY };
static const int32_t levels[] = {TN_LEVEL_FILE, TN_LEVEL_PROCESS, TN_LEVEL_SCOPE, TN_LEVEL_CALL};

static char *read_page(void)
{
    FILE *file = fopen(PAGE, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    char *text = calloc(1, (size_t)size + 1);
    assert_non_null(text);
    rewind(file);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    fclose(file);
    return text;
}

/* Splits "| `a` | b |" into its cells, without blanks and backquotes; returns their number. */
static size_t split_row(const char *line, char out[CELLS][CELL])
{
    size_t count = 0, used = 0;
    memset(out, 0, CELLS * sizeof out[0]);
    for (line++; *line && *line != '\n'; line++) {
        if (*line == '|') {
            while (used > 0 && out[count][used - 1] == ' ')
                out[count][--used] = '\0';
            used = 0;
            count++;
        } else if (*line != '`' && (used > 0 || *line != ' ')) {
            assert_true(count < CELLS && used + 1 < CELL);
            out[count][used++] = *line;
        }
    }
    return count;
}

/* Calls `check` for each row of the table whose header begins as told; returns their number. */
static size_t for_rows(const char *header, size_t columns, void (*check)(char cells[CELLS][CELL]))
{
    char *page = read_page(), cells[CELLS][CELL];
    const char *line = strstr(page, header);
    size_t count = 0;
    assert_non_null(line);
    for (int i = 0; i < 2; i++)
        line = strchr(line, '\n') + 1;
    for (; *line == '|'; line = strchr(line, '\n') + 1, count++) {
        assert_int_equal(split_row(line, cells), columns);
        check(cells);
    }
    free(page);
    return count;
}

/* Adds the settings of a cell, separated by ';', to the context, all at once; one without a '=' is
 * of the row `rules`. */
static tn_status set_cell(tn_context **context, const char *cell, int32_t level, tn_error *err)
{
    char texts[2][CELL + 8], copy[CELL];
    tn_change changes[2];
    tn_context *made = NULL;
    size_t count = 0;
    tn_status status = TN_OK;
    snprintf(copy, sizeof copy, "%s", cell);
    for (char *part = strtok(copy, ";"); part && !status; part = strtok(NULL, ";"), count++) {
        part += strspn(part, " ");
        assert_true(count < 2);
        snprintf(texts[count], sizeof texts[count], "%s%s",
                 strchr(part, '=') ? "" : "rules=", part);
        status = tn_setting_parse(texts[count], &changes[count], err);
    }
    if (!status)
        status = tni_context_change(*context, changes, count, level, level, "test", &made, err);
    if (!status) {
        tn_context_release(*context);
        *context = made;
    }
    return status;
}

/* Writes those that may run, best first, and those that may not, each with its rule's level. */
static void write_verdicts(const tn_context *context, char *runs, char *refused)
{
    const tni_candidate *order[CANDIDATES];
    const char *names[CANDIDATES];
    size_t count = 0;
    runs[0] = refused[0] = '\0';
    for (size_t i = 0; i < CANDIDATES; i++) {
        const tni_candidate *it = &candidates[i].candidate;
        tni_judgement judged;
        tni_rules_judge(context->rules, it, &judged);
        if (!tni_judged_may_run(&judged)) {
            snprintf(refused + strlen(refused), CELL - strlen(refused), "%s%s (%s)",
                     refused[0] ? ", " : "", candidates[i].name, tn_level_name(judged.rule->level));
            continue;
        }
        size_t at = count++;
        for (; at > 0 && tni_rules_compare(context->rules, it, order[at - 1], -1) < 0; at--) {
            order[at] = order[at - 1];
            names[at] = names[at - 1];
        }
        order[at] = it;
        names[at] = candidates[i].name;
    }
    for (size_t i = 0; i < count; i++)
        snprintf(runs + strlen(runs), CELL - strlen(runs), "%s%s", i ? ", " : "", names[i]);
}

static tn_context *empty_context(void)
{
    tn_context *context = NULL;
    assert_int_equal(tni_context_change(tni_context_defaults(), NULL, 0, TN_LEVEL_FILE, 0, "test",
                                        &context, NULL),
                     TN_OK);
    return context;
}

static void check_example(char cells[CELLS][CELL])
{
    tn_context *context = empty_context();
    char runs[CELL], refused[CELL];
    tn_error err = {0};
    for (size_t i = 0; i < MAY_RUN; i++) {
        if (cells[i][0] && set_cell(&context, cells[i], levels[i], &err))
            fail_msg("%s: %s", cells[i], err.message);
    }
    write_verdicts(context, runs, refused);
    if (strcmp(runs, cells[MAY_RUN]) != 0 || strcmp(refused, cells[REFUSED_BY]) != 0)
        fail_msg("%s | %s | %s | %s: expected %s | %s, got %s | %s", cells[0], cells[1], cells[2],
                 cells[3], cells[MAY_RUN], cells[REFUSED_BY], runs, refused);
    tn_context_release(context);
}

static void every_example_holds(void **state)
{
    (void)state;
    assert_true(for_rows("| file | process | scope | call |", CELLS, check_example) >= 30);
}

static void check_refused(char cells[CELLS][CELL])
{
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        tn_context *context = empty_context();
        tn_error err = {0};
        tn_status status = set_cell(&context, cells[0], levels[i], &err);
        if (status != (cells[1][0] ? TN_REFUSED : TN_OK))
            fail_msg("%s: status %d: %s", cells[0], (int)status, err.message);
        if (status) {
            assert_contains(err.message, "expected rules that agree within ");
            assert_contains(err.message, cells[1]);
            assert_contains(err.message, "; remove one of them");
        }
        tn_context_release(context);
    }
}

static void every_contradiction_is_refused(void **state)
{
    (void)state;
    assert_true(for_rows("| rules of one level | why |", 2, check_refused) >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example_holds),
        cmocka_unit_test(every_contradiction_is_refused),
    };
    return run_suite("unit.rules_page", tests);
}
