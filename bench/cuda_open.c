#include "cuda_open.h"
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bench_cuda gpu;

void bench_cuda_must(tn_status status, const tn_error *err)
{
    if (status) {
        fprintf(stderr, "bench: %s: %s\n", err->where, err->message);
        exit(1);
    }
}

void bench_cuda_must_cu(cu_result code, const char *call)
{
    if (code) {
        fprintf(stderr, "bench: %s: result %u\n", call, code);
        exit(1);
    }
}

tn_status bench_cuda_add_module(tn_error *err)
{
    static const char module[] = "/../backends/tenon-cuda.so";
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof module);
    while (length > 0 && path[length - 1] != '/')
        length--;
    if (length <= 0)
        return tn_fail(err, TN_UNAVAILABLE, 0, "bench", "this program does not know its folder");
    memcpy(path + length - 1, module, sizeof module);
    return tn_module_file_add(path, TN_MODULE_TRUSTED, err);
}

bool bench_cuda_open(void)
{
    tn_error err;
    int32_t version = 0;
    if (bench_cuda_add_module(&err) || tn_device_get("cuda:0", &gpu.device, &err) ||
        cuda_driver_bind(&bench_host, &gpu.driver, &version, &err)) {
        printf("lacking: an NVIDIA GPU; %s\n", err.message);
        return false;
    }
    bench_cuda_must(tn_device_set(tn_device_platform(gpu.device), 0, &err), &err);
    bench_cuda_must(tn_stream_create(gpu.device, NULL, &gpu.stream, &err), &err);
    gpu.raw = (cu_stream)tn_stream_raw(gpu.stream);
    printf("%s, driver for CUDA %d.%d\n", tn_device_name(gpu.device), (int)version / 1000,
           (int)version % 1000 / 10);
    return true;
}
