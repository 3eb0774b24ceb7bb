#include "ref_copy.h"

#include <string.h>

/* One element size; a copy of a constant number of bytes is one move. */
#define COPY(bytes)                                                                          \
    static void copy_##bytes(const char *from, int64_t from_step, char *to, int64_t to_step, \
                             int64_t count)                                                  \
    {                                                                                        \
        for (int64_t i = 0; i < count; i++)                                                  \
            memmove(to + i * to_step, from + i * from_step, bytes);                          \
    }
COPY(1)
COPY(2)
COPY(4)
COPY(8)
COPY(16)

void tni_ref_copy(int64_t bytes, const char *from, int64_t from_step, char *to, int64_t to_step,
                  int64_t count)
{
    switch (bytes) {
    case 1: copy_1(from, from_step, to, to_step, count); break;
    case 2: copy_2(from, from_step, to, to_step, count); break;
    case 4: copy_4(from, from_step, to, to_step, count); break;
    case 8: copy_8(from, from_step, to, to_step, count); break;
    default: copy_16(from, from_step, to, to_step, count); break;
    }
}
