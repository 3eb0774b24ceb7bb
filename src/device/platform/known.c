#include "known.h"

#define ROW(name, looks, what_, shows_)                                          \
    static const tn_evidence_row name = {.struct_size = sizeof(tn_evidence_row), \
                                         .what = (what_),                        \
                                         .look = TN_LOOK_##looks,                \
                                         .shows = TN_SHOWS_##shows_}

ROW(cpu_info, FILE, "/proc/cpuinfo", HARDWARE);
ROW(cpu_folder, FILE, "/sys/devices/system/cpu", HARDWARE);

ROW(nvidia_bus, PCI, "10de:03", HARDWARE);
ROW(nvidia_tegra, FILE, "/etc/nv_tegra_release", HARDWARE);
ROW(nvidia_tegra_firmware, FILE, "/sys/class/tegra-firmware", HARDWARE);
ROW(nvidia_node, FILE, "/dev/nvidiactl", DRIVER);
ROW(nvidia_proc, FILE, "/proc/driver/nvidia/version", DRIVER);
ROW(nvidia_tegra_node, FILE, "/dev/nvmap", DRIVER);
ROW(nvidia_wsl, FILE, "/usr/lib/wsl/lib/libcuda.so.1", HARDWARE);
ROW(nvidia_wsl_node, FILE, "/dev/dxg", DRIVER);
ROW(nvidia_cuda, LIBRARY, "libcuda.so.1", LIBRARY);
ROW(nvidia_ml, LIBRARY, "libnvidia-ml.so.1", LIBRARY);

ROW(amd_bus, PCI, "1002:03|1002:12", HARDWARE);
ROW(amd_node, FILE, "/dev/kfd", DRIVER);
ROW(amd_module, FILE, "/sys/module/amdgpu", DRIVER);
ROW(amd_hip, LIBRARY, "libamdhip64.so.7|libamdhip64.so.6|libamdhip64.so.5", LIBRARY);

/* Google's network cards and disks have the same vendor and other classes, so the device id is
 * matched. */
ROW(tpu_bus, PCI, "1ae0/0027|1ae0/005e|1ae0/0062|1ae0/0063|1ae0/006f|1ae0/0076", HARDWARE);
ROW(tpu_node, FILE, "/dev/accel0", DRIVER);
ROW(tpu_vfio, FILE, "/dev/vfio/0", DRIVER);
ROW(tpu_library, LIBRARY, "libtpu.so", LIBRARY);

ROW(mps_system, SYSTEM, "darwin/arm64", HARDWARE);
ROW(mps_metal, FILE, "/System/Library/Frameworks/Metal.framework", LIBRARY);

ROW(xpu_bus, PCI, "8086:03", HARDWARE);
ROW(xpu_i915, FILE, "/sys/module/i915", DRIVER);
ROW(xpu_xe, FILE, "/sys/module/xe", DRIVER);
ROW(xpu_library, LIBRARY, "libze_loader.so.1", LIBRARY);

ROW(npu_bus, PCI, "19e5:12", HARDWARE);
ROW(npu_node, FILE, "/dev/davinci_manager", DRIVER);
ROW(npu_library, LIBRARY, "libascendcl.so", LIBRARY);

ROW(opencl_vendors, FILE, "/etc/OpenCL/vendors/*", DRIVER);
ROW(opencl_library, LIBRARY, "libOpenCL.so.1", LIBRARY);

/* AMD's and Intel's packages for computing on their GPUs are for x86-64. */
#if defined(__x86_64__) || defined(_M_X64)
#define ROCM_REMEDY "install AMD's driver and ROCm: rocminfo should then list the device"
#define XPU_REMEDY  "install Intel's GPU driver and the Level Zero loader (Debian: libze1)"
#else
#define ROCM_REMEDY                                                                               \
    "install your distribution's build of ROCm, since AMD's is for x86-64 only: rocminfo should " \
    "then list the device"
#define XPU_REMEDY "use the device in an x86-64 machine: Intel's compute driver is for x86-64 only"
#endif

#define LIST(...) ((const tn_evidence_row *const[]){__VA_ARGS__, NULL})

static const tn_evidence_row *const no_evidence[] = {NULL};

const tni_known tni_known_unspecified = {
    TN_PLATFORM_UNSPECIFIED, "unspecified", "", "", "CPU", "", {NULL}, "device", "", no_evidence};

/* In the order of preference for the current platform. */
// clang-format off
static const tni_known table[] = {
    {TN_PLATFORM_CUDA, "cuda", "cuda", "cuda", "CUDA", "CUDA_VISIBLE_DEVICES", {NULL}, "NVIDIA GPU",
     "install NVIDIA's driver: nvidia-smi should then list the device",
     LIST(&nvidia_bus, &nvidia_tegra, &nvidia_tegra_firmware, &nvidia_wsl, &nvidia_node, &nvidia_proc,
          &nvidia_tegra_node, &nvidia_wsl_node, &nvidia_cuda, &nvidia_ml)},
    {TN_PLATFORM_ROCM, "rocm", "rocm", "cuda", "CUDA", "HIP_VISIBLE_DEVICES", {"ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}, "AMD GPU",
     ROCM_REMEDY,
     LIST(&amd_bus, &amd_node, &amd_module, &amd_hip)},
    {TN_PLATFORM_TPU, "tpu", "tpu", "tpu", "XLA", "TPU_VISIBLE_CHIPS", {NULL}, "TPU",
     "use a machine image with the TPU driver, and install libtpu",
     LIST(&tpu_bus, &tpu_node, &tpu_vfio, &tpu_library)},
    {TN_PLATFORM_MPS, "mps", "mps", "mps", "MPS", "", {NULL}, "Apple GPU",
     "update macOS: Metal is part of it",
     LIST(&mps_system, &mps_metal)},
    {TN_PLATFORM_XPU, "xpu", "xpu", "xpu", "XPU", "ZE_AFFINITY_MASK", {NULL}, "Intel GPU",
     XPU_REMEDY,
     LIST(&xpu_bus, &xpu_i915, &xpu_xe, &xpu_library)},
    {TN_PLATFORM_NPU, "npu", "npu", "npu", "PrivateUse1", "ASCEND_RT_VISIBLE_DEVICES", {NULL}, "Ascend NPU",
     "install the Ascend driver and CANN: npu-smi info should then list the device",
     LIST(&npu_bus, &npu_node, &npu_library)},
    {TN_PLATFORM_OPENCL, "opencl", "opencl", "opencl", "PrivateUse1", "", {NULL}, "OpenCL device",
     "install an OpenCL implementation, such as PoCL (pocl-opencl-icd)",
     LIST(&opencl_vendors, &opencl_library)},
    {TN_PLATFORM_OOT, "out-of-tree", NULL, NULL, "PrivateUse1", "", {NULL}, "device", "", no_evidence},
    {TN_PLATFORM_CPU, "cpu", "CPU", "cpu", "CPU", "", {NULL}, "processor", "",
     LIST(&cpu_info, &cpu_folder)},
};
// clang-format on
enum { KINDS = sizeof table / sizeof table[0] };

TN_STATIC_ASSERT((int)KINDS == (int)TN_PLATFORM_KIND_COUNT - 1, "a kind has no row");

int32_t tni_known_rank(int32_t kind)
{
    int32_t rank = 0;
    while (rank < KINDS && table[rank].kind != kind)
        rank++;
    return rank;
}

const tni_known *tni_known_get(int32_t kind)
{
    int32_t rank = tni_known_rank(kind);
    return rank < KINDS ? &table[rank] : &tni_known_unspecified;
}
