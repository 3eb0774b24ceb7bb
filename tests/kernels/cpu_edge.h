/* Operands that begin or end where memory does: what a kernel reads beside them ends the test. */
#ifndef TENON_TESTS_CPU_EDGE_H
#define TENON_TESTS_CPU_EDGE_H

#include "cpu_make.h"

#include <sys/mman.h>
#include <unistd.h>

/* Moves an operand to where memory begins or ends. Returns what is to be unmapped, of *out_bytes. */
static inline void *cpu_move_to_edge(cpu_case *it, int32_t operand, bool end, size_t *out_bytes)
{
    cpu_memory *memory = &it->memory[operand];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = memory->bytes;
    const size_t whole = (bytes + page - 1) / page * page;
    const ptrdiff_t first = memory->first - (char *)memory->low;
    *out_bytes = whole + 2 * page;
    char *pages = mmap(NULL, *out_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + page, whole, PROT_READ | PROT_WRITE), 0);
    char *to = pages + page + (end ? whole - bytes : 0);
    memcpy(to, memory->low, bytes);
    free(memory->block);
    *memory = (cpu_memory){.low = (unsigned char *)to, .bytes = bytes, .first = to + first};
    it->data[operand] = memory->first;
    return pages;
}

#endif
