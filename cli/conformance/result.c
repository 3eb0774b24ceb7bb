#include "result.h"

#include "../json.h"
#include "../text.h"

#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>

enum { NAME_WIDTH = 30, NAME_WIDTH_MOST = 56 };

bool run_is_sound(const run *of)
{
    for (size_t i = 0; i < of->platform_count; i++) {
        if (of->platforms[i].counts[OUTCOME_FAIL] > 0)
            return false;
    }
    return true;
}

bool run_is_empty(const run *of)
{
    for (size_t i = 0; i < of->platform_count; i++) {
        if (of->platforms[i].counts[OUTCOME_UNAVAILABLE] < of->platforms[i].count)
            return false;
    }
    return true;
}

static const char *module_version(const run *of)
{
    return of->module ? of->module->version : "";
}

static const char *module_path(const run *of)
{
    return of->module && of->module->path ? of->module->path : NULL;
}

/* Removes the folder, which is of no use to others. */
static const char *file_name(const char *path)
{
    const char *name = strrchr(path, '/');
    return name ? name + 1 : path;
}

void print_begin(const run *of, const tn_platform *platform)
{
    text_line line = {0};
    text_add(&line, "platform %s", tn_platform_name(platform));
    if (of->module)
        text_add(&line, ", module %s %s", of->module->name, module_version(of));
    text_add(&line, ", seed %" PRIu64, of->seed);
    text_heading(line.text);
    for (int32_t i = 0; i < tn_platform_device_count(platform); i++) {
        tn_device *device = NULL;
        text_line words = {0};
        if (tn_platform_device_get(platform, i, &device, NULL))
            continue;
        text_add(&words, "%s %s", tn_device_id(device), tn_device_name(device));
        text_wrapped(2, "", 0, words.text);
    }
    putchar('\n');
}

static int paint_of_outcome(outcome ended)
{
    switch (ended) {
    case OUTCOME_PASS: return PAINT_GOOD;
    case OUTCOME_FAIL: return PAINT_BAD;
    case OUTCOME_UNAVAILABLE: return PAINT_SOFT;
    default: return PAINT_ODD;
    }
}

void print_rule(const suite_case *c)
{
    printf("%-28s %s\n", c->name, c->rule);
}

int name_width(const suite_case *const *cases, size_t count)
{
    int width = NAME_WIDTH;
    for (size_t i = 0; i < count; i++) {
        int own = text_columns(cases[i]->name);
        width = own > width && own <= NAME_WIDTH_MOST ? own : width;
    }
    return width;
}

void print_case(void *user, const suite_result *result)
{
    const int own = text_columns(result->of->name), width = *(const int *)user;
    printf("  ");
    text_cell(result->of->name, own > width ? own : width);
    printf(" %s%s%s", paint(paint_of_outcome(result->ended)), outcome_word(result->ended),
           paint(PAINT_NONE));
    putchar('\n');
    if (result->text[0])
        text_wrapped(6, "", 0, result->text);
    (void)fflush(stdout);
}

/* "112 passed, 0 failed, 1 unsupported, 0 expected failures, 4 unavailable" */
static void phrase_counts_of(const suite_report *report, text_line *out)
{
    const size_t *counts = report->counts;
    text_add_item(out, "%zu passed", counts[OUTCOME_PASS]);
    text_add_item(out, "%zu failed", counts[OUTCOME_FAIL]);
    text_add_item(out, "%zu unsupported", counts[OUTCOME_UNSUPPORTED]);
    text_add_item(out, "%zu expected failure%s", counts[OUTCOME_EXPECTED_FAILURE],
                  plural((int64_t)counts[OUTCOME_EXPECTED_FAILURE]));
    text_add_item(out, "%zu unavailable", counts[OUTCOME_UNAVAILABLE]);
}

void print_end(const run *of, const suite_report *report)
{
    text_line line = {0};
    phrase_counts_of(report, &line);
    printf("\n%s: %s; seed %" PRIu64 "\n", tn_platform_name(report->platform), line.text, of->seed);
}

static void write_devices_of(json *to, const tn_platform *platform)
{
    json_begin_list(to, "devices");
    for (int32_t i = 0; i < tn_platform_device_count(platform); i++) {
        tn_device *device = NULL;
        if (tn_platform_device_get(platform, i, &device, NULL))
            continue;
        json_begin_object(to, NULL);
        json_text(to, "id", tn_device_id(device));
        json_known_text(to, "name", tn_device_name(device));
        json_known_text(to, "architecture", tn_device_properties_get(device)->architecture);
        json_end_object(to);
    }
    json_end_list(to);
}

static void write_report(json *to, const suite_report *report)
{
    json_begin_object(to, NULL);
    json_text(to, "name", tn_platform_name(report->platform));
    json_text(to, "kind", tn_platform_kind_name(tn_platform_kind(report->platform)));
    write_devices_of(to, report->platform);
    json_integer(to, "passed", (int64_t)report->counts[OUTCOME_PASS]);
    json_integer(to, "failed", (int64_t)report->counts[OUTCOME_FAIL]);
    json_integer(to, "unsupported", (int64_t)report->counts[OUTCOME_UNSUPPORTED]);
    json_integer(to, "expected_failures", (int64_t)report->counts[OUTCOME_EXPECTED_FAILURE]);
    json_integer(to, "unavailable", (int64_t)report->counts[OUTCOME_UNAVAILABLE]);
    json_begin_list(to, "results");
    for (size_t i = 0; i < report->count; i++) {
        const suite_result *result = &report->results[i];
        json_begin_object(to, NULL);
        json_text(to, "case", result->of->name);
        json_text(to, "outcome", outcome_word(result->ended));
        json_text(to, "text", result->text);
        json_number(to, "ms", result->ms);
        json_end_object(to);
    }
    json_end_list(to);
    json_end_object(to);
}

static void write_case(json *to, const suite_case *c)
{
    json_begin_object(to, NULL);
    json_text(to, "name", c->name);
    json_text(to, "rule", c->rule);
    json_end_object(to);
}

/* Writes the cases of the device interface and those of the kernels that were found, whether they
 * ran or not. */
static void write_cases(json *to, const run *of)
{
    json_begin_list(to, "cases");
    for (size_t i = 0; i < suite_count(); i++)
        write_case(to, suite_at(i));
    for (size_t i = 0; i < of->kernel_sets; i++) {
        for (const suite_case *const *c = of->kernels[i]; *c; c++)
            write_case(to, *c);
    }
    json_end_list(to);
}

void write_run(const run *of, const char *command_name)
{
    const tn_build *build = tn_build_get();
    char abi[32];
    json to = {0};
    snprintf(abi, sizeof abi, "%u.%u", (unsigned)build->module_abi_major,
             (unsigned)build->module_abi_minor);
    json_begin_document(&to, command_name);
    json_text(&to, "version", tn_version());
    json_text(&to, "module_abi", abi);
    json_text(&to, "date", of->date);
    json_integer(&to, "seed", (int64_t)of->seed);
    json_begin_object(&to, "module");
    json_known_text(&to, "name", of->module ? of->module->name : NULL);
    json_known_text(&to, "version", module_version(of));
    json_known_text(&to, "path", module_path(of));
    json_end_object(&to);
    write_cases(&to, of);
    json_begin_list(&to, "platforms");
    for (size_t i = 0; i < of->platform_count; i++)
        write_report(&to, &of->platforms[i]);
    json_end_list(&to);
    json_end_document(&to);
}

/* Writes a quoted value. Bytes that are not UTF-8 become '?'. */
static void put_value(FILE *to, const char *text)
{
    size_t left = strlen(text);
    fputc('"', to);
    while (left > 0) {
        size_t size = tni_utf8_size(text, left);
        unsigned char c = (unsigned char)*text;
        if (size == 0)
            fputc('?', to);
        else if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20 || c == 0x7F)
            fprintf(to, "\\x%02x", c);
        else
            fwrite(text, 1, size, to);
        text += size ? size : 1;
        left -= size ? size : 1;
    }
    fputc('"', to);
}

static void put_entry(FILE *to, const char *key, const char *value)
{
    fprintf(to, "%s = ", key);
    put_value(to, value);
    fputc('\n', to);
}

static void put_report(FILE *to, const suite_report *report)
{
    text_line counts = {0};
    phrase_counts_of(report, &counts);
    fprintf(to, "\n[platform %s]\n", tn_platform_name(report->platform));
    put_entry(to, "kind", tn_platform_kind_name(tn_platform_kind(report->platform)));
    put_entry(to, "result", counts.text);
    for (int32_t i = 0; i < tn_platform_device_count(report->platform); i++) {
        tn_device *device = NULL;
        char key[32];
        if (tn_platform_device_get(report->platform, i, &device, NULL))
            continue;
        snprintf(key, sizeof key, "device.%d", (int)i);
        put_entry(to, key, tn_device_name(device));
    }
    fprintf(to, "\n[cases %s]\n", tn_platform_name(report->platform));
    for (size_t i = 0; i < report->count; i++) {
        const suite_result *result = &report->results[i];
        char value[TRIAL_TEXT + 32];
        snprintf(value, sizeof value, "%s%s%s", outcome_word(result->ended),
                 result->text[0] ? ": " : "", result->text);
        put_entry(to, result->of->name, value);
    }
}

static void put_run(FILE *to, const run *of)
{
    const tn_build *build = tn_build_get();
    fprintf(to, "# Results of `tenon conformance`. One line per case: pass, fail, unsupported,\n"
                "# expected-failure or unavailable, and the reason.\n");
    put_entry(to, "tenon", tn_version());
    fprintf(to, "module_abi = %u.%u\n", (unsigned)build->module_abi_major,
            (unsigned)build->module_abi_minor);
    put_entry(to, "target", build->target);
    put_entry(to, "date", of->date);
    fprintf(to, "seed = %" PRIu64 "\n", of->seed);
    put_entry(to, "outcome", run_is_sound(of) ? "pass" : "fail");
    if (of->module) {
        fprintf(to, "\n[module]\n");
        put_entry(to, "name", of->module->name);
        put_entry(to, "version", of->module->version);
        put_entry(to, "file", module_path(of) ? file_name(module_path(of)) : "built in");
    }
    for (size_t i = 0; i < of->platform_count; i++)
        put_report(to, &of->platforms[i]);
}

static tn_status refuse_out(const char *path, int code, tn_error *err)
{
    return tn_fail(err, TN_IO, code, "--out", "--out %s: %s", path, strerror(code));
}

tn_status check_out(const char *path, tn_error *err)
{
    errno = 0;
    FILE *file = fopen(path, "ab");
    if (!file)
        return refuse_out(path, errno, err);
    bool is_empty = fseek(file, 0, SEEK_END) == 0 && ftell(file) == 0;
    (void)fclose(file);
    if (is_empty)
        (void)remove(path);
    return TN_OK;
}

tn_status save_run(const run *of, const char *path, tn_error *err)
{
    errno = 0;
    FILE *file = fopen(path, "wb");
    int code = file ? 0 : errno;
    if (file) {
        put_run(file, of);
        code = ferror(file) ? (errno ? errno : EIO) : 0;
        if (fclose(file) != 0 && !code)
            code = errno ? errno : EIO;
    }
    return code ? refuse_out(path, code, err) : TN_OK;
}
