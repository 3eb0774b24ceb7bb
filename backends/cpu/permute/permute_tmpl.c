/* Copies with any strides. If out and in are contiguous in different dimensions, squares of a
 * vector's width are transposed in registers, along a strip of a few cache lines of out, so that in
 * is read sequentially and whole lines are written. */
#include "../shared/loop.h"

/* Columns of a strip of out: this many rows of in are read at once. */
INLINE int64_t strip_columns(int32_t size)
{
    return size <= 2 ? 64 : 32;
}

/* A plane of elements of one size: `rows` is the dimension that is contiguous in in, `columns` the
 * one in out; strides are in bytes. */
typedef struct plane {
    int64_t rows, columns;
    int64_t in_stride, out_stride;
    bool stream; /* lines of out are aligned; non-temporal stores */
} plane;

#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

#if defined(__clang__) || __GNUC__ >= 12
#define MIX(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIX(type, a, b, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})
#endif

/* Index of lane j when two vectors of N lanes are mixed. FIRST, SECOND: within each g lanes, the
 * first (second) halves of both, interleaved. EVEN, ODD: in blocks of g lanes, the blocks at even
 * (odd) positions of both. */
#define FIRST(N, g, j)     ((j) / (g) * (g) + (j) % (g) / 2 + (j) % 2 * (N))
#define SECOND(N, g, j)    (FIRST(N, g, j) + (g) / 2)
#define EVEN(N, g, j)      ((j) / (g) % 2 ? (N) + (j) - (g) : (j))
#define ODD(N, g, j)       ((j) / (g) % 2 ? (N) + (j) : ((j) + (g)) % (2 * (N)))
#define ALL_4(M, N, g, j)  M(N, g, j), M(N, g, (j) + 1), M(N, g, (j) + 2), M(N, g, (j) + 3)
#define ALL_8(M, N, g, j)  ALL_4(M, N, g, j), ALL_4(M, N, g, (j) + 4)
#define ALL_16(M, N, g, j) ALL_8(M, N, g, j), ALL_8(M, N, g, (j) + 8)
#define ALL_32(M, N, g, j) ALL_16(M, N, g, j), ALL_16(M, N, g, (j) + 16)
#define ALL_64(M, N, g, j) ALL_32(M, N, g, j), ALL_32(M, N, g, (j) + 32)

#define MIXER(name, type, N, M, g)                   \
    INLINE type name(type a, type b)                 \
    {                                                \
        return MIX(type, a, b, ALL_##N(M, N, g, 0)); \
    }
#define MIXERS(bytes, words, lanes)        \
    MIXER(first_1, v1, bytes, FIRST, 16)   \
    MIXER(second_1, v1, bytes, SECOND, 16) \
    MIXER(first_2, v2, words, FIRST, 8)    \
    MIXER(second_2, v2, words, SECOND, 8)  \
    MIXER(first_4, vu, lanes, FIRST, 4)    \
    MIXER(second_4, vu, lanes, SECOND, 4)  \
    MIXER(even_8, vu, lanes, EVEN, 2)      \
    MIXER(odd_8, vu, lanes, ODD, 2)        \
    MIXER(even_16, vu, lanes, EVEN, 4)     \
    MIXER(odd_16, vu, lanes, ODD, 4)       \
    MIXER(even_32, vu, lanes, EVEN, 8)     \
    MIXER(odd_32, vu, lanes, ODD, 8)

typedef uint8_t v1 __attribute__((vector_size(4 * LANES)));
typedef uint16_t v2 __attribute__((vector_size(4 * LANES)));
#if LANES == 16
MIXERS(64, 32, 16)
#elif LANES == 8
MIXERS(32, 16, 8)
#else
MIXERS(16, 8, 4)
#endif

/* Transposes blocks of some bytes, two by two, in rows that are `apart` rows apart. */
#define SWAP(bytes, apart, count)                                          \
    UNROLLED for (int i = 0; i < (count) - (apart); i++) if (!(i & apart)) \
    {                                                                      \
        const vu a = x[i], b = x[i + apart];                               \
        x[i] = even_##bytes(a, b);                                         \
        x[i + apart] = odd_##bytes(a, b);                                  \
    }

/* Transposes a square of 4-byte words, first within quarters of 16 bytes. */
INLINE void transpose_words(vu *x)
{
    UNROLLED for (int i = 0; i < LANES; i += 4)
    {
        const vu a = first_4(x[i], x[i + 1]), b = second_4(x[i], x[i + 1]);
        const vu c = first_4(x[i + 2], x[i + 3]), d = second_4(x[i + 2], x[i + 3]);
        x[i] = even_8(a, c);
        x[i + 1] = odd_8(a, c);
        x[i + 2] = even_8(b, d);
        x[i + 3] = odd_8(b, d);
    }
    SWAP(16, 4, LANES)
    SWAP(32, 8, LANES)
}

INLINE void transpose_doubles(vu *x){SWAP(8, 1, DOUBLES) SWAP(16, 2, DOUBLES) SWAP(32, 4, DOUBLES)}

/* Combines elements of `parts` rows into 4-byte words of `parts` elements: those of part `which` of
 * each quarter. */
INLINE vu words_of(int parts, int which, const char *in, int64_t in_stride)
{
    vu x[4];
    UNROLLED for (int i = 0; i < parts; i++) x[i] = load_u32(in + i * in_stride);
    if (parts == 4) {
        const v1 a = (v1)x[0], b = (v1)x[1], c = (v1)x[2], d = (v1)x[3];
        x[0] = (vu)(which < 2 ? first_1(a, b) : second_1(a, b));
        x[1] = (vu)(which < 2 ? first_1(c, d) : second_1(c, d));
    }
    if (parts > 1)
        x[0] = (vu)(which % 2 ? second_2((v2)x[0], (v2)x[1]) : first_2((v2)x[0], (v2)x[1]));
    return x[0];
}

/* Transposes a square of a vector's width; `parts` elements make a 4-byte word. */
INLINE void square(int parts, char *out, int64_t out_stride, const char *in, int64_t in_stride,
                   bool stream)
{
    UNROLLED for (int which = 0; which < parts; which++)
    {
        vu x[LANES];
        UNROLLED for (int i = 0; i < LANES; i++) x[i] =
            words_of(parts, which, in + i * parts * in_stride, in_stride);
        transpose_words(x);
        UNROLLED for (int i = 0; i < LANES; i++) save_vector(
            out + (i / 4 * parts + which) * 4 * out_stride + i % 4 * out_stride, x[i], stream);
    }
}

INLINE void square_8(char *out, int64_t out_stride, const char *in, int64_t in_stride, bool stream)
{
    vu x[DOUBLES];
    UNROLLED for (int i = 0; i < DOUBLES; i++) x[i] = load_u32(in + i * in_stride);
    transpose_doubles(x);
    UNROLLED for (int i = 0; i < DOUBLES; i++) save_vector(out + i * out_stride, x[i], stream);
}

#define SQUARE_8(...) square_8(__VA_ARGS__)
#define SQUARE_4(...) square(1, __VA_ARGS__)
#define SQUARE_2(...) square(2, __VA_ARGS__)
#define SQUARE_1(...) square(4, __VA_ARGS__)

/* Squares of whole cache lines. If a vector is shorter than a line, they are made in a buffer and
 * written one line after the other. The tails that fill no line are copied by elements. */
#define TRANSPOSE(bytes)                                                                           \
    static void lines_##bytes(char *out, const char *in, const plane *p)                           \
    {                                                                                              \
        enum { N = sizeof(vu) / bytes, LINE = 64 / bytes };                                        \
        if (N == LINE) {                                                                           \
            if (p->stream)                                                                         \
                SQUARE_##bytes(out, p->out_stride, in, p->in_stride, true);                        \
            else                                                                                   \
                SQUARE_##bytes(out, p->out_stride, in, p->in_stride, false);                       \
            return;                                                                                \
        }                                                                                          \
        _Alignas(64) char beside[64 * LINE];                                                       \
        for (int64_t c = 0; c < LINE; c += N)                                                      \
            for (int64_t r = 0; r < LINE; r += N)                                                  \
                SQUARE_##bytes(beside + r * 64 + c * bytes, 64, in + c * p->in_stride + r * bytes, \
                               p->in_stride, false);                                               \
        for (int64_t r = 0; r < LINE; r++) {                                                       \
            if (p->stream)                                                                         \
                stream_line(out + r * p->out_stride, beside + r * 64);                             \
            else                                                                                   \
                memcpy(out + r * p->out_stride, beside + r * 64, 64);                              \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void transpose_##bytes(char *out, const char *in, const plane *p)                       \
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
TRANSPOSE(8)
TRANSPOSE(4)
TRANSPOSE(2)
TRANSPOSE(1)

static void transpose_any(char *out, const char *in, const plane *p, int32_t size)
{
    for (int64_t r = 0; r < p->rows; r++)
        move_strided(out + r * p->out_stride, 1, in + r * size, p->in_stride / size, p->columns,
                     size);
}

/* Items are strips of the plane. */
static void transpose_body(const loop *it, char *const *data, int64_t at, int64_t n)
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
        case 1: transpose_1(out, in, &strip); break;
        case 2: transpose_2(out, in, &strip); break;
        case 4: transpose_4(out, in, &strip); break;
        case 8: transpose_8(out, in, &strip); break;
        default: transpose_any(out, in, &strip, size);
        }
    }
}

static void copy_body(const loop *it, char *const *data, int64_t at, int64_t n)
{
    (void)at;
    move_strided(data[0], it->walk.stride[0], data[1], it->walk.stride[1], n, it->size[0]);
}

/* The outer dimension in which in is contiguous, if out is contiguous in the inner one; else -1. */
static int32_t transposed_dimension(const tn_walk *walk)
{
    if (walk->stride[0] != 1 || walk->stride[1] == 1 || walk->stride[1] == 0)
        return -1;
    for (int32_t d = 0; d < walk->rank; d++) {
        if (walk->outer_stride[d][1] == 1)
            return d;
    }
    return -1;
}

/* Removes dimension `d` and the inner one from the walk and makes a plane of them; its strips
 * become the inner one. */
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
    it->body = transpose_body;
    it->more = out;
    loop_cut(it, strip * out->rows, 1);
}

ISA_KERNEL(permute)
{
    static const int32_t operands[] = {TN_ELEMENTWISE_OUT, TN_ELEMENTWISE_IN};
    loop it = {.body = copy_body};
    plane p;
    (void)err;
    if (run->op->uses & TN_ELEMENTWISE_USES_IN_PLACE)
        return TN_OK;
    loop_prepare(&it, run, operands, 2, 0, 1);
    int32_t d = transposed_dimension(&it.walk);
    if (d >= 0)
        make_plane(&it, d, &p);
    loop_run(&it);
    return TN_OK;
}
