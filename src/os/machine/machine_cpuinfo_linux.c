#include "machine_linux.h"

#include "base/alloc.h"

/* Extracts the value if the line's key is `key`. */
static bool line_is(tni_span line, const char *key, tni_span *out)
{
    return tni_span_value(line, key, ':', out);
}

static size_t count_entries(tni_span text)
{
    size_t count = 0;
    tni_span line, value;
    while (tni_span_next(&text, '\n', &line))
        count += line_is(line, "processor", &value);
    return count;
}

static int32_t small(tni_span value, bool hex)
{
    int64_t number;
    bool sound = hex ? tni_span_hex(value, &number) : tni_span_number(value, &number);
    return sound && number < TNI_CPUS_LIMIT ? (int32_t)number : -1;
}

static void parse_line(tni_span line, tni_cpuinfo_row *row)
{
    static const struct {
        const char *key;
        size_t offset;
        bool hex;
    } fields[] = {
        {"physical id", offsetof(tni_cpuinfo_row, package), false},
        {"core id", offsetof(tni_cpuinfo_row, core), false},
        {"CPU implementer", offsetof(tni_cpuinfo_row, implementer), true},
        {"CPU part", offsetof(tni_cpuinfo_row, part), true},
    };
    tni_span value;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (line_is(line, fields[i].key, &value))
            *(int32_t *)(void *)((char *)row + fields[i].offset) = small(value, fields[i].hex);
    }
}

/* Kernels before 3.8 name the Arm core once, after the last entry: it applies to all. */
static void spread_core(tni_cpuinfo_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].implementer < 0 && rows[i].part < 0) {
            rows[i].implementer = rows[count - 1].implementer;
            rows[i].part = rows[count - 1].part;
        }
    }
}

/* Returns the value of the first of these keys that exists; different architectures use different
 * keys. */
static const char *find_model(tni_reading *reading, tni_span text)
{
    static const char *const keys[] = {"model name", "Model Name", "cpu model",
                                       "uarch",      "cpu",        "Processor"};
    tni_span value;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (tni_span_value(text, keys[i], ':', &value) && value.length)
            return tni_reading_text(reading, value);
    }
    return NULL;
}

static bool has_flag(tni_span text, const char *flag)
{
    tni_span flags, word;
    if (!tni_span_value(text, "flags", ':', &flags))
        return false;
    while (tni_span_next_word(&flags, &word)) {
        if (tni_span_is(word, flag))
            return true;
    }
    return false;
}

bool tni_cpuinfo_parse(tni_reading *reading, tni_span text, tni_cpuinfo *out)
{
    size_t count = count_entries(text), next = 0;
    tni_cpuinfo_row *rows = count ? tni_reading_keep(reading, count, sizeof *rows) : NULL;
    tni_span rest = text, line, value;
    if (!rows)
        return false;
    while (tni_span_next(&rest, '\n', &line)) {
        if (line_is(line, "processor", &value))
            rows[next++] = (tni_cpuinfo_row){small(value, false), -1, -1, -1, -1};
        else if (next > 0)
            parse_line(line, &rows[next - 1]);
    }
    spread_core(rows, count);
    *out = (tni_cpuinfo){.rows = rows,
                         .count = count,
                         .model = find_model(reading, text),
                         .hypervisor = has_flag(text, "hypervisor")};
    return !reading->failed;
}

bool tni_cpuinfo_read(tni_reading *reading, tni_cpuinfo *out)
{
    char *text;
    tni_span span;
    if (!tni_reading_file(reading, &text, &span, "/proc/cpuinfo"))
        return false;
    bool found = tni_cpuinfo_parse(reading, span, out);
    if (!found && !reading->failed)
        tni_reading_malformed(reading, span, "a line that begins with processor");
    tni_release(text);
    return found;
}
