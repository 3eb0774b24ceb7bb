/* UTF-8 as defined by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef TNI_BASE_UTF8_H
#define TNI_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Size in bytes of the character at `at`, of which `left` bytes may be read; 0 if there is no
 * complete, valid one. NUL is a character of one byte. */
static inline size_t tni_utf8_size(const char *at, size_t left)
{
    const unsigned char *b = (const unsigned char *)at;
    if (left == 0)
        return 0;
    if (b[0] < 0x80)
        return 1;
    size_t size = b[0] >= 0xF0 ? 4 : b[0] >= 0xE0 ? 3 : 2;
    if (b[0] < 0xC2 || b[0] > 0xF4 || left < size)
        return 0;
    unsigned char low = b[0] == 0xE0 ? 0xA0 : b[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = b[0] == 0xED ? 0x9F : b[0] == 0xF4 ? 0x8F : 0xBF;
    if (b[1] < low || b[1] > high)
        return 0;
    for (size_t i = 2; i < size; i++)
        if ((b[i] & 0xC0) != 0x80)
            return 0;
    return size;
}

/* True for a continuation byte: not the first byte of a character. */
static inline bool tni_utf8_continues(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

#endif
