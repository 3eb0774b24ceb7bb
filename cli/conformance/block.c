#include "block.h"

bool bytes_match(trial *t, const void *found, const void *expected, size_t bytes, const char *what)
{
    const unsigned char *a = found, *b = expected;
    size_t first = bytes, wrong = 0;
    if (memcmp(a, b, bytes) == 0)
        return true;
    for (size_t i = 0; i < bytes; i++) {
        if (a[i] == b[i])
            continue;
        first = first < bytes ? first : i;
        wrong++;
    }
    return trial_fail(t,
                      "%s: %zu of %zu bytes are wrong, the first at %zu: 0x%02x, "
                      "expected 0x%02x",
                      what, wrong, bytes, first, a[first], b[first]);
}

/* Copies bytes between the host and a device and waits for completion. */
static bool move(trial *t, tn_device *to_device, void *to, tn_device *from_device, const void *from,
                 size_t bytes)
{
    tn_device *device = to_device ? to_device : from_device;
    return DO(t, tn_memory_copy(TN_ARGS(memory_copy, .to_device = to_device, .to = to,
                                        .from_device = from_device, .from = from, .bytes = bytes),
                                &t->err)) &&
           DO(t, tn_device_synchronize(device, &t->err));
}

bool block_make(trial *t, tn_device *device, size_t bytes, block *out)
{
    void *mirror = NULL, *at = NULL;
    size_t all = bytes + 2 * BLOCK_GUARD;
    if (!trial_host(t, all, &mirror))
        return false;
    trial_bytes(t, mirror, all);
    if (!(device ? trial_memory(t, device, all, &at) : trial_host(t, all, &at)))
        return false;
    if (device && !move(t, device, at, NULL, mirror, all))
        return false;
    if (!device)
        memcpy(at, mirror, all);
    *out = (block){.device = device,
                   .at = (unsigned char *)at + BLOCK_GUARD,
                   .mirror = (unsigned char *)mirror + BLOCK_GUARD,
                   .bytes = bytes};
    return true;
}

/* Reports whether a difference is in the block or in its guards. */
static bool match_parts(trial *t, const block *b, const unsigned char *found, const char *what)
{
    char words[128];
    if (!bytes_match(t, found + BLOCK_GUARD, b->mirror, b->bytes, what))
        return false;
    snprintf(words, sizeof words, "%s, the guard before it", what);
    if (!bytes_match(t, found, b->mirror - BLOCK_GUARD, BLOCK_GUARD, words))
        return false;
    snprintf(words, sizeof words, "%s, the guard after it", what);
    return bytes_match(t, found + BLOCK_GUARD + b->bytes, b->mirror + b->bytes, BLOCK_GUARD, words);
}

bool block_check(trial *t, const block *b, const char *what)
{
    size_t all = b->bytes + 2 * BLOCK_GUARD;
    void *read = NULL;
    if (!b->device)
        return match_parts(t, b, b->at - BLOCK_GUARD, what);
    if (!DO(t, tn_device_synchronize(b->device, &t->err)) || !trial_host(t, all, &read))
        return false;
    memset(read, 0xA5, all);
    return move(t, NULL, read, b->device, b->at - BLOCK_GUARD, all) &&
           match_parts(t, b, read, what);
}

/* Updates the mirror after queuing the copy, so that the device gets no extra time to finish. */
bool block_copy(trial *t, const block *from, size_t from_at, const block *to, size_t to_at,
                size_t bytes, tn_stream *stream)
{
    bool held =
        DO(t, tn_memory_copy(TN_ARGS(memory_copy, .to_device = to->device, .to = to->at + to_at,
                                     .from_device = from->device, .from = from->at + from_at,
                                     .bytes = bytes, .stream = stream),
                             &t->err));
    memmove(to->mirror + to_at, from->mirror + from_at, bytes);
    return held;
}

void pattern_put(void *to, size_t bytes, uint64_t pattern, uint32_t pattern_bytes)
{
    uint32_t four = (uint32_t)pattern;
    uint16_t two = (uint16_t)pattern;
    uint8_t one = (uint8_t)pattern;
    const void *word = pattern_bytes == 8   ? (const void *)&pattern
                       : pattern_bytes == 4 ? (const void *)&four
                       : pattern_bytes == 2 ? (const void *)&two
                                            : (const void *)&one;
    size_t done = bytes < pattern_bytes ? bytes : pattern_bytes;
    memcpy(to, word, done);
    for (size_t more; done < bytes; done += more) {
        more = done < bytes - done ? done : bytes - done;
        memcpy((unsigned char *)to + done, to, more);
    }
}

static bool fill(trial *t, const block *b, size_t at, size_t bytes, uint64_t pattern,
                 uint32_t pattern_bytes, tn_stream *stream)
{
    return DO(t, tn_memory_fill(TN_ARGS(memory_fill, .device = b->device, .to = b->at + at,
                                        .bytes = bytes, .pattern = pattern,
                                        .pattern_bytes = pattern_bytes, .stream = stream),
                                &t->err));
}

bool block_fill(trial *t, const block *b, size_t at, size_t bytes, uint64_t pattern,
                uint32_t pattern_bytes, tn_stream *stream)
{
    bool held = fill(t, b, at, bytes, pattern, pattern_bytes, stream);
    pattern_put(b->mirror + at, bytes, pattern, pattern_bytes);
    return held;
}

bool block_fill_often(trial *t, const block *b, int times, tn_stream *stream)
{
    uint64_t pattern = 0;
    bool held = true;
    for (int i = 0; i < times && held; i++) {
        pattern = trial_bits(t);
        held = fill(t, b, 0, b->bytes, pattern, 8, stream);
    }
    pattern_put(b->mirror, b->bytes, pattern, 8);
    return held;
}
