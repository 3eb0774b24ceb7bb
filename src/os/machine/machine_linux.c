#include "machine_linux.h"

/* Copies the hexadecimal digits of an id in lower case, without dashes; false unless there are
 * exactly 32. */
static bool take_digits(const char *word, char out[33])
{
    size_t count = 0;
    for (const char *c = word; *c; c++) {
        bool digit = *c >= '0' && *c <= '9', lower = *c >= 'a' && *c <= 'f';
        if (*c == '-')
            continue;
        if (count == 32 || (!digit && !lower && !(*c >= 'A' && *c <= 'F')))
            return false;
        out[count++] = (char)(digit || lower ? *c : *c - 'A' + 'a');
    }
    out[count] = '\0';
    return count == 32;
}

/* Placeholders of vendors that assign no id: one repeated digit, or the digits 0 to 9 in a fixed
 * pattern. */
static bool is_a_blank(const char *digits)
{
    return strspn(digits, (const char[]){digits[0], '\0'}) == 32 ||
           strcmp(digits, "03000200040005000006000700080009") == 0;
}

static bool identify_by_file(tni_reading *reading, tni_machine_identity *out)
{
    static const struct {
        const char *path, *kind;
    } files[] = {{"/etc/machine-id", "machine-id"},
                 {"/var/lib/dbus/machine-id", "machine-id"},
                 {"/sys/class/dmi/id/product_uuid", "product_uuid"}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *word;
        char digits[33];
        if (!tni_reading_word(reading, &word, "%s", files[i].path) || !take_digits(word, digits) ||
            is_a_blank(digits))
            continue;
        tni_machine_uuid(files[i].kind, tni_span_of(digits), out->uuid);
        out->source = files[i].path;
        return true;
    }
    return false;
}

/* Uses nothing that can change while the machine runs, such as the number of online processors. */
static void identify_by_looks(tni_reading *reading, const tni_machine_topology *topology,
                              tni_machine_identity *out)
{
    int64_t present = topology->present.count ? topology->present.count : topology->threads.value;
    const char *looks = tni_reading_format(
        reading, "%s, %s, %lld processors",
        topology->architecture.text ? topology->architecture.text : "unknown",
        topology->model.text ? topology->model.text : "unknown", (long long)present);
    tni_machine_uuid("looks", tni_span_of(looks), out->uuid);
    out->source = "model and number of processors, which are not unique: no machine id was found";
}

static void read_topology(tni_reading *reading, const tni_cpus *online, tni_fact fact,
                          tni_machine *machine)
{
    tni_machine_topology_read(reading, online, fact, &machine->topology);
    machine->parts |= TNI_MACHINE_TOPOLOGY;
}

/* Reads budget and memory, which both need the process's control groups. */
static tn_status read_limits(tni_reading *reading, const tni_machine_query *query,
                             tni_machine *machine, tn_error *err)
{
    tn_status status = TN_OK;
    tni_cgroups cgroups;
    if (!(query->parts & (TNI_MACHINE_BUDGET | TNI_MACHINE_MEMORY)))
        return TN_OK;
    tni_cgroups_read(reading, &cgroups);
    if (query->parts & TNI_MACHINE_BUDGET) {
        status = tni_machine_budget_read(reading, &cgroups, query->affinity, &machine->budget, err);
        tni_machine_budget_compute(&machine->budget, query->request);
    }
    if (query->parts & TNI_MACHINE_MEMORY)
        tni_machine_memory_read(reading, &cgroups, &machine->memory);
    tni_cgroups_release(&cgroups);
    return status;
}

static tn_status read_parts(tni_reading *reading, const tni_machine_query *query,
                            tni_machine *machine, tn_error *err)
{
    tni_machine_budget *budget = &machine->budget;
    tni_cpus online = {0};
    tni_fact fact = {0};
    if (query->parts & (TNI_MACHINE_BUDGET | TNI_MACHINE_TOPOLOGY | TNI_MACHINE_IDENTITY))
        fact = tni_machine_online_read(reading, &online);
    if (query->parts & TNI_MACHINE_BUDGET) {
        budget->online = online;
        budget->limits[TNI_LIMIT_ONLINE] = fact;
    }
    tn_status status = read_limits(reading, query, machine, err);
    if (status)
        return status;
    machine->parts = query->parts & TNI_MACHINE_ALL;
    if (query->parts & TNI_MACHINE_TOPOLOGY)
        read_topology(reading, &online, fact, machine);
    if (query->parts & TNI_MACHINE_IDENTITY && !identify_by_file(reading, &machine->identity)) {
        if (!(query->parts & TNI_MACHINE_TOPOLOGY))
            read_topology(reading, &online, fact, machine);
        identify_by_looks(reading, &machine->topology, &machine->identity);
    }
    return TN_OK;
}

tn_status tni_machine_read(const tni_machine_query *query, tni_machine **out, tn_error *err)
{
    tni_reading reading;
    tni_reading_init(&reading, query->root);
    tni_machine *machine = tni_reading_keep(&reading, 1, sizeof *machine);
    tn_status status = query->request < 0 ? tn_fail(err, TN_INVALID_ARGUMENT, 0, "tni_machine_read",
                                                    "expected a thread count of at least 0, got %d",
                                                    query->request)
                                          : TN_OK;
    if (machine && !status)
        status = read_parts(&reading, query, machine, err);
    if (status) {
        tni_reading_discard(&reading);
        return status;
    }
    return tni_reading_end(&reading, machine, out, err);
}
