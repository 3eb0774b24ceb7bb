/* The bytes of an input, consumed from front to back; zeros after its end. */
#ifndef TENON_FUZZ_INPUT_H
#define TENON_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

static inline void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static inline void take(input *in, void *to, size_t size)
{
    size_t there = in->left < size ? in->left : size;
    memset(to, 0, size);
    if (there > 0)
        memcpy(to, in->at, there);
    in->at += there;
    in->left -= there;
}

static inline uint8_t take_byte(input *in)
{
    uint8_t byte;
    take(in, &byte, 1);
    return byte;
}

/* Usually `usual`; sometimes a small number, rarely an arbitrary one. */
static inline int64_t take_number(input *in, int64_t usual)
{
    int64_t number;
    uint8_t first = take_byte(in);
    if (first < 200)
        return usual;
    if (first < 250)
        return (int64_t)(first % 16) - 4;
    take(in, &number, sizeof number);
    return number;
}

#endif
