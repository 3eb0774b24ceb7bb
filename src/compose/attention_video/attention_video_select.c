/* The greatest numbers of rows: a radix selection, one byte of the numbers' order at a time, without
 * memory of its own. */
#include "attention_video.h"

#include "tenon/parallel.h"

#include <string.h>

/* Rows of a task. */
enum { ROWS = 16, BYTE = 256 };

typedef struct job {
    const char *numbers;
    int64_t rows, count, keep;
    int32_t bytes; /* of a number */
    int32_t *out;
} job;

/* A number's key: greater for greater numbers, equal for 0 and -0, and 0 for NaN. */
static uint64_t key_of_f32(const char *at)
{
    float value;
    uint32_t bits;
    memcpy(&value, at, sizeof value);
    if (value != value)
        return 0;
    value += 0.0F; /* -0 becomes 0 */
    memcpy(&bits, &value, sizeof bits);
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

static uint64_t key_of_f64(const char *at)
{
    double value;
    uint64_t bits;
    memcpy(&value, at, sizeof value);
    if (value != value)
        return 0;
    value += 0.0;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static uint64_t key_of(const job *j, int64_t row, int64_t i)
{
    const char *at = j->numbers + (row * j->count + i) * j->bytes;
    return j->bytes == 4 ? key_of_f32(at) : key_of_f64(at);
}

/* Finds the least key that is selected, and how many of the keys that equal it. */
static uint64_t find_least(const job *j, int64_t row, int64_t *out_equal)
{
    uint64_t found = 0;
    int64_t left = j->keep;
    for (int32_t shift = 8 * (j->bytes - 1); shift >= 0; shift -= 8) {
        int64_t counts[BYTE] = {0};
        int32_t byte = BYTE - 1;
        for (int64_t i = 0; i < j->count; i++) {
            const uint64_t key = key_of(j, row, i);
            const bool same = shift == 8 * (j->bytes - 1) || key >> (shift + 8) == found;
            counts[key >> shift & (BYTE - 1)] += same;
        }
        for (; counts[byte] < left; byte--)
            left -= counts[byte];
        found = found << 8 | (uint64_t)byte;
    }
    *out_equal = left;
    return found;
}

static void select_rows(void *user, int64_t index)
{
    const job *j = user;
    const int64_t end = j->rows < (index + 1) * ROWS ? j->rows : (index + 1) * ROWS;
    for (int64_t row = index * ROWS; row < end; row++) {
        int32_t *to = j->out + row * j->keep;
        int64_t equal;
        const uint64_t smallest = find_least(j, row, &equal);
        for (int64_t i = 0; i < j->count; i++) {
            const uint64_t key = key_of(j, row, i);
            if (key > smallest || (key == smallest && equal-- > 0))
                *to++ = (int32_t)i;
        }
    }
}

void tni_video_select(tn_dtype dtype, const void *numbers, int64_t rows, int64_t count,
                      int64_t keep, int32_t *out)
{
    job j = {numbers, rows, count, keep, dtype == TN_F64 ? 8 : 4, out};
    tn_parallel_for((rows + ROWS - 1) / ROWS, select_rows, &j);
}
