/* The module `described`: the rows it offers. */
#include "described.h"

static const tn_platform_row platform = {
    .struct_size = sizeof platform,
    .name = "described",
    .kind = TN_PLATFORM_OOT,
    .flags = TN_PLATFORM_STAND_IN | TN_PLATFORM_FORK_SAFE,
    .remedy = "describe a device: tenon devices --device-file FILE",
    .probe = described_probe,
    .memory_alloc = described_alloc,
    .memory_free = described_free,
    .copy = described_copy,
    .visible_variable = "",
    .async_output_reason = "copies run on the caller's thread and finish before they return",
    .device_properties = described_properties,
    .device_memory = described_memory,
    .device_link = described_link,
    .describe = described_describe,
};

static const tn_platform_row *const platforms[] = {&platform, NULL};

static const struct tn_kernel_row *const kernels[] = {&described_matmul, NULL};

static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "described",
                                 .version = "0.1.0",
                                 .platforms = platforms,
                                 .kernels = kernels};

tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
