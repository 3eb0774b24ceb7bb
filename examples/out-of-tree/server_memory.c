/* The device's memory: one stretch of it, given out first fit, in steps of 256 bytes. */
#include "server.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { STEP = 256 };

/* Parts of the stretch, in the order of their addresses, with nothing between them. */
typedef struct part {
    struct part *next;
    uint64_t offset;
    uint64_t bytes;
    bool is_taken;
} part;

static char *stretch;
static uint64_t stretch_bytes;
static part *parts;

static part *part_create(part *next, uint64_t offset, uint64_t bytes)
{
    part *made = malloc(sizeof *made);
    if (!made)
        give_up("it has no memory for its own books");
    *made = (part){.next = next, .offset = offset, .bytes = bytes};
    return made;
}

void memory_open(uint64_t bytes)
{
    void *at = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        give_up("the system has no %llu bytes for it", (unsigned long long)bytes);
    stretch = at;
    stretch_bytes = bytes / STEP * STEP;
    parts = part_create(NULL, 0, stretch_bytes);
}

uint64_t memory_take(uint64_t bytes)
{
    if (bytes > stretch_bytes)
        return 0;
    bytes = (bytes + STEP - 1) / STEP * STEP + (bytes == 0 ? STEP : 0);
    for (part *p = parts; p; p = p->next) {
        if (p->is_taken || p->bytes < bytes)
            continue;
        if (p->bytes > bytes)
            p->next = part_create(p->next, p->offset + bytes, p->bytes - bytes);
        p->bytes = bytes;
        p->is_taken = true;
        atomic_fetch_add(&segment->in_use, bytes);
        return (uint64_t)(uintptr_t)(stretch + p->offset);
    }
    return 0;
}

static void join_next(part *p)
{
    part *next = p->next;
    if (p->is_taken || !next || next->is_taken)
        return;
    p->bytes += next->bytes;
    p->next = next->next;
    free(next);
}

void memory_give(uint64_t address)
{
    uint64_t offset = address - (uint64_t)(uintptr_t)stretch;
    part *before = NULL, *p = parts;
    for (; p && (p->offset != offset || !p->is_taken); p = p->next)
        before = p;
    if (!p)
        give_up("it was to free %#llx, which it did not give", (unsigned long long)address);
    p->is_taken = false;
    atomic_fetch_sub(&segment->in_use, p->bytes);
    join_next(p);
    if (before)
        join_next(before);
}

void memory_check(uint64_t address, const ferry_message *job, uint64_t pitch)
{
    uint64_t offset = address - (uint64_t)(uintptr_t)stretch;
    bool fits = offset <= stretch_bytes && job->bytes <= stretch_bytes - offset;
    if (fits && job->rows > 1)
        fits = pitch > 0 && (stretch_bytes - offset - job->bytes) / pitch >= job->rows - 1;
    if (!fits)
        give_up("%llu rows of %llu bytes at %#llx lie outside of its memory",
                (unsigned long long)job->rows, (unsigned long long)job->bytes,
                (unsigned long long)address);
}
