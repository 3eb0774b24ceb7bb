#include "look_read.h"

#include "base/checked.h"

/* Format of the cache that glibc's ldconfig writes and its loader reads: version 1.1, alone or
 * after a cache of the previous version. Offsets of names and paths are relative to
 * `glibc_cache`. */
typedef struct old_cache {
    char magic[12];
    uint32_t count;
} old_cache;

typedef struct glibc_cache {
    char magic[20];
    uint32_t count;
    uint32_t strings_size;
    uint8_t flags; /* lowest two bits: 0 unknown, 2 little-endian, 3 big-endian */
    uint8_t unused[3];
    uint32_t extensions;
    uint32_t reserved[3];
} glibc_cache;

typedef struct cache_entry {
    uint32_t flags; /* 3 for a library of this libc, plus the machine */
    uint32_t name;
    uint32_t path;
    uint32_t system_version;
    uint64_t instructions; /* 0: runs on any processor of the machine */
} cache_entry;

enum { OLD_ENTRY_SIZE = 12, KIND = 0xFF, KIND_LIBC6 = 3 };

#if defined(__x86_64__)
#define THIS_MACHINE 0x303
#elif defined(__aarch64__)
#define THIS_MACHINE 0xA03
#elif defined(__riscv_float_abi_double)
#define THIS_MACHINE 0x1003
#else
#define THIS_MACHINE 0 /* unknown: accept any; the file itself is checked later */
#endif

static tni_span without(tni_span bytes, size_t size)
{
    return (tni_span){bytes.text + size, bytes.length - size};
}

/* Skips a complete cache of the previous version, if there is one. */
static tni_span skip_old(tni_span bytes)
{
    static const char magic[12] = "ld.so-1.7.0";
    old_cache header;
    size_t size;
    if (bytes.length < sizeof header)
        return bytes;
    memcpy(&header, bytes.text, sizeof header);
    if (memcmp(header.magic, magic, sizeof magic) != 0 ||
        !tni_mul_size(header.count, OLD_ENTRY_SIZE, &size) ||
        !tni_add_size(size, sizeof header, &size) ||
        !tni_align_size(size, _Alignof(cache_entry), &size) || size > bytes.length)
        return bytes;
    return without(bytes, size);
}

tn_status tni_loader_cache_parse(tni_span bytes, tni_loader_cache *out, tn_error *err)
{
    static const char magic[] = "glibc-ld.so.cache1.1";
    glibc_cache header;
    uint16_t probe = 1;
    int order = *(unsigned char *)&probe ? 2 : 3;
    tni_span data = skip_old(bytes);
    if (!tni_span_begins(data, magic))
        return tn_fail(err, TN_CORRUPT, 0, "look", "not a cache of glibc 2.2 or later");
    if (data.length < sizeof header)
        return tn_fail(err, TN_CORRUPT, 0, "look", "truncated within its header");
    memcpy(&header, data.text, sizeof header);
    if (header.flags != 0 && (header.flags & 3) != order)
        return tn_fail(err, TN_INCOMPATIBLE, 0, "look", "wrong byte order");
    if (header.count > (data.length - sizeof header) / sizeof(cache_entry))
        return tn_fail(err, TN_CORRUPT, 0, "look", "truncated: %u entries do not fit in %zu bytes",
                       (unsigned)header.count, data.length);
    *out = (tni_loader_cache){data, header.count};
    return TN_OK;
}

static bool is_for_this_machine(const cache_entry *entry)
{
    bool fits = THIS_MACHINE ? entry->flags == THIS_MACHINE : (entry->flags & KIND) == KIND_LIBC6;
    return fits && entry->instructions == 0;
}

/* Whether `name` with a terminator is at the offset. */
static bool is_name_at(tni_span data, uint32_t offset, tni_span name)
{
    return offset < data.length && name.length < data.length - offset &&
           memcmp(data.text + offset, name.text, name.length) == 0 &&
           data.text[offset + name.length] == '\0';
}

const char *tni_loader_cache_find(const tni_loader_cache *cache, tni_span name)
{
    tni_span data = cache->data;
    for (uint32_t i = 0; i < cache->count; i++) {
        cache_entry entry;
        memcpy(&entry, data.text + sizeof(glibc_cache) + i * sizeof entry, sizeof entry);
        if (!is_for_this_machine(&entry) || !is_name_at(data, entry.name, name) ||
            entry.path >= data.length)
            continue;
        const char *path = data.text + entry.path;
        if (path[0] == '/' && memchr(path, '\0', data.length - entry.path))
            return path;
    }
    return NULL;
}
