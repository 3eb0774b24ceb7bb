/* Entries of the cache directory, as files: verdicts on kernels and measured times. The first byte
 * of an input selects the entry, the second how its file is made:
 *
 *     d   valid, with the rest as its data (signed if it is times): must be read as nothing, or
 *         as values within bounds
 *     r   the rest itself: must be read as nothing, unless it happens to be valid
 *     f   the original with changed bytes: two bytes for the offset and one for the change,
 *         repeated; must be read as nothing, unless the changes cancel out */
#include "../tests/base_isa.h"
#include "os/sha256.h"
#include "policy/admission/admission_store.h"
#include "policy/tuning/selection.h"
#include "policy/tuning/store.h"
#include "settings/context.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 88, FILE_MOST = 1 << 16 };

/* An entry and its original file. */
typedef struct entry {
    const char *folder;
    char path[1024];
    size_t size;
    unsigned char bytes[FILE_MOST];
} entry;

static char scratch[256];
static tn_op op;
static tni_question question;
static const tni_kernel *kernel;
static entry verdict = {.folder = "/admission/"}, times = {.folder = "/tuning/"};
static unsigned char changed[FILE_MOST];

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static int look(const char *path, const struct stat *facts, int type, struct FTW *position)
{
    (void)facts, (void)position;
    for (int i = 0; i < 2 && type == FTW_F; i++) {
        entry *e = i ? &times : &verdict;
        if (strstr(path, e->folder))
            snprintf(e->path, sizeof e->path, "%s", path);
    }
    return 0;
}

static int drop(const char *path, const struct stat *facts, int type, struct FTW *position)
{
    (void)facts, (void)type, (void)position;
    return remove(path);
}

static void drop_all(void)
{
    (void)nftw(scratch, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static void read_file(entry *e)
{
    FILE *file = fopen(e->path, "rb");
    require(file != NULL);
    e->size = fread(e->bytes, 1, FILE_MOST, file);
    require(fclose(file) == 0 && e->size > HEADER && e->size < FILE_MOST);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    const tni_trust passed = {.verdict = TNI_TRUST_PASSED};
    char none[8];
    (void)count, (void)arguments;
    snprintf(scratch, sizeof scratch, "%s/tenon-fuzz-XXXXXX", parent);
    require(mkdtemp(scratch) && setenv("TENON_CACHE", scratch, 1) == 0 && atexit(drop_all) == 0);
    question = (tni_question){.context = tni_context_current(), .op = &op};
    require(!tni_problem_parse("fill:f32:shape=77,value=1", &op, none, sizeof none, NULL) &&
            !tn_device_get("cpu:0", &question.device, NULL) &&
            !tni_kernel_find("cpu.fill." BASE_ISA, &kernel, NULL));
    const tni_timed timed = {.kernel = kernel, .library_version = -1, .ns = 123456};
    require(!tni_times_keep(&question, &timed, 1, NULL) &&
            !tni_trust_store(&(tni_exam){kernel, question.device, -1, NULL}, &passed, true, NULL));
    require(nftw(scratch, look, 16, FTW_PHYS) == 0);
    read_file(&verdict);
    read_file(&times);
    return 0;
}

/* Builds a valid file in `out`: the entry's header, adapted to other data, and that data. Returns
 * the file's size. */
static size_t make_sound(const entry *e, const void *data, size_t size, unsigned char *out)
{
    memcpy(out, e->bytes, HEADER);
    for (int i = 0; i < 8; i++)
        out[8 + i] = (unsigned char)((uint64_t)size >> (8 * i));
    tni_sha256_of(data, size, out + HEADER - TNI_SHA256_SIZE);
    memcpy(out + HEADER, data, size);
    return HEADER + size;
}

static size_t make_data(const entry *e, const uint8_t *data, size_t size)
{
    tni_buffer text = {0};
    tni_buffer_add_part(&text, (const char *)data, size);
    require(e == &verdict || tni_selections_sign(&text, NULL) == TN_OK);
    require(text.length < FILE_MOST - HEADER);
    size_t made = make_sound(e, text.length ? text.text : "", text.length, changed);
    tni_buffer_release(&text);
    return made;
}

static size_t make_flipped(const entry *e, const uint8_t *data, size_t size)
{
    memcpy(changed, e->bytes, e->size);
    for (; size >= 3; data += 3, size -= 3)
        changed[(data[0] | (size_t)data[1] << 8) % e->size] ^= data[2];
    return e->size;
}

/* Whether the file is exactly what storing its data would have written. */
static bool is_sound(const entry *e, size_t size)
{
    static unsigned char made[FILE_MOST];
    return size >= HEADER && make_sound(e, changed + HEADER, size - HEADER, made) == size &&
           memcmp(made, changed, size) == 0;
}

static void put_file(const entry *e, size_t size)
{
    FILE *file = fopen(e->path, "wb");
    require(file != NULL);
    require(fwrite(changed, 1, size, file) == size && fclose(file) == 0);
}

static void read_verdict(bool sound)
{
    tni_trust trust;
    tni_trust_forget();
    tni_trust_lookup(&(tni_exam){kernel, question.device, -1, NULL}, &trust);
    require(trust.verdict == TNI_TRUST_UNTESTED ||
            (sound && (trust.verdict == TNI_TRUST_PASSED || trust.verdict == TNI_TRUST_APART ||
                       trust.verdict == TNI_TRUST_QUARANTINED)));
    require(memchr(trust.text, 0, sizeof trust.text) != NULL);
}

static void read_times(bool sound)
{
    tni_times_forget();
    int64_t level = 0, ns = tni_times_find(&question, kernel, &level);
    require(ns == TNI_TIME_UNKNOWN || (sound && ns > 0 && level > 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > FILE_MOST / 2)
        return 0;
    const entry *e = data[0] & 1 ? &times : &verdict;
    size_t made;
    switch (data[1]) {
    case 'd': made = make_data(e, data + 2, size - 2); break;
    case 'f': made = make_flipped(e, data + 2, size - 2); break;
    default: memcpy(changed, data + 2, made = size - 2); break;
    }
    bool sound = is_sound(e, made);
    put_file(e, made);
    if (e == &times)
        read_times(sound);
    else
        read_verdict(sound);
    return 0;
}
