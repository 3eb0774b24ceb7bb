/* A driver without a device, for libraries that plan and compile without one: cuDNN looks for these functions
 * before it compiles, and loads what it compiled. All of them say that there is no device, but for those that
 * load code: they keep nothing of it. */
#include <stddef.h>

enum { SUCCESS = 0, NO_DEVICE = 100 };

#define NO_DEVICE_LIST(X)                          \
    X(cuInit)                                      \
    X(cuDriverGetVersion)                          \
    X(cuGetErrorName)                              \
    X(cuGetErrorString)                            \
    X(cuDeviceGet)                                 \
    X(cuDeviceGetCount)                            \
    X(cuDeviceGetAttribute)                        \
    X(cuDevicePrimaryCtxRetain)                    \
    X(cuDevicePrimaryCtxRelease)                   \
    X(cuDevicePrimaryCtxReset)                     \
    X(cuCtxGetCurrent)                             \
    X(cuCtxGetDevice)                              \
    X(cuCtxGetLimit)                               \
    X(cuCtxPushCurrent)                            \
    X(cuCtxPopCurrent)                             \
    X(cuFuncGetAttribute)                          \
    X(cuFuncSetAttribute)                          \
    X(cuKernelGetAttribute)                        \
    X(cuKernelSetAttribute)                        \
    X(cuLaunchKernel)                              \
    X(cuLaunchKernelEx)                            \
    X(cuLaunchCooperativeKernel)                   \
    X(cuLibraryLoadFromFile)                       \
    X(cuLinkCreate)                                \
    X(cuLinkCreate_v2)                             \
    X(cuLinkAddData)                               \
    X(cuLinkAddData_v2)                            \
    X(cuLinkAddFile_v2)                            \
    X(cuLinkComplete)                              \
    X(cuLinkDestroy)                               \
    X(cuMemcpyDtoH_v2)                             \
    X(cuModuleLoadData)                            \
    X(cuModuleLoadDataEx)                          \
    X(cuModuleLoadFatBinary)                       \
    X(cuModuleGetFunction)                         \
    X(cuModuleGetGlobal_v2)                        \
    X(cuModuleUnload)                              \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
    X(cuOccupancyMaxPotentialClusterSize)          \
    X(cuStreamGetCtx)                              \
    X(cuStreamSynchronize)                         \
    X(cuTensorMapEncodeTiled)

#define ABSENT(name)      \
    int name(void);       \
    int name(void)        \
    {                     \
        return NO_DEVICE; \
    }
NO_DEVICE_LIST(ABSENT)
#undef ABSENT

int cuLibraryLoadData(void **out);
int cuLibraryGetKernel(void **out);
int cuLibraryUnload(void *library);

static char loaded[64];

int cuLibraryLoadData(void **out)
{
    *out = loaded;
    return SUCCESS;
}

int cuLibraryGetKernel(void **out)
{
    *out = loaded;
    return SUCCESS;
}

int cuLibraryUnload(void *library)
{
    return library ? SUCCESS : NO_DEVICE;
}
