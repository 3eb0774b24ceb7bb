/* "key=value": an accepted text can be set, and is written so that it parses again to the same
 * value; a refused one gives a reason of one line and leaves nothing behind. */
#include "base/alloc.h"
#include "settings/context.h"
#include "settings/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT = 1 << 14 };

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void require_refused(const tn_change *change, const tn_error *err, tn_status status)
{
    require(status == TN_NOT_FOUND || status == TN_INVALID_ARGUMENT || status == TN_REFUSED);
    require(err->status == status && err->message[0] && !strpbrk(err->message, "\n\r"));
    require(change->setting == -7 && change->text == NULL);
}

static tn_context *context_of(const tn_change *change)
{
    tn_context *made = NULL;
    require(tni_context_change(tni_context_defaults(), change, 1, TN_LEVEL_PROCESS,
                               TNI_DEPTH_PROCESS, "fuzz", &made, NULL) == TN_OK);
    return made;
}

/* Writes "key=value", parses that, and writes the result again: both texts must be equal. */
static void require_round(const tn_change *change)
{
    char text[TEXT], again[TEXT];
    tn_change same;
    tn_context *first = context_of(change);
    size_t used = (size_t)snprintf(text, sizeof text, "%s=", tn_setting_info(change->setting)->key);
    memcpy(again, text, used);
    (void)tn_setting_write(first, change->setting, text + used, sizeof text - used);
    require(tn_setting_parse(text, &same, NULL) == TN_OK && same.setting == change->setting);
    require(same.value == change->value);
    tn_context *second = context_of(&same);
    (void)tn_setting_write(second, change->setting, again + used, sizeof again - used);
    require(strcmp(text, again) == 0);
    tn_context_release(first);
    tn_context_release(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_change change = {.setting = -7};
    tn_error err = {0};
    char *text = tni_text_copy_part(size > 0 ? (const char *)data : "", size);
    require(text != NULL);
    tn_status status = tn_setting_parse(text, &change, &err);
    if (status)
        require_refused(&change, &err, status);
    else
        require_round(&change);
    tni_release(text);
    return 0;
}
