#include "verdict.h"

#include <stdio.h>

static int32_t is_there(const char *root, const char *path)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    FILE *file = fopen(whole, "rb"); /* a folder opens too; what may not be opened serves no one */
    if (file)
        fclose(file);
    return file != NULL;
}

void cuda_look_around(const char *root, cuda_surroundings *out)
{
    out->is_wsl = is_there(root, "/dev/dxg") || is_there(root, "/usr/lib/wsl/lib/libcuda.so.1");
    out->is_jetson =
        is_there(root, "/etc/nv_tegra_release") || is_there(root, "/sys/class/tegra-firmware");
    out->has_nodes = is_there(root, out->is_wsl      ? "/dev/dxg"
                                    : out->is_jetson ? "/dev/nvmap"
                                                     : "/dev/nvidiactl");
}

/* What helps against a driver that shows no device. */
static const char *nodes_remedy(const cuda_surroundings *around)
{
    if (around->is_wsl)
        return around->has_nodes ? "under WSL the driver is Windows': update it there"
                                 : "under WSL there is no /dev/dxg: use WSL 2, and Windows' driver";
    if (around->is_jetson)
        return around->has_nodes
                   ? "on a Jetson the driver comes with JetPack: install its cuda part"
                   : "on a Jetson there is no /dev/nvmap: in a container use "
                     "--runtime nvidia";
    return around->has_nodes
               ? "nvidia-smi says which device is in trouble"
               : "/dev/nvidiactl cannot be opened: load the kernel's module (modprobe nvidia), or in "
                 "a container pass the devices in (--gpus all)";
}

tn_status cuda_verdict_nvml(nvml_result code, const cuda_surroundings *around, tn_error *err)
{
    switch (code) {
    case NVML_ERROR_DRIVER_NOT_LOADED:
        if (around->is_jetson || around->is_wsl)
            return TN_OK; /* the driver there is not what the management library looks for */
        return tn_fail(err, TN_UNAVAILABLE, (int32_t)code, "nvmlInit_v2",
                       "NVIDIA's kernel module is not loaded; %s", nodes_remedy(around));
    case NVML_ERROR_NO_PERMISSION:
        return tn_fail(err, TN_NOT_PERMITTED, (int32_t)code, "nvmlInit_v2",
                       "this user may not use NVIDIA's driver; ls -l /dev/nvidiactl shows who may");
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return tn_fail(
            err, TN_INCOMPATIBLE, (int32_t)code, "nvmlInit_v2",
            "NVIDIA's libraries and kernel module are of different versions, as after an "
            "update; start the machine anew");
    default: return TN_OK;
    }
}

/* ", and CUDA_VISIBLE_DEVICES is ...", where that is set. */
static void tell_visible(const char *visible, char *out, size_t size)
{
    out[0] = '\0';
    if (visible)
        snprintf(out, size, ", and CUDA_VISIBLE_DEVICES is \"%.60s\"", visible);
}

tn_status cuda_verdict_driver(const cuda_driver *driver, cu_result code,
                              const cuda_surroundings *around, const char *visible, tn_error *err)
{
    char seen[96];
    tell_visible(visible, seen, sizeof seen);
    switch (code) {
    case CUDA_ERROR_NO_DEVICE:
        return tn_fail(err, TN_UNAVAILABLE, (int32_t)code, "cuInit",
                       "the driver shows no NVIDIA GPU%s; %s", seen,
                       visible && around->has_nodes ? "unset it, or list devices that are here"
                                                    : nodes_remedy(around));
    case CUDA_ERROR_STUB_LIBRARY:
        return tn_fail(
            err, TN_INCOMPATIBLE, (int32_t)code, "cuInit",
            "libcuda.so.1 is the toolkit's stub, to link with; put the driver's own before "
            "it in LD_LIBRARY_PATH");
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return tn_fail(err, TN_INCOMPATIBLE, (int32_t)code, "cuInit",
                       "libcuda.so.1 and the kernel's module are of different versions; start the "
                       "machine anew, or pass the host's driver into the container");
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return tn_fail(
            err, TN_INCOMPATIBLE, (int32_t)code, "cuInit",
            "the compatibility package's libcuda.so.1 does not serve this device; take it "
            "off LD_LIBRARY_PATH, or install a newer driver");
    case CUDA_ERROR_SYSTEM_NOT_READY:
        return tn_fail(
            err, TN_UNAVAILABLE, (int32_t)code, "cuInit",
            "the system's GPUs are not ready; with NVSwitch, start nvidia-fabricmanager");
    case CUDA_ERROR_UNKNOWN:
        return tn_fail(err, TN_UNAVAILABLE, (int32_t)code, "cuInit",
                       "the driver does not start and does not say why; %s", nodes_remedy(around));
    default: return cuda_driver_fail(driver, code, "cuInit", err);
    }
}
