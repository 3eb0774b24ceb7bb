/* A growing text buffer. Errors are sticky: append without checking, then check `failed` once. */
#ifndef TNI_BASE_BUFFER_H
#define TNI_BASE_BUFFER_H

#include "tenon/base.h"

#include <stdbool.h>

/* Zero-initialized is empty. `text` is NULL or ends in a terminator that `length` does not
 * count. */
typedef struct tni_buffer {
    char *text;
    size_t length;
    size_t capacity;
    bool failed; /* out of memory: that append and all later ones are missing */
} tni_buffer;

void tni_buffer_add(tni_buffer *buffer, const char *text);
void tni_buffer_add_part(tni_buffer *buffer, const char *text, size_t length);
void tni_buffer_add_char(tni_buffer *buffer, char c);
void tni_buffer_format(tni_buffer *buffer, const char *format, ...) TN_PRINTF(2, 3);
void tni_buffer_release(tni_buffer *buffer);

/* Returns the text, "" if empty. Valid until the next change. */
const char *tni_buffer_text(const tni_buffer *buffer);

/* Transfers the text to the caller and leaves the buffer empty; NULL after a failure. */
char *tni_buffer_detach(tni_buffer *buffer);

#endif
