/* The lexical rules that the parser and the writer of the text form share; form.h describes
 * them. */
#ifndef TNI_BASE_FORM_TEXT_H
#define TNI_BASE_FORM_TEXT_H

#include <stdbool.h>
#include <string.h>

#define TNI_FORM_BLOCK    "\"\"\""
#define TNI_FORM_KEY_WORD "letters, digits and . _ - + / @ :"

static inline bool tni_form_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline bool tni_form_is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7F;
}

static inline bool tni_form_is_key(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("._-+/@:", c));
}

#endif
