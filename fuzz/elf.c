/* Inspection of a shared library: for any bytes, it reads only inside them, frees its memory, and
 * either returns the facts or a reason. */
#include "os/elf.h"
#include "base/alloc.h"
#include "tenon/module/module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

typedef struct bytes {
    const uint8_t *data;
    size_t size;
} bytes;

static bool read_at(void *self, uint64_t offset, void *to, size_t size)
{
    const bytes *from = self;
    require(offset <= from->size && size <= from->size - offset);
    memcpy(to, from->data + offset, size);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes from = {data, size};
    const tni_elf_source source = {.self = &from, .read_at = read_at, .size = size};
    tni_elf_facts facts;
    tn_error err = {0};
    tn_status status = tni_elf_inspect(&source, &facts, &err);
    if (status)
        require((status == TN_CORRUPT || status == TN_INCOMPATIBLE) && err.message[0]);
    else
        require((facts.sanitizers & ~TN_MODULE_SANITIZERS) == 0);
    tn_status headers = tni_elf_check_headers(&source, &err);
    require(headers == status || (headers == TN_OK && status == TN_CORRUPT));
    require(tn_allocator_blocks() == 0);
    return 0;
}
