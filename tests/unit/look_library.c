/* Libraries where the loader would find them: its cache, made here, whole, spoilt and cut; folders
 * of systems that do not exist; and this system, held against what the loader itself says. */
#include "look_check.h"

#include "base/alloc.h"
#include "os/dl.h"
#include "os/file.h"

#include <elf.h>

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64, FLAGS = 0x303, OTHER_FLAGS = 0x803 };
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64, FLAGS = 0xA03, OTHER_FLAGS = 0x903 };
#define MULTIARCH "aarch64-linux-gnu"
#else
enum { MACHINE = 0, FLAGS = 3, OTHER_FLAGS = 2 };
#endif

static const char cache_path[] = "/etc/ld.so.cache";

/* One entry of a cache. Offsets, where they are not 0, stand for those of the texts. */
struct row {
    const char *name, *path;
    uint32_t flags, name_at, path_at;
    uint64_t instructions;
};

struct image {
    char bytes[4096];
    size_t size;
};

static void add(struct image *to, const void *bytes, size_t size)
{
    assert_true(size <= sizeof to->bytes - to->size);
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static void add_number(struct image *to, uint32_t value)
{
    add(to, &value, sizeof value);
}

/* Its own header, entries and texts, as the cache of the time before has them. */
static void add_old(struct image *to, uint32_t count)
{
    static const char zeros[8] = {0};
    add(to, "ld.so-1.7.0", 12);
    add_number(to, count);
    for (uint32_t i = 0; i < 3 * count; i++)
        add_number(to, i);
    add(to, zeros, (8 - to->size % 8) % 8);
}

static uint8_t this_order(void)
{
    uint16_t probe = 1;
    return *(unsigned char *)&probe ? 2 : 3;
}

static void add_cache(struct image *to, const struct row *rows, uint32_t count)
{
    const uint8_t flags[4] = {this_order()};
    uint32_t at = 48 + 24 * count;
    add(to, "glibc-ld.so.cache1.1", 20);
    add_number(to, count);
    add_number(to, 0); /* nobody reads the size of the texts */
    add(to, flags, sizeof flags);
    for (int i = 0; i < 4; i++)
        add_number(to, 0);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t path_at = at + (uint32_t)strlen(rows[i].name) + 1;
        add_number(to, rows[i].flags);
        add_number(to, rows[i].name_at ? rows[i].name_at : at);
        add_number(to, rows[i].path_at ? rows[i].path_at : path_at);
        add_number(to, 0);
        add(to, &rows[i].instructions, 8);
        at = path_at + (uint32_t)strlen(rows[i].path) + 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        add(to, rows[i].name, strlen(rows[i].name) + 1);
        add(to, rows[i].path, strlen(rows[i].path) + 1);
    }
}

/* From a block of its very size, so that a sanitizer sees what is read past the end. */
static tn_status parse(const char *bytes, size_t size, const char *name, char out[64],
                       tn_error *err)
{
    tni_loader_cache cache;
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    tn_status status = tni_loader_cache_parse((tni_span){copy, size}, &cache, err);
    const char *found = status ? NULL : tni_loader_cache_find(&cache, tni_span_of(name));
    snprintf(out, 64, "%s", found ? found : "");
    free(copy);
    return status;
}

static void expect_path(const struct image *image, const char *name, const char *path)
{
    char found[64];
    tn_error err = {0};
    if (parse(image->bytes, image->size, name, found, &err))
        fail_msg("%s", err.message);
    assert_string_equal(found, path);
}

static const struct row some[] = {
    {"libother.so.1", "/lib32/libother.so.1", OTHER_FLAGS, 0, 0, 0},
    {"libfast.so.1", "/lib/fast/libfast.so.1", FLAGS, 0, 0, UINT64_C(1) << 62},
    {"libfast.so.1", "/lib/libfast.so.1", FLAGS, 0, 0, 0},
    {"libcuda.so.1", "/lib32/libcuda.so.1", OTHER_FLAGS, 0, 0, 0},
    {"libcuda.so.1", "/opt/libcuda.so.1", FLAGS, 0, 0, 0},
    {"libcuda.so.1", "/usr/libcuda.so.1", FLAGS, 0, 0, 0},
    {"liblast.so", "/usr/liblast.so", FLAGS, 0, 0, 0},
};
enum { SOME = sizeof some / sizeof some[0] };

static void check_some(const struct image *image)
{
    expect_path(image, "libcuda.so.1", "/opt/libcuda.so.1");
    expect_path(image, "liblast.so", "/usr/liblast.so");
    expect_path(image, "libfast.so.1", "/lib/libfast.so.1");
    expect_path(image, "libother.so.1", "");
    expect_path(image, "libcuda.so", "");
    expect_path(image, "libcuda.so.11", "");
    expect_path(image, "ibcuda.so.1", "");
    expect_path(image, "", "");
}

static void cache_gives_the_path_for_this_machine(void **state)
{
    struct image image = {.size = 0}, none = {.size = 0};
    (void)state;
    add_cache(&image, some, SOME);
    check_some(&image);
    image.bytes[28] = 0; /* written before caches said their byte order */
    check_some(&image);
    add_cache(&none, NULL, 0);
    expect_path(&none, "libcuda.so.1", "");
}

static void cache_is_found_after_an_older_one(void **state)
{
    (void)state;
    for (uint32_t count = 0; count < 5; count++) {
        struct image image = {.size = 0};
        add_old(&image, count);
        add_cache(&image, some, SOME);
        check_some(&image);
    }
}

static void what_is_no_cache_says_why(void **state)
{
    char found[64];
    tn_error err;
    struct image image = {.size = 0};
    (void)state;
    assert_int_equal(parse("", 0, "a", found, &err), TN_CORRUPT);
    assert_contains(err.message, "not a cache of glibc 2.2 or later");
    add_old(&image, 2);
    assert_int_equal(parse(image.bytes, image.size, "a", found, &err), TN_CORRUPT);
    assert_contains(err.message, "not a cache of glibc");
    add_cache(&image, some, SOME);
    memset(image.bytes + 12, 0xff, 4); /* more entries before it than there is room for */
    assert_int_equal(parse(image.bytes, image.size, "a", found, &err), TN_CORRUPT);
    image.size = 0;
    add_cache(&image, some, SOME);
    image.bytes[28] = (char)(this_order() ^ 1);
    assert_int_equal(parse(image.bytes, image.size, "a", found, &err), TN_INCOMPATIBLE);
    assert_contains(err.message, "wrong byte order");
    image.bytes[28] = 1;
    assert_int_equal(parse(image.bytes, image.size, "a", found, &err), TN_INCOMPATIBLE);
}

/* Wherever it ends, what is given stood whole before the end. */
static void cache_may_be_cut_anywhere(void **state)
{
    char found[64];
    tn_error err;
    (void)state;
    for (int old = 0; old < 2; old++) {
        struct image image = {.size = 0};
        if (old)
            add_old(&image, 3);
        size_t before = image.size, entries = before + 48 + 24 * SOME;
        add_cache(&image, some, SOME);
        for (size_t size = 0; size < image.size; size++) {
            tn_status status = parse(image.bytes, size, "liblast.so", found, &err);
            assert_int_equal(status, size < entries ? TN_CORRUPT : TN_OK);
            if (status)
                assert_contains(err.message, size < before + 20   ? "not a cache"
                                             : size < before + 48 ? "truncated within its header"
                                                                  : "truncated: 7 entries");
            assert_string_equal(found, "");
            (void)parse(image.bytes, size, "libcuda.so.1", found, &err);
            assert_true(!found[0] || strcmp(found, "/opt/libcuda.so.1") == 0 ||
                        strcmp(found, "/usr/libcuda.so.1") == 0);
        }
    }
}

static void entries_that_lead_outside_are_passed_over(void **state)
{
    static const uint32_t names[] = {UINT32_MAX, UINT32_MAX - 12, 4096, 0x7fffffff};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct row rows[] = {
            {"liba.so", "/1/liba.so", FLAGS, names[i], 0, 0},
            {"liba.so", "/2/liba.so", FLAGS, 0, names[i], 0},
            {"liba.so", "3/liba.so", FLAGS, 0, 0, 0},
            {"liba.so", "", FLAGS, 0, 0, 0},
            {"liba.so", "/5/liba.so", FLAGS, 0, 0, 0},
        };
        struct image image = {.size = 0};
        add_cache(&image, rows, 5);
        expect_path(&image, "liba.so", "/5/liba.so");
        uint32_t end = (uint32_t)image.size; /* the last text has its terminator there */
        rows[0].name_at = end - 3;
        rows[1].path_at = end;
        image.size = 0;
        add_cache(&image, rows, 5);
        expect_path(&image, "liba.so", "/5/liba.so");
        image.size--; /* and now it has none */
        expect_path(&image, "liba.so", "");
    }
}

static void no_byte_leads_outside(void **state)
{
    char found[64];
    tn_error err;
    struct image image = {.size = 0};
    (void)state;
    add_old(&image, 1);
    add_cache(&image, some, SOME);
    for (size_t i = 0; i < image.size; i++) {
        for (int bit = 0; bit < 9; bit++) {
            char before = image.bytes[i];
            image.bytes[i] = (char)(bit < 8 ? before ^ 1 << bit : 0xff);
            (void)parse(image.bytes, image.size, "libcuda.so.1", found, &err);
            assert_true(!found[0] || found[0] == '/');
            image.bytes[i] = before;
        }
    }
}

static const char *folders; /* that the next look begins with */

static tni_look at(const char *root, const char *files)
{
    tni_look look = look_unset();
    tni_look_library(root, files, folders, &look);
    return look_sound(look);
}

static void put_bytes(const char *root, const char *path, const void *bytes, size_t size)
{
    tree_put(root, path, "%s", "");
    FILE *file = fopen(look_below(root, path), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The least that is a shared library of a machine. */
static void put_library(const char *root, const char *path, int bits, int machine)
{
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr segments[2];
        Elf64_Dyn dynamic[4];
        char names[16];
    } image = {.names = "\0name"};
    memcpy(image.header.e_ident, ELFMAG, SELFMAG);
    image.header.e_ident[EI_CLASS] = bits == 64 ? ELFCLASS64 : ELFCLASS32;
    image.header.e_ident[EI_DATA] = this_order() == 2 ? ELFDATA2LSB : ELFDATA2MSB;
    image.header.e_type = ET_DYN;
    image.header.e_machine = (Elf64_Half)machine;
    image.header.e_phoff = sizeof image.header;
    image.header.e_phentsize = sizeof image.segments[0];
    image.header.e_phnum = 2;
    image.segments[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_filesz = sizeof image};
    image.segments[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
                                     .p_offset = sizeof image.header + sizeof image.segments,
                                     .p_filesz = sizeof image.dynamic};
    image.dynamic[0] =
        (Elf64_Dyn){.d_tag = DT_STRTAB, .d_un.d_ptr = sizeof image - sizeof image.names};
    image.dynamic[1] = (Elf64_Dyn){.d_tag = DT_STRSZ, .d_un.d_val = sizeof image.names};
    put_bytes(root, path, &image, sizeof image);
}

static void put(const char *root, const char *path)
{
    put_library(root, path, 64, MACHINE);
}

static void put_cache(const char *root, const char *name, const char *path)
{
    const struct row row = {name, path, FLAGS, 0, 0, 0};
    struct image image = {.size = 0};
    add_cache(&image, &row, 1);
    put_bytes(root, cache_path, image.bytes, image.size);
}

/* Each is found until it is taken away, and then the next one is. */
static void places_are_searched_as_the_loader_does(void **state)
{
    static const char *const order[] = {
        "/given/one/libx.so.1",
        "/given/two/libx.so.1",
        "/opt/acme/libx.so.1",
#if defined(MULTIARCH)
        "/lib/" MULTIARCH "/libx.so.1",
        "/usr/lib/" MULTIARCH "/libx.so.1",
#endif
        "/lib64/libx.so.1",
        "/usr/lib64/libx.so.1",
        "/lib/libx.so.1",
        "/usr/lib/libx.so.1",
    };
    const char *root = look_root();
    (void)state;
    folders = "/given/none:/given/one;relative::/given/two:";
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        put(root, order[i]);
    put_cache(root, "libx.so.1", "/opt/acme/libx.so.1");
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        look_expect(at(root, "libx.so.1"), 1, 1, order[i]);
        assert_int_equal(remove(look_below(root, order[i])), 0);
    }
    look_expect(at(root, "libx.so.1"), 0, 0, "absent");
    folders = NULL;
    look_expect(at(root, "libx.so.1"), 0, 0, "absent");
}

static void names_are_tried_in_order(void **state)
{
    char longest[300];
    const char *root = look_root();
    (void)state;
    put(root, "/lib/liba.so.1");
    put(root, "/usr/lib/libb.so.2");
    look_expect(at(root, "liba.so.1|libb.so.2"), 1, 1, "/lib/liba.so.1");
    look_expect(at(root, "libb.so.2|liba.so.1"), 1, 1, "/usr/lib/libb.so.2");
    look_expect(at(root, "libc.so.3|libb.so.2"), 1, 1, "/usr/lib/libb.so.2");
    look_expect(at(root, "libc.so.3|libd.so.4"), 0, 0, "absent");
    look_expect(at(root, ""), -1, 0, "\"\" has an empty name, or one longer than 255 bytes");
    assert_int_equal(at(root, "liba.so.1|").holds, -1);
    assert_int_equal(at(root, "|liba.so.1").holds, -1);
    assert_int_equal(at(root, "liba.so.1||libb.so.2").holds, -1);
    memset(longest, 'x', sizeof longest);
    longest[256] = '\0';
    assert_contains(at(root, longest).text, "has an empty name, or one longer than 255 bytes");
    longest[255] = '\0';
    look_expect(at(root, longest), 0, 0, "absent");
}

static void name_with_a_folder_is_a_path(void **state)
{
    char beside[SCRATCH_PATH * 2];
    const char *root = look_root();
    (void)state;
    put(root, "/opt/liba.so.1");
    look_expect(at(root, "/opt/liba.so.1"), 1, 1, "/opt/liba.so.1");
    look_expect(at(root, "/opt/libb.so.1"), 0, 0, "absent");
    snprintf(beside, sizeof beside, "%sopt", root);
    put(beside, "/liba.so.1");
    look_expect(at(root, "opt/liba.so.1"), 0, 0, "absent");
    look_expect(at(NULL, look_below(root, "/opt/liba.so.1")), 1, 1,
                look_below(root, "/opt/liba.so.1"));
}

static void library_of_another_machine_is_passed_over(void **state)
{
    const char *root = look_root();
    (void)state;
    put_library(root, "/lib/liba.so.1", 32, MACHINE);
    look_expect(at(root, "liba.so.1"), 0, 0,
                "absent; skipped /lib/liba.so.1: built for a machine of another word size or "
                "byte order");
    put_library(root, "/usr/lib/liba.so.1", 32, MACHINE);
    assert_contains(at(root, "liba.so.1").text, "absent; skipped /lib/liba.so.1: ");
    put(root, "/usr/lib/liba.so.1");
    look_expect(at(root, "liba.so.1"), 1, 1, "/usr/lib/liba.so.1");
    if (MACHINE == 0)
        return;
    put_library(root, "/lib/libb.so.1", 64, EM_S390);
    assert_contains(at(root, "libb.so.1").text,
                    "absent; skipped /lib/libb.so.1: built for s390x; this is ");
}

static int opened;

static bool count_opened(const char *call)
{
    opened += strcmp(call, "open") == 0;
    return false;
}

/* As the loader does not go past it, neither does the look; but the next name may be found. */
static void library_that_is_not_whole_ends_the_search(void **state)
{
    const char *root = look_root();
    (void)state;
    tree_put(root, "/lib/liba.so.1", "%s", "");
    put(root, "/usr/lib/liba.so.1");
    put(root, "/usr/lib/liba.so.2");
    look_expect(at(root, "liba.so.1"), 0, 0,
                "absent; skipped /lib/liba.so.1: not a shared library: 0 bytes are too "
                "few");
    look_expect(at(root, "liba.so.1|liba.so.2"), 1, 1, "/usr/lib/liba.so.2");
    tree_put(root, "/lib/liba.so.1", "INPUT(%64s)", "libreal.so");
    assert_contains(at(root, "liba.so.1").text, "it does not begin like an ELF file");
    tree_put_unreadable(root, "/lib/libfolder.so");
    look_expect(at(root, "libfolder.so"), 0, 0,
                "absent; skipped /lib/libfolder.so: not a regular file");
    assert_int_equal(mkfifo(look_below(root, "/lib/libpipe.so"), 0666), 0);
    look_expect(at(root, "libpipe.so"), 0, 0,
                "absent; skipped /lib/libpipe.so: not a regular file");
    tni_sys_fault_set(count_opened);
    (void)at(root, "/lib/libpipe.so");
    tni_sys_fault_set(fault_call_);
    assert_int_equal(opened, 0);
}

/* Of what cannot be looked at it is not known whether the loader would take it. */
static void what_cannot_be_looked_at_says_why(void **state)
{
    char text[128];
    const char *root = look_root();
    (void)state;
    put(root, "/usr/lib/liba.so.1");
    assert_int_equal(symlink("liba.so.1", look_below(root, "/usr/lib/liba.so")), 0);
    look_expect(at(root, "liba.so"), 1, 1, "/usr/lib/liba.so");
    assert_int_equal(symlink("libloop.so", look_below(root, "/usr/lib/libloop.so")), 0);
    snprintf(text, sizeof text, "/usr/lib/libloop.so: %s", strerror(ELOOP));
    look_expect(at(root, "libloop.so|liba.so.1"), -1, 0, text);
}

static void cache_that_is_no_use_is_said(void **state)
{
    const char *root = look_root();
    (void)state;
    put(root, "/lib/liba.so.1");
    tree_put(root, cache_path, "%s", "nonsense");
    look_expect(at(root, "liba.so.1"), 1, 1, "/lib/liba.so.1");
    look_expect(at(root, "libb.so.1|libc.so.1"), 0, 0,
                "absent; skipped /etc/ld.so.cache: not a cache of glibc 2.2 or later");
    tree_put_huge(root, cache_path, (16 << 20) + 1);
    look_expect(at(root, "libb.so.1"), 0, 0,
                "absent; skipped /etc/ld.so.cache: longer than 16777216 bytes");
    put_cache(root, "libb.so.1", "/gone/libb.so.1");
    look_expect(at(root, "libb.so.1"), 0, 0, "absent");
    put(root, "/lib/libb.so.1");
    look_expect(at(root, "libb.so.1"), 1, 1, "/lib/libb.so.1");
}

/* Every line of "NAME (KIND) => PATH": the first of a name for this machine is the cache's answer. */
static void real_cache_is_that_of_ldconfig(void **state)
{
    enum { ROOM = 4096 };
    char *bytes = NULL, line[ROOM], name[ROOM], kind[ROOM], path[ROOM], last[ROOM] = "";
    size_t size = 0;
    tni_loader_cache cache;
    tn_error err;
    int lines = 0;
    (void)state;
    if (getenv("TN_TEST_EMULATED"))
        skip_because("the cache is another machine's");
    if (tni_file_read(cache_path, 16 << 20, &bytes, &size, &err))
        skip_because("%s", err.message);
    assert_int_equal(tni_loader_cache_parse((tni_span){bytes, size}, &cache, &err), TN_OK);
    FILE *pipe = popen("PATH=$PATH:/sbin:/usr/sbin LC_ALL=C ldconfig -p 2>&1", "r");
    assert_non_null(pipe);
    while (fgets(line, sizeof line, pipe)) {
        if (sscanf(line, " %s (%[^)]) => %s", name, kind, path) != 3 ||
            (strcmp(kind, "libc6,x86-64") != 0 && strcmp(kind, "libc6,AArch64") != 0) ||
            strcmp(name, last) == 0)
            continue;
        memcpy(last, name, sizeof last);
        const char *found = tni_loader_cache_find(&cache, tni_span_of(name));
        assert_string_equal(found, path);
        lines++;
    }
    (void)pclose(pipe);
    tni_release(bytes);
    if (lines == 0)
        skip_because("ldconfig says nothing here");
    print_message("%d libraries of %u entries\n", lines, (unsigned)cache.count);
}

/* The file that the loader took when this program started is the one that is found. */
static void real_libraries_are_those_of_the_loader(void **state)
{
    static const char *const names[] = {"libc.so.6", "libm.so.6", "libc.musl-x86_64.so.1"};
    int compared = 0;
    (void)state;
    folders = getenv("LD_LIBRARY_PATH");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *handle = NULL;
        struct stat loaded, found;
        tni_look look = at(NULL, names[i]);
        char *file = tni_dl_open(names[i], &handle, NULL) ? NULL : tni_dl_file(handle);
        print_message("%s: %s; the loader: %s\n", names[i], look.text, file ? file : "none");
        if (file && file[0] == '/' && !getenv("TN_TEST_EMULATED")) {
            assert_int_equal(look.holds, 1);
            assert_int_equal(stat(file, &loaded), 0);
            assert_int_equal(stat(look.text, &found), 0);
            assert_true(loaded.st_ino == found.st_ino && loaded.st_dev == found.st_dev);
            compared++;
        }
        tni_release(file);
    }
    folders = NULL;
    if (compared == 0)
        skip_because("the loader names no file here");
}

static void looks_survive_every_fault(void **state)
{
    const char *root = look_root();
    (void)state;
    put(root, "/opt/acme/libx.so.1");
    put_cache(root, "libx.so.1", "/opt/acme/libx.so.1");
    look_survives_all(at, root, "libx.so.1", 10, 3);
    put(root, "/given/libx.so.1");
    folders = "/given";
    look_survives_all(at, root, "libx.so.1", 6, 2);
    folders = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cache_gives_the_path_for_this_machine),
        cmocka_unit_test(cache_is_found_after_an_older_one),
        cmocka_unit_test(what_is_no_cache_says_why),
        cmocka_unit_test(cache_may_be_cut_anywhere),
        cmocka_unit_test(entries_that_lead_outside_are_passed_over),
        cmocka_unit_test(no_byte_leads_outside),
        cmocka_unit_test(places_are_searched_as_the_loader_does),
        cmocka_unit_test(names_are_tried_in_order),
        cmocka_unit_test(name_with_a_folder_is_a_path),
        cmocka_unit_test(library_of_another_machine_is_passed_over),
        cmocka_unit_test(library_that_is_not_whole_ends_the_search),
        cmocka_unit_test(what_cannot_be_looked_at_says_why),
        cmocka_unit_test(cache_that_is_no_use_is_said),
        cmocka_unit_test(real_cache_is_that_of_ldconfig),
        cmocka_unit_test(real_libraries_are_those_of_the_loader),
        cmocka_unit_test(looks_survive_every_fault),
    };
    look_begin();
    int failed = run_suite("unit.look_library", tests);
    look_end();
    return failed;
}
