#include "../../cpu_module.h"
#include "../../cpu_process.h"
#include "../cblas/cblas_tiles.h"
#include "onednn.h"

#define SLOT(name, field)               \
    {                                   \
        name, offsetof(tni_dnnl, field) \
    }
static const tn_symbol symbols[] = {
    SLOT("dnnl_version", version),
    SLOT("dnnl_set_verbose", set_verbose),
    SLOT("?omp_get_max_threads", omp_get_max_threads),
    SLOT("?omp_set_num_threads", omp_set_num_threads),
    SLOT("dnnl_engine_create", engine_create),
    SLOT("dnnl_stream_create", stream_create),
    SLOT("dnnl_stream_destroy", stream_destroy),
    SLOT("dnnl_memory_create", memory_create),
    SLOT("dnnl_memory_set_data_handle", memory_set),
    SLOT("dnnl_memory_destroy", memory_destroy),
    SLOT("dnnl_memory_desc_get_size", layout_bytes),
    SLOT("dnnl_primitive_attr_create", attributes_create),
    SLOT("dnnl_primitive_attr_destroy", attributes_destroy),
    SLOT("dnnl_primitive_attr_set_scratchpad_mode", attributes_set_scratchpad),
    SLOT("dnnl_primitive_attr_set_post_ops", attributes_set_post_ops),
    SLOT("?dnnl_primitive_attr_set_fpmath_mode", attributes_set_fpmath),
    SLOT("dnnl_post_ops_create", post_ops_create),
    SLOT("dnnl_post_ops_destroy", post_ops_destroy),
    SLOT("dnnl_primitive_desc_query", description_query),
    SLOT("dnnl_primitive_desc_query_md", description_layout),
    SLOT("dnnl_primitive_desc_destroy", description_destroy),
    SLOT("?dnnl_reorder_primitive_desc_create", reorder_create),
    SLOT("dnnl_primitive_create", primitive_create),
    SLOT("dnnl_primitive_execute", primitive_execute),
    SLOT("dnnl_primitive_destroy", primitive_destroy),
    SLOT("?dnnl_memory_desc_init_by_strides", of_2.layout_init),
    SLOT("?dnnl_memory_desc_init_by_tag", of_2.layout_by_tag),
    SLOT("?dnnl_matmul_desc_init", of_2.matmul_init),
    SLOT("?dnnl_primitive_desc_create", of_2.description_create),
    SLOT("dnnl_post_ops_append_eltwise", of_2.post_ops_append),
    SLOT("?dnnl_memory_desc_create_with_strides", of_3.layout_create),
    SLOT("?dnnl_memory_desc_destroy", of_3.layout_destroy),
    SLOT("?dnnl_memory_desc_create_with_tag", of_3.layout_by_tag),
    SLOT("?dnnl_memory_desc_clone", of_3.layout_clone),
    SLOT("?dnnl_matmul_primitive_desc_create", of_3.matmul_create),
    SLOT("dnnl_post_ops_append_eltwise", of_3.post_ops_append),
};

tn_status tni_dnnl_fail(int code, const char *where, const char *what, tn_error *err)
{
    tn_status status = code == TNI_DNNL_NO_MEMORY       ? TN_OUT_OF_MEMORY
                       : code == TNI_DNNL_UNIMPLEMENTED ? TN_UNSUPPORTED
                                                        : TN_INTERNAL;
    return tn_fail(err, status, code, where, "oneDNN refuses %s (status %d)", what, code);
}

static const tni_dnnl_shim *shim_of(const tni_dnnl *self, int major)
{
    bool second = self->of_2.layout_init && self->of_2.matmul_init && self->of_2.description_create;
    bool third = self->of_3.layout_create && self->of_3.layout_destroy && self->of_3.matmul_create;
    return major == 2 && second ? &tni_dnnl_shim_2 : major == 3 && third ? &tni_dnnl_shim_3 : NULL;
}

/* Returns why this build of oneDNN cannot be used, or NULL. */
static const char *unfit(const tni_dnnl *self, const tni_dnnl_version *version)
{
    if (!self->shim)
        return "this module supports versions 2.x and 3.x only";
    if (version->threads & TNI_DNNL_SYCL)
        return "it is built for SYCL; install the build for OpenMP or without threads";
    if (version->threads & TNI_DNNL_TBB)
        return "it is built for TBB, which cannot be told to stay on one thread; install the build "
               "for OpenMP or without threads";
    if (version->threads & TNI_DNNL_OPENMP &&
        (!self->omp_get_max_threads || !self->omp_set_num_threads))
        return "its OpenMP cannot be told how many threads to use";
    return NULL;
}

static int get_openmp(const void *library)
{
    return ((const tni_dnnl *)library)->omp_get_max_threads();
}

static void set_openmp(const void *library, int threads)
{
    ((const tni_dnnl *)library)->omp_set_num_threads(threads);
}

static tn_status init_dnnl(tni_dnnl *self, tn_error *err)
{
    enum { CPU = 1 };
    const tni_dnnl_version *version = self->version();
    if (!version)
        return tn_fail(err, TN_CORRUPT, 0, "cpu: mkldnn", "oneDNN is here, but has no version");
    self->shim = shim_of(self, version->major);
    const char *fault = unfit(self, version);
    if (fault)
        return tn_fail(err, TN_INCOMPATIBLE, 0, "cpu: mkldnn", "oneDNN %d.%d.%d is here, but %s",
                       version->major, version->minor, version->patch, fault);
    if (version->threads & TNI_DNNL_OPENMP)
        self->threads = (tni_vendor_threads){.get = get_openmp, .set = set_openmp};
    tni_vendor_threads_init(&self->threads);
    int code = self->engine_create(&self->engine, CPU, 0);
    return code ? tni_dnnl_fail(code, "cpu: mkldnn", "an engine", err) : TN_OK;
}

static tn_status open_dnnl(const tn_host *host, void **out_self, tn_error *err)
{
    void *table = NULL;
    tn_status status =
        tni_cpu_module_bind(host, &tni_cpu_module_mkldnn, symbols,
                            sizeof symbols / sizeof symbols[0], sizeof(tni_dnnl), &table, err);
    if (status)
        return status;
    ((tni_dnnl *)table)->tiles_target = tni_tiles_target(host);
    status = init_dnnl(table, err);
    if (status)
        host->release(host->self, table);
    else
        *out_self = table;
    return status;
}

static tn_status version(void *self, int64_t *out_number, char *out_text, size_t size,
                         tn_error *err)
{
    const tni_dnnl_version *parts = ((const tni_dnnl *)self)->version();
    (void)err;
    *out_number = tni_cpu_module_version_number(parts->major, parts->minor, parts->patch);
    snprintf(out_text, size, "%d.%d.%d", parts->major, parts->minor, parts->patch);
    return TN_OK;
}

/* Level 0 means the level from the environment. */
static tn_status verbose(void *self, int32_t level, tn_error *err)
{
    int32_t said = tni_cpu_variable_level("ONEDNN_VERBOSE");
    int32_t earlier = tni_cpu_variable_level("DNNL_VERBOSE"); /* the variable's earlier name */
    int32_t wanted = level != 0 ? level : said > 0 ? said : earlier;
    int code = ((const tni_dnnl *)self)->set_verbose(wanted);
    return code == TNI_DNNL_OK ? TN_OK
                               : tn_fail(err, TN_UNSUPPORTED, code, "dnnl_set_verbose",
                                         "oneDNN refuses level %d (status %d)", (int)wanted, code);
}

const tn_library_row tni_cpu_module_mkldnn = {
    .struct_size = sizeof tni_cpu_module_mkldnn,
    .name = "mkldnn",
    .platform = "cpu",
    .files = TNI_CPU_FILES("dnnl.dll", "libdnnl.3.dylib|libdnnl.2.dylib",
                           "libdnnl.so.3|libdnnl.so.3.6|libdnnl.so.2"),
    .remedy = "install libdnnl3.6 or libdnnl2 (Debian), onednn (Fedora, Arch, Homebrew)",
    .other = "onednn",
    .verbose_setting = "mkldnn.verbose",
    .open = open_dnnl,
    .version = version,
    .verbose = verbose,
};
