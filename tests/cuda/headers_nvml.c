/* The management library's side of headers.c: our list with NVIDIA's types under our names. */
#include <nvml.h>

#include "../../backends/cuda/platform/nvml_list.h"
#include "headers.h"

#include <stddef.h>

typedef nvmlReturn_t nvml_result;
typedef nvmlClockType_t nvml_clock;
typedef nvmlGpuP2PCapsIndex_t nvml_link_kind;
typedef nvmlGpuP2PStatus_t nvml_link_status;
typedef nvmlDevice_t nvml_device;
typedef nvmlPciInfo_t nvml_pci;
typedef nvmlMemory_t nvml_memory;

const header_number vendor_nvml_numbers[] = {
#define NVML_NUMBER_(name, value) {#name, name},
    NVML_NUMBER_LIST(NVML_NUMBER_)
#undef NVML_NUMBER_
        {NULL, 0}};

const header_number vendor_nvml_sizes[] = {
    SIZE(nvml_result),
    SIZE(nvml_clock),
    SIZE(nvml_link_kind),
    SIZE(nvml_link_status),
    SIZE(nvml_device),
    SIZE(nvml_pci),
    OFFSET(nvml_pci, domain, domain),
    OFFSET(nvml_pci, bus, bus),
    OFFSET(nvml_pci, device, device),
    OFFSET(nvml_pci, bus_id, busId),
    SIZE(nvml_memory),
    OFFSET(nvml_memory, total, total),
    OFFSET(nvml_memory, available, free),
    OFFSET(nvml_memory, used, used),
    {NULL, 0},
};

/* A function that is declared otherwise does not compile. */
#define NVML_CALL_(field, name, parameters)                                                    \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), nvml_result(*) parameters), \
                   #name " is declared otherwise");
NVML_CALL_LIST(NVML_CALL_)
NVML_LATER_CALL_LIST(NVML_CALL_)
#undef NVML_CALL_
