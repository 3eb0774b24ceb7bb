/* Reads facts about a shared library from its file without running any of it: opening a truncated
 * file can kill the process, and opening one runs its constructors. */
#ifndef TNI_OS_ELF_H
#define TNI_OS_ELF_H

#include "tenon/base.h"

#include <stdbool.h>

/* Source of the bytes; read_at returns false unless all of them could be read. */
typedef struct tni_elf_source {
    void *self;
    bool (*read_at)(void *self, uint64_t offset, void *to, size_t size);
    uint64_t size;
} tni_elf_source;

typedef struct tni_elf_facts {
    uint64_t sanitizers; /* TN_MODULE_SANITIZER_* whose run-time it needs  */
    bool has_entry;      /* names tn_module_entry among its dynamic symbols */
    char openmp[64];     /* the first run-time of OpenMP that it needs: "libgomp.so.1"; or "" */
} tni_elf_facts;

/* Fails with TN_CORRUPT if the file is not a shared library or is truncated, with TN_INCOMPATIBLE
 * if it is for another machine. For any input, reads stay within source->size and memory within 16
 * MiB. */
tn_status tni_elf_inspect(const tni_elf_source *source, tni_elf_facts *out, tn_error *err);

/* Like tni_elf_inspect, but reads only the headers. Names, relocations and arrays, megabytes in a
 * large library, need not be read to find a file. */
tn_status tni_elf_check_headers(const tni_elf_source *source, tn_error *err);

#endif
