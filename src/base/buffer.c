#include "buffer.h"

#include "alloc.h"
#include "checked.h"

static bool reserve(tni_buffer *buffer, size_t more)
{
    size_t needed;
    if (buffer->failed)
        return false;
    if (tni_add_size(buffer->length, more, &needed) && tni_add_size(needed, 1, &needed) &&
        tni_array_reserve((void **)&buffer->text, &buffer->capacity, buffer->length, needed, 1))
        return true;
    buffer->failed = true;
    return false;
}

void tni_buffer_add_part(tni_buffer *buffer, const char *text, size_t length)
{
    if (!reserve(buffer, length))
        return;
    if (length)
        memcpy(buffer->text + buffer->length, text, length);
    buffer->length += length;
    buffer->text[buffer->length] = '\0';
}

void tni_buffer_add(tni_buffer *buffer, const char *text)
{
    tni_buffer_add_part(buffer, text, strlen(text));
}

void tni_buffer_add_char(tni_buffer *buffer, char c)
{
    tni_buffer_add_part(buffer, &c, 1);
}

void tni_buffer_format(tni_buffer *buffer, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length < 0)
        buffer->failed = true;
    else if (reserve(buffer, (size_t)length)) {
        vsnprintf(buffer->text + buffer->length, (size_t)length + 1, format, again);
        buffer->length += (size_t)length;
    }
    va_end(again);
    va_end(arguments);
}

void tni_buffer_release(tni_buffer *buffer)
{
    tni_release(buffer->text);
    *buffer = (tni_buffer){0};
}

const char *tni_buffer_text(const tni_buffer *buffer)
{
    return buffer->text ? buffer->text : "";
}

char *tni_buffer_detach(tni_buffer *buffer)
{
    char *text = NULL;
    if (!buffer->text)
        tni_buffer_add(buffer, "");
    if (!buffer->failed) {
        text = buffer->text;
        *buffer = (tni_buffer){0};
    }
    tni_buffer_release(buffer);
    return text;
}
