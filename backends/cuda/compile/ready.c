#include "ready.h"

#include <stdlib.h>

/* Defined by ready/data.c or ready/none.c. */
extern const unsigned char cuda_ready_data[];

static size_t padded(size_t bytes)
{
    return (bytes + CUDA_READY_ALIGNMENT - 1) / CUDA_READY_ALIGNMENT * CUDA_READY_ALIGNMENT;
}

static const cuda_ready *first_entry(void)
{
    return (const cuda_ready *)(const void *)cuda_ready_data;
}

static const char *options_of(const cuda_ready *entry)
{
    return (const char *)(entry + 1);
}

static const unsigned char *code_of(const cuda_ready *entry)
{
    return (const unsigned char *)(entry + 1) + padded(entry->options_bytes);
}

static const cuda_ready *next_entry(const cuda_ready *entry)
{
    return (const cuda_ready *)(const void *)(code_of(entry) + padded(entry->code_bytes));
}

/* Returns the capability in "sm_86". *out_bound is 1 if a letter follows, which binds code to
 * exactly that one. */
static long capability(const char *architecture, int *out_bound)
{
    char *end;
    if (strncmp(architecture, "sm_", 3) != 0)
        return -1;
    long number = strtol(architecture + 3, &end, 10);
    *out_bound = *end != '\0';
    return number;
}

int cuda_ready_serves(const char *code, const char *device)
{
    int code_bound = 0, device_bound = 0;
    long has = capability(code, &code_bound), needs = capability(device, &device_bound);
    if (strcmp(code, device) == 0)
        return 1;
    return has > 0 && needs > 0 && !code_bound && has / 10 == needs / 10 && has <= needs;
}

static bool is_entry(const cuda_ready *entry, const cuda_case *wanted)
{
    return strcmp(entry->unit, cuda_unit_name(wanted->unit)) == 0 &&
           strcmp(entry->function, wanted->function) == 0 &&
           strcmp(options_of(entry), wanted->options) == 0;
}

const void *cuda_ready_find(const char *architecture, const cuda_case *wanted, size_t *out_size)
{
    for (const cuda_ready *entry = first_entry(); entry->code_bytes; entry = next_entry(entry)) {
        if (is_entry(entry, wanted) && cuda_ready_serves(entry->architecture, architecture)) {
            *out_size = entry->code_bytes;
            return code_of(entry);
        }
    }
    return NULL;
}

int32_t cuda_ready_count(void)
{
    int32_t count = 0;
    for (const cuda_ready *entry = first_entry(); entry->code_bytes; entry = next_entry(entry))
        count++;
    return count;
}

int32_t cuda_ready_compiler(void)
{
    return (int32_t)first_entry()->compiler;
}
