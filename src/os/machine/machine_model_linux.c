#include "machine_linux.h"

#include "base/alloc.h"

#include <sys/utsname.h>

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

bool tni_cpuid_read(tni_cpuid_names *out)
{
    const unsigned brand = 0x80000002u, maker = 0x40000000u, hypervisor = 1u << 31;
    uint32_t words[12], a, b, c, d;
    *out = (tni_cpuid_names){.model = ""};
    if ((unsigned)__get_cpuid_max(0x80000000u, NULL) >= brand + 2) {
        for (unsigned i = 0; i < 3; i++)
            __cpuid(brand + i, words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
        memcpy(out->model, words, sizeof words);
    }
    __cpuid(1, a, b, c, d);
    out->virtual_machine = (c & hypervisor) != 0;
    if (out->virtual_machine) {
        __cpuid(maker, a, b, c, d);
        memcpy(out->hypervisor, &b, 4);
        memcpy(out->hypervisor + 4, &c, 4);
        memcpy(out->hypervisor + 8, &d, 4);
    }
    return true;
}

#else

bool tni_cpuid_read(tni_cpuid_names *out)
{
    (void)out;
    return false;
}

#endif

static void read_architecture(tni_reading *reading, tni_fact_text *out)
{
    struct utsname names;
    if (reading->running && uname(&names) == 0) {
        *out = (tni_fact_text){tni_reading_format(reading, "%s", names.machine), "uname"};
        return;
    }
    if (tni_reading_word(reading, &out->text, "/proc/sys/kernel/arch"))
        out->origin = "/proc/sys/kernel/arch";
    else
        out->origin = tni_reading_nothing(reading).origin;
}

/* The names of all kinds of Arm cores in the machine: "Cortex-A76 + Cortex-A55". */
static const char *arm_model(tni_reading *reading, const tni_cpuinfo *info)
{
    const char *model = NULL;
    for (size_t i = 0; i < info->count; i++) {
        const tni_cpuinfo_row *row = &info->rows[i];
        bool seen = row->implementer < 0 || row->part < 0;
        for (size_t j = 0; j < i && !seen; j++)
            seen = info->rows[j].implementer == row->implementer && info->rows[j].part == row->part;
        if (seen)
            continue;
        const char *name = tni_arm_core_words(reading, row->implementer, row->part);
        model = model ? tni_reading_format(reading, "%s + %s", model, name) : name;
    }
    return model;
}

static void read_model(tni_reading *reading, const tni_cpuinfo *info, const tni_cpuid_names *cpuid,
                       tni_fact_text *out)
{
    const char *arm = arm_model(reading, info);
    if (cpuid->model[0])
        *out = (tni_fact_text){tni_reading_text(reading, tni_span_trim(tni_span_of(cpuid->model))),
                               "cpuid"};
    else if (arm)
        *out = (tni_fact_text){arm, "/proc/cpuinfo CPU implementer, CPU part"};
    else if (info->model)
        *out = (tni_fact_text){info->model, "/proc/cpuinfo"};
    else
        *out = (tni_fact_text){NULL, "not in /proc/cpuinfo"};
}

/* The prefix of a text and the maker that it identifies. */
struct maker {
    const char *prefix;
    const char *name;
};

static const char *maker_of(const struct maker *makers, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(text, makers[i].prefix, strlen(makers[i].prefix)) == 0)
            return makers[i].name;
    }
    return NULL;
}

static const char *maker_by_cpuid(const char *signature)
{
    static const struct maker makers[] = {
        {"KVMKVMKVM", "kvm"},           {"Microsoft Hv", "hyper-v"}, {"VMwareVMware", "vmware"},
        {"XenVMMXenVMM", "xen"},        {"TCGTCGTCGTCG", "qemu"},    {"bhyve bhyve", "bhyve"},
        {"VBoxVBoxVBox", "virtualbox"}, {" lrpepyh", "parallels"},
    };
    const char *name = maker_of(makers, sizeof makers / sizeof makers[0], signature);
    return name ? name : "unnamed";
}

static const char *maker_by_dmi(const char *text)
{
    static const struct maker makers[] = {
        {"KVM", "kvm"},
        {"QEMU", "qemu"},
        {"VMware", "vmware"},
        {"Xen", "xen"},
        {"HVM domU", "xen"},
        {"VirtualBox", "virtualbox"},
        {"BHYVE", "bhyve"},
        {"innotek", "virtualbox"},
        {"Virtual Machine", "hyper-v"},
        {"Parallels", "parallels"},
        {"OpenStack", "kvm"},
        {"Google Compute Engine", "kvm"},
    };
    return maker_of(makers, sizeof makers / sizeof makers[0], text);
}

/* Identifies a hypervisor by files, independent of what the processor reports. */
static bool named_by_files(tni_reading *reading, tni_fact_text *out)
{
    static const char *const dmi[] = {"/sys/class/dmi/id/product_name",
                                      "/sys/class/dmi/id/sys_vendor"};
    const char *word, *name;
    if (tni_reading_word(reading, &word, "/proc/sys/kernel/osrelease") &&
        (strstr(word, "microsoft") || strstr(word, "Microsoft"))) {
        *out = (tni_fact_text){"wsl",
                               tni_reading_format(reading, "/proc/sys/kernel/osrelease %s", word)};
        return true;
    }
    if (tni_reading_word(reading, &word, "/sys/hypervisor/type")) {
        *out = (tni_fact_text){word, "/sys/hypervisor/type"};
        return true;
    }
    for (size_t i = 0; i < sizeof dmi / sizeof dmi[0]; i++) {
        if (!tni_reading_word(reading, &word, "%s", dmi[i]) || !(name = maker_by_dmi(word)))
            continue;
        *out = (tni_fact_text){name, tni_reading_format(reading, "%s %s", dmi[i], word)};
        return true;
    }
    return false;
}

static void read_hypervisor(tni_reading *reading, const tni_cpuinfo *info,
                            const tni_cpuid_names *cpuid, tni_fact_text *out)
{
    if (named_by_files(reading, out))
        return;
    if (cpuid->virtual_machine)
        *out = (tni_fact_text){maker_by_cpuid(cpuid->hypervisor), "cpuid"};
    else if (info->hypervisor)
        *out = (tni_fact_text){"unnamed", "/proc/cpuinfo flags: hypervisor"};
    else
        out->origin = "none detected";
}

void tni_machine_model_read(tni_reading *reading, const tni_cpuinfo *info,
                            const tni_cpuid_names *cpuid, tni_machine_topology *out)
{
    read_architecture(reading, &out->architecture);
    read_model(reading, info, cpuid, &out->model);
    read_hypervisor(reading, info, cpuid, &out->hypervisor);
}
