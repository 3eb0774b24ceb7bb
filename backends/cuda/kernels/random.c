/* Random numbers on the device. They belong to the platform, not to an op. */
#include "layout.h"

tn_status cuda_random(void *any, const tn_random_job *job, tn_error *err)
{
    cuda *self = any;
    const bool words = job->dtype == TN_U32 || job->dtype == TN_I32;
    const char *type = words ? "u32" : cuda_is_float(job->dtype) ? cuda_type_of(job->dtype) : NULL;
    const cuda_nvrtc *compiler = type ? cuda_compiler(self) : NULL;
    const int64_t in_block = cuda_bytes_of(job->dtype) == 8 ? 2 : 4;
    const int64_t each = in_block * CUDA_THREADS;
    char options[CUDA_RANDOM_OPTIONS_ROOM];
    cuda_kernel *kernel = NULL;
    if (!compiler || (words && job->kind != TN_RANDOM_UNIFORM))
        return tn_fail(err, TN_UNSUPPORTED, 0, "cuda", "no such numbers on the device");
    snprintf(options, sizeof options, CUDA_RANDOM_OPTIONS, type, words ? 0 : (int)job->kind,
             cuda_index_of(job->elements));
    const cuda_case wanted = {&cuda_random_unit, "random_blocks", options};
    tn_status status = cuda_kernel_get(self, compiler, job->device, &wanted, &kernel, err);
    if (status) /* if code cannot be compiled or loaded, the caller can still fall back */
        return status == TN_DEVICE_LOST || status == TN_OUT_OF_MEMORY ? status : TN_UNSUPPORTED;
    cuda_random_args args = {.out = job->to,
                             .elements = job->elements,
                             .seed = job->seed,
                             .subsequence = job->subsequence,
                             .block = job->block};
    const cuda_launch launch = {
        .kernel = kernel,
        .blocks = cuda_blocks_on(self, job->device, (job->elements + each - 1) / each),
        .threads = CUDA_THREADS,
        .args = &args,
        .stream = job->stream};
    return cuda_kernel_launch(self, job->device, &launch, err);
}
