/* Who holds a device's memory. */
#include "memory.h"

void tni_labels_init(tni_labels *labels)
{
    tn_text_fit(labels->rows[TNI_LABEL_NONE].text, TNI_LABEL_TEXT, "no label");
    tn_text_fit(labels->rows[TNI_LABEL_OTHERS].text, TNI_LABEL_TEXT, "others");
}

static size_t length_of(const char *text)
{
    const char *end = memchr(text, '\0', TNI_LABEL_TEXT - 1);
    return end ? (size_t)(end - text) : TNI_LABEL_TEXT - 1;
}

static uint32_t hash(const char *text, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash ^ hash >> 16;
}

/* The label's row, or TNI_LABEL_NONE and the slot where it would be. Half of the slots are free, so
 * that the search ends. */
static uint8_t look_up(const tni_labels *labels, const char *text, size_t length,
                       uint32_t *out_slot)
{
    for (uint32_t i = hash(text, length);; i++) {
        uint32_t slot = i % TNI_LABEL_SLOTS;
        uint8_t row = atomic_load_explicit(&labels->slots[slot], memory_order_acquire);
        *out_slot = slot;
        if (row == TNI_LABEL_NONE)
            return TNI_LABEL_NONE;
        const char *there = labels->rows[row].text;
        if (memcmp(there, text, length) == 0 && there[length] == '\0')
            return row;
    }
}

static uint8_t add(tni_labels *labels, const char *text, size_t length)
{
    uint32_t slot;
    tni_latch_lock(&labels->lock);
    uint8_t row = look_up(labels, text, length, &slot); /* another thread may have been faster */
    uint32_t count = atomic_load_explicit(&labels->count, memory_order_relaxed);
    if (row == TNI_LABEL_NONE && count < TNI_LABELS) {
        row = (uint8_t)(count + 1);
        memcpy(labels->rows[row].text, text, length);
        atomic_store_explicit(&labels->slots[slot], row, memory_order_release);
        atomic_store_explicit(&labels->count, count + 1, memory_order_relaxed);
    }
    tni_latch_unlock(&labels->lock);
    return row == TNI_LABEL_NONE ? TNI_LABEL_OTHERS : row;
}

uint8_t tni_labels_get(tni_labels *labels, const char *text)
{
    uint32_t slot;
    if (!text || !text[0])
        return TNI_LABEL_NONE;
    size_t length = length_of(text);
    uint8_t row = look_up(labels, text, length, &slot);
    if (row != TNI_LABEL_NONE)
        return row;
    if (atomic_load_explicit(&labels->count, memory_order_relaxed) == TNI_LABELS)
        return TNI_LABEL_OTHERS;
    return add(labels, text, length);
}

void tni_labels_count(tni_labels *labels, uint8_t label, int32_t kind, int64_t bytes)
{
    if (label != TNI_LABEL_NONE)
        atomic_fetch_add_explicit(&labels->rows[label].bytes[kind], bytes, memory_order_relaxed);
}
