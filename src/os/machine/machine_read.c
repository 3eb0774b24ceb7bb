#include "machine_read.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/words.h"
#include "os/file.h"

/* An upper bound for the files of any system: thousands of processors or mounts. */
enum { LONGEST_FILE = 16 << 20, BLOCK_SIZE = 4096 - 64, SHOWN = 48 };

struct tni_block {
    struct tni_block *next;
    size_t used;
    size_t size;
    max_align_t data[];
};

void tni_reading_init(tni_reading *reading, const char *root)
{
    bool running = !root || strcmp(root, "/") == 0;
    *reading = (tni_reading){.root = running ? "" : root, .running = running};
}

void tni_reading_discard(tni_reading *reading)
{
    tni_blocks_release(reading->blocks);
    reading->blocks = NULL;
}

void tni_blocks_release(struct tni_block *blocks)
{
    while (blocks) {
        struct tni_block *next = blocks->next;
        tni_release(blocks);
        blocks = next;
    }
}

static struct tni_block *add_block(tni_reading *reading, size_t least)
{
    size_t size = least > BLOCK_SIZE ? least : BLOCK_SIZE, bytes;
    struct tni_block *block =
        tni_add_size(size, sizeof *block, &bytes) ? tni_alloc_zeroed(1, bytes) : NULL;
    if (!block)
        return NULL;
    block->size = size;
    block->next = reading->blocks;
    reading->blocks = block;
    return block;
}

void *tni_reading_keep(tni_reading *reading, size_t count, size_t size)
{
    struct tni_block *block = reading->blocks;
    size_t bytes;
    if (reading->failed || !tni_mul_size(count, size, &bytes) ||
        !tni_align_size(bytes, _Alignof(max_align_t), &bytes))
        block = NULL;
    else if (!block || block->size - block->used < bytes)
        block = add_block(reading, bytes);
    if (!block) {
        reading->failed = true;
        return NULL;
    }
    void *memory = (char *)block->data + block->used;
    block->used += bytes;
    return memory;
}

TN_PRINTF(2, 0)
static const char *format_text(tni_reading *reading, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : tni_reading_keep(reading, 1, (size_t)length + 1);
    if (text) {
        vsnprintf(text, (size_t)length + 1, format, again);
        tni_words_clean(text);
    }
    va_end(again);
    return text ? text : "";
}

const char *tni_reading_format(tni_reading *reading, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_text(reading, format, arguments);
    va_end(arguments);
    return text;
}

const char *tni_reading_text(tni_reading *reading, tni_span text)
{
    size_t length = text.length < TNI_READING_PATH ? text.length : TNI_READING_PATH;
    return tni_reading_format(reading, "%.*s", (int)length, text.text);
}

const char *tni_reading_path(const tni_reading *reading)
{
    return reading->path + strlen(reading->root);
}

/* Messages about files begin with the full path; this removes the root. */
const char *tni_reading_why(const tni_reading *reading)
{
    const char *message = reading->error.message;
    size_t length = strlen(reading->root);
    return length && strncmp(message, reading->root, length) == 0 ? message + length : message;
}

/* Records the error of the last file as a note, without duplicates. */
static void note(tni_reading *reading)
{
    const char *why = tni_reading_why(reading);
    for (size_t i = 0; i < reading->note_count; i++) {
        if (strcmp(reading->notes[i], why) == 0)
            return;
    }
    if (reading->note_count < TNI_READING_NOTES)
        reading->notes[reading->note_count++] = tni_reading_format(reading, "%s", why);
}

/* Returns false if the path is too long; sets the error as for other failures. */
TN_PRINTF(2, 0)
static bool make_path(tni_reading *reading, const char *format, va_list arguments)
{
    size_t size = sizeof reading->path;
    int before = snprintf(reading->path, size, "%s", reading->root), length = -1;
    if (before >= 0 && (size_t)before < size)
        length = vsnprintf(reading->path + before, size - (size_t)before, format, arguments);
    reading->absent = false;
    reading->state = TNI_FACT_UNKNOWN;
    if (length >= 0 && (size_t)length < size - (size_t)before)
        return true;
    tn_fail(&reading->error, TN_IO, 0, "open", "a path below \"%.64s\" is longer than %d bytes",
            reading->root, TNI_READING_PATH - 1);
    return false;
}

static bool read_path(tni_reading *reading, char **out_text, tni_span *out)
{
    char *text;
    size_t size;
    tn_status status = tni_file_read(reading->path, LONGEST_FILE, &text, &size, &reading->error);
    if (status == TN_OUT_OF_MEMORY)
        reading->failed = true;
    reading->absent = status == TN_NOT_FOUND;
    if (status == TN_INVALID_ARGUMENT)
        reading->state = TNI_FACT_MALFORMED;
    if (status)
        return false;
    reading->state = TNI_FACT_KNOWN;
    *out_text = text;
    *out = (tni_span){text, size};
    return true;
}

TN_PRINTF(4, 0)
static bool read_file(tni_reading *reading, char **out_text, tni_span *out, const char *format,
                      va_list arguments)
{
    if (reading->failed)
        return false;
    if (make_path(reading, format, arguments) && read_path(reading, out_text, out))
        return true;
    if (!reading->absent && !reading->failed)
        note(reading);
    return false;
}

bool tni_reading_file(tni_reading *reading, char **out_text, tni_span *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bool found = read_file(reading, out_text, out, format, arguments);
    va_end(arguments);
    return found;
}

void tni_reading_malformed(tni_reading *reading, tni_span found, const char *expected)
{
    tni_span trimmed = tni_span_trim(found);
    bool cut = trimmed.length > SHOWN;
    reading->state = TNI_FACT_MALFORMED;
    tn_fail(&reading->error, TN_CORRUPT, 0, "read", "%s: expected %s, got \"%.*s%s\"",
            tni_reading_path(reading), expected, (int)(cut ? SHOWN : trimmed.length), trimmed.text,
            cut ? "..." : "");
    note(reading);
}

bool tni_reading_value(tni_reading *reading, tni_reading_parse *parse, const char *expected,
                       void *out, const char *format, va_list arguments)
{
    char *text;
    tni_span span;
    if (!read_file(reading, &text, &span, format, arguments))
        return false;
    bool sound = parse(reading, tni_span_trim(span), out);
    if (!sound && !reading->failed)
        tni_reading_malformed(reading, span, expected);
    tni_release(text);
    return sound;
}

static bool parse_number(tni_reading *reading, tni_span text, void *out)
{
    (void)reading;
    return tni_span_number(text, out);
}

static bool parse_bytes(tni_reading *reading, tni_span text, void *out)
{
    (void)reading;
    return tni_span_bytes(text, out);
}

static bool parse_word(tni_reading *reading, tni_span text, void *out)
{
    tni_span line;
    if (!tni_span_next(&text, '\n', &line) || tni_span_trim(line).length == 0)
        return false;
    *(const char **)out = tni_reading_text(reading, tni_span_trim(line));
    return !reading->failed;
}

TNI_DEFINE_READER(number, int64_t, "a number")
TNI_DEFINE_READER(bytes, int64_t, "a size")
TNI_DEFINE_READER(word, const char *, "a word")
