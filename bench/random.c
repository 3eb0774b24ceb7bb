/* Compares filling with random numbers with the speed at which one core can write. Every side
 * writes the next piece of one buffer, which is larger than any cache, so that all use the same
 * memory. */
#include "harness.h"

#include "tenon/parallel.h"
#include "tenon/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { MIB = 1 << 20, PIECE = 64 * MIB, PIECES = 16, NEAR = MIB / 64 };

static unsigned char *buffer;
static int at;

static unsigned char *next_piece(void)
{
    at = (at + 1) % PIECES;
    return buffer + (size_t)at * PIECE;
}

static void one_thread(void *user)
{
    (void)user;
    (void)tn_parallel_threads_set(1, NULL);
}

static void all_threads(void *user)
{
    (void)user;
    (void)tn_parallel_threads_set(0, NULL);
}

static void ours(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++)
        (void)tn_random_fill_uniform(NULL, TN_F32, next_piece(), PIECE / 4, NULL);
}

static void normals(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++)
        (void)tn_random_fill_normal(NULL, TN_F32, next_piece(), PIECE / 4, NULL);
}

/* Generates as many numbers repeatedly into a small range, so that memory speed has no effect. */
static void fill_near(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times * (PIECE / NEAR); i++)
        (void)tn_random_fill_uniform(NULL, TN_F32, buffer, NEAR / 4, NULL);
}

static void set(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++)
        memset(next_piece(), (int)i, PIECE);
}

static void store(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        uint64_t *to = (uint64_t *)(void *)next_piece();
        for (size_t k = 0; k < PIECE / sizeof *to; k++)
            to[k] = (uint64_t)i;
    }
}

#if defined(__SSE2__)
static void store_past_caches(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        __m128i *to = (__m128i *)(void *)next_piece();
        for (size_t k = 0; k < PIECE / sizeof *to; k++)
            _mm_stream_si128(to + k, _mm_set1_epi64x(i));
        _mm_sfence();
    }
}
#else
#define store_past_caches NULL
#endif

int main(void)
{
    const bench_side beside[] = {
        {.name = "ordinary stores", .run = store},
        {.name = "non-temporal stores (SSE2)", .run = store_past_caches},
        {.name = "the fill, in the nearest cache",
         .run = fill_near,
         .begin = one_thread,
         .end = all_threads},
        {.name = "normal f32 instead", .run = normals, .begin = one_thread, .end = all_threads},
        {.name = NULL},
    };
    const bench_figure fill = {
        .name = "uniform f32 fill, 64 MiB of 1 GiB, 1 thread",
        .kind = BENCH_RATIO,
        .aim = 0.6,
        .unit = "ms",
        .ours = {.name = "tenon", .run = ours, .begin = one_thread, .end = all_threads},
        .rival = {.name = "memset", .run = set, .begin = NULL, .end = NULL},
        .beside = beside,
    };
    buffer = aligned_alloc(4096, (size_t)PIECES * PIECE);
    if (!buffer) {
        printf("the figure of fills needs 1 GiB of memory\n");
        return bench_end();
    }
    memset(buffer, 1, (size_t)PIECES * PIECE);
    bench_run(&fill);
    free(buffer);
    return bench_end();
}
