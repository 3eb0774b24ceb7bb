/* The machine as text: every figure with its source. */
#include "phrases.h"
#include "report.h"

enum { INDENT = 2, LABEL = 14 };

static void print_field(const char *label, const char *text)
{
    if (text[0])
        text_wrapped(INDENT, label, LABEL, text);
}

static void print_processor(const findings *found)
{
    static const struct {
        const char *label;
        void (*phrase)(const findings *found, text_line *out);
    } rows[] = {{"processor", phrase_processor},
                {"instructions", phrase_level},
                {"structure", phrase_structure},
                {"caches", phrase_caches},
                {"clock", phrase_clock}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        text_line line = {0};
        rows[i].phrase(found, &line);
        print_field(rows[i].label, line.text);
    }
}

static void print_classes(const findings *found)
{
    for (size_t i = 0; found->class_count > 1 && i < found->class_count; i++) {
        text_line line = {0};
        phrase_class(&found->classes[i], &line);
        print_field(i ? "" : "core classes", line.text);
    }
}

static void print_identity(const tn_machine_facts *facts)
{
    text_line line = {0};
    if (facts->uuid[0])
        text_add(&line, "%s, from %s", facts->uuid, facts->uuid_source);
    else
        text_add(&line, "unknown: %s", facts->uuid_source);
    print_field("identity", line.text);
}

static void print_amount(const char *label, const tn_fact *fact, const char *words)
{
    char room[TEXT_BYTES];
    text_line line = {0};
    if (fact->known)
        text_add(&line, "%s %s", text_fact_bytes(fact, room), words);
    else
        text_add(&line, "unknown amount %s", words);
    if (fact->origin[0])
        text_add(&line, ": %s", fact->origin);
    print_field(label, line.text);
}

static void print_nodes(const findings *found)
{
    char total[TEXT_BYTES], free[TEXT_BYTES];
    for (size_t i = 0; found->node_count > 1 && i < found->node_count; i++) {
        const tn_machine_node *node = &found->nodes[i];
        text_line line = {0};
        text_add(&line, "node %d: %s, %s free", (int)node->number,
                 text_fact_bytes(&node->total, total), text_fact_bytes(&node->free, free));
        if (node->cpus[0])
            text_add_item(&line, "processors %s", node->cpus);
        else
            text_add_item(&line, "no processors");
        print_field(i ? "" : "NUMA nodes", line.text);
    }
}

static void print_limit(const tn_machine_limit *limit)
{
    enum { AT = 4, NAME = 18, VALUE = 10 };
    text_line value = {0};
    phrase_limit(limit, &value);
    printf("%*s%s%-*s%*s%s  ", AT, "", paint(limit->least ? PAINT_STRONG : PAINT_NONE), NAME,
           limit->name, VALUE, value.text, paint(PAINT_NONE));
    text_wrapped_on(AT + NAME + VALUE + 2, "", 0, limit->origin);
}

static void print_threads(const findings *found)
{
    text_line line = {0};
    phrase_budget(found, &line);
    print_field("budget", line.text);
    for (size_t i = 0; i < found->limit_count; i++)
        print_limit(&found->limits[i]);
}

void print_machine(const findings *found)
{
    const tn_machine_facts *facts = found->facts;
    text_heading("machine");
    print_processor(found);
    print_classes(found);
    if (found->topology_source)
        print_field("topology", found->topology_source);
    print_identity(facts);
    print_amount("memory", &facts->memory_total, "in total for this process");
    print_amount("", &facts->memory_available, "available");
    print_amount("", &facts->memory_in_use, "in use by this process");
    print_nodes(found);
    print_threads(found);
    for (size_t i = 0; i < found->note_count; i++)
        print_field(i ? "" : "not read", found->notes[i]);
}
