/* Names of modules: derived from file paths, checked for legality, made printable, and the nearest
 * of several. The input is lines: a word, then the words to choose from. */
#include "base/alloc.h"
#include "base/utf8.h"
#include "base/words.h"
#include "registry/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_WORDS = 64, COMPARED = 63 };

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void check_record_name(const char *path)
{
    static const size_t sizes[] = {4, 5, 16, 64};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char name[65];
        memset(name, 1, sizeof name);
        tni_record_name_of(path, name, sizes[i]);
        require(strlen(name) < sizes[i] && name[sizes[i]] == 1);
        require(!strchr(name, '/'));
    }
}

/* A legal name must be recovered from the file name made from it. */
static void check_legal(const char *name)
{
    size_t length = strlen(name);
    size_t plain = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");
    bool legal = tni_name_is_legal(name, "", TNI_NAME_MAX);
    require(legal == (length > 0 && length <= TNI_NAME_MAX && plain == length && name[0] != '-' &&
                      name[0] != '_'));
    if (legal) {
        char path[128], back[64];
        snprintf(path, sizeof path, "/folder/tenon-%s" TNI_LIBRARY_SUFFIX, name);
        tni_record_name_of(path, back, sizeof back);
        require(strcmp(back, name) == 0);
    }
}

static void check_clean(const char *word)
{
    char *text = tni_text_copy(word), *again;
    require(text != NULL);
    tni_words_clean(text);
    require(strlen(text) == strlen(word));
    for (size_t at = 0, left = strlen(text), step; left > 0; at += step, left -= step) {
        step = tni_utf8_size(text + at, left);
        require(step > 0 && (unsigned char)text[at] >= ' ' && text[at] != '\177');
    }
    again = tni_text_copy(text);
    require(again != NULL);
    tni_words_clean(again);
    require(strcmp(again, text) == 0);
    tni_release(again);
    tni_release(text);
}

static void check_nearest(const char *word, const char *const *words, size_t count)
{
    const char *found = tni_words_nearest(word, words, count);
    bool is_one_of_them = !found;
    for (size_t i = 0; i < count; i++) {
        is_one_of_them = is_one_of_them || found == words[i];
        if (strcmp(words[i], word) == 0)
            require(found && strncmp(found, word, COMPARED) == 0);
    }
    require(is_one_of_them);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *words[MOST_WORDS];
    size_t count = 0;
    char *text = tni_text_copy_part(size > 0 ? (const char *)data : "", size);
    require(text != NULL);
    for (char *line = text; line && count < MOST_WORDS;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        words[count++] = line;
        line = end ? end + 1 : NULL;
    }
    for (size_t i = 0; i < count; i++) {
        check_record_name(words[i]);
        check_legal(words[i]);
        check_clean(words[i]);
    }
    check_nearest(words[0], words + 1, count - 1);
    tni_release(text);
    return 0;
}
