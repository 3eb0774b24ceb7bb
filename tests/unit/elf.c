/* Shared libraries as read from their bytes: made here, whole, spoilt and cut. */
#include "test.h"

#include "base/alloc.h"
#include "os/elf.h"
#include "tenon/module/module.h"

#if defined(__x86_64__)
#define MACHINE 62
#elif defined(__aarch64__)
#define MACHINE 183
#elif defined(__riscv)
#define MACHINE 243
#else
#define MACHINE 0 /* any is accepted */
#endif

/* The least that is a shared library: a header, one segment to load that is the whole file, one
 * that is the dynamic section, and a table of names. Laid out as the specification says, without
 * the structs of the code under test. */
enum {
    AT_CLASS = 4,
    AT_ORDER = 5,
    AT_TYPE = 16,
    AT_MACHINE = 18,
    AT_PHOFF = 32,
    AT_PHENTSIZE = 54,
    AT_PHNUM = 56,
    AT_LOAD = 64,
    AT_DYNAMIC = AT_LOAD + 56,
    AT_ENTRIES = AT_DYNAMIC + 56,
    AT_RELOCATION = AT_ENTRIES + 112,
    AT_NAMES = AT_RELOCATION + 24,
    ADDRESS = 0x10000,
    MOST = AT_NAMES + 256
};
/* Within a segment, and within the dynamic section. */
enum { S_TYPE = 0, S_OFFSET = 8, S_ADDRESS = 16, S_SIZE = 32 };
enum {
    D_NAMES = AT_ENTRIES + 8,
    D_NAMES_SIZE = AT_ENTRIES + 24,
    D_INIT_SIZE = AT_ENTRIES + 40,
    D_INIT = AT_ENTRIES + 56,
    D_RELOCATIONS = AT_ENTRIES + 72,
    D_RELOCATIONS_SIZE = AT_ENTRIES + 88
};

typedef struct image {
    unsigned char bytes[MOST];
    size_t size;
    bool unreadable;
} image;

static void put(image *to, size_t at, uint64_t value, size_t size)
{
    uint16_t probe = 1;
    for (size_t i = 0; i < size; i++) {
        size_t place = *(unsigned char *)&probe ? i : size - 1 - i;
        to->bytes[at + place] = (unsigned char)(value >> (8 * i));
    }
}

static void put_segment(image *to, size_t at, uint64_t type, uint64_t offset, uint64_t size)
{
    put(to, at + S_TYPE, type, 4);
    put(to, at + S_OFFSET, offset, 8);
    put(to, at + S_ADDRESS, ADDRESS + offset, 8);
    put(to, at + S_SIZE, size, 8);
}

/* `names` is a table of names: each has a terminator, and the last one the literal's own. */
static image library(const char *names, size_t names_size)
{
    image to = {.size = AT_NAMES + names_size};
    uint16_t probe = 1;
    memcpy(to.bytes, "\177ELF\2", 5);
    to.bytes[AT_ORDER] = *(unsigned char *)&probe ? 1 : 2;
    to.bytes[6] = 1;
    put(&to, AT_TYPE, 3, 2);
    put(&to, AT_MACHINE, MACHINE, 2);
    put(&to, AT_PHOFF, AT_LOAD, 8);
    put(&to, AT_PHENTSIZE, 56, 2);
    put(&to, AT_PHNUM, 2, 2);
    put_segment(&to, AT_LOAD, 1, 0, to.size);
    put_segment(&to, AT_DYNAMIC, 2, AT_ENTRIES, 112);
    put(&to, AT_ENTRIES, 5, 8);
    put(&to, D_NAMES, ADDRESS + AT_NAMES, 8);
    put(&to, AT_ENTRIES + 16, 10, 8);
    put(&to, D_NAMES_SIZE, names_size, 8);
    put(&to, AT_ENTRIES + 32, 27, 8);
    put(&to, D_INIT_SIZE, 3 * sizeof(void *), 8);
    put(&to, AT_ENTRIES + 48, 25, 8);
    put(&to, D_INIT, ADDRESS + AT_ENTRIES, 8);
    put(&to, AT_ENTRIES + 64, 7, 8);
    put(&to, D_RELOCATIONS, ADDRESS + AT_RELOCATION, 8);
    put(&to, AT_ENTRIES + 80, 8, 8);
    put(&to, D_RELOCATIONS_SIZE, 24, 8);
    put(&to, AT_RELOCATION, ADDRESS + AT_ENTRIES, 8);
    put(&to, AT_RELOCATION + 8, 8, 8);
    memcpy(to.bytes + AT_NAMES, names, names_size);
    return to;
}

#define LIBRARY(names) library(names, sizeof(names))

static bool read_image(void *self, uint64_t offset, void *to, size_t size)
{
    const image *from = self;
    assert_true(offset <= from->size && size <= from->size - offset); /* never past the end */
    if (from->unreadable)
        return false;
    memcpy(to, from->bytes + offset, size);
    return true;
}

static tn_status inspect(image *from, tni_elf_facts *out, tn_error *err)
{
    const tni_elf_source source = {.self = from, .read_at = read_image, .size = from->size};
    return tni_elf_inspect(&source, out, err);
}

static tn_status check_headers(image *from, tn_error *err)
{
    const tni_elf_source source = {.self = from, .read_at = read_image, .size = from->size};
    return tni_elf_check_headers(&source, err);
}

static void library_says_what_it_is(void **state)
{
    tni_elf_facts facts;
    tn_error err;
    (void)state;
    image good = LIBRARY("\0tn_module_entry\0puts");
    assert_int_equal(inspect(&good, &facts, &err), TN_OK);
    assert_true(facts.has_entry);
    assert_int_equal(facts.sanitizers, 0);
    assert_int_equal(check_headers(&good, &err), TN_OK);
}

/* The third entry of the dynamic section as a library that is needed, by where its name begins. */
static void openmp_is_known_by_what_is_needed(void **state)
{
    static const char names[] = "\0libgomp.so.1\0libc.so.6\0libiomp5.so\0libgomp-1a2b.so.1.0.0";
    static const struct {
        uint64_t at, size;
        const char *found;
    } cases[] = {{1, sizeof names, "libgomp.so.1"},
                 {14, sizeof names, ""},
                 {24, sizeof names, "libiomp5.so"},
                 {36, sizeof names, "libgomp-1a2b.so.1.0.0"},
                 {4, sizeof names, ""},            /* "gomp.so.1" */
                 {36, sizeof names - 1, ""},       /* the name's end is not in the table */
                 {sizeof names, sizeof names, ""}, /* beyond its end */
                 {UINT64_MAX, sizeof names, ""}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tni_elf_facts facts;
        image from = library(names, sizeof names);
        put(&from, D_NAMES_SIZE, cases[i].size, 8);
        put(&from, AT_ENTRIES + 32, 1, 8);
        put(&from, D_INIT_SIZE, cases[i].at, 8);
        assert_int_equal(inspect(&from, &facts, NULL), TN_OK);
        assert_string_equal(facts.openmp, cases[i].found);
    }
}

static void names_are_whole_words_with_shared_tails(void **state)
{
    static const struct {
        const char *names;
        size_t size;
        bool has_entry;
    } cases[] = {
        {"\0tn_module_entry", 17, true},
        {"\0tn_module_entry", 16, false}, /* the table ends before the name's terminator */
        {"\0tn_module_entry2", 18, false},
        {"\0tn_module_entr", 16, false},
        {"\0my_tn_module_entry", 20, true}, /* linkers let names share their tails */
        {"\0tn_module_ent\0tn_module_entry", 31, true},
        {"", 1, false},
        {"", 0, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tni_elf_facts facts;
        image from = library(cases[i].names, cases[i].size);
        put(&from, AT_LOAD + S_SIZE, MOST, 8); /* so that even an empty table lies in the segment */
        from.size = MOST;
        assert_int_equal(inspect(&from, &facts, NULL), TN_OK);
        assert_int_equal(facts.has_entry, cases[i].has_entry);
    }
}

static void sanitizers_show_in_the_names(void **state)
{
    tni_elf_facts facts;
    image address = LIBRARY("\0__asan_init\0tn_module_entry");
    image thread = LIBRARY("\0tn_module_entry\0__tsan_init");
    image memory = LIBRARY("\0tn_module_entry\0__msan_init");
    (void)state;
    assert_int_equal(inspect(&address, &facts, NULL), TN_OK);
    assert_int_equal(facts.sanitizers, TN_MODULE_SANITIZER_ADDRESS);
    assert_int_equal(inspect(&thread, &facts, NULL), TN_OK);
    assert_int_equal(facts.sanitizers, TN_MODULE_SANITIZER_THREAD);
    assert_int_equal(inspect(&memory, &facts, NULL), TN_OK);
    assert_int_equal(facts.sanitizers, TN_MODULE_SANITIZER_MEMORY);
}

/* One field of a good library, changed. */
typedef struct change {
    size_t at, size;
    uint64_t value;
    tn_status status;
    bool in_header; /* tni_elf_check_headers finds it, too */
    const char *message;
} change;

static void spoilt_fields_are_named(void **state)
{
    static const change changes[] = {
        {0, 1, 'M', TN_CORRUPT, true, "does not begin like an ELF file"},
        {AT_CLASS, 1, 1, TN_INCOMPATIBLE, true, "another word size or byte order"},
        {AT_ORDER, 1, 3, TN_INCOMPATIBLE, true, "another word size or byte order"},
        {AT_MACHINE, 2, 22, TN_INCOMPATIBLE, true, "built for s390x; this is "},
        {AT_MACHINE, 2, 9999, TN_INCOMPATIBLE, true, "built for another machine; this is "},
        {AT_TYPE, 2, 2, TN_CORRUPT, true, "an ELF file, but not a shared library"},
        {AT_PHENTSIZE, 2, 32, TN_CORRUPT, true, "its program headers are invalid"},
        {AT_PHNUM, 2, 0, TN_CORRUPT, true, "its program headers are invalid"},
        {AT_PHNUM, 2, 257, TN_CORRUPT, true, "its program headers are invalid"},
        {AT_PHNUM, 2, 256, TN_CORRUPT, true, "truncated: its program headers are beyond its end"},
        {AT_PHOFF, 8, UINT64_MAX, TN_CORRUPT, true,
         "truncated: its program headers are beyond its end"},
        {AT_LOAD + S_SIZE, 8, UINT64_MAX, TN_CORRUPT, true, "bytes from offset 0"},
        {AT_LOAD + S_OFFSET, 8, UINT64_MAX, TN_CORRUPT, true, "truncated: "},
        {AT_LOAD + S_ADDRESS, 8, 0x20000, TN_CORRUPT, true, "its string table is invalid"},
        {AT_LOAD + S_TYPE, 4, 6, TN_CORRUPT, true, "its string table is invalid"},
        {AT_DYNAMIC + S_TYPE, 4, 6, TN_CORRUPT, true, "it has no dynamic section"},
        {AT_DYNAMIC + S_SIZE, 8, 0x10000, TN_CORRUPT, true, "truncated: "},
        {D_NAMES, 8, 0, TN_CORRUPT, true, "its string table is invalid"},
        {D_NAMES, 8, UINT64_MAX, TN_CORRUPT, true, "its string table is invalid"},
        {D_NAMES_SIZE, 8, (16 << 20) + 1, TN_CORRUPT, true, "its string table is invalid"},
        {D_NAMES_SIZE, 8, 16 << 20, TN_CORRUPT, false, "truncated: its string table is beyond"},
        {D_INIT_SIZE, 8, 1 << 20, TN_CORRUPT, false, "its arrays of constructors or destructors"},
        {D_INIT_SIZE, 8, UINT64_MAX, TN_CORRUPT, false,
         "its arrays of constructors or destructors"},
        {D_INIT, 8, 0, TN_CORRUPT, false, "its arrays of constructors or destructors are invalid"},
        {D_RELOCATIONS, 8, 0, TN_CORRUPT, false, "truncated: its relocations are beyond its end"},
        {D_RELOCATIONS_SIZE, 8, 1 << 20, TN_CORRUPT, false,
         "truncated: its relocations are beyond"},
        {AT_RELOCATION, 8, 0, TN_CORRUPT, false, "one is outside its segments"},
        {AT_RELOCATION, 8, UINT64_MAX, TN_CORRUPT, false, "one is outside its segments"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const change *c = &changes[i];
        tni_elf_facts facts = {.sanitizers = 77};
        image from = LIBRARY("\0tn_module_entry");
        tn_error err;
        if (c->at == AT_MACHINE && MACHINE == 0)
            continue;
        put(&from, c->at, c->value, c->size);
        assert_int_equal(inspect(&from, &facts, &err), c->status);
        assert_contains(err.message, c->message);
        assert_int_equal(facts.sanitizers, 77);
        assert_int_equal(check_headers(&from, &err), c->in_header ? c->status : TN_OK);
        if (c->in_header)
            assert_contains(err.message, c->message);
    }
}

static void file_cut_anywhere_is_refused(void **state)
{
    image whole = LIBRARY("\0tn_module_entry\0puts");
    (void)state;
    for (size_t size = 0; size < whole.size; size++) {
        tni_elf_facts facts;
        tn_error err;
        image cut = whole;
        cut.size = size;
        assert_int_equal(inspect(&cut, &facts, &err), TN_CORRUPT);
        assert_contains(err.message, size < AT_LOAD ? "bytes are too few" : "truncated: ");
        assert_int_equal(check_headers(&cut, NULL), TN_CORRUPT);
    }
}

/* Reads stay inside, as read_image asserts, and memory goes back. */
static void any_changed_byte_is_survived(void **state)
{
    const image whole = LIBRARY("\0tn_module_entry\0puts");
    int64_t blocks = tn_allocator_blocks();
    (void)state;
    for (size_t at = 0; at < whole.size; at++) {
        for (int kind = 0; kind < 10; kind++) { /* each bit turned, none set, all set */
            tni_elf_facts facts;
            image changed = whole;
            unsigned turned = changed.bytes[at] ^ (1u << kind);
            changed.bytes[at] = (unsigned char)(kind < 8 ? turned : kind == 8 ? 0 : 255);
            tn_status status = inspect(&changed, &facts, NULL);
            assert_true(status == TN_OK || status == TN_CORRUPT || status == TN_INCOMPATIBLE);
            tn_status headers = check_headers(&changed, NULL);
            assert_true(headers == status || (headers == TN_OK && status == TN_CORRUPT));
        }
    }
    assert_int_equal(tn_allocator_blocks(), blocks);
}

static void unreadable_file_is_refused(void **state)
{
    tni_elf_facts facts;
    image from = LIBRARY("\0tn_module_entry");
    (void)state;
    from.unreadable = true;
    assert_int_equal(inspect(&from, &facts, NULL), TN_CORRUPT);
    assert_int_equal(check_headers(&from, NULL), TN_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_says_what_it_is),
        cmocka_unit_test(openmp_is_known_by_what_is_needed),
        cmocka_unit_test(names_are_whole_words_with_shared_tails),
        cmocka_unit_test(sanitizers_show_in_the_names),
        cmocka_unit_test(spoilt_fields_are_named),
        cmocka_unit_test(file_cut_anywhere_is_refused),
        cmocka_unit_test(any_changed_byte_is_survived),
        cmocka_unit_test(unreadable_file_is_refused),
    };
    return run_suite("unit.elf", tests);
}
