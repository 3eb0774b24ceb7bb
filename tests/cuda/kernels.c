/* The kernels' texts through NVIDIA's compiler, for a device of capability 9.0 that need not be here: every
 * row's cases compile, are loaded and launched on the stub driver, which checks how and computes nothing.
 * That the numbers are right is for a GPU to show. A normal run compiles a sample of the cases. */
#include "scratch.h"

#include "../../backends/cuda/attention/attention_cuda.h"
#include "../../backends/cuda/attention/attention_dropout.h"
#include "../../backends/cuda/attention/decode.h"
#include "../../backends/cuda/attention_backward/backward_hopper.h"
#include "../../backends/cuda/attention_backward/backward_mma.h"
#include "../../backends/cuda/attention_sparse/sparse_hopper.h"
#include "../../backends/cuda/attention_sparse/sparse_mma.h"
#include "../../backends/cuda/compile/ready.h"
#include "../../backends/cuda/fft/fft_copy.h"
#include "../../backends/cuda/kernels/layout.h"
#include "../../backends/cuda/matmul/matmul_finish.h"
#include "module_host.h"
#include "op/op.h"
#include "params.h"
#include "row_problems.h"
#include "tenon/module/op/matmul.h"

#include <dlfcn.h>
#include <elf.h>

static void *platform, *compiler;

/* The platform on the stub, and the compiler; skips without one. */
static void begin(void)
{
    tni_cache *cache = NULL;
    int32_t devices = 0;
    tn_error err;
    if (!host.self) {
        assert_int_equal(tni_cache_create(NULL, 64 << 20, &cache, &err), TN_OK);
        host.self = cache;
        assert_int_equal(cuda_probe(&host, &platform, &devices, &err), TN_OK);
        if (cuda_nvrtc_open(&host, &compiler, &err))
            compiler = NULL;
    }
    if (!compiler) {
        print_message("skipped: NVIDIA's compiler is not here: cmake "
                      "-DTENON_NVRTC_LIBRARY=.../libnvrtc.so.13\n");
        skip();
    }
}

#define ROW_ADDRESS(row) &row,
static const tn_kernel_row *const rows[] = {CUDA_ROWS(ROW_ADDRESS) NULL};

static const tn_kernel_row *row_of(const tn_op *op)
{
    const tn_dtype wanted = op->operand[op->operand[0].dtype ? 0 : 1].dtype;
    for (size_t i = 0; rows[i]; i++) {
        const tn_dtype *dtype = rows[i]->dtypes;
        while (dtype && *dtype && *dtype != wanted)
            dtype++;
        if (rows[i]->op == op->kind && (!dtype || *dtype))
            return rows[i];
    }
    fail_msg("no row for op %d", (int)op->kind);
    return NULL;
}

/* Plans and runs an op that the row supports, with addresses that nobody reads. */
static void launch_op(const tn_kernel_row *row, const tn_op *op, const char *problem)
{
    void *data[TN_OP_OPERANDS_MAX];
    tn_error err;
    uint64_t bytes = 0;
    void *plan = NULL;
    const tn_query query = {.struct_size = sizeof query, .op = op, .library_version = -1};
    for (int i = 0; i < TN_OP_OPERANDS_MAX; i++)
        data[i] = (void *)(uintptr_t)(0x10000 * (i + 1));
    tn_run run = {.struct_size = sizeof run,
                  .row = row,
                  .op = op,
                  .data = data,
                  .platform = platform,
                  .library = compiler,
                  .host = &host};
    if (row->plan(&run, &plan, &bytes, &err))
        fail_msg("%s: %s: %s", problem, err.where, err.message);
    run.plan = plan;
    run.workspace = data[5];
    run.workspace_bytes = row->workspace ? row->workspace(row, &query) : 0;
    if (row->run(&run, &err))
        fail_msg("%s: %s: %s", problem, err.where, err.message);
    row->plan_release(&run, plan);
}

/* Launches a problem with the row that supports it. */
static void launch(const char *problem)
{
    char device[64];
    tn_op op;
    tn_error err;
    tn_refusal why = {.struct_size = sizeof why};
    if (tni_problem_parse(problem, &op, device, sizeof device, &err))
        fail_msg("%s: %s", problem, err.message);
    const tn_kernel_row *row = row_of(&op);
    const tn_query query = {.struct_size = sizeof query, .op = &op, .library_version = -1};
    if (row->admit(row, &query, &why))
        fail_msg("%s: refused: %s: expected %lld, got %lld: %s", problem, why.what,
                 (long long)why.needed, (long long)why.found, why.text);
    launch_op(row, &op, problem);
}

/* Whether the list has a problem for the row. */
static bool is_listed(const tn_kernel_row *row, const char *const *problems, size_t count)
{
    bool listed = false;
    for (size_t i = 0; i < count && !listed; i++) {
        char device[64];
        tn_op op;
        tn_error err;
        if (tni_problem_parse(problems[i], &op, device, sizeof device, &err))
            fail_msg("%s: %s", problems[i], err.message);
        listed = row_of(&op) == row;
    }
    return listed;
}

/* Launches the first smoke problem that the row supports, of one dtype and a sample of the others. */
static void launch_smoke(const tn_kernel_row *row)
{
    const size_t count = tni_smoke_count(row->op);
    bool launched = false;
    for (size_t d = 0; row->dtypes[d]; d++) {
        tn_op op;
        size_t i = 0;
        if (launched && !test_sampled(d, 10))
            continue;
        while (i < count && !make_row_problem(row, i, row->dtypes[d], &op))
            i++;
        if (i < count)
            launch_op(row, &op, row->name);
        launched = launched || i < count;
    }
    if (!launched)
        fail_msg("%s supports none of the smoke problems of its operator", row->name);
}

static void every_row_compiles_and_is_launched(void **state)
{
    static const char *const problems[] = {
        "unary:f32:kind=exp,shape=1000",
        "softmax:bf16:shape=64x1024",
        "reduce:f32:kind=sum,shape=64x100000,axes=1",
        "permute:f16:shape=64x64x64,order=2;1;0",
        "cast:f32:shape=1000,to=bf16",
        "fill:i64:shape=1000,value=3",
        "binary:i32:kind=div,shape=100x100",
        "norm:f32:kind=layer,shape=64x4096,weight=f32,bias=f32",
        "rotary:bf16:kind=halves,shape=2x8x128x64",
        "matmul:f32:m=64,n=64,k=64",
        "unary:f64:kind=gelu,shape=100x100",
        "unary:f16:kind=silu,shape=100x100",
        "binary:bf16:kind=max,shape=100x100",
        "reduce:i32:kind=max,shape=100x100,axes=1,si=1;100",
        "reduce:bf16:kind=mean,shape=1000000,axes=1",
        "softmax:f64:shape=8x20000",
        "norm:f16:kind=rms,shape=8x100000",
        "matmul:f16:m=50,n=30,k=100,batch=3,tb=1,bias=1,act=gelu",
        "matmul:bf16:m=50,n=30,k=100,out=f32,act=silu",
        "matmul:i8:m=50,n=30,k=100",
        "matmul:f64:m=50,n=30,k=100,ta=1,alpha=2,beta=3,act=gelu-tanh",
        "attention:bf16:b=1,h=4,l=64,d=64",
        "attention:f32:b=2,h=16,l=512,d=128,mask=causal,lse=1",
        "attention:f16:b=2,h=16,hk=4,lq=1,lk=4096,d=256,dropout=0.25",
        "attention:f64:b=2,h=2,l=64,d=200",
    };
    const size_t count = test_reduced() ? 10 : sizeof problems / sizeof problems[0];
    int launched = 0;
    (void)state;
    begin();
    for (size_t i = 0; i < count; i++) {
        if (!test_sampled(i, 10))
            continue;
        launch(problems[i]);
        launched++;
    }
    /* Some cases are ready in builds that compile ahead; never all of them. */
    if (cuda_ready_count() == 0)
        assert_true(compiled >= launched);
    else if (launched == (int)count)
        assert_true(compiled >= 1);
    for (size_t i = 0; rows[i]; i++) {
        const bool is_left_out = test_fewest() && !test_sampled(__LINE__ + i, 3);
        if (!is_left_out && !is_listed(rows[i], problems, sizeof problems / sizeof problems[0]))
            launch_smoke(rows[i]);
    }
}

static void read_problem(const char *text, tn_op *out)
{
    char device[64];
    tn_error err;
    if (tni_problem_parse(text, out, device, sizeof device, &err))
        fail_msg("%s: %s", text, err.message);
}

/* Decoding is launched to overlap with what comes before it, and so is the join of parts of the keys, if there are any. */
static void launches_of_decoding_overlap(void **state)
{
    static const char *const problems[] = {"attention:bf16:b=1,h=8,hk=2,lq=1,lk=4096,d=64",
                                           "attention:bf16:b=1,h=8,hk=2,lq=1,lk=100,d=64"};
    (void)state;
    begin();
    void *stub = dlopen(CUDA_STUB, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(stub);
    const _Atomic int *overlaps = dlsym(stub, "stub_overlaps");
    assert_non_null(overlaps);
    for (int i = 0; i < 2; i++) {
        tn_op op;
        const int before = *overlaps;
        read_problem(problems[i], &op);
        launch_op(&cuda_decode_row, &op, problems[i]);
        assert_int_equal(*overlaps - before, i == 0 ? 2 : 1);
    }
    dlclose(stub);
}

/* A section of machine code, an ELF file; NULL if it has none of that name. */
static const unsigned char *section_of(const void *code, const char *name, size_t *out_size)
{
    const unsigned char *file = code;
    const Elf64_Ehdr *head = code;
    const Elf64_Shdr *sections = (const void *)(file + head->e_shoff);
    const Elf64_Shdr *names = &sections[head->e_shstrndx];
    for (int i = 0; i < head->e_shnum; i++) {
        *out_size = sections[i].sh_size;
        if (strcmp((const char *)file + names->sh_offset + sections[i].sh_name, name) == 0)
            return file + sections[i].sh_offset;
    }
    return NULL;
}

/* Instructions of tensor cores; bytes of stack, where registers that have no room are spilled. */
enum { HMMA = 0x23C, HGMMA = 0x9F0 }; /* with the left operand in registers, a bit more */
static void measure_products(const void *code, const char *section, int product, int *out_products,
                             int *out_stack)
{
    enum { INSTRUCTION = 16, OPCODE = 0xFFF, IN_REGISTERS = 0x400 };
    const int opcode = product == HGMMA ? OPCODE & ~IN_REGISTERS : OPCODE;
    enum {
        FACT = 12,
        STACK = 0x1204,
        STACK_AT = 8
    }; /* four bytes of kind and size, which function, how much */
    size_t size = 0, facts_size = 0;
    const unsigned char *text = section_of(code, section, &size);
    const unsigned char *facts = section_of(code, ".nv.info", &facts_size);
    assert_true(text && facts && size % INSTRUCTION == 0 && facts_size % FACT == 0);
    *out_products = 0;
    *out_stack = -1;
    for (size_t at = 0; at < size; at += INSTRUCTION)
        *out_products += ((text[at] | text[at + 1] << 8) & opcode) == product;
    for (size_t at = 0; at < facts_size; at += FACT) {
        if ((facts[at] | facts[at + 1] << 8) == STACK)
            memcpy(out_stack, facts + at + STACK_AT, sizeof *out_stack);
    }
}

static void measure_code(const void *code, const char *section, int *out_products, int *out_stack)
{
    measure_products(code, section, HMMA, out_products, out_stack);
}

static void decoding_is_for_tensor_cores_and_spills_nothing(void **state)
{
    enum { STEP = 16, TWO = 2 };
    static const struct {
        const char *architecture, *problem;
    } cases[] = {{"sm_90a", "attention:bf16:b=1,h=8,hk=2,lq=1,lk=9999,d=128"},
                 {"sm_80", "attention:f16:b=1,h=8,hk=2,lq=8,lk=9999,d=128"},
                 {"sm_90a", "attention:bf16:b=1,h=8,hk=2,lq=8,lk=9999,d=128,page=16,pool=999"},
                 {"sm_90a", "attention:f16:b=1,h=8,hk=2,lq=8,lk=9999,d=64"},
                 {"sm_80", "attention:bf16:b=1,h=8,hk=2,lq=1,lk=9999,d=256"},
                 {"sm_90a", "attention:bf16:b=1,h=8,hk=2,lq=1,lk=9999,d=256"}};
    const size_t count = test_reduced() ? 1 : sizeof cases / sizeof cases[0];
    (void)state;
    if (test_fewest())
        skip(); /* it shows nothing about our own memory */
    begin();
    for (size_t i = 0; i < count; i++) {
        if (!test_full() && !test_reduced() && (i + test_seed()) % 3 != 0)
            continue;
        char options[CUDA_DECODE_OPTIONS];
        void *code = NULL;
        size_t size = 0;
        int products, stack;
        tn_op op;
        tn_error err;
        cuda_case wanted;
        decode_variant variant;
        read_problem(cases[i].problem, &op);
        cuda_decode_case(&op, options, &wanted);
        cuda_decode_variant_of(&op, &variant);
        if (cuda_code_make(compiler, cases[i].architecture, &wanted, &code, &size, &err))
            fail_msg("%s: %s", cases[i].problem, err.message);
        measure_code(code, ".text.attention_decode", &products, &stack);
        give(NULL, code);
        const int least = TWO * variant.tiles * (variant.size + variant.values) / STEP;
        if (products < least || stack != 0)
            fail_msg("%s for %s: %d products of tensor cores, at least %d are needed; %d bytes of "
                     "stack",
                     cases[i].problem, cases[i].architecture, products, least, stack);
    }
}

/* Heads of up to 128 elements have a kernel for keys and values together, others one for each. */
static void gradients_are_for_tensor_cores_and_spill_little(void **state)
{
    enum { STEP = 16, STACK_MOST = 64 };
    static const struct {
        const char *architecture, *problem;
    } cases[] = {{"sm_90a", "attention-backward:bf16:b=1,h=2,l=999,d=128"},
                 {"sm_80", "attention-backward:f16:b=1,h=2,l=999,d=128"},
                 {"sm_90a", "attention-backward:bf16:b=1,h=2,l=999,d=64"},
                 {"sm_90a", "attention-backward:bf16:b=1,h=2,l=999,d=256"}};
    const size_t all = BACKWARD_PARTS * sizeof cases / sizeof cases[0];
    const size_t count = test_reduced() ? 1 : all;
    (void)state;
    if (test_fewest())
        skip(); /* it shows nothing about our own memory */
    begin();
    for (size_t i = 0; i < count; i++) {
        if (!test_full() && !test_reduced() && (i + test_seed()) % 4 != 0)
            continue;
        char options[CUDA_BACKWARD_OPTIONS];
        void *code = NULL;
        size_t size = 0;
        int products, stack;
        tn_op op;
        tn_error err;
        cuda_case wanted;
        backward_variant variant;
        const size_t of = i / BACKWARD_PARTS;
        const backward_part part = (backward_part)(i % BACKWARD_PARTS);
        read_problem(cases[of].problem, &op);
        if (!cuda_backward_has(&op, part))
            continue;
        cuda_backward_case(&op, part, options, &wanted);
        cuda_backward_variant_of(&op, part, &variant);
        if (cuda_code_make(compiler, cases[of].architecture, &wanted, &code, &size, &err))
            fail_msg("%s: %s", cases[of].problem, err.message);
        measure_code(code, ".text.attention_backward_mma", &products, &stack);
        give(NULL, code);
        const int scores = variant.size + (part == BACKWARD_DV ? 0 : variant.values);
        const int sums = (part == BACKWARD_DV ? 0 : variant.size) +
                         (part == BACKWARD_DK_DV || part == BACKWARD_DV ? variant.values : 0);
        const int least = variant.width / 8 * (scores + sums) / STEP;
        if (products < least || stack > STACK_MOST)
            fail_msg("%s for %s: %d products of tensor cores, at least %d are needed; %d bytes of "
                     "stack",
                     cases[of].problem, cases[of].architecture, products, least, stack);
    }
}

/* The kernels of both sizes of heads; in a normal run one of them. The stack is for the weights that are read by number where a
 * row is not finite. */
static void gradients_on_hopper_spill_nothing(void **state)
{
    enum { STEP = 16, STEPS = SLOPE_TILE / STEP, STACK_MOST = 64 };
    static const char *const problems[] = {"attention-backward:bf16:b=1,h=2,l=999,d=128",
                                           "attention-backward:f16:b=1,h=2,l=999,d=128",
                                           "attention-backward:bf16:b=1,h=2,l=999,d=64",
                                           "attention-backward:f16:b=1,h=2,l=999,d=64,dv=128"};
    static const backward_hopper_part parts[] = {BACKWARD_HOPPER_KEYS, BACKWARD_HOPPER_QUERIES};
    const size_t count = 2 * sizeof problems / sizeof problems[0];
    (void)state;
    begin();
    for (size_t i = 0; i < count; i++) {
        char options[CUDA_BACKWARD_HOPPER_OPTIONS], section[64];
        void *code = NULL;
        size_t size = 0;
        int products, stack;
        tn_op op;
        tn_error err;
        cuda_case wanted;
        if (!test_full() && i != test_seed() % count)
            continue;
        read_problem(problems[i / 2], &op);
        const tn_attention_op *at = TN_PARAMS(&op, attention);
        cuda_backward_hopper_case(&op, parts[i % 2], options, &wanted);
        if (cuda_code_make(compiler, "sm_90a", &wanted, &code, &size, &err))
            fail_msg("%s: %s", problems[i / 2], err.message);
        snprintf(section, sizeof section, ".text.%s", wanted.function);
        measure_products(code, section, HGMMA, &products, &stack);
        give(NULL, code);
        /* Twice: for tiles whose pairs all count, and others. */
        const int least =
            i % 2 ? 2 * 2 * STEPS : 2 * ((int)(at->size + at->value_size) / STEP + 2 * STEPS);
        if (products != least || stack > STACK_MOST)
            fail_msg("%s: %s: %d products of tensor cores, expected %d; %d bytes of stack",
                     problems[i / 2], wanted.function, products, least, stack);
    }
}

/* Each combination of tiles of rows and heads; in a normal run one of them. */
static void attention_of_listed_blocks_is_for_tensor_cores_and_spills_nothing(void **state)
{
    enum { STEP = 16, COLUMNS = 8 };
    static const struct {
        const char *architecture, *problem;
    } cases[] = {{"sm_90a", "attention-sparse:bf16:h=2,l=999,d=128,bq=128"},
                 {"sm_90a", "attention-sparse:bf16:h=2,l=999,d=128,bq=64"},
                 {"sm_80", "attention-sparse:f16:h=2,l=999,d=128,bq=128,scale=-1"},
                 {"sm_90a", "attention-sparse:f16:h=2,l=999,d=64,bq=128,out=f32"},
                 {"sm_80", "attention-sparse:bf16:h=2,l=999,d=64,bq=64"},
                 {"sm_90a", "attention-sparse:bf16:h=2,l=999,d=256,bq=64"},
                 {"sm_90a", "attention-sparse:bf16:h=2,l=999,d=256,bq=128"},
                 {"sm_90a", "attention-sparse:f16:h=2,l=999,d=96,dv=80,bq=128"},
                 {"sm_90a", "attention-sparse:f16:h=2,l=999,d=192,dv=128,bq=64"}};
    const size_t count = sizeof cases / sizeof cases[0];
    (void)state;
    if (test_fewest())
        skip(); /* it shows nothing about our own memory */
    begin();
    for (size_t i = 0; i < count; i++) {
        char options[CUDA_SPARSE_OPTIONS];
        void *code = NULL;
        size_t size = 0;
        int products, stack;
        tn_op op;
        tn_error err;
        cuda_case wanted;
        sparse_variant variant;
        if (!test_full() && i != test_seed() % count)
            continue;
        read_problem(cases[i].problem, &op);
        cuda_sparse_case(&op, options, &wanted);
        cuda_sparse_variant_of(&op, &variant);
        if (cuda_code_make(compiler, cases[i].architecture, &wanted, &code, &size, &err))
            fail_msg("%s: %s", cases[i].problem, err.message);
        measure_code(code, ".text.attention_sparse_mma", &products, &stack);
        give(NULL, code);
        const int least =
            variant.tiles * variant.width / COLUMNS * (variant.size + variant.values) / STEP;
        if (products < least || stack != 0)
            fail_msg("%s for %s: %d products of tensor cores, at least %d are needed; %d bytes of "
                     "stack",
                     cases[i].problem, cases[i].architecture, products, least, stack);
    }
}

/* Each number of groups of rows; in a normal run one of them. On the stack are only the copy of weights by which values are
 * added key by key, and what a loader with few registers has no room for. */
static void attention_of_listed_blocks_on_hopper_spills_nothing(void **state)
{
    enum { STEP = 16, LOADER = 64 };
    static const struct {
        const char *problem;
        int groups, width;
    } cases[] = {{"attention-sparse:bf16:h=2,l=999,d=128,bq=384", 2, 192},
                 {"attention-sparse:bf16:h=2,l=999,d=128,bq=128", 2, 128},
                 {"attention-sparse:bf16:h=2,l=999,d=128,bq=64", 1, 64},
                 {"attention-sparse:f16:h=2,l=999,d=64,bq=192", 3, 96},
                 {"attention-sparse:bf16:h=2,l=999,d=64,bq=384", 3, 128},
                 {"attention-sparse:f16:h=2,l=999,d=64,bq=64,scale=-1", 1, 64},
                 {"attention-sparse:f16:h=2,l=999,d=96,dv=80,bq=64,bk=96", 1, 96},
                 {"attention-sparse:bf16:h=2,l=999,d=256,bq=64", 1, 64},
                 {"attention-sparse:bf16:h=2,l=999,d=256,bq=128", 2, 64},
                 {"attention-sparse:f16:h=2,l=999,d=192,dv=128,bq=128", 2, 128}};
    const size_t count = sizeof cases / sizeof cases[0];
    (void)state;
    if (test_fewest())
        skip(); /* it shows nothing about our own memory */
    begin();
    for (size_t i = 0; i < count; i++) {
        char options[CUDA_SPARSE_HOPPER_OPTIONS];
        void *code = NULL;
        size_t size = 0;
        int products, stack;
        tn_op op;
        tn_error err;
        cuda_case wanted;
        hopper_variant variant;
        if (!test_full() && i != test_seed() % count)
            continue;
        read_problem(cases[i].problem, &op);
        cuda_sparse_hopper_case(&op, options, &wanted);
        cuda_sparse_hopper_variant_of(&op, &variant);
        assert_int_equal(variant.groups, cases[i].groups);
        assert_int_equal(variant.width, cases[i].width);
        if (cuda_code_make(compiler, "sm_90a", &wanted, &code, &size, &err))
            fail_msg("%s: %s", cases[i].problem, err.message);
        measure_products(code, ".text.attention_sparse_hopper", HGMMA, &products, &stack);
        give(NULL, code);
        const int least = (variant.size + variant.width) / STEP;
        const int most = variant.width + (variant.groups == 3 || variant.width > 128 ? LOADER : 0);
        if (products < least || stack > most)
            fail_msg("%s: %d products of warpgroups, at least %d are needed; %d bytes of stack",
                     cases[i].problem, products, least, stack);
    }
}

extern const cuda_unit cuda_permute_unit;

static void what_was_compiled_is_kept(void **state)
{
    void *code = NULL;
    size_t size = 0;
    tn_error err;
    const cuda_case wanted = {&cuda_permute_unit, "tiled", "-DELEMENT=u64\n-DINDEX=unsigned\n"};
    (void)state;
    begin();
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(cuda_code_make(compiler, "sm_90a", &wanted, &code, &size, &err), TN_OK);
        assert_memory_equal(code, "\177ELF", 4);
        int before = compiled;
        give(NULL, code);
        assert_int_equal(cuda_code_make(compiler, "sm_90a", &wanted, &code, &size, &err), TN_OK);
        assert_int_equal(compiled, before);
        give(NULL, code);
    }
    int before = compiled;
    assert_int_equal(cuda_code_make(compiler, "sm_80", &wanted, &code, &size, &err), TN_OK);
    assert_int_equal(compiled, before + 1);
    give(NULL, code);
}

static void random_numbers_compile(void **state)
{
    static const char *const types[] = {"f32", "f64", "f16", "bf16"};
    (void)state;
    begin();
    for (int kind = 1; kind <= 2; kind++) {
        for (size_t i = 0; i < (test_reduced() ? 1 : 4); i++) {
            if (!test_sampled((uint64_t)kind * 4 + i, 4))
                continue;
            char options[CUDA_RANDOM_OPTIONS_ROOM];
            void *code = NULL;
            size_t size = 0;
            tn_error err;
            snprintf(options, sizeof options, CUDA_RANDOM_OPTIONS, types[i], kind, "unsigned");
            const cuda_case wanted = {&cuda_random_unit, "random_blocks", options};
            if (cuda_code_make(compiler, "sm_90a", &wanted, &code, &size, &err))
                fail_msg("%s", err.message);
            give(NULL, code);
        }
    }
}

/* Whether code for one of the architectures was compiled ahead. */
static bool is_ready(const cuda_case *wanted)
{
    static const char *const architectures[] = {"sm_80", "sm_90a", "sm_100"};
    size_t size = 0;
    bool found = false;
    for (int i = 0; i < 3; i++)
        found = found || cuda_ready_find(architectures[i], wanted, &size);
    return found;
}

/* What goes beside a library's, also ahead, in builds that do so at all. */
static void helpers_compile(void **state)
{
    const tn_layout operand = {.dtype = TN_BF16}, complex = {.dtype = TN_C128};
    const tn_op op = {.operand = {operand, operand, operand, operand}};
    char options[CUDA_ATTENTION_OPTIONS];
    char following[CUDA_FINISH_OPTIONS], following_complex[CUDA_FINISH_OPTIONS];
    const tn_op product = {.operand = {operand, operand, operand},
                           .params = PARAMS(matmul, .activation = TN_ACT_GELU)};
    const tn_op complex_product = {.operand = {complex, complex, complex, complex}};
    char real[CUDA_FFT_COPY_OPTIONS], complex_copy[CUDA_FFT_COPY_OPTIONS];
    cuda_case wanted[6] = {cuda_dropout_case};
    tn_error err;
    (void)state;
    begin();
    cuda_attention_empty_case(&op, options, &wanted[1]);
    cuda_finish_case(&product, following, &wanted[2]);
    cuda_finish_case(&complex_product, following_complex, &wanted[3]);
    cuda_fft_copy_case(TN_F32, real, &wanted[4]);
    cuda_fft_copy_case(TN_C128, complex_copy, &wanted[5]);
    for (int i = 0; i < 6; i++) {
        void *code = NULL;
        size_t size = 0;
        if (cuda_code_make(compiler, "sm_90a", &wanted[i], &code, &size, &err))
            fail_msg("%s", err.message);
        assert_int_equal(is_ready(&wanted[i]), cuda_ready_count() > 0);
        give(NULL, code);
    }
}

static void what_is_wrong_is_told_with_its_place(void **state)
{
    const cuda_source source = {.name = "wrong.cu",
                                .text = "__global__ void f(int *x)\n{\n    x[0] = y + 1;\n}\n",
                                .options = ""};
    const cuda_source fine = {.name = "fine.cu", .text = "", .options = ""};
    void *code = NULL;
    size_t size = 0;
    tn_error err;
    (void)state;
    begin();
    said[0] = '\0';
    assert_int_equal(cuda_nvrtc_compile(compiler, &source, "sm_90a", &code, &size, &err),
                     TN_INVALID_ARGUMENT);
    assert_string_equal(err.message,
                        "wrong.cu(3): error: identifier \"y\" is undefined: x[0] = ^y + 1;");
    assert_non_null(strstr(said, "x[0] = y + 1;"));
    assert_int_equal(cuda_nvrtc_compile(compiler, &fine, "sm_1", &code, &size, &err),
                     TN_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "for sm_1"));
}

static void a_log_without_a_place_is_told_as_it_is(void **state)
{
    char out[64];
    (void)state;
    cuda_nvrtc_first_error("a.cu(1): warning: w\nb.cu(2): error: no\n", out, sizeof out);
    assert_string_equal(out, "b.cu(2): error: no");
    cuda_nvrtc_first_error("", out, sizeof out);
    assert_string_equal(out, "");
    cuda_nvrtc_first_error("nvrtc: error: bad\n  x\n ^^\n", out, sizeof out);
    assert_string_equal(out, "nvrtc: error: bad");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_compiles_and_is_launched),
        cmocka_unit_test(launches_of_decoding_overlap),
        cmocka_unit_test(decoding_is_for_tensor_cores_and_spills_nothing),
        cmocka_unit_test(gradients_are_for_tensor_cores_and_spill_little),
        cmocka_unit_test(gradients_on_hopper_spill_nothing),
        cmocka_unit_test(attention_of_listed_blocks_is_for_tensor_cores_and_spills_nothing),
        cmocka_unit_test(attention_of_listed_blocks_on_hopper_spills_nothing),
        cmocka_unit_test(what_was_compiled_is_kept),
        cmocka_unit_test(random_numbers_compile),
        cmocka_unit_test(helpers_compile),
        cmocka_unit_test(what_is_wrong_is_told_with_its_place),
        cmocka_unit_test(a_log_without_a_place_is_told_as_it_is),
    };
    return run_suite("cuda.kernels", tests);
}
