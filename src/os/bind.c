#include "bind.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "dl.h"

enum { LONGEST_NAME = 255 };

/* Splits "?name@VERSION" into its parts. False when a part is too long or the name is empty. */
static bool split_symbol(const char *text, char name[LONGEST_NAME + 1], const char **out_version,
                         bool *out_optional)
{
    *out_optional = text[0] == '?';
    text += *out_optional;
    const char *at = strchr(text, '@');
    size_t length = at ? (size_t)(at - text) : strlen(text);
    if (length == 0 || length > LONGEST_NAME)
        return false;
    memcpy(name, text, length);
    name[length] = '\0';
    *out_version = at ? at + 1 : NULL;
    return true;
}

/* Resolves every symbol into `found` before anything is written to the caller's table. */
static tn_status resolve(void *handle, const char *file, const tn_symbol *symbols, size_t count,
                         void **found, tn_error *err)
{
    for (size_t i = 0; i < count; i++) {
        char name[LONGEST_NAME + 1];
        const char *version;
        bool optional;
        if (!symbols[i].name || !split_symbol(symbols[i].name, name, &version, &optional))
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, "library_bind",
                           "symbol %zu of %zu for %s: the name is missing or too long", i + 1,
                           count, file);
        found[i] = tni_dl_symbol(handle, name, version);
        if (!found[i] && !optional)
            return tn_fail(err, TN_INCOMPATIBLE, 0, "library_bind",
                           "%s lacks %s (symbol %zu of %zu); install a version that has it", file,
                           symbols[i].name, i + 1, count);
    }
    return TN_OK;
}

static tn_status fill(void *handle, const char *file, const tn_symbol *symbols, size_t count,
                      void *table, tn_error *err)
{
    void **found = tni_alloc_zeroed(count, sizeof *found);
    if (!found)
        return tni_no_memory(err, "library_bind", file);
    tn_status status = resolve(handle, file, symbols, count, found, err);
    for (size_t i = 0; !status && i < count; i++)
        memcpy((char *)table + symbols[i].offset, &found[i], sizeof found[i]);
    tni_release(found);
    return status;
}

/* Error messages of the loader: "a: no such file", or "a, b: no such file" if both files had the
 * same error. */
typedef struct answers {
    tni_buffer text;
    char last[sizeof((tn_error *)0)->message]; /* without the file's name */
    char lame[LONGEST_NAME + 1];               /* first file with a missing dependency */
    char lacking[LONGEST_NAME + 1];            /* that dependency */
} answers;

/* If the loader's message (in glibc's wording) is about a dependency of `name`, writes its name to
 * `out` and returns true. */
static bool find_missing_dependency(const char *name, const char *words, char out[LONGEST_NAME + 1])
{
    const char *end = strstr(words, ": cannot open shared object file");
    const char *file = strrchr(name, '/');
    size_t length = end ? (size_t)(end - words) : 0;
    if (length == 0 || length > LONGEST_NAME)
        return false;
    memcpy(out, words, length);
    out[length] = '\0';
    return strcmp(out, name) != 0 && strcmp(out, file ? file + 1 : name) != 0;
}

static void note_answer(answers *to, const char *name, const char *words)
{
    size_t length = strlen(name);
    if (strncmp(words, name, length) == 0 && strncmp(words + length, ": ", 2) == 0)
        words += length + 2;
    bool same = to->text.length > 0 && strcmp(to->last, words) == 0;
    if (to->text.length > 0 && !same)
        tni_buffer_format(&to->text, ": %s; ", to->last);
    tni_buffer_format(&to->text, "%s%s", same ? ", " : "", name);
    tn_text_fit(to->last, sizeof to->last, words);
}

/* Opens the first of "a|b|c" that can be opened; `said` collects the loader's message for each
 * failure. */
static tn_status open_first(const char *files, answers *said, char name[LONGEST_NAME + 1],
                            void **out_handle, tn_error *err)
{
    tn_error why;
    for (const char *at = files; *at;) {
        size_t length = strcspn(at, "|");
        if (length == 0 || length > LONGEST_NAME)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, "library_bind",
                           "\"%.80s\" has an empty name, or one longer than %d bytes", files,
                           LONGEST_NAME);
        memcpy(name, at, length);
        name[length] = '\0';
        tn_status status = tni_dl_open(name, out_handle, &why);
        if (!status)
            return TN_OK;
        if (status == TN_OUT_OF_MEMORY || status == TN_BUSY)
            return tn_fail(err, status, why.native_code, "library_bind", "%s", why.message);
        char lacking[LONGEST_NAME + 1];
        if (!said->lame[0] && find_missing_dependency(name, why.message, lacking)) {
            tn_text_fit(said->lame, sizeof said->lame, name);
            tn_text_fit(said->lacking, sizeof said->lacking, lacking);
        }
        note_answer(said, name, why.message);
        at += length + (at[length] == '|');
    }
    return TN_UNAVAILABLE;
}

static tn_status nowhere(const char *files, const answers *said, const char *remedy, tn_error *err)
{
    char places[200];
    tni_dl_places(places, sizeof places);
    if (said->text.failed)
        return tni_no_memory(err, "library_bind", files);
    if (said->lame[0])
        return tn_fail(
            err, TN_UNAVAILABLE, 0, "library_bind",
            "%s exists, but needs %.80s, which was not found: install the package that provides "
            "it, or add its folder to LD_LIBRARY_PATH; searched in %s",
            said->lame, said->lacking, places);
    return tn_fail(err, TN_UNAVAILABLE, 0, "library_bind", "%.100s: %.100s; searched in %s%s%s",
                   tni_buffer_text(&said->text), said->last, places, remedy ? "; " : "",
                   remedy ? remedy : "");
}

void tni_bind_remedy(const char *files, char *out, size_t size)
{
    snprintf(out, size,
             "install the package that provides %.80s, or add its folder to LD_LIBRARY_PATH",
             files);
}

tn_status tni_bind(const char *files, const tn_symbol *symbols, size_t count, const char *remedy,
                   void *table, char **out_file, tn_error *err)
{
    char name[LONGEST_NAME + 1];
    answers said = {.last = ""};
    void *handle = NULL;
    if (!files || !files[0] || (count && (!symbols || !table)))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "library_bind", "%s is missing",
                       !files || !files[0] ? "the file's name"
                       : !symbols          ? "the list of symbols"
                                           : "the table");
    tn_status status = open_first(files, &said, name, &handle, err);
    if (status == TN_UNAVAILABLE)
        status = nowhere(files, &said, remedy, err);
    tni_buffer_release(&said.text);
    if (status)
        return status;

    char *file = tni_dl_file(handle);
    status = fill(handle, file ? file : name, symbols, count, table, err);
    if (!status && out_file)
        *out_file = file;
    else
        tni_release(file);
    return status;
}
