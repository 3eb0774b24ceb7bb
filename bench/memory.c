/* Cost of device memory on the cpu platform, whose own share is minimal: allocating and freeing a
 * cached block, and a small copy, compared with malloc and free of the same size. */
#include "harness.h"

#include "tenon/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1000, SMALL = 64 };

static tn_device *cpu;
static unsigned char small_from[SMALL], small_to[SMALL];

/* Keeps the compiler from removing the loop. */
static void *volatile seen;

static void nothing(void *user, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        seen = user;
}

/* `user` is the label, or NULL. */
static void take_and_give(void *user, int64_t times)
{
    void *memory = NULL;
    for (int64_t i = 0; i < times; i++) {
        (void)tn_memory_alloc(cpu, BLOCK, user, &memory, NULL);
        seen = memory;
        tn_memory_free(cpu, memory);
    }
}

static void malloc_and_free(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        void *memory = malloc(BLOCK);
        seen = memory;
        free(memory);
    }
}

static void aligned_and_free(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        void *memory = aligned_alloc(64, 1024);
        seen = memory;
        free(memory);
    }
}

static void copy(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        (void)tn_memory_copy(TN_ARGS(memory_copy, .to_device = cpu, .to = small_to,
                                     .from_device = cpu, .from = small_from, .bytes = SMALL),
                             NULL);
        seen = small_to;
    }
}

static void bare_copy(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        memcpy(small_to, small_from, SMALL);
        seen = small_to;
    }
}

int main(void)
{
    char label[] = "kv-cache";
    tn_error err;
    const bench_side allocators[] = {
        {.name = "the same with a label", .run = take_and_give, .user = label},
        {.name = "malloc and free", .run = malloc_and_free},
        {.name = "aligned_alloc (64) and free", .run = aligned_and_free},
        {.name = NULL},
    };
    const bench_figure allocation = {
        .name = "memory of cpu:0, 1000 bytes, taken and given back",
        .kind = BENCH_ADDED,
        .aim = 100,
        .unit = "ns",
        .ours = {.name = "tenon", .run = take_and_give},
        .rival = {.name = "nothing", .run = nothing},
        .beside = allocators,
    };
    const bench_figure small_copy = {
        .name = "copy from cpu:0 to cpu:0, 64 bytes",
        .kind = BENCH_ADDED,
        .aim = 50,
        .unit = "ns",
        .ours = {.name = "tenon", .run = copy},
        .rival = {.name = "memcpy", .run = bare_copy},
    };
    if (tn_device_get("cpu:0", &cpu, &err)) {
        printf("the figures of memory need the platform cpu: %s\n", err.message);
        return bench_end();
    }
    bench_run(&allocation);
    bench_run(&small_copy);
    return bench_end();
}
