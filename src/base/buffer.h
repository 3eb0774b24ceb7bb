/* Text that grows. Errors are sticky: append freely, then ask once whether all of it fitted. */
#ifndef TNI_BASE_BUFFER_H
#define TNI_BASE_BUFFER_H

#include "tenon/base.h"

#include <stdbool.h>

/* Zeroed is empty. `text` is NULL or ends in a terminator that `length` does not count. */
typedef struct tni_buffer {
    char *text;
    size_t length;
    size_t capacity;
    bool failed; /* an append found no memory; it and everything since is missing */
} tni_buffer;

void tni_buffer_add(tni_buffer *buffer, const char *text);
void tni_buffer_add_part(tni_buffer *buffer, const char *text, size_t length);
void tni_buffer_add_char(tni_buffer *buffer, char c);
void tni_buffer_format(tni_buffer *buffer, const char *format, ...) TN_PRINTF(2, 3);
void tni_buffer_clear(tni_buffer *buffer); /* keeps the memory, forgets the failure */
void tni_buffer_release(tni_buffer *buffer);

/* The text, "" when empty. Lent until the next change. */
const char *tni_buffer_text(const tni_buffer *buffer);

/* Gives the text away and leaves the buffer empty; NULL after a failure. */
char *tni_buffer_take(tni_buffer *buffer);

#endif
