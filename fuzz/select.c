/* Conditions on devices: accepted ones are valid, and refused ones give a reason. */
#include "device/select.h"
#include "base/alloc.h"
#include "device/platform/platforms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void require_sound(const tni_select_terms *terms)
{
    static tn_platform platform = {.name = "acme"};
    static tn_device device = {.platform = &platform};
    require(terms->count <= TNI_SELECT_CONDITIONS);
    for (size_t i = 0; i < terms->count; i++) {
        const tni_select_term *term = &terms->items[i];
        require(term->op >= TNI_SELECT_EQ && term->op <= TNI_SELECT_GE && term->number >= 0);
        require(memchr(term->word, '\0', sizeof term->word) != NULL);
        require(term->kind == TNI_SELECT_NUMBER ? term->key < TN_DEVICE_NUMBER_COUNT
                                                : term->key <= 3);
    }
    device.properties.known = 0;
    bool numbers = false;
    for (size_t i = 0; i < terms->count; i++)
        numbers = numbers || terms->items[i].kind != TNI_SELECT_WORD;
    require(!numbers || !tni_select_meets(&device, terms)); /* unknown: meets nothing */
    device.properties.known = UINT64_MAX;
    (void)tni_select_meets(&device, terms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_select_terms terms = {.count = 99};
    tn_error err = {0};
    char *text = tni_text_copy_part(size > 0 ? (const char *)data : "", size);
    require(text != NULL);
    tn_status status = tni_select_parse(text, &terms, &err);
    if (status)
        require(terms.count == 99 && err.status == TN_INVALID_ARGUMENT && err.message[0]);
    else
        require_sound(&terms);
    tni_release(text);
    return 0;
}
