/* Descriptions of devices: those that parse have valid properties; the others are refused with one
 * line that names the place. */
#include "device/description.h"
#include "base/words.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void require_text(const char *text, size_t room)
{
    const char *end = memchr(text, '\0', room);
    require(end != NULL);
    for (; text < end; text++)
        require((unsigned char)*text >= ' ' && *text != '\177');
}

/* Unknown numbers must be 0; none may be negative. */
static void require_numbers(const tn_device_properties *p)
{
#define NUMBER(field, word, unit, meaning) \
    require(p->field >= 0 && (p->known & TN_DEVICE_KNOWS(field) || p->field == 0));
    TN_DEVICE_NUMBER_LIST(NUMBER)
#undef NUMBER
    require(!(p->known &
              ~(TN_DEVICE_KNOWS(capability) | ((UINT64_C(1) << TN_DEVICE_NUMBER_COUNT) - 1))));
    require(p->capability.major >= 0 && p->capability.minor >= 0);
    require(p->known & TN_DEVICE_KNOWS(capability) ||
            (p->capability.major == 0 && p->capability.minor == 0));
    require(p->is_integrated <= 1 && p->pinned_memory <= 1 && p->triton_capable <= 1);
}

static void require_dtypes(const tn_dtype *dtypes)
{
    size_t count = 0;
    for (; count < TN_DEVICE_DTYPES_MAX && dtypes[count]; count++) {
        for (size_t i = 0; i < count; i++)
            require(dtypes[i] != dtypes[count]);
    }
    require(count < TN_DEVICE_DTYPES_MAX);
    for (; count < TN_DEVICE_DTYPES_MAX; count++)
        require(dtypes[count] == 0);
}

static void require_sound(const tni_description *one)
{
    const tn_device_properties *p = &one->properties;
    require(tni_name_is_legal(one->platform, "", TNI_NAME_MAX));
    require(one->view.struct_size == sizeof one->view && one->view.properties == p);
    require(!one->view.name[0] || tni_name_is_legal(one->view.name, ".", TNI_NAME_MAX + 3));
    require(strncmp(one->view.origin, "fuzz:", 5) == 0);
    require(p->struct_size == sizeof *p);
    require_text(p->name, sizeof p->name);
    require_text(p->uuid, sizeof p->uuid);
    require_text(p->bus, sizeof p->bus);
    require_text(p->architecture, sizeof p->architecture);
    require_numbers(p);
    require_dtypes(p->dtypes);
    for (size_t i = 0; i < one->view.entry_count; i++)
        require(strncmp(one->view.entries[i].key, "behaviour.", 10) == 0 &&
                one->view.entries[i].value);
}

static void require_place(const tn_error *err)
{
    unsigned line = 0;
    require(err->status == TN_CORRUPT || err->status == TN_INVALID_ARGUMENT);
    require(sscanf(err->message, "fuzz:%u:", &line) == 1 && line > 0);
    require_text(err->message, sizeof err->message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_descriptions *all = NULL;
    tn_error err;
    if (tni_descriptions_parse((const char *)data, size, "fuzz", &all, &err)) {
        require(all == NULL);
        require_place(&err);
        return 0;
    }
    require(tni_descriptions_count(all) > 0);
    for (size_t i = 0; i < tni_descriptions_count(all); i++)
        require_sound(tni_descriptions_get(all, i));
    tni_descriptions_release(all);
    return 0;
}
