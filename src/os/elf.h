/* What a shared library is, read from its file without running any of it: opening one that is cut
 * short can kill the process, and opening one runs its constructors. */
#ifndef TNI_OS_ELF_H
#define TNI_OS_ELF_H

#include "tenon/base.h"

#include <stdbool.h>

/* Where the bytes come from; read_at is false when they are not all there. */
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

/* TN_CORRUPT: not a shared library, or cut short. TN_INCOMPATIBLE: of another machine. Whatever
 * the bytes are, reads stay within source->size and memory within 16 MiB. */
tn_status tni_elf_inspect(const tni_elf_source *source, tni_elf_facts *out, tn_error *err);

#endif
