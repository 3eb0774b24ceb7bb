/* The error message for running out of memory. */
#include "base/words.h"
#include "memory.h"

enum { NAMED = 3 };

typedef struct size_words {
    char text[24];
} size_words;

/* "512 B", "8.0 GiB". */
static size_words size_of(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_words out;
    size_t unit = 0;
    double size = (double)bytes;
    for (; size >= 1023.95 && unit < sizeof units / sizeof units[0] - 1; unit++)
        size /= 1024;
    snprintf(out.text, sizeof out.text, "%.*f %s", unit > 0, size, units[unit]);
    return out;
}

static size_words signed_size_of(int64_t bytes)
{
    return size_of(bytes > 0 ? (uint64_t)bytes : 0);
}

/* Bytes of each label; unlabelled memory is the rest of `held`. */
static void read_rows(const tni_labels *labels, int32_t kind, int64_t held,
                      int64_t out[TNI_LABEL_ROWS])
{
    out[TNI_LABEL_NONE] = held;
    for (size_t i = 1; i < TNI_LABEL_ROWS; i++) {
        int64_t bytes = atomic_load_explicit(&labels->rows[i].bytes[kind], memory_order_relaxed);
        out[i] = bytes > 0 ? bytes : 0;
        out[TNI_LABEL_NONE] -= out[i];
    }
}

static void add_holder(const tni_labels *labels, size_t row, int64_t bytes, tni_memory_words *out)
{
    char name[TNI_LABEL_TEXT];
    size_t used = strlen(out->text);
    tni_labels_text(labels, (uint8_t)row, name);
    tni_words_clean(name);
    snprintf(out->text + used, sizeof out->text - used, "%s%s (%s)",
             used == 0 ? "largest users: " : ", ", name, signed_size_of(bytes).text);
}

tni_memory_words tni_labels_words(const tni_labels *labels, int32_t kind, int64_t held)
{
    tni_memory_words out = {""};
    int64_t bytes[TNI_LABEL_ROWS];
    read_rows(labels, kind, held, bytes);
    for (int named = 0; named < NAMED; named++) {
        size_t most = 0;
        for (size_t i = 1; i < TNI_LABEL_ROWS; i++) {
            if (bytes[i] > bytes[most])
                most = i;
        }
        if (bytes[most] <= 0)
            break;
        add_holder(labels, most, bytes[most], &out);
        bytes[most] = 0;
    }
    if (!out.text[0])
        tn_text_fit(out.text, sizeof out.text, "nothing is allocated");
    return out;
}

/* "3.1 GiB of 16.0 GiB free", as far as the platform reports it. */
static tni_memory_words free_words(const tn_device *device)
{
    tni_memory_words out = {"free unknown"};
    tn_device_memory now = {.struct_size = sizeof now};
    if (tn_device_memory_get(device, &now, NULL))
        return out;
    size_words available = signed_size_of(now.available.value);
    size_words total = signed_size_of(now.total.value);
    if (now.available.known)
        snprintf(out.text, sizeof out.text, "%s%s%s free", available.text,
                 now.total.known ? " of " : "", now.total.known ? total.text : "");
    else if (now.total.known)
        snprintf(out.text, sizeof out.text, "%s in all, free unknown", total.text);
    return out;
}

static tni_memory_words device_words(const tni_memory *memory, int64_t held)
{
    tni_memory_words out;
    int64_t limit = atomic_load_explicit(&memory->limit, memory_order_relaxed);
    tni_memory_words left = free_words(memory->device);
    if (limit > 0)
        snprintf(out.text, sizeof out.text, "%.64s; limit %s, %s of it allocated", left.text,
                 signed_size_of(limit).text, signed_size_of(held).text);
    else
        snprintf(out.text, sizeof out.text, "%.64s; no limit", left.text);
    return out;
}

static tni_memory_words host_words(int64_t held)
{
    tni_memory_words out;
    snprintf(out.text, sizeof out.text, "%s allocated for it", signed_size_of(held).text);
    return out;
}

/* The message of `said`, as the end of a line. */
static tni_memory_words further_words(const tn_error *said)
{
    tni_memory_words out = {""};
    if (!said || !said->message[0])
        return out;
    tn_error copy = *said;
    copy.message[sizeof copy.message - 1] = '\0';
    snprintf(out.text, sizeof out.text, "; %.160s", copy.message);
    return out;
}

tn_status tni_memory_fail(tni_memory *memory, int32_t kind, const char *where, uint64_t bytes,
                          const tn_error *said, tn_error *err)
{
    bool of_device = kind == TNI_OF_DEVICE;
    int64_t held =
        atomic_load_explicit(of_device ? &memory->current : &memory->host, memory_order_relaxed);
    tni_memory_words state = of_device ? device_words(memory, held) : host_words(held);
    return tn_fail(err, TN_OUT_OF_MEMORY, said ? said->native_code : 0, where,
                   "%s: %s%s asked; %s; %s%s", memory->device->id, size_of(bytes).text,
                   of_device ? "" : " of host memory", state.text,
                   tni_labels_words(&memory->labels, kind, held).text, further_words(said).text);
}
