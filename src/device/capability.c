#include "tenon/capability.h"

#include <stdbool.h>

static int32_t order(int32_t a, int32_t b)
{
    return (a > b) - (a < b);
}

int32_t tn_capability_compare(tn_capability a, tn_capability b)
{
    int32_t major = order(a.major, b.major);
    return major ? major : order(a.minor, b.minor);
}

int32_t tn_capability_same_family(tn_capability a, tn_capability b)
{
    return a.major == b.major;
}

const char *tn_capability_as_version_str(tn_capability capability, char *out, size_t size)
{
    if (!out || size == 0)
        return "";
    snprintf(out, size, "%d.%d", (int)capability.major, (int)capability.minor);
    return out;
}

int32_t tn_capability_to_int(tn_capability capability)
{
    int64_t major = capability.major < 0 ? 0 : capability.major;
    int64_t minor = capability.minor < 0 ? 0 : capability.minor > 9 ? 9 : capability.minor;
    int64_t number = capability.major < 0 ? 0 : major * 10 + minor;
    return number > INT32_MAX ? INT32_MAX : (int32_t)number;
}

tn_capability tn_capability_from_int(int32_t number)
{
    int32_t positive = number < 0 ? 0 : number;
    return (tn_capability){.major = positive / 10, .minor = positive % 10};
}

/* Parses digits at *at, up to INT32_MAX, and moves past them. */
static bool take_number(const char **at, int32_t *out)
{
    const char *begin = *at;
    int64_t number = 0;
    for (; **at >= '0' && **at <= '9' && number <= INT32_MAX; (*at)++)
        number = number * 10 + (**at - '0');
    bool sound = *at > begin && number <= INT32_MAX;
    *out = sound ? (int32_t)number : 0;
    return sound;
}

tn_status tn_capability_parse(const char *text, tn_capability *out, tn_error *err)
{
    const char *at = text;
    tn_capability read = {0};
    if (!text || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_capability_parse", "%s is NULL",
                       text ? "out" : "text");
    bool sound = take_number(&at, &read.major);
    if (sound && *at == '.') {
        at++;
        sound = take_number(&at, &read.minor);
    } else if (sound && at - text >= 2) {
        sound = read.major >= 20 && at - text <= 4; /* 12 is ambiguous: 12.0 or 1.2 */
        read = tn_capability_from_int(read.major);
    }
    if (!sound || *at)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_capability_parse",
                       "capability: expected the form 9.0, 9 or 90, and a point from 10 to 19; got "
                       "\"%.40s\"",
                       text);
    *out = read;
    return TN_OK;
}
