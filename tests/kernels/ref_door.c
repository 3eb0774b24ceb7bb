/* The reference kernels for a caller that has only memory and a descriptor. */
#include "tenon/module/kernel.h"

#include <stdlib.h>

tn_module_entry_fn tni_ref_module_entry;

static tn_status no_setting(const tn_query *query, const char *key, int64_t *out)
{
    (void)query, (void)key, (void)out;
    return TN_NOT_FOUND;
}

static void *allocate(void *self, size_t size, size_t align)
{
    (void)self;
    return aligned_alloc(align, (size / align + 1) * align);
}

static void release(void *self, void *memory)
{
    (void)self;
    free(memory);
}

static const tn_host host = {.struct_size = sizeof host, .alloc = allocate, .release = release};

TN_MODULE_EXPORT tn_status ref_run(const tn_op *op, void *const *data, char *out_why, size_t size);

/* Admits and runs the op's row on the calling thread. A refusal's text goes to out_why, of 4 bytes and
 * more. */
tn_status ref_run(const tn_op *op, void *const *data, char *out_why, size_t size)
{
    const tn_module *module = NULL;
    tn_refusal why = {.struct_size = sizeof why};
    tn_query query = {.struct_size = sizeof query, .op = op, .setting = no_setting};
    tn_run run = {.struct_size = sizeof run, .op = op, .data = data, .host = &host, .threads = 1};
    tn_error err;
    if (tni_ref_module_entry(NULL, &module, &err))
        return err.status;
    for (size_t i = 0; module->kernels[i]; i++)
        run.row = module->kernels[i]->op == op->kind ? module->kernels[i] : run.row;
    if (!run.row)
        return TN_NOT_FOUND;
    if (run.row->admit && run.row->admit(run.row, &query, &why)) {
        tn_text_fit(out_why, size, why.text);
        return TN_UNSUPPORTED;
    }
    return run.row->run(&run, &err);
}
