/* Configuration files: whatever a file contains, each row has a valid value and an existing source
 * line; each ignored entry is reported in one line with its place. */
#include "settings/process.h"
#include "settings/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT = 1 << 16 };

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* A row's text must parse to its value. */
static void require_same_again(const tn_context *context, tn_setting setting)
{
    static char text[TEXT], again[TEXT];
    tn_change change;
    tn_context *made = NULL;
    size_t length = tn_setting_write(context, setting, text, sizeof text);
    require(length == strlen(text));
    if (length > 4000) /* longer than one text may be */
        return;
    require(tni_value_parse(setting, text, &change, "fuzz", NULL) == TN_OK);
    require(tni_context_change(tni_context_defaults(), &change, 1, TN_LEVEL_PROCESS,
                               TNI_DEPTH_PROCESS, "fuzz", &made, NULL) == TN_OK);
    (void)tn_setting_write(made, setting, again, sizeof again);
    require(strcmp(text, again) == 0);
    require(tn_setting_value(made, setting) == tn_setting_value(context, setting));
    tn_context_release(made);
}

static void require_sound(const tni_sources *sources, size_t lines)
{
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        int32_t level = sources->context->level[i];
        require(level == TN_LEVEL_DEFAULT || level == TN_LEVEL_FILE);
        require((sources->line[i] != 0) == (level == TN_LEVEL_FILE) && sources->line[i] <= lines);
        if (level == TN_LEVEL_FILE)
            require_same_again(sources->context, i);
        require(tn_setting_resolved(sources->context, i) != TN_FP32_NONE ||
                strstr(tn_setting_info(i)->key, "fp32_precision") == NULL);
    }
}

static void require_told(const tni_sources *sources)
{
    require(sources->problem_count <= TNI_PROBLEMS_MOST && !sources->starved);
    for (size_t i = 0; i < sources->problem_count; i++) {
        const char *problem = sources->problems[i];
        require(strncmp(problem, "fuzz:", 5) == 0 || i == TNI_PROBLEMS_MOST - 1);
        require(problem[5] && !strpbrk(problem, "\n\r\t"));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_sources sources;
    size_t lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    tni_sources_of_text("fuzz", (const char *)data, size, &sources);
    require_sound(&sources, lines);
    require_told(&sources);
    tni_sources_release(&sources);
    return 0;
}
