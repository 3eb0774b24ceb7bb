#include "file.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "file_names.h"

#include <stdlib.h>

static bool is_separator(char c)
{
#if defined(_WIN32)
    return c == '/' || c == '\\';
#else
    return c == '/';
#endif
}

bool tni_path_is_absolute(const char *path)
{
#if defined(_WIN32)
    bool drive = path[0] && path[1] == ':' && is_separator(path[2]);
    return drive || (is_separator(path[0]) && is_separator(path[1]));
#else
    return is_separator(path[0]);
#endif
}

const char *tni_path_name(const char *path)
{
    const char *name = path;
    for (const char *p = path; *p; p++) {
        if (is_separator(*p))
            name = p + 1;
    }
    return name;
}

char *tni_path_join(const char *folder, const char *name)
{
    tni_buffer path = {0};
    size_t length = strlen(folder);
    tni_buffer_add(&path, folder);
    if (length && !is_separator(folder[length - 1]))
        tni_buffer_add_char(&path, '/');
    tni_buffer_add(&path, name);
    return tni_buffer_detach(&path);
}

char *tni_path_folder(const char *path)
{
    size_t length = (size_t)(tni_path_name(path) - path);
    if (length == 0)
        return tni_text_copy(".");
    while (length > 1 && is_separator(path[length - 1]))
        length--;
    return tni_text_copy_part(path, length);
}

bool tni_names_fit(const char *name, const char *prefix, const char *suffix)
{
    size_t length = strlen(name), before = strlen(prefix), after = strlen(suffix);
    return length > before + after && strncmp(name, prefix, before) == 0 &&
           strcmp(name + length - after, suffix) == 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* One allocation: the list, followed by the strings it points to. */
tni_names *tni_names_pack(const tni_buffer *texts, size_t count)
{
    size_t bytes;
    if (!tni_mul_size(count, sizeof(char *), &bytes) ||
        !tni_add_size(bytes, sizeof(tni_names) + texts->length, &bytes))
        return NULL;
    tni_names *list = tni_alloc(bytes);
    if (!list)
        return NULL;
    list->count = count;
    char *text = (char *)(list->names + count);
    if (texts->length)
        memcpy(text, texts->text, texts->length);
    for (size_t i = 0; i < count; i++) {
        list->names[i] = text;
        text += strlen(text) + 1;
    }
    qsort((void *)list->names, count, sizeof list->names[0], by_bytes);
    return list;
}
