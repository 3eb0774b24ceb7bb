#include "device_schema.h"

#include "description_values.h"
#include "tenon/capability.h"
#include "tenon/dtype.h"

#include <inttypes.h>

static bool read_quantity(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    return tni_value_number(text, key->unit, 0, key->most, at, need);
}

static bool write_quantity(const tni_schema_key *key, const void *at, tni_buffer *out)
{
    const char *unit = strcmp(key->unit, "kHz") == 0       ? " kHz"
                       : strcmp(key->unit, "bytes/s") == 0 ? " B/s"
                                                           : "";
    int64_t number;
    memcpy(&number, at, sizeof number);
    tni_buffer_format(out, "%" PRId64 "%s", number, unit);
    return true;
}

static bool read_capability(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    (void)key;
    return tn_capability_parse(text, at, NULL) == TN_OK ||
           tni_need_set(need, "a capability, as in 9.0");
}

static bool write_capability(const tni_schema_key *key, const void *at, tni_buffer *out)
{
    const tn_capability *capability = at;
    (void)key;
    tni_buffer_format(out, "%d.%d", (int)capability->major, (int)capability->minor);
    return true;
}

static bool read_dtypes(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    (void)key;
    return tni_value_dtypes(text, at, need);
}

/* Writes each dtype once, as they are read; a faulty module may repeat one. */
static bool write_dtypes(const tni_schema_key *key, const void *at, tni_buffer *out)
{
    const tn_dtype *dtypes = at;
    (void)key;
    for (size_t i = 0; dtypes[i]; i++) {
        size_t first = 0;
        while (dtypes[first] != dtypes[i])
            first++;
        if (first == i)
            tni_buffer_format(out, "%s%s", i ? ", " : "", tn_dtype_name(dtypes[i]));
    }
    return dtypes[0] != 0;
}

static const tni_schema_type quantity_type = {read_quantity, write_quantity};
static const tni_schema_type capability_type = {read_capability, write_capability};
static const tni_schema_type dtypes_type = {read_dtypes, write_dtypes};

#define LINE(field)                                                                                \
    {                                                                                              \
        .word = #field, .type = &tni_schema_line, .offset = offsetof(tn_device_properties, field), \
        .size = sizeof(((tn_device_properties *)0)->field)                                         \
    }
#define NUMBER(field, name, unit_of, meaning)             \
    {.word = name,                                        \
     .type = &quantity_type,                              \
     .offset = offsetof(tn_device_properties, field),     \
     .most = TNI_NUMBER_IS_SWITCH(field) ? 1 : INT64_MAX, \
     .unit = unit_of,                                     \
     .known = TN_DEVICE_KNOWS(field)},

static const tni_schema_key keys[] = {
    LINE(name),
    LINE(uuid),
    LINE(bus),
    LINE(architecture),
    {.word = "capability",
     .type = &capability_type,
     .offset = offsetof(tn_device_properties, capability),
     .known = TN_DEVICE_KNOWS(capability)},
    {.word = "dtypes", .type = &dtypes_type, .offset = offsetof(tn_device_properties, dtypes)},
    TN_DEVICE_NUMBER_LIST(NUMBER)};

const tni_schema tni_device_schema = {.keys = keys,
                                      .count = TNI_SCHEMA_COUNT(keys),
                                      .known_at = offsetof(tn_device_properties, known)};
