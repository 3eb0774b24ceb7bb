#include "host.h"

#include "os/bind.h"
#include "os/machine/machine.h"
#include "tenon/parallel.h"

#include <stdio.h>
#include <stdlib.h>

static void *alloc_block(void *self, size_t size, size_t align)
{
    (void)self;
    return aligned_alloc(align < 64 ? 64 : align, (size + 63) / 64 * 64);
}

static void release_block(void *self, void *memory)
{
    (void)self;
    free(memory);
}

static void print_log(void *self, int32_t level, const char *text)
{
    (void)self, (void)level;
    fprintf(stderr, "bench: %s\n", text);
}

static tn_status bind_library(void *self, const char *files, const tn_symbol *symbols, size_t count,
                              void *table, tn_error *err)
{
    (void)self;
    return tni_bind(files, symbols, count, NULL, table, NULL, err);
}

static void run_parallel(void *self, int64_t count, tn_task *task, void *user)
{
    (void)self;
    tn_parallel_for(count, task, user);
}

static tn_status read_facts(void *self, tn_machine_facts *out, tn_error *err)
{
    (void)self;
    return tni_machine_facts_read(out, err);
}

const tn_host bench_host = {.struct_size = offsetof(tn_host, cache_get),
                            .abi_major = TN_MODULE_ABI_MAJOR,
                            .abi_minor = TN_MODULE_ABI_MINOR,
                            .alloc = alloc_block,
                            .release = release_block,
                            .log = print_log,
                            .library_bind = bind_library,
                            .parallel_for = run_parallel,
                            .machine = read_facts};
