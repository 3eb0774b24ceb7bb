/* Sections about the machine: description, memory, thread budget. */
#include "html.h"
#include "page_parts.h"
#include "phrases.h"

static void write_row(FILE *to, const char *label, const char *text)
{
    if (text[0])
        html_write(to, "<div><dt>%s</dt><dd>%s</dd></div>\n", label, text);
}

static void write_phrases(FILE *to, const findings *found)
{
    static const struct {
        const char *label;
        void (*phrase)(const findings *found, text_line *out);
    } rows[] = {{"Processor", phrase_processor},
                {"Instructions", phrase_level},
                {"Structure", phrase_structure},
                {"Caches", phrase_caches},
                {"Clock", phrase_clock}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        text_line line = {0};
        rows[i].phrase(found, &line);
        write_row(to, rows[i].label, line.text);
    }
}

/* Writes "sse2,avx2" with places where lines can break. */
static void write_features(FILE *to, const char *features)
{
    if (!features[0])
        return;
    html_write(to, "<div><dt>Features</dt><dd class=\"words\">");
    while (*features) {
        char word[64];
        size_t length = strcspn(features, ",");
        snprintf(word, sizeof word, "%.*s", (int)length, features);
        html_write(to, "<span>%s</span> ", word);
        features += length;
        features += *features == ',';
    }
    html_write(to, "</dd></div>\n");
}

void page_machine(FILE *to, const findings *found)
{
    const tn_machine_facts *facts = found->facts;
    text_line identity = {0};
    html_write(to, "<section id=\"machine\">\n<h2>Machine</h2>\n<div class=\"machine\">\n");
    page_topology(to, found);
    html_write(to, "<dl class=\"facts\">\n");
    write_phrases(to, found);
    if (facts->uuid[0])
        text_add(&identity, "%s, from %s", facts->uuid, facts->uuid_source);
    write_row(to, "Identity", identity.text);
    write_features(to, found->features);
    html_write(to, "</dl>\n</div>\n</section>\n");
}

/* Percentage. A small value stays visible. */
static double part_of(int64_t value, int64_t whole)
{
    const double least = 0.4;
    double part = whole > 0 && value > 0 ? 100.0 * (double)value / (double)whole : 0;
    return part > 0 && part < least ? least : part;
}

/* Draws a bar for `value` and, inside it, one for `filled`; both relative to `whole`. */
static void write_bar(FILE *to, int64_t value, int64_t filled, int64_t whole)
{
    html_write(to,
               "<svg class=\"bar\" width=\"100%%\" height=\"10\" aria-hidden=\"true\"><rect "
               "class=\"track\" width=\"100%%\" height=\"10\" rx=\"2\"/><rect class=\"all\" "
               "width=\"%.2f%%\" height=\"10\" rx=\"2\"/>",
               part_of(value, whole));
    if (filled > 0)
        html_write(to, "<rect class=\"used\" width=\"%.2f%%\" height=\"10\" rx=\"2\"/>",
                   part_of(filled, whole));
    html_write(to, "</svg>");
}

static void write_amount(FILE *to, const char *label, const tn_fact *fact, int64_t filled,
                         int64_t whole)
{
    char room[TEXT_BYTES];
    html_write(to, "<li><span>%s</span><b>%s</b>", label, text_fact_bytes(fact, room));
    if (fact->known && whole > 0)
        write_bar(to, fact->value, filled, whole);
    html_write(to, "<small>%s</small></li>\n", fact->origin);
}

static int64_t sum_of_nodes(const findings *found)
{
    int64_t sum = 0;
    for (size_t i = 0; i < found->node_count; i++)
        sum += found->nodes[i].total.value;
    return sum;
}

static void write_node(FILE *to, const tn_machine_node *node, int64_t whole)
{
    char total[TEXT_BYTES], free[TEXT_BYTES];
    int64_t used = node->free.known ? node->total.value - node->free.value : 0;
    html_write(to, "<li><span>NUMA node %d</span><b>%s, %s free</b>", (int)node->number,
               text_fact_bytes(&node->total, total), text_fact_bytes(&node->free, free));
    write_bar(to, node->total.value, used, whole);
    html_write(to, "<small>%s%s</small></li>\n",
               node->cpu_count ? "near processors " : "not near any processor", node->cpus);
}

static void write_nodes(FILE *to, const findings *found)
{
    int64_t greatest = 0;
    for (size_t i = 0; i < found->node_count; i++) {
        if (found->nodes[i].total.value > greatest)
            greatest = found->nodes[i].total.value;
    }
    html_write(to, "<ul class=\"bars nodes\">\n");
    for (size_t i = 0; i < found->node_count; i++)
        write_node(to, &found->nodes[i], greatest);
    html_write(to, "</ul>\n");
}

void page_memory(FILE *to, const findings *found)
{
    const tn_machine_facts *facts = found->facts;
    int64_t total = facts->memory_total.value, nodes = sum_of_nodes(found);
    int64_t whole = total > nodes ? total : nodes;
    html_write(to, "<section id=\"memory\">\n<h2>Memory</h2>\n<ul class=\"bars\">\n");
    if (nodes > total && total > 0) { /* ignore less: hypervisors take memory from nodes */
        tn_fact all = tn_fact_of(nodes, "sum of the NUMA nodes");
        write_amount(to, "The machine", &all, 0, whole);
    }
    write_amount(to, "Limit of this process", &facts->memory_total, 0, whole);
    write_amount(to, "Available now", &facts->memory_available, 0, whole);
    write_amount(to, "In use by this process", &facts->memory_in_use, facts->memory_in_use.value,
                 whole);
    html_write(to, "</ul>\n");
    if (found->node_count > 1)
        write_nodes(to, found);
    html_write(to, "</section>\n");
}

static void write_limit(FILE *to, const tn_machine_limit *limit, int64_t whole)
{
    text_line value = {0};
    phrase_limit(limit, &value);
    html_write(to, "<li><span>%s", limit->name);
    if (limit->least)
        html_write(to, " <span class=\"badge current\">decides</span>");
    html_write(to, "</span><b>%s</b>", value.text);
    if (limit->value > 0)
        write_bar(to, limit->value, limit->least ? limit->value : 0, whole);
    html_write(to, "<small>%s</small></li>\n", limit->origin);
}

void page_threads(FILE *to, const findings *found)
{
    int threads = (int)found->facts->threads;
    int64_t greatest = threads;
    for (size_t i = 0; i < found->limit_count; i++) {
        if (found->limits[i].value > greatest)
            greatest = found->limits[i].value;
    }
    html_write(to, "<section id=\"threads\">\n<h2>Threads</h2>\n");
    html_write(to,
               "<p>%d thread%s can run in parallel: the smallest of these limits.</p>\n<ul "
               "class=\"bars\">\n",
               threads, plural(threads));
    for (size_t i = 0; i < found->limit_count; i++)
        write_limit(to, &found->limits[i], greatest);
    html_write(to, "</ul>\n</section>\n");
}
