#include "machine_linux.h"

#include "base/alloc.h"

static const char folder[] = "/sys/devices/system/node";

static tni_fact node_memory(tni_reading *reading, tni_span text, int32_t id, const char *word)
{
    char key[64];
    tni_span value;
    int64_t bytes;
    snprintf(key, sizeof key, "Node %d %s", (int)id, word);
    if (!tni_span_value(text, key, ':', &value))
        return tni_fact_none(TNI_FACT_UNKNOWN, tni_reading_format(reading, "%s: no line \"%s\"",
                                                                  tni_reading_path(reading), key));
    if (!tni_span_bytes(value, &bytes)) {
        tni_reading_malformed(reading, value, "a size in kB");
        return tni_reading_nothing(reading);
    }
    return tni_fact_known(bytes,
                          tni_reading_format(reading, "%s %s", tni_reading_path(reading), word));
}

static void read_memory(tni_reading *reading, tni_machine_node *node)
{
    char *text;
    tni_span span;
    if (!tni_reading_file(reading, &text, &span, "%s/node%d/meminfo", folder, (int)node->id)) {
        node->total = node->free = tni_reading_nothing(reading);
        return;
    }
    node->total = node_memory(reading, span, node->id, "MemTotal");
    node->free = node_memory(reading, span, node->id, "MemFree");
    tni_release(text);
}

tni_fact tni_machine_node_total(tni_reading *reading, int32_t id)
{
    tni_machine_node node = {.id = id};
    read_memory(reading, &node);
    return node.total;
}

/* Parses one number for every online node, in their order. */
static bool parse_distances(tni_span text, int32_t *out, size_t count)
{
    tni_span word;
    int64_t value;
    for (size_t i = 0; i < count; i++) {
        if (!tni_span_next_word(&text, &word) || !tni_span_number(word, &value) ||
            value > INT32_MAX)
            return false;
        out[i] = (int32_t)value;
    }
    return !tni_span_next_word(&text, &word);
}

static void read_distances(tni_reading *reading, tni_machine_node *node, size_t count)
{
    char *text;
    tni_span span;
    if (!tni_reading_file(reading, &text, &span, "%s/node%d/distance", folder, (int)node->id))
        return;
    int32_t *distances = tni_reading_keep(reading, count, sizeof *distances);
    if (distances && parse_distances(span, distances, count))
        node->distances = distances;
    else if (distances)
        tni_reading_malformed(reading, span, "a distance for every node online");
    tni_release(text);
}

void tni_machine_nodes_read(tni_reading *reading, tni_machine_cpu *cpus, tni_machine_topology *out)
{
    tni_cpus online;
    if (!tni_reading_cpus(reading, &online, "%s/online", folder) || online.count == 0) {
        out->nodes_known = reading->state == TNI_FACT_KNOWN
                               ? tni_fact_none(TNI_FACT_UNKNOWN, "no memory node is online")
                               : tni_reading_nothing(reading);
        return;
    }
    const char *origin =
        tni_reading_format(reading, "%s/online %s", folder, tni_cpus_brief(reading, &online));
    tni_machine_node *nodes = tni_reading_keep(reading, (size_t)online.count, sizeof *nodes);
    if (!nodes)
        return;
    int32_t id = tni_cpus_next(&online, 0);
    for (int32_t i = 0; i < online.count; i++, id = tni_cpus_next(&online, id + 1)) {
        nodes[i].id = id;
        (void)tni_reading_cpus(reading, &nodes[i].cpus, "%s/node%d/cpulist", folder, (int)id);
        read_memory(reading, &nodes[i]);
        read_distances(reading, &nodes[i], (size_t)online.count);
        for (size_t j = 0; j < out->cpu_count; j++) {
            if (cpus[j].online && tni_cpus_has(&nodes[i].cpus, cpus[j].id))
                cpus[j].node = i;
        }
    }
    out->nodes = nodes;
    out->node_count = (size_t)online.count;
    out->nodes_known = tni_fact_known(online.count, origin);
}
