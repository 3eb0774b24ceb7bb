#include "verdict.h"

#include <stdio.h>

static int32_t is_there(const char *root, const char *path)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    FILE *file = fopen(whole, "rb"); /* also opens folders; a file we may not open is of no use */
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

/* The kinds of machines, as columns of `remedies`. The BARE_ ones have no device files. */
enum { HOST, BARE_HOST, WSL, BARE_WSL, JETSON, BARE_JETSON, PLACES };

static int place_of(const cuda_surroundings *around)
{
    int place = around->is_wsl ? WSL : around->is_jetson ? JETSON : HOST;
    return place + !around->has_nodes;
}

/* Suffixes for messages about causes that involve device files. */
static const char *const places[PLACES] = {
    [HOST] = "",
    [BARE_HOST] = "; /dev/nvidiactl cannot be opened",
    [WSL] = "; this is WSL",
    [BARE_WSL] = "; this is WSL, where /dev/dxg cannot be opened",
    [JETSON] = "; this is a Jetson",
    [BARE_JETSON] = "; this is a Jetson, where /dev/nvmap cannot be opened",
};

typedef enum verdict_cause {
    NO_LIBRARY,
    TOO_OLD,
    NO_DEVICE,
    HIDDEN,
    STUB_LIBRARY,
    OTHER_VERSION,
    COMPATIBILITY,
    NOT_READY,
    NOT_PERMITTED,
    CAUSES
} verdict_cause;

/* Remedies for each cause. If a kind of machine has no entry, the entry of the same kind with device files
 * applies, or else that of HOST. "" means the remedy of the platform's row. */
static const char *const remedies[CAUSES][PLACES] = {
    [NO_LIBRARY] = {[HOST] =
                        "install libcuda.so.1 of the version that the kernel's module has, or in a "
                        "container let the driver in (--gpus all, and compute among "
                        "NVIDIA_DRIVER_CAPABILITIES)",
                    [BARE_HOST] = "",
                    [WSL] =
                        "install NVIDIA's driver on Windows, and put /usr/lib/wsl/lib, where WSL 2 "
                        "shows it, into LD_LIBRARY_PATH",
                    [JETSON] =
                        "install JetPack's cuda part, or in a container use --runtime nvidia"},
    [TOO_OLD] = {[HOST] = "install a newer driver",
                 [WSL] = "install a newer driver on Windows",
                 [JETSON] = "install a newer JetPack, which brings the driver"},
    [NO_DEVICE] =
        {[HOST] = "look which device is in trouble: nvidia-smi, and NVRM's lines in dmesg",
         [BARE_HOST] = "modprobe nvidia, or pass the devices into the container (--gpus all)",
         [WSL] = "update NVIDIA's driver on Windows, then start WSL anew (wsl --shutdown)",
         [BARE_WSL] = "use WSL 2 (wsl --set-version), with NVIDIA's driver on Windows",
         [JETSON] = "install JetPack's cuda part, which has the driver",
         [BARE_JETSON] = "in a container use --runtime nvidia; else install JetPack's kernel"},
    [HIDDEN] = {[HOST] = "unset CUDA_VISIBLE_DEVICES, or list devices in it that are here"},
    [STUB_LIBRARY] = {[HOST] =
                          "put the folder of the driver's own libcuda.so.1 before the stub's in "
                          "LD_LIBRARY_PATH",
                      [WSL] = "put /usr/lib/wsl/lib before the stub's folder in LD_LIBRARY_PATH"},
    [OTHER_VERSION] = {[HOST] =
                           "start the machine anew after an update, or in a container pass the "
                           "host's driver in, instead of another one",
                       [WSL] = "start WSL anew (wsl --shutdown), and install no driver inside it"},
    [COMPATIBILITY] = {[HOST] =
                           "take the compatibility package off LD_LIBRARY_PATH, or install a newer "
                           "driver"},
    [NOT_READY] = {[HOST] =
                       "with NVSwitch start nvidia-fabricmanager, of the driver's own version; "
                       "else wait until nvidia-smi shows the devices"},
    [NOT_PERMITTED] = {[HOST] = "let this user in: ls -l /dev/nvidiactl shows who may"},
};

static const char *remedy_of(verdict_cause cause, const cuda_surroundings *around)
{
    int place = place_of(around);
    const char *bare = remedies[cause][place];
    const char *own = bare ? bare : remedies[cause][place - !around->has_nodes];
    return own ? own : remedies[cause][HOST];
}

const char *cuda_verdict_library(tn_status status, const cuda_surroundings *around)
{
    return status == TN_UNAVAILABLE    ? remedy_of(NO_LIBRARY, around)
           : status == TN_INCOMPATIBLE ? remedy_of(TOO_OLD, around)
                                       : "";
}

tn_status cuda_verdict_nvml(nvml_result code, const cuda_surroundings *around,
                            const char **out_remedy, tn_error *err)
{
    switch (code) {
    case NVML_ERROR_DRIVER_NOT_LOADED:
        if (around->is_jetson || around->is_wsl)
            return TN_OK; /* NVML looks for a different driver than the one used there */
        *out_remedy = remedy_of(NO_DEVICE, around);
        return tn_fail(err, TN_UNAVAILABLE, (int32_t)code, "nvmlInit_v2",
                       "NVIDIA's kernel module is not loaded%s", places[place_of(around)]);
    case NVML_ERROR_NO_PERMISSION:
        *out_remedy = remedy_of(NOT_PERMITTED, around);
        return tn_fail(err, TN_NOT_PERMITTED, (int32_t)code, "nvmlInit_v2",
                       "this user may not use NVIDIA's driver");
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        *out_remedy = remedy_of(OTHER_VERSION, around);
        return tn_fail(err, TN_INCOMPATIBLE, (int32_t)code, "nvmlInit_v2",
                       "NVIDIA's libraries and kernel module are of different versions");
    default: return TN_OK;
    }
}

/* Messages for the results of cuInit. */
static const struct {
    cu_result code;
    tn_status status;
    verdict_cause cause;
    const char *text;
} results[] = {
    {CUDA_ERROR_NO_DEVICE, TN_UNAVAILABLE, NO_DEVICE, "the driver shows no NVIDIA GPU"},
    {CUDA_ERROR_UNKNOWN, TN_UNAVAILABLE, NO_DEVICE,
     "the driver does not start and does not say why"},
    {CUDA_ERROR_STUB_LIBRARY, TN_INCOMPATIBLE, STUB_LIBRARY,
     "libcuda.so.1 is the toolkit's stub, to link with"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, TN_INCOMPATIBLE, OTHER_VERSION,
     "libcuda.so.1 and the kernel's module are of different versions"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, TN_INCOMPATIBLE, COMPATIBILITY,
     "the compatibility package's libcuda.so.1 does not serve this device"},
    {CUDA_ERROR_SYSTEM_NOT_READY, TN_UNAVAILABLE, NOT_READY, "the system's GPUs are not ready"},
};
enum { RESULTS = sizeof results / sizeof results[0] };

tn_status cuda_verdict_driver(const cuda_driver *driver, cu_result code,
                              const cuda_surroundings *around, const char *visible,
                              const char **out_remedy, tn_error *err)
{
    char seen[96] = "";
    size_t i = 0;
    while (i < RESULTS && results[i].code != code)
        i++;
    verdict_cause cause = i < RESULTS ? results[i].cause : NO_DEVICE;
    const char *place = cause == NO_DEVICE ? places[place_of(around)] : "";
    if (visible && code == CUDA_ERROR_NO_DEVICE) {
        snprintf(seen, sizeof seen, ", and CUDA_VISIBLE_DEVICES is \"%.60s\"", visible);
        if (around->has_nodes)
            cause = HIDDEN;
    }
    *out_remedy = remedy_of(cause, around);
    if (i == RESULTS)
        return cuda_driver_fail(driver, code, "cuInit", err);
    return tn_fail(err, results[i].status, (int32_t)code, "cuInit", "%s%s%s", results[i].text, seen,
                   place);
}
