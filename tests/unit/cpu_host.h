/* The module `cpu` with a host of the test's own, so that what the host says can be made up. */
#ifndef TENON_TEST_CPU_HOST_H
#define TENON_TEST_CPU_HOST_H

#include "test.h"

#include "base/alloc.h"
#include "os/bind.h"
#include "os/machine/machine.h"
#include "tenon/module/platform.h"

tn_module_entry_fn tni_cpu_module_entry;

/* What the next calls of the host give. */
static tn_status cpu_host_bind_fails, cpu_host_machine_fails;
static int cpu_host_alloc_fails;
static tn_machine_facts *cpu_host_machine_is; /* NULL: the machine itself */
static int cpu_host_binds;                    /* libraries asked for */

static inline void *cpu_host_alloc_(void *self, size_t size, size_t align)
{
    assert_ptr_equal(self, &cpu_host_binds);
    return cpu_host_alloc_fails ? NULL : tni_alloc_aligned(size, align);
}

static inline void cpu_host_release_(void *self, void *memory)
{
    assert_ptr_equal(self, &cpu_host_binds);
    tni_release(memory);
}

static inline tn_status cpu_host_bind_(void *self, const char *files, const tn_symbol *symbols,
                                       size_t count, void *table, tn_error *err)
{
    assert_ptr_equal(self, &cpu_host_binds);
    cpu_host_binds++;
    if (cpu_host_bind_fails)
        return tn_fail(err, cpu_host_bind_fails, 0, "library_bind", "%s is made to fail", files);
    return tni_bind(files, symbols, count, NULL, table, NULL, err);
}

static inline tn_status cpu_host_machine_(void *self, tn_machine_facts *out, tn_error *err)
{
    assert_ptr_equal(self, &cpu_host_binds);
    assert_int_equal(out->struct_size, sizeof *out);
    if (cpu_host_machine_fails)
        return tn_fail(err, cpu_host_machine_fails, 0, "machine", "the machine is made to fail");
    if (!cpu_host_machine_is)
        return tni_machine_facts_read(out, err);
    *out = *cpu_host_machine_is;
    return TN_OK;
}

static const tn_host cpu_host = {
    .struct_size = sizeof cpu_host,
    .abi_major = TN_MODULE_ABI_MAJOR,
    .abi_minor = TN_MODULE_ABI_MINOR,
    .self = &cpu_host_binds,
    .alloc = cpu_host_alloc_,
    .release = cpu_host_release_,
    .library_bind = cpu_host_bind_,
    .machine = cpu_host_machine_,
};

static const tn_platform_row *cpu_row;
static void *cpu_self;

static inline const tn_module *cpu_host_begin(void)
{
    const tn_module *module = NULL;
    int32_t devices = 0;
    tn_error err;
    assert_int_equal(tni_cpu_module_entry(&cpu_host, &module, &err), TN_OK);
    assert_string_equal(module->name, "cpu");
    assert_non_null(module->platforms[0]);
    assert_null(module->platforms[1]);
    cpu_row = module->platforms[0];
    assert_int_equal(cpu_row->probe(&cpu_host, &cpu_self, &devices, &err), TN_OK);
    assert_int_equal(devices, 1);
    return module;
}

#endif
