/* Copies of any strides. Where out and in are together in different dimensions, squares of 16 bytes a side
 * are turned in registers, along a strip of a few lines of out, so that in is read from one end to the
 * other and whole lines are written. */
#include "../rows.h"
#include "each.h"

enum { SIDE = 16, STRIP = 32 }; /* columns, and a line at least: as many rows are read at once */

INLINE int64_t strip_columns(int32_t size)
{
    return size * STRIP < 64 ? 64 / size : STRIP;
}

#if defined(__clang__) || __GNUC__ >= 12
#define MIX(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIX(type, a, b, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})
#endif

/* A plane of one size of elements: `rows` are together in in, `columns` in out; strides in bytes. */
typedef struct plane {
    int64_t rows, columns;
    int64_t in_stride, out_stride;
    bool stream; /* lines of out are aligned, and go past the caches */
} plane;

#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* A square of N elements a side: log2 N times, each row is mixed with the one half of them after it. */
#define SQUARE(bytes, element, N, low, high)                                                     \
    typedef element lane_##bytes __attribute__((vector_size(SIDE)));                             \
    INLINE void square_##bytes(char *out, int64_t out_stride, const char *in, int64_t in_stride) \
    {                                                                                            \
        lane_##bytes x[N], y[N];                                                                 \
        UNROLLED for (int i = 0; i < N; i++) memcpy(&x[i], in + i * in_stride, SIDE);            \
        UNROLLED for (int n = N; n > 1; n /= 2)                                                  \
        {                                                                                        \
            UNROLLED for (int i = 0; i < N / 2; i++)                                             \
            {                                                                                    \
                y[2 * i] = MIX(lane_##bytes, x[i], x[i + N / 2], low);                           \
                y[2 * i + 1] = MIX(lane_##bytes, x[i], x[i + N / 2], high);                      \
            }                                                                                    \
            UNROLLED for (int i = 0; i < N; i++) x[i] = y[i];                                    \
        }                                                                                        \
        UNROLLED for (int i = 0; i < N; i++) memcpy(out + i * out_stride, &x[i], SIDE);          \
    }

#define LOW_8  0, 2
#define HIGH_8 1, 3
#define LOW_4  0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define LOW_2  0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_2 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_1  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_1 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
SQUARE(8, uint64_t, 2, LOW_8, HIGH_8)
SQUARE(4, uint32_t, 4, LOW_4, HIGH_4)
SQUARE(2, uint16_t, 8, LOW_2, HIGH_2)
SQUARE(1, uint8_t, 16, LOW_1, HIGH_1)

/* Squares of whole lines, made beside out and written one line after the other; what no line fits in, by
 * elements. */
#define TURN(bytes)                                                                                \
    static void lines_##bytes(char *out, const char *in, const plane *p)                           \
    {                                                                                              \
        enum { N = SIDE / bytes, LINE = 64 / bytes };                                              \
        _Alignas(64) char square[64 * LINE];                                                       \
        for (int64_t c = 0; c < LINE; c += N)                                                      \
            for (int64_t r = 0; r < LINE; r += N)                                                  \
                square_##bytes(square + r * 64 + c * bytes, 64, in + c * p->in_stride + r * bytes, \
                               p->in_stride);                                                      \
        for (int64_t r = 0; r < LINE; r++) {                                                       \
            if (p->stream)                                                                         \
                stream_line(out + r * p->out_stride, square + r * 64);                             \
            else                                                                                   \
                memcpy(out + r * p->out_stride, square + r * 64, 64);                              \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void turn_##bytes(char *out, const char *in, const plane *p)                            \
    {                                                                                              \
        enum { LINE = 64 / bytes };                                                                \
        int64_t rows = p->rows / LINE * LINE, columns = p->columns / LINE * LINE;                  \
        for (int64_t r = 0; r < rows; r += LINE)                                                   \
            for (int64_t c = 0; c < columns; c += LINE)                                            \
                lines_##bytes(out + r * p->out_stride + c * bytes,                                 \
                              in + c * p->in_stride + r * bytes, p);                               \
        for (int64_t r = 0; r < p->rows; r++) {                                                    \
            int64_t done = r < rows ? columns : 0;                                                 \
            move_strided(out + r * p->out_stride + done * bytes, 1,                                \
                         in + done * p->in_stride + r * bytes, p->in_stride / bytes,               \
                         p->columns - done, bytes);                                                \
        }                                                                                          \
    }
TURN(8)
TURN(4)
TURN(2)
TURN(1)

static void turn_any(char *out, const char *in, const plane *p, int32_t size)
{
    for (int64_t r = 0; r < p->rows; r++)
        move_strided(out + r * p->out_stride, 1, in + r * size, p->in_stride / size, p->columns,
                     size);
}

/* Items are strips of the plane. */
static void turn_body(const loop *it, char *const *data, int64_t at, int64_t n)
{
    plane whole_plane = *(const plane *)it->more, strip = whole_plane;
    int32_t size = it->size[0];
    int64_t width = strip_columns(size);
    strip.stream = it->stream && ((uintptr_t)data[0] | (uintptr_t)strip.out_stride) % 64 == 0;
    for (int64_t i = 0; i < n; i++) {
        char *out = data[0] + i * it->walk.stride[0] * size;
        const char *in = data[1] + i * it->walk.stride[1] * size;
        int64_t left = whole_plane.columns - (at + i) * width;
        strip.columns = left < width ? left : width;
        switch (size) {
        case 1: turn_1(out, in, &strip); break;
        case 2: turn_2(out, in, &strip); break;
        case 4: turn_4(out, in, &strip); break;
        case 8: turn_8(out, in, &strip); break;
        default: turn_any(out, in, &strip, size);
        }
    }
}

static void copy_body(const loop *it, char *const *data, int64_t at, int64_t n)
{
    (void)at;
    move_strided(data[0], it->walk.stride[0], data[1], it->walk.stride[1], n, it->size[0]);
}

/* The outer dimension in which in is together, when out is in the inner one; else -1. */
static int32_t turned_dimension(const tn_walk *walk)
{
    if (walk->stride[0] != 1 || walk->stride[1] == 1 || walk->stride[1] == 0)
        return -1;
    for (int32_t d = 0; d < walk->rank; d++) {
        if (walk->outer_stride[d][1] == 1)
            return d;
    }
    return -1;
}

/* Takes dimension `d` and the inner one out of the walk as a plane, whose strips become the inner one. */
static void make_plane(loop *it, int32_t d, plane *out)
{
    tn_walk *walk = &it->walk;
    int64_t strip = strip_columns(it->size[0]);
    *out = (plane){.rows = walk->outer[d],
                   .columns = walk->size,
                   .in_stride = walk->stride[1] * it->size[0],
                   .out_stride = walk->outer_stride[d][0] * it->size[0]};
    walk->steps /= walk->outer[d];
    walk->rank--;
    for (int32_t i = d; i < walk->rank; i++) {
        walk->outer[i] = walk->outer[i + 1];
        memcpy(walk->outer_stride[i], walk->outer_stride[i + 1], sizeof walk->outer_stride[i]);
    }
    walk->size = (out->columns + strip - 1) / strip;
    walk->stride[0] = strip;
    walk->stride[1] = strip * out->in_stride / it->size[0];
    it->body = turn_body;
    it->more = out;
    loop_cut(it, strip * out->rows, 1);
}

tn_status ISA_NAME(permute)(const tn_run *run, tn_error *err)
{
    static const int32_t operands[] = {TN_EACH_OUT, TN_EACH_IN};
    loop it = {.body = copy_body};
    plane p;
    (void)err;
    if (run->op->uses & TN_EACH_USES_IN_PLACE)
        return TN_OK;
    loop_prepare(&it, run, operands, 2, 0, 1);
    int32_t d = turned_dimension(&it.walk);
    if (d >= 0)
        make_plane(&it, d, &p);
    loop_run(&it);
    return TN_OK;
}
