/* The small parsers for system files. The first byte selects: a CPU list, which is written after
 * reading and must read back the same; /proc/self/cgroup and /proc/self/mountinfo, separated by a
 * zero byte; /proc/cpuinfo; numbers, sizes and escapes. */
#include "os/machine/machine_linux.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void require_line(const char *text)
{
    for (; *text; text++)
        require((unsigned char)*text >= ' ' && *text != '\177');
}

static void try_list(tni_reading *reading, tni_span text)
{
    tni_cpus set = {.count = -1}, again;
    tni_buffer written = {0};
    int32_t members = 0, before = -1;
    if (!tni_cpus_parse(reading, text, &set)) {
        require(set.count == -1 && !reading->failed);
        return;
    }
    for (int32_t cpu = tni_cpus_next(&set, 0); cpu >= 0; cpu = tni_cpus_next(&set, cpu + 1)) {
        require(cpu > before && cpu < TNI_CPUS_LIMIT && tni_cpus_has(&set, cpu));
        before = cpu;
        members++;
    }
    require(members == set.count && tni_cpus_shared(&set, &set) == members);
    tni_cpus_write(&set, &written);
    require(tni_cpus_parse(reading, tni_span_of(tni_buffer_text(&written)), &again));
    require(set.count == again.count && tni_cpus_shared(&set, &again) == set.count);
    require_line(tni_cpus_brief(reading, &set));
    tni_buffer_release(&written);
}

/* The group that is found must be below its mount, whatever its name. */
static void try_group(tni_reading *reading, tni_span text)
{
    static const char *const controllers[] = {"cpu", "cpuset", "memory"};
    tni_cgroups files = {.why = ""};
    char some = '\0';
    files.groups = files.mounts = &some;
    if (!tni_span_next(&text, '\0', &files.groups_text) || !text.text)
        return;
    files.mounts_text = text;
    for (int i = 0; i < 3; i++) {
        tni_cgroup found;
        tni_cgroup_find(reading, &files, controllers[i], &found);
        require_line(found.why);
        if (!found.version) {
            require(found.why[0]);
            continue;
        }
        require(found.mount && (found.group[0] == '\0' || found.group[0] == '/'));
        require(!strstr(found.group, "/../"));
        require_line(tni_cgroup_name(reading, &found));
        while (tni_cgroup_rise(&found))
            continue;
        require(found.group[0] == '\0');
    }
}

static void try_cpuinfo(tni_reading *reading, tni_span text)
{
    tni_cpuinfo info;
    if (!tni_cpuinfo_parse(reading, text, &info))
        return;
    require(info.count > 0);
    for (size_t i = 0; i < info.count; i++)
        require(info.rows[i].id >= -1 && info.rows[i].part >= -1 && info.rows[i].core >= -1);
    if (info.model)
        require_line(info.model);
}

static void try_words(tni_span text)
{
    static const char *const keys[] = {"MemTotal", "a", ""};
    tni_span value, word;
    int64_t number = -1;
    char *plain = malloc(text.length + 1);
    require(plain != NULL);
    tni_span_unescape(text, plain);
    free(plain);
    for (int i = 0; i < 3; i++) {
        if (tni_span_value(text, keys[i], i == 1 ? ' ' : ':', &value))
            require(value.text >= text.text &&
                    value.text + value.length <= text.text + text.length);
    }
    while (tni_span_next_word(&text, &word)) {
        if (tni_span_number(word, &number) || tni_span_hex(word, &number) ||
            tni_span_bytes(word, &number))
            require(number >= 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_reading reading;
    if (size == 0)
        return 0;
    tni_span text = {(const char *)data + 1, size - 1};
    tni_reading_init(&reading, "/nowhere");
    switch (data[0]) {
    case 'l': try_list(&reading, text); break;
    case 'g': try_group(&reading, text); break;
    case 'c': try_cpuinfo(&reading, text); break;
    case 'w': try_words(text); break;
    default: break;
    }
    tni_reading_discard(&reading);
    return 0;
}
