/* Memory held per label. */
#include "memory.h"

/* The count of a free row. Stays negative while others briefly add to it. */
#define FREE INT64_MIN

/* A label's text, NUL-terminated and padded with zeros. */
typedef struct spelling {
    uint64_t words[TNI_LABEL_WORDS];
} spelling;

static spelling spell_label(const char *text)
{
    spelling out = {{0}};
    const char *end = memchr(text, '\0', TNI_LABEL_TEXT - 1);
    memcpy(out.words, text, end ? (size_t)(end - text) : TNI_LABEL_TEXT - 1);
    return out;
}

void tni_labels_init(tni_labels *labels)
{
    for (size_t row = 1; row <= TNI_LABELS; row++) {
        for (size_t kind = 0; kind < TNI_KINDS; kind++)
            atomic_init(&labels->rows[row].bytes[kind], FREE);
    }
}

void tni_labels_text(const tni_labels *labels, uint8_t row, char out[TNI_LABEL_TEXT])
{
    spelling text;
    for (size_t i = 0; i < TNI_LABEL_WORDS; i++)
        text.words[i] = atomic_load_explicit(&labels->rows[row].text[i], memory_order_relaxed);
    memcpy(out, text.words, TNI_LABEL_TEXT);
    if (row == TNI_LABEL_NONE || row == TNI_LABEL_OTHERS)
        tn_text_fit(out, TNI_LABEL_TEXT, row == TNI_LABEL_NONE ? "no label" : "others");
}

static bool is_spelt(const tni_labels *labels, uint8_t row, const spelling *text)
{
    uint64_t differs = 0;
    for (size_t i = 0; i < TNI_LABEL_WORDS; i++)
        differs |=
            text->words[i] ^ atomic_load_explicit(&labels->rows[row].text[i], memory_order_relaxed);
    return differs == 0;
}

static uint32_t hash(const spelling *text)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < TNI_LABEL_WORDS; i++)
        hash = (hash ^ hash >> 29 ^ text->words[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 32);
}

/* Returns the label's row, or TNI_LABEL_NONE and the slot to insert it at. Half of the slots are
 * empty, so the search ends. Without the lock, may miss a row while the table is rebuilt. */
static uint8_t find_label(const tni_labels *labels, const spelling *text, uint32_t *out_slot)
{
    for (uint32_t i = hash(text);; i++) {
        uint32_t slot = i % TNI_LABEL_SLOTS;
        uint8_t row = atomic_load_explicit(&labels->slots[slot], memory_order_acquire);
        *out_slot = slot;
        if (row == TNI_LABEL_NONE || is_spelt(labels, row, text))
            return row;
    }
}

/* Adds to a row's count if the row still belongs to the label: a row with a count above 0 cannot be
 * reassigned. */
static bool add_to_row(tni_labels *labels, uint8_t row, const spelling *text, int32_t kind,
                       int64_t bytes)
{
    _Atomic int64_t *count = &labels->rows[row].bytes[kind];
    if (atomic_fetch_add(count, bytes) >= 0 && is_spelt(labels, row, text))
        return true;
    atomic_fetch_sub(count, bytes);
    return false;
}

/* Frees a row if its count is 0. Must be called with the lock held. */
static bool clear_row(tni_labels *labels, uint8_t row)
{
    int64_t none = 0;
    _Atomic int64_t *bytes = labels->rows[row].bytes;
    if (!atomic_compare_exchange_strong(&bytes[TNI_OF_DEVICE], &none, FREE))
        return false;
    none = 0;
    if (atomic_compare_exchange_strong(&bytes[TNI_OF_HOST], &none, FREE))
        return true;
    atomic_fetch_sub(&bytes[TNI_OF_DEVICE], FREE);
    return false;
}

static bool is_free(const tni_labels *labels, uint8_t row)
{
    return atomic_load(&labels->rows[row].bytes[TNI_OF_DEVICE]) < 0;
}

static void enter_row(tni_labels *labels, uint8_t row)
{
    uint32_t slot;
    spelling text;
    char words[TNI_LABEL_TEXT];
    tni_labels_text(labels, row, words);
    memcpy(text.words, words, sizeof text.words);
    if (find_label(labels, &text, &slot) == TNI_LABEL_NONE)
        atomic_store_explicit(&labels->slots[slot], row, memory_order_release);
}

/* Frees every row whose count is 0. Must be called with the lock held. */
static void sweep_rows(tni_labels *labels)
{
    bool any = false;
    for (int row = 1; row <= TNI_LABELS; row++)
        any = clear_row(labels, (uint8_t)row) || any;
    if (!any)
        return;
    for (size_t slot = 0; slot < TNI_LABEL_SLOTS; slot++)
        atomic_store_explicit(&labels->slots[slot], TNI_LABEL_NONE, memory_order_relaxed);
    for (int row = 1; row <= TNI_LABELS; row++) {
        if (!is_free(labels, (uint8_t)row))
            enter_row(labels, (uint8_t)row);
    }
}

static uint8_t find_free(const tni_labels *labels)
{
    uint8_t row = 1;
    while (row <= TNI_LABELS && !is_free(labels, row))
        row++;
    return row; /* TNI_LABEL_OTHERS if no row is free */
}

/* Assigns a row to a label that has none. Must be called with the lock held. */
static uint8_t add_row(tni_labels *labels, const spelling *text)
{
    uint8_t row = find_free(labels);
    if (row == TNI_LABEL_OTHERS) {
        sweep_rows(labels);
        row = find_free(labels);
    }
    if (row == TNI_LABEL_OTHERS)
        return row;
    for (size_t i = 0; i < TNI_LABEL_WORDS; i++)
        atomic_store_explicit(&labels->rows[row].text[i], text->words[i], memory_order_relaxed);
    for (size_t kind = 0; kind < TNI_KINDS; kind++)
        atomic_fetch_sub(&labels->rows[row].bytes[kind], FREE);
    enter_row(labels, row);
    return row;
}

uint8_t tni_labels_add(tni_labels *labels, const char *label, int32_t kind, int64_t bytes)
{
    uint32_t slot;
    if (!label || !label[0])
        return TNI_LABEL_NONE;
    spelling text = spell_label(label);
    uint8_t row = find_label(labels, &text, &slot);
    if (row != TNI_LABEL_NONE && add_to_row(labels, row, &text, kind, bytes))
        return row;
    tni_latch_lock(&labels->lock);
    row = find_label(labels, &text, &slot);
    if (row == TNI_LABEL_NONE)
        row = add_row(labels, &text);
    atomic_fetch_add(&labels->rows[row].bytes[kind], bytes);
    tni_latch_unlock(&labels->lock);
    return row;
}

void tni_labels_subtract(tni_labels *labels, uint8_t row, int32_t kind, int64_t bytes)
{
    if (row != TNI_LABEL_NONE)
        atomic_fetch_sub_explicit(&labels->rows[row].bytes[kind], bytes, memory_order_relaxed);
}
