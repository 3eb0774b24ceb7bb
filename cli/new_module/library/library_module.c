/* tenon-@NAME@: the library "@NAME@" for Tenon, and a kernel of matmul that calls it.
 *
 * The library is opened when it is first needed, by its versioned name. Nothing here links it: if
 * it is missing, the module still loads, and `tenon libraries` reports why and what to install.
 *
 * This example calls stand-in/, a small library with one product of matrices, so the module builds,
 * loads and passes `tenon conformance` on any machine. Comments that begin with "vendor" mark what
 * to replace by your library; run `make check` after each change.
 *
 * <tenon/module/library.h> declares the row of a library, <tenon/module/kernel.h> that of a
 * kernel, and <tenon/module/op/matmul.h> what a kernel of matmul must compute. Tenon's
 * docs/modules.md has a tutorial and a table of every field. */
#include <limits.h>
#include <tenon/module/kernel.h>
#include <tenon/module/library.h>
#include <tenon/module/op/matmul.h>

/* vendor: the names to open, the best first, separated by "|". Name the version that the functions
 * below belong to; an unversioned name belongs to development packages. */
#define FILES "lib@NAME@-stand-in.so.1"

/* vendor: the alignment of memory that it needs, in bytes. */
#define ALIGNMENT 4

/* vendor: the functions that the module uses. They are declared here, so the module is built
 * without the library's headers, and on machines that do not have it. */
typedef struct library {
    int (*version)(void);
    void (*sgemm)(int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
} library;

/* Called once, when the library is first needed, on a thread of Tenon's. The slot of an optional
 * symbol, "?name", is NULL if the library does not have it. On failure the error says
 * which files were searched where, or which symbol is missing. If the library is present, but
 * cannot be used (a feature is missing, no licence), return tn_fail(err, TN_INCOMPATIBLE, ...). */
static tn_status open_library(const tn_host *host, void **out_self, tn_error *err)
{
    static const tn_symbol symbols[] = {{"standin_version", offsetof(library, version)},
                                        {"standin_sgemm", offsetof(library, sgemm)}};
    library *self = host->alloc(host->self, sizeof *self, _Alignof(library));
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "@NAME@", "no memory for its functions");
    tn_status status = host->library_bind(host->self, FILES, symbols,
                                          sizeof symbols / sizeof symbols[0], self, err);
    if (status)
        host->release(host->self, self);
    else
        *out_self = self;
    return status;
}

/* vendor: its number, and the text that people know. Tests and timings are kept for a version. */
static tn_status read_version(void *any, int64_t *out_number, char *out_text, size_t size,
                              tn_error *err)
{
    const library *self = any;
    int number = self->version();
    (void)err;
    *out_number = number;
    snprintf(out_text, size, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
    return TN_OK;
}

static const tn_library_row library_row = {
    .struct_size = sizeof library_row,
    .name = "@NAME@",
    .platform = "cpu",
    .files = FILES,
    .remedy = "build the stand-in (make) and add its folder to LD_LIBRARY_PATH",
    .open = open_library,
    .version = read_version,
};

/* A matrix as the library wants it: contiguous rows, or contiguous columns if it is transposed, and
 * the distance between them. */
typedef struct matrix {
    int transposed;
    int64_t leading;
} matrix;

/* Finds the form of the last two dimensions. Returns 0 if they have none: gaps between elements,
 * rows that overlap, or reverse order. The stride of a dimension of 1 has no meaning. */
static int describe_matrix(const tn_layout *layout, matrix *out)
{
    const int32_t last = layout->rank - 1;
    const int64_t rows = layout->shape[last - 1], columns = layout->shape[last];
    const int64_t row = layout->stride[last - 1], column = layout->stride[last];
    out->transposed = 0;
    out->leading = rows > 1 ? row : columns;
    if ((column == 1 || columns <= 1) && out->leading >= columns)
        return 1;
    out->transposed = 1;
    out->leading = columns > 1 ? column : rows;
    return (row == 1 || rows <= 1) && out->leading >= rows;
}

/* Refuses an operand with a text, unless nobody asks for the reason. */
static tn_status refuse_stride(tn_refusal *why, const char *what, int64_t needed, int64_t found,
                               const char *text)
{
    (void)tn_refuse(why, TN_REFUSE_STRIDE, what, needed, found);
    if (why)
        tn_text_fit(why->text, sizeof why->text, text);
    return TN_UNSUPPORTED;
}

/* Finds the forms of A, B and out, or refuses: says what is needed, what was found, what to do. */
static tn_status describe_operands(const tn_op *op, matrix out[3], tn_refusal *why)
{
    static const char *const names[] = {"a.stride", "b.stride", "out.stride"};
    static const char *const alignments[] = {"a.alignment", "b.alignment", "out.alignment"};
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT; i++) {
        const tn_layout *layout = &op->operand[i];
        int64_t row = layout->stride[layout->rank - 2], columns = layout->shape[layout->rank - 1];
        if (!describe_matrix(layout, &out[i]) || (i == TN_MATMUL_OUT && out[i].transposed))
            return refuse_stride(why, names[i], columns, row,
                                 "make its rows contiguous, in order, and not overlapping");
        if (out[i].leading > INT_MAX)
            return refuse_stride(why, names[i], INT_MAX, out[i].leading,
                                 "the library's integers have 32 bits");
        if (layout->alignment < ALIGNMENT)
            return tn_refuse(why, TN_REFUSE_ALIGNMENT, alignments[i], ALIGNMENT, layout->alignment);
    }
    return TN_OK;
}

/* Decides whether the library can compute a problem, before any call. Pure: it must not call the
 * library, which may not be open yet. The core has already compared dtypes and features. */
static tn_status admit_matmul(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"m", "n", "k"};
    const tn_matmul_op *matmul = TN_PARAMS(query->op, matmul);
    const int64_t sizes[] = {matmul->m, matmul->n, matmul->k};
    matrix of[3];
    (void)row;
    for (int i = 0; i < 3; i++) {
        if (sizes[i] > INT_MAX)
            return tn_refuse(why, TN_REFUSE_SHAPE, names[i], INT_MAX, sizes[i]);
    }
    return describe_operands(query->op, of, why);
}

/* Computes on the calling thread. If k is 0, A and B have no elements and their addresses are NULL.
 *
 * vendor: if the library has threads of its own, let it use run->threads of them, and no more: set
 * that before the call and restore it after. If two threads must not use it at once, take a lock of
 * the module's around the call. */
static tn_status run_matmul(const tn_run *run, tn_error *err)
{
    const library *vendor = run->library;
    const tn_matmul_op *matmul = TN_PARAMS(run->op, matmul);
    matrix of[3];
    if (describe_operands(run->op, of, NULL)) /* cannot be: admit_matmul refuses it */
        return tn_fail(err, TN_INTERNAL, 0, run->row->name, "expected a layout that was admitted");
    vendor->sgemm(of[TN_MATMUL_A].transposed, of[TN_MATMUL_B].transposed, (int)matmul->m,
                  (int)matmul->n, (int)matmul->k, (float)matmul->alpha,
                  tn_operand(run, TN_MATMUL_A), (int)of[TN_MATMUL_A].leading,
                  tn_operand(run, TN_MATMUL_B), (int)of[TN_MATMUL_B].leading, (float)matmul->beta,
                  tn_operand(run, TN_MATMUL_OUT), (int)of[TN_MATMUL_OUT].leading);
    return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, 0};

static const tn_kernel_row matmul_row = {
    .struct_size = sizeof matmul_row,
    .name = "cpu.@NAME@.matmul",
    .platform = "cpu",
    .library = "@NAME@", /* tests and timings hold for its version; rules about it apply */
    .op = TN_OP_MATMUL,
    .version = 1,
    .dtypes = dtypes,
    .numerics = TN_NUM_RUN_TO_RUN, /* vendor: promise only what the library documents */
    .honours = TN_MATMUL_USES_TRANSPOSE | TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA,
    /* vendor: figures of one core, as `tenon bench` measures them */
    .flops_per_us = 1e3,
    .bytes_per_us = 1e3,
    .overhead_us = 1,
    .admit = admit_matmul,
    .run = run_matmul,
    .alignment = ALIGNMENT, /* the largest that describe_operands distinguishes */
};

static const tn_library_row *const libraries[] = {&library_row, NULL};
static const tn_kernel_row *const kernels[] = {&matmul_row, NULL};

static const tn_module module = {
    .struct_size = sizeof module,
    TN_MODULE_ABI,
    .name = "@NAME@",
    .version = "0.1.0",
    .libraries = libraries,
    .kernels = kernels,
};

/* The only exported symbol. Must not open the library. */
tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
