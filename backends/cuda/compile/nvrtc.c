#include "nvrtc.h"

#include "find.h"
#include "ready.h"

#include <stdlib.h>

static const tn_symbol symbols[] = {
#define NVRTC_CALL_(field, name, parameters) {#name, offsetof(cuda_nvrtc, field)},
    NVRTC_CALL_LIST(NVRTC_CALL_)
#undef NVRTC_CALL_
};
enum { SYMBOLS = sizeof symbols / sizeof symbols[0], OPTIONS_MOST = 32 };

static const char files[] = "libnvrtc.so.13|libnvrtc.so.12|libnvrtc.so.11.2";

static const cuda_sought sought = {files, "cu13|cuda_nvrtc", NULL, false};

/* Without the compiler, only the kernels that were compiled ahead are available. */
static tn_status open_without(const tn_host *host, cuda_nvrtc *self, void **out_self, tn_error *err)
{
    self->host = host;
    self->major = cuda_ready_compiler() / 100;
    self->minor = cuda_ready_compiler() % 100;
    *out_self = self;
    return tn_fail(err, TN_OK, 0, "", "it is not here; %d kernels that were compiled ahead serve",
                   (int)cuda_ready_count());
}

tn_status cuda_nvrtc_open(const tn_host *host, void **out_self, tn_error *err)
{
    cuda_nvrtc *self = host->alloc(host->self, sizeof *self, _Alignof(cuda_nvrtc));
    int major = 0, minor = 0;
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "nvrtc", "no memory for its table");
    memset(self, 0, sizeof *self);
    tn_status status = cuda_find_bind(host, &sought, symbols, SYMBOLS, self, err);
    if (status == TN_UNAVAILABLE && cuda_ready_count() > 0)
        return open_without(host, self, out_self, err);
    if (!status && self->version(&major, &minor) != NVRTC_SUCCESS)
        status = tn_fail(err, TN_INCOMPATIBLE, 0, "nvrtcVersion", "its version is unknown");
    if (status) {
        host->release(host->self, self);
        return status;
    }
    self->host = host;
    self->major = major;
    self->minor = minor;
    *out_self = self;
    return TN_OK;
}

tn_status cuda_nvrtc_version(void *any, int64_t *out_number, char *out_text, size_t size,
                             tn_error *err)
{
    const cuda_nvrtc *self = any;
    (void)err;
    *out_number = (int64_t)self->major * 10000 + self->minor * 100;
    snprintf(out_text, size, "%d.%d", (int)self->major, (int)self->minor);
    return TN_OK;
}

static tn_status find_library(const tn_host *host, char *out_path, size_t size, tn_error *err)
{
    return cuda_find_look(host, &sought, out_path, size, err);
}

const tn_library_row cuda_nvrtc_row = {
    .struct_size = sizeof cuda_nvrtc_row,
    .name = "nvrtc",
    .platform = "cuda",
    .files = files,
    .remedy = "install NVIDIA's toolkit, or its nvrtc part alone (pip install nvidia-cuda-nvrtc)",
    .open = cuda_nvrtc_open,
    .version = cuda_nvrtc_version,
    .look = find_library,
};

/* Converts "file(12): error: words\n the line\n ^\n" to "file(12): error: words: the ^line". */
void cuda_nvrtc_first_error(const char *log, char *out, size_t size)
{
    const char *error = strstr(log, "error");
    const char *line = error ? error : log;
    while (line > log && line[-1] != '\n')
        line--;
    size_t length = strcspn(line, "\n");
    const char *source = line[length] ? line + length + 1 : line + length;
    size_t source_length = strcspn(source, "\n");
    const char *mark = source[source_length] ? source + source_length + 1 : source + source_length;
    size_t column = strspn(mark, " ");
    size_t blank = strspn(source, " ");
    if (mark[column] != '^' || column > source_length || column < blank)
        snprintf(out, size, "%.*s", (int)length, line);
    else
        snprintf(out, size, "%.*s: %.*s^%.*s", (int)length, line, (int)(column - blank),
                 source + blank, (int)(source_length - column), source + column);
}

/* Splits a text into lines in place; returns their count. */
static int split(char *text, const char **out, int most)
{
    int count = 0;
    for (char *at = text; *at && count < most; count++) {
        char *end = at + strcspn(at, "\n");
        out[count] = at;
        at = *end ? end + 1 : end;
        *end = '\0';
    }
    return count;
}

static void log_lines(const tn_host *host, char *log)
{
    const char *lines[64];
    int count = split(log, lines, 64);
    for (int i = 0; i < count; i++)
        host->log(host->self, TN_LOG_ERROR, lines[i]);
}

static tn_status report_failure(const cuda_nvrtc *nvrtc, nvrtc_program program, nvrtc_result code,
                                const cuda_source *source, const char *architecture, tn_error *err)
{
    const tn_host *host = nvrtc->host;
    char first[400] = "";
    size_t size = 0;
    if (nvrtc->log_size(program, &size) != NVRTC_SUCCESS || size > (size_t)1 << 20)
        size = 0;
    char *log = size ? host->alloc(host->self, size + 1, 1) : NULL;
    if (log && nvrtc->log(program, log) == NVRTC_SUCCESS) {
        log[size] = '\0';
        cuda_nvrtc_first_error(log, first, sizeof first);
        log_lines(host, log);
    }
    host->release(host->self, log);
    if (code == NVRTC_ERROR_COMPILATION)
        return tn_fail(err, TN_INVALID_ARGUMENT, (int32_t)code, "nvrtcCompileProgram", "%s", first);
    return tn_fail(err, TN_INCOMPATIBLE, (int32_t)code, "nvrtcCompileProgram",
                   "NVRTC %d.%d does not compile %s for %s: its result is %u%s%.200s",
                   (int)nvrtc->major, (int)nvrtc->minor, source->name, architecture, code,
                   first[0] ? ": " : "", first);
}

static tn_status get_code(const cuda_nvrtc *nvrtc, nvrtc_program program, void **out,
                          size_t *out_size, tn_error *err)
{
    const tn_host *host = nvrtc->host;
    size_t size = 0;
    if (nvrtc->code_size(program, &size) != NVRTC_SUCCESS || size == 0)
        return tn_fail(err, TN_INCOMPATIBLE, 0, "nvrtcGetCUBINSize", "it made no machine code");
    char *code = host->alloc(host->self, size, 16);
    if (!code)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "nvrtc", "no memory for %zu bytes of code", size);
    if (nvrtc->code(program, code) != NVRTC_SUCCESS) {
        host->release(host->self, code);
        return tn_fail(err, TN_INCOMPATIBLE, 0, "nvrtcGetCUBIN", "NVRTC returned no machine code");
    }
    *out = code;
    *out_size = size;
    return TN_OK;
}

tn_status cuda_nvrtc_compile(const cuda_nvrtc *nvrtc, const cuda_source *source,
                             const char *architecture, void **out, size_t *out_size, tn_error *err)
{
    char target[64], text[1024];
    const char *options[OPTIONS_MOST] = {target, CUDA_NVRTC_OPTIONS};
    nvrtc_program program = NULL;
    if (!nvrtc->compile)
        return tn_fail(
            err, TN_UNAVAILABLE, 0, "nvrtc",
            "this case of %s was not compiled ahead, and NVIDIA's compiler is not here: %s",
            source->name, cuda_nvrtc_row.remedy);
    snprintf(target, sizeof target, "--gpu-architecture=%s", architecture);
    if (strlen(source->options) >= sizeof text)
        return tn_fail(err, TN_INTERNAL, 0, "nvrtc", "the options of %s are too long",
                       source->name);
    memcpy(text, source->options, strlen(source->options) + 1);
    int count = 3 + split(text, options + 3, OPTIONS_MOST - 3);
    nvrtc_result code = nvrtc->create(&program, source->text, source->name, source->headers,
                                      source->header_texts, source->header_names);
    if (code)
        return tn_fail(err, TN_OUT_OF_MEMORY, (int32_t)code, "nvrtcCreateProgram",
                       "%s: its result is %u", source->name, code);
    code = nvrtc->compile(program, count, options);
    tn_status status = code ? report_failure(nvrtc, program, code, source, architecture, err)
                            : get_code(nvrtc, program, out, out_size, err);
    (void)nvrtc->destroy(&program);
    return status;
}
