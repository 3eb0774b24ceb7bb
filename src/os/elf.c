#include "elf.h"

#include "base/alloc.h"
#include "openmp.h"
#include "tenon/module/module.h"

/* The parts of the ELF-64 format that are read here, by the names of its specification. */
typedef struct elf_header {
    unsigned char ident[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, phoff, shoff;
    uint32_t flags;
    uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
} elf_header;

typedef struct elf_segment {
    uint32_t type, flags;
    uint64_t offset, vaddr, paddr, filesz, memsz, align;
} elf_segment;

typedef struct elf_dynamic {
    int64_t tag;
    uint64_t value;
} elf_dynamic;

typedef struct elf_relocation {
    uint64_t offset, info;
    int64_t addend;
} elf_relocation;

enum { ET_DYNAMIC = 3, SEGMENT_LOAD = 1, SEGMENT_DYNAMIC = 2 };
enum {
    TAG_NEEDED = 1,
    TAG_PLTRELSZ = 2,
    TAG_STRTAB = 5,
    TAG_RELA = 7,
    TAG_RELASZ = 8,
    TAG_STRSZ = 10,
    TAG_JMPREL = 23,
    TAG_INIT_ARRAY = 25,
    TAG_FINI_ARRAY = 26,
    TAG_INIT_ARRAYSZ = 27,
    TAG_FINI_ARRAYSZ = 28
};
enum { MOST_SEGMENTS = 256, MOST_DYNAMIC = 4096, MOST_STRINGS = 16 << 20 };

static const struct {
    uint16_t machine;
    const char *name;
} machines[] = {{3, "i386"},    {20, "ppc"},      {21, "ppc64"},  {22, "s390x"},     {40, "arm"},
                {62, "x86_64"}, {183, "aarch64"}, {243, "riscv"}, {258, "loongarch"}};

#if defined(__x86_64__)
#define THIS_MACHINE 62
#elif defined(__aarch64__)
#define THIS_MACHINE 183
#elif defined(__riscv)
#define THIS_MACHINE 243
#else
#define THIS_MACHINE 0 /* unknown: the loader decides */
#endif

static const char *machine_name(uint16_t machine)
{
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        if (machines[i].machine == machine)
            return machines[i].name;
    }
    return "another machine";
}

static tn_status fail_corrupt(tn_error *err, const char *text)
{
    return tn_fail(err, TN_CORRUPT, 0, "inspect", "%s", text);
}

static bool read_at(const tni_elf_source *source, uint64_t offset, void *to, size_t size)
{
    return offset <= source->size && size <= source->size - offset &&
           source->read_at(source->self, offset, to, size);
}

static tn_status read_header(const tni_elf_source *source, elf_header *out, tn_error *err)
{
    elf_header header;
    uint16_t probe = 1;
    bool little = *(unsigned char *)&probe == 1;
    if (!read_at(source, 0, &header, sizeof header))
        return tn_fail(err, TN_CORRUPT, 0, "inspect",
                       "not a shared library: %llu bytes are too few",
                       (unsigned long long)source->size);
    if (memcmp(header.ident, "\177ELF", 4) != 0)
        return fail_corrupt(err, "not a shared library: it does not begin like an ELF file");
    if (header.ident[4] != 2 || header.ident[5] != (little ? 1 : 2))
        return tn_fail(err, TN_INCOMPATIBLE, 0, "inspect",
                       "built for a machine of another word size or byte order");
    if (THIS_MACHINE != 0 && header.machine != THIS_MACHINE)
        return tn_fail(err, TN_INCOMPATIBLE, 0, "inspect", "built for %s; this is %s",
                       machine_name(header.machine), machine_name(THIS_MACHINE));
    if (header.type != ET_DYNAMIC)
        return fail_corrupt(err, "an ELF file, but not a shared library");
    if (header.phentsize != sizeof(elf_segment) || header.phnum == 0 ||
        header.phnum > MOST_SEGMENTS)
        return fail_corrupt(err, "its program headers are invalid");
    *out = header;
    return TN_OK;
}

typedef struct layout {
    elf_segment segments[MOST_SEGMENTS];
    elf_dynamic dynamic[MOST_DYNAMIC];
    size_t segment_count;
    size_t dynamic_count;
} layout;

/* Every loaded byte must be in the file: otherwise the loader maps missing bytes and the process
 * crashes. */
static tn_status read_segments(const tni_elf_source *source, const elf_header *header, layout *to,
                               tn_error *err)
{
    if (!read_at(source, header->phoff, to->segments, header->phnum * sizeof to->segments[0]))
        return fail_corrupt(err, "truncated: its program headers are beyond its end");
    to->segment_count = header->phnum;
    for (size_t i = 0; i < to->segment_count; i++) {
        const elf_segment *s = &to->segments[i];
        if (s->type != SEGMENT_LOAD && s->type != SEGMENT_DYNAMIC)
            continue;
        if (s->offset > source->size || s->filesz > source->size - s->offset)
            return tn_fail(err, TN_CORRUPT, 0, "inspect",
                           "truncated: expected %llu bytes from offset %llu, the file has %llu",
                           (unsigned long long)s->filesz, (unsigned long long)s->offset,
                           (unsigned long long)source->size);
    }
    return TN_OK;
}

static tn_status read_dynamic(const tni_elf_source *source, layout *to, tn_error *err)
{
    const elf_segment *found = NULL;
    for (size_t i = 0; i < to->segment_count; i++) {
        if (to->segments[i].type == SEGMENT_DYNAMIC)
            found = &to->segments[i];
    }
    if (!found)
        return fail_corrupt(err, "not a shared library: it has no dynamic section");
    to->dynamic_count = (size_t)(found->filesz / sizeof(elf_dynamic));
    if (to->dynamic_count > MOST_DYNAMIC)
        to->dynamic_count = MOST_DYNAMIC;
    if (!read_at(source, found->offset, to->dynamic, to->dynamic_count * sizeof to->dynamic[0]))
        return fail_corrupt(err, "truncated: its dynamic section is beyond its end");
    return TN_OK;
}

static uint64_t dynamic_value(const layout *from, int64_t tag)
{
    for (size_t i = 0; i < from->dynamic_count && from->dynamic[i].tag != 0; i++) {
        if (from->dynamic[i].tag == tag)
            return from->dynamic[i].value;
    }
    return 0;
}

/* The file offset of an address, or UINT64_MAX. */
static uint64_t offset_of(const layout *in, uint64_t address)
{
    for (size_t i = 0; i < in->segment_count; i++) {
        const elf_segment *s = &in->segments[i];
        if (s->type == SEGMENT_LOAD && address >= s->vaddr && address - s->vaddr < s->filesz)
            return s->offset + (address - s->vaddr);
    }
    return UINT64_MAX;
}

/* Whether one loaded segment has all of these bytes in memory. */
static bool is_loaded(const layout *in, uint64_t address, uint64_t bytes)
{
    for (size_t i = 0; i < in->segment_count; i++) {
        const elf_segment *s = &in->segments[i];
        const uint64_t size = s->memsz > s->filesz ? s->memsz : s->filesz;
        if (s->type == SEGMENT_LOAD && address >= s->vaddr && bytes <= size &&
            address - s->vaddr <= size - bytes)
            return true;
    }
    return false;
}

/* Every relocation must change the library itself: the loader writes wherever it points to, and what
 * is there differs from process to process, so that a probe in another process may survive it. */
static tn_status check_relocations(const tni_elf_source *source, const layout *in, int64_t table,
                                   int64_t size_tag, tn_error *err)
{
    enum { AT_ONCE = 128 };
    elf_relocation some[AT_ONCE];
    const uint64_t size = dynamic_value(in, size_tag),
                   offset = offset_of(in, dynamic_value(in, table));
    if (size == 0)
        return TN_OK;
    for (uint64_t done = 0; done < size; done += sizeof some) {
        const size_t bytes = (size_t)(size - done < sizeof some ? size - done : sizeof some);
        if (offset > source->size || !read_at(source, offset + done, some, bytes))
            return fail_corrupt(err, "truncated: its relocations are beyond its end");
        for (size_t i = 0; i < bytes / sizeof some[0]; i++) {
            if ((uint32_t)some[i].info && !is_loaded(in, some[i].offset, 1))
                return fail_corrupt(err,
                                    "its relocations are invalid: one is outside its segments");
        }
    }
    return TN_OK;
}

/* The loader calls the functions of these arrays, at the start and at the end. */
static tn_status check_arrays(const layout *in, tn_error *err)
{
    const uint64_t starts = dynamic_value(in, TAG_INIT_ARRAYSZ);
    const uint64_t ends = dynamic_value(in, TAG_FINI_ARRAYSZ);
    if ((starts && !is_loaded(in, dynamic_value(in, TAG_INIT_ARRAY), starts)) ||
        (ends && !is_loaded(in, dynamic_value(in, TAG_FINI_ARRAY), ends)))
        return fail_corrupt(err, "its arrays of constructors or destructors are invalid");
    return TN_OK;
}

/* Whether `strings` contains `word` followed by a terminator. Linkers share string tails, so it may
 * start at any offset. */
static bool contains_string(const char *strings, size_t size, const char *word)
{
    size_t length = strlen(word) + 1;
    for (size_t i = 0; i + length <= size; i++) {
        const char *at = memchr(strings + i, word[0], size - length + 1 - i);
        if (!at)
            return false;
        if (memcmp(at, word, length) == 0)
            return true;
        i = (size_t)(at - strings);
    }
    return false;
}

static void read_names(const char *strings, size_t size, tni_elf_facts *out)
{
    out->has_entry = contains_string(strings, size, "tn_module_entry");
    if (contains_string(strings, size, "__asan_init"))
        out->sanitizers |= TN_MODULE_SANITIZER_ADDRESS;
    if (contains_string(strings, size, "__tsan_init"))
        out->sanitizers |= TN_MODULE_SANITIZER_THREAD;
    if (contains_string(strings, size, "__msan_init"))
        out->sanitizers |= TN_MODULE_SANITIZER_MEMORY;
}

static void read_needs(const layout *from, const char *strings, size_t size, tni_elf_facts *out)
{
    for (size_t i = 0; i < from->dynamic_count && from->dynamic[i].tag != 0; i++) {
        uint64_t at = from->dynamic[i].value;
        if (from->dynamic[i].tag != TAG_NEEDED || at >= size ||
            !memchr(strings + at, '\0', size - (size_t)at) || !tni_openmp_is_runtime(strings + at))
            continue;
        tn_text_fit(out->openmp, sizeof out->openmp, strings + at);
        return;
    }
}

static tn_status read_headers(const tni_elf_source *source, layout *to, tn_error *err)
{
    elf_header header = {0};
    tn_status status = read_header(source, &header, err);
    if (!status)
        status = read_segments(source, &header, to, err);
    if (!status)
        status = read_dynamic(source, to, err);
    if (status)
        return status;
    return dynamic_value(to, TAG_STRSZ) > MOST_STRINGS ||
                   offset_of(to, dynamic_value(to, TAG_STRTAB)) == UINT64_MAX
               ? fail_corrupt(err, "its string table is invalid")
               : TN_OK;
}

/* `in` has the headers. */
static tn_status read_strings(const tni_elf_source *source, const layout *in, tni_elf_facts *out,
                              tn_error *err)
{
    tn_status status = TN_OK;
    uint64_t size = dynamic_value(in, TAG_STRSZ);
    uint64_t offset = offset_of(in, dynamic_value(in, TAG_STRTAB));
    char *strings = tni_alloc((size_t)size);
    if (!strings)
        return tni_no_memory(err, "inspect", "its string table");
    if (read_at(source, offset, strings, (size_t)size)) {
        read_names(strings, (size_t)size, out);
        read_needs(in, strings, (size_t)size, out);
    } else {
        status = fail_corrupt(err, "truncated: its string table is beyond its end");
    }
    tni_release(strings);
    return status;
}

static tn_status inspect_file(const tni_elf_source *source, layout *in, tni_elf_facts *out,
                              tn_error *err)
{
    tn_status status = read_headers(source, in, err);
    if (!status)
        status = read_strings(source, in, out, err);
    if (!status)
        status = check_relocations(source, in, TAG_RELA, TAG_RELASZ, err);
    if (!status)
        status = check_relocations(source, in, TAG_JMPREL, TAG_PLTRELSZ, err);
    if (!status)
        status = check_arrays(in, err);
    return status;
}

tn_status tni_elf_inspect(const tni_elf_source *source, tni_elf_facts *out, tn_error *err)
{
    tni_elf_facts facts = {0};
    layout *in = tni_alloc_zeroed(1, sizeof *in);
    if (!in)
        return tni_no_memory(err, "inspect", "the file's headers");
    tn_status status = inspect_file(source, in, &facts, err);
    tni_release(in);
    if (!status)
        *out = facts;
    return status;
}

tn_status tni_elf_check_headers(const tni_elf_source *source, tn_error *err)
{
    layout *in = tni_alloc_zeroed(1, sizeof *in);
    if (!in)
        return tni_no_memory(err, "inspect", "the file's headers");
    tn_status status = read_headers(source, in, err);
    tni_release(in);
    return status;
}
