#include "page.h"

#include "html.h"
#include "page_parts.h"
#include "phrases.h"
#include "system.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static void write_head(FILE *to, const findings *found)
{
    text_line verdict = {0};
    phrase_verdict(found, &verdict);
    html_write(to,
               "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
               "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
               "style-src 'unsafe-inline'\">\n"
               "<meta name=\"color-scheme\" content=\"light dark\">\n"
               "<meta name=\"generator\" content=\"tenon %s\">\n"
               "<title>tenon doctor: %s</title>\n<style>\n",
               found->version, verdict.text);
    for (size_t i = 0; page_style[i]; i++)
        fprintf(to, "%s\n", page_style[i]);
    html_write(to, "</style>\n</head>\n<body>\n");
}

static void write_time(FILE *to)
{
    char machine[32] = "", people[32] = "";
    time_t now = time(NULL);
    const struct tm *parts = now == (time_t)-1 ? NULL : gmtime(&now);
    if (!parts)
        return;
    strftime(machine, sizeof machine, "%Y-%m-%dT%H:%MZ", parts);
    strftime(people, sizeof people, "%Y-%m-%d %H:%M UTC", parts);
    html_write(to, ", <time datetime=\"%s\">%s</time>", machine, people);
}

static void write_tile(FILE *to, const char *label, const char *value, const char *more)
{
    html_write(to, "<div><dt>%s</dt><dd>%s<small>%s</small></dd></div>\n", label, value, more);
}

static void write_tiles(FILE *to, const findings *found)
{
    const found_platform *current = findings_current(found);
    const tn_machine_limit *least = findings_least_limit(found);
    char total[TEXT_BYTES], available[TEXT_BYTES];
    text_line threads = {0}, set_by = {0}, devices = {0}, ready = {0}, memory = {0};
    text_add(&threads, "%d", (int)found->facts->threads);
    if (least)
        text_add(&set_by, "set by %s", limit_source(least));
    if (found->facts->memory_available.known)
        text_add(&memory, "%s available",
                 text_bytes(found->facts->memory_available.value, available));
    text_add(&devices, "%zu", found->device_count);
    text_add(&ready, "%zu of %zu platforms ready", findings_count_ready_platforms(found),
             findings_count_platforms(found));
    html_write(to, "<dl class=\"tiles\">\n");
    write_tile(to, "Current platform", current ? current->report.name : "none",
               current ? current->report.reason : "see the platforms below");
    write_tile(to, "Devices", devices.text, ready.text);
    write_tile(to, "Parallel threads", threads.text, set_by.text);
    write_tile(to, "Memory", text_fact_bytes(&found->facts->memory_total, total), memory.text);
    html_write(to, "</dl>\n");
}

static void write_help_item(void *to, const broken_thing *thing)
{
    html_write(to, "<li><strong>%s %s</strong>: %s", thing->kind, thing->name, thing->why);
    if (thing->remedy[0])
        html_write(to, "<span class=\"remedy\">%s</span>", thing->remedy);
    html_write(to, "</li>\n");
}

/* Lists everything that is broken, with its remedy, before all other sections. */
static void write_help(FILE *to, const findings *found)
{
    if (findings_count_broken(found) == 0 && found->choice_status == TN_OK)
        return;
    const broken_thing no_choice = {"no platform", "is current", found->choice, ""};
    html_write(to, "<ul class=\"help\">\n");
    if (found->choice_status != TN_OK)
        write_help_item(to, &no_choice);
    findings_visit_broken(found, write_help_item, to);
    html_write(to, "</ul>\n");
}

static void write_verdict(FILE *to, bool is_well, const char *text)
{
    html_write(to,
               "<h1 class=\"%s\"><svg viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle "
               "class=\"disc\" cx=\"12\" cy=\"12\" r=\"12\"/><path class=\"mark\" d=\"%s\"/></svg>"
               "%s.</h1>\n",
               is_well ? "well" : "ill", is_well ? "M6.5 12.5l4 4 7-8.5" : "M12 6v7.5M12 17.5v.1",
               text);
}

static void write_top(FILE *to, const findings *found)
{
    bool is_well = findings_count_broken(found) == 0 && found->choice_status == TN_OK;
    text_line verdict = {0}, processor = {0};
    phrase_verdict(found, &verdict);
    phrase_processor(found, &processor);
    if (verdict.text[0] >= 'a' && verdict.text[0] <= 'z')
        verdict.text[0] = (char)(verdict.text[0] - 'a' + 'A');
    html_write(to,
               "<header>\n<p class=\"brand\"><svg viewBox=\"0 0 24 24\" width=\"22\" height=\"22\" "
               "aria-hidden=\"true\"><path class=\"tail\" d=\"M1 4h9v5h6v6h-6v5H1z\"/><path "
               "class=\"socket\" d=\"M12 4h11v16H12v-3h6V7h-6z\"/></svg>tenon doctor "
               "<span>%s</span></p>\n",
               found->version);
    write_verdict(to, is_well, verdict.text);
    html_write(to, "<p class=\"lead\">%s", processor.text);
    write_time(to);
    html_write(to, "</p>\n");
    write_help(to, found);
    write_tiles(to, found);
    html_write(to, "</header>\n");
}

void page_write(const findings *found, FILE *to)
{
    write_head(to, found);
    write_top(to, found);
    html_write(to, "<main>\n");
    page_machine(to, found);
    page_memory(to, found);
    page_threads(to, found);
    page_platforms(to, found);
    page_devices(to, found);
    page_modules(to, found);
    page_libraries(to, found);
    page_kernels(to, found);
    page_attention(to, found);
    page_notes(to, found);
    html_write(to,
               "</main>\n<footer>Written by <code>tenon doctor --html</code>; <code>tenon doctor "
               "--json</code> prints the same data.</footer>\n</body>\n</html>\n");
}

static tn_status fail_to_write(const char *path, int code, tn_error *err)
{
    return tn_fail(err, TN_IO, code, "--html", "%s: %s", path, strerror(code));
}

/* Writes and closes the file; returns the first error as errno, or 0. */
static int write_and_close(const findings *found, FILE *file)
{
    errno = 0;
    page_write(found, file);
    int code = ferror(file) ? (errno ? errno : EIO) : 0;
    if (fclose(file) != 0 && !code)
        code = errno ? errno : EIO;
    return code;
}

static tn_status save_in_place(const findings *found, const char *path, tn_error *err)
{
    FILE *file = fopen(path, "wb");
    int code = file ? write_and_close(found, file) : errno;
    return code ? fail_to_write(path, code, err) : TN_OK;
}

/* Creates a new file in the folder of `path`, with the permissions of the file at `path`, if any.
 * `name` gets its name and has room for `path` and NAME_ROOM bytes. */
enum { NAME_ROOM = 24 };
static FILE *create_beside(const char *path, char *name)
{
    enum { TRIES = 100 };
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    FILE *file = NULL;
    memcpy(name, path, folder);
    for (int i = 0; i < TRIES && !file; i++) {
        snprintf(name + folder, NAME_ROOM, ".tenon-page-%d", i);
        file = fopen(name, "wbx");
        if (!file && errno != EEXIST)
            break;
    }
    if (file)
        system_copy_mode(file, path);
    return file;
}

static tn_status replace(const findings *found, const char *path, tn_error *err)
{
    char *beside = malloc(strlen(path) + NAME_ROOM);
    if (!beside)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "--html", "no memory for a path");
    FILE *file = create_beside(path, beside);
    int code = file ? write_and_close(found, file) : errno;
    if (!code && system_replace(beside, path) != 0)
        code = errno;
    if (code && file)
        (void)remove(beside);
    free(beside);
    return code ? fail_to_write(path, code, err) : TN_OK;
}

tn_status page_save(const findings *found, const char *path, tn_error *err)
{
    if (system_is_special(path))
        return save_in_place(found, path, err);
    char *real = system_real_path(path);
    tn_status status = replace(found, real ? real : path, err);
    free(real);
    return status;
}
