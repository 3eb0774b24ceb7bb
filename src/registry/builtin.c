#include "registry.h"

tn_module_entry_fn tni_cpu_module_entry;
tn_module_entry_fn tni_ref_module_entry;

const tni_builtin tni_builtins[] = {
    {"cpu", tni_cpu_module_entry},
    {"ref", tni_ref_module_entry},
    {NULL, NULL},
};

/* The build sets TENON_SHIPPED to the list of the modules it makes: "tenon-a.so", "tenon-b.so", */
const char *const tni_shipped[] = {TENON_SHIPPED NULL};
