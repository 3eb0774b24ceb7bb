/* The graphs of attention against NVIDIA's own library, without a GPU: for a described H200 its heuristics name
 * an engine, and a plan of it is compiled. That the numbers are right is for a GPU to show. Skipped where the
 * library is not installed. A plan takes about a second, so that a normal run makes a sample of them. */
#include "test.h"

#include "../../backends/cuda/lib/cudnn/cudnn_attention.h"
#include "../../backends/cuda/lib/cudnn/cudnn_bias.h"
#include "../../backends/cuda/lib/cudnn/cudnn_engine.h"
#include "../../backends/cuda/lib/cudnn/cudnn_packed.h"
#include "../../backends/cuda/lib/cudnn/sdpa.h"
#include "base/alloc.h"
#include "op/op.h"
#include "os/bind.h"
#include "tenon/module/op/attention.h"

/* An H200 in the form that cuDNN reads a device in which is not here. Its numbers are those of h200.device where
 * that has them; of the others none is held to be more than near. */
static const char h200[] =
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
    "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"totalGlobalMem\":150109880320,\"smClockRateKHz\":1980000,"
    "\"memClockRateKHz\":3201000,\"l2CacheSize\":62914560,\"cudaDeviceId\":0,\"deviceVer\":900,"
    "\"driverVer\":13000,\"deviceName\":\"NVIDIA H200\"}";

static void *take(void *self, size_t size, size_t align)
{
    (void)self;
    return tni_alloc_aligned(size, align);
}

static void give(void *self, void *memory)
{
    (void)self;
    tni_release(memory);
}

static tn_status bind(void *self, const char *files, const tn_symbol *symbols, size_t count,
                      void *table, tn_error *err)
{
    (void)self, (void)files;
    return tni_bind(CUDNN_LIBRARY, symbols, count, NULL, table, NULL, err);
}

static const tn_host host = {.struct_size = offsetof(tn_host, library_look),
                             .alloc = take,
                             .release = give,
                             .library_bind = bind};

static cuda_dnn *dnn;
static dnn_graph of_device; /* keeps the descriptor of the device */
static dnn_desc device;
static int64_t version;

/* The library and the device; skips without the one, or with a library that plans for no absent device. */
static void begin(void)
{
    enum { DEVICELESS = 90800 };
    void *self = NULL;
    char text[32];
    tn_error err = {0};
    if (TN_MODULE_BUILT_WITH)
        skip_because("a sanitizer tells of what NVIDIA's own library does not give back");
    if (!CUDNN_LIBRARY[0])
        skip_because("cuDNN is not here: cmake -DTENON_CUDNN_LIBRARY=.../libcudnn_graph.so.9");
    if (!dnn) {
        if (cuda_dnn_row.open(&host, &self, &err))
            fail_msg("%s", err.message);
        assert_int_equal(cuda_dnn_row.version(self, &version, text, sizeof text, &err), TN_OK);
        dnn = self;
    }
    if (version < DEVICELESS)
        skip_because("this cuDNN plans for no absent device: 9.8 does");
    if (device)
        return;
    dnn_graph_begin(dnn, &of_device);
    device = dnn_make(&of_device, DNN_DEVICE);
    dnn_put(&of_device, device, DNN_DEVICE_TEXT, DNN_TYPE_CHAR, (int64_t)strlen(h200), h200);
    dnn_finish(&of_device, device, "a described device");
    if (dnn_check(dnn, of_device.code, of_device.call, &err))
        fail_msg("%s", err.message);
}

static tn_device_properties properties(void)
{
    tn_device_properties out = {.struct_size = sizeof out};
    out.capability.major = 9;
    return out;
}

static void parse(const char *problem, tn_op *out)
{
    char where[64];
    tn_error err;
    if (tni_problem_parse(problem, out, where, sizeof where, &err))
        fail_msg("%s: %s", problem, err.message);
}

static tn_status admit(const tn_kernel_row *row, const tn_op *op, tn_refusal *why,
                       uint64_t *out_workspace)
{
    const tn_device_properties of = properties();
    const tn_query query = {
        .struct_size = sizeof query, .op = op, .device = &of, .library_version = version};
    *out_workspace = row->workspace(row, &query);
    return row->admit(row, &query, why);
}

static void add(dnn_graph *graph, const tn_op *op, bool together)
{
    dnn_graph_begin(dnn, graph);
    if (op->kind == TN_OP_ATTENTION)
        dnn_add_attention(graph, op);
    else
        dnn_add_gradients(graph, op, together);
}

/* Returns whether the next problem belongs to this run. */
static bool is_sampled(void)
{
    enum { ONE_IN = 20 };
    static uint64_t number;
    return test_sampled(number++, ONE_IN);
}

/* Plans a problem that the row admits, in the workspace that it declares. */
static void must_be_taken_by(const tn_kernel_row *row, const char *problem)
{
    tn_refusal why = {.struct_size = sizeof why};
    tn_error err = {0};
    dnn_target asked = {.device = device, .repeats = row->numerics & TN_NUM_RUN_TO_RUN};
    dnn_graph graph;
    dnn_desc made = NULL;
    uint64_t needs = 0;
    int64_t one = 0, bytes = -1;
    tn_op op;
    parse(problem, &op);
    if (op.uses & ~row->honours)
        fail_msg("%s: the row does not have all that it uses", problem);
    if (admit(row, &op, &why, &asked.most))
        fail_msg("%s: refused: %s: expected %lld, got %lld: %s", problem, why.what,
                 (long long)why.needed, (long long)why.found, why.text);
    add(&graph, &op, asked.repeats);
    tn_status status = dnn_plan_make(&graph, &asked, &made, &needs, &err);
    dnn_graph_end(&graph);
    if (status)
        fail_msg("%s: %s", problem, err.message);
    assert_int_equal(dnn->get(made, DNN_PLAN_WORKSPACE, DNN_TYPE_I64, 1, &one, &bytes), 0);
    assert_int_equal(bytes, needs); /* it outlives its graph */
    (void)dnn->desc_destroy(made);
}

static void is_taken_by(const tn_kernel_row *row, const char *problem)
{
    if (is_sampled())
        must_be_taken_by(row, problem);
}

static void is_taken(const char *problem)
{
    is_taken_by(&cuda_dnn_attention_row, problem);
}

static void what_the_row_admits_has_an_engine(void **state)
{
    (void)state;
    begin();
    is_taken("attention:bf16:b=1,h=24,l=1024,d=128,lse=1");
    is_taken("attention:f16:b=2,h=4,l=512,d=64");
    is_taken("attention:bf16:b=2,h=8,lq=100,lk=77,d=64,lse=1");
    is_taken("attention:bf16:b=1,h=16,hk=4,l=512,d=128,lse=1");
    is_taken("attention:bf16:b=2,h=4,l=512,d=64,layout=blhd,lse=1");
    is_taken("attention:bf16:b=1,h=4,l=256,d=64,dv=128");
    is_taken("attention:bf16:b=1,h=4,l=256,d=8");
    is_taken("attention:bf16:b=1,h=4,l=256,d=256");
    is_taken("attention:bf16:b=1,h=24,l=32760,d=128,mask=causal");
}

static void bounds_masks_and_lengths_have_one(void **state)
{
    (void)state;
    begin();
    is_taken("attention:bf16:b=2,h=4,l=512,d=64,mask=causal,lse=1");
    is_taken("attention:bf16:b=2,h=4,lq=256,lk=512,d=64,mask=causal-br,lse=1");
    is_taken("attention:bf16:b=2,h=4,l=512,d=64,mask=window:64;32");
    is_taken("attention:bf16:b=2,h=4,l=512,d=64,mask=window:64;0");
    is_taken("attention:bf16:b=2,h=4,l=512,d=64,mask=additive,lse=1");
    is_taken("attention:bf16:b=2,h=4,l=512,d=64,softcap=30");
    is_taken("attention:bf16:b=2,h=4,l=512,d=64,sink=f32,mask=causal,lse=1");
    is_taken("attention:bf16:b=2,h=4,l=512,d=64,used=1,lse=1");
    is_taken("attention:bf16:b=2,h=4,lq=256,lk=512,d=64,mask=causal-br,used=1");
    is_taken("attention:bf16:b=2,h=4,lq=256,lk=512,d=64,mask=window:64;0,used=1");
    is_taken("attention:bf16:b=2,h=4,lq=256,lk=512,d=64,mask=window-tl:-1;7,shift=5");
    is_taken_by(&cuda_dnn_single_row, "attention:bf16:b=1,h=32,hk=8,lq=1,lk=4096,d=128");
    is_taken_by(&cuda_dnn_single_row,
                "attention:bf16:b=1,h=32,hk=8,lq=1,lk=4096,d=128,mask=causal-br");
    is_taken_by(&cuda_dnn_single_row, "attention:bf16:b=4,h=32,hk=8,lq=1,lk=4096,d=128,used=1");
}

static void pages_have_one(void **state)
{
    (void)state;
    begin();
    is_taken_by(&cuda_dnn_single_row,
                "attention:bf16:b=4,h=32,hk=8,lq=1,lk=4096,d=128,page=16,pool=2000");
    is_taken_by(&cuda_dnn_single_row,
                "attention:f16:b=4,h=8,lq=1,lk=1024,d=64,page=64,pool=100,lse=1");
    is_taken("attention:bf16:b=2,h=8,hk=2,lq=128,lk=1024,d=128,page=32,pool=100,"
             "mask=causal-br,lse=1");
}

/* Of a mask of bool one that is added is made by a graph of its own. */
static void masks_of_bool_have_one(void **state)
{
    static const char *const problems[] = {"attention:bf16:b=2,h=4,l=512,d=64,mask=bool,lse=1",
                                           "attention:f16:b=2,h=4,lq=100,lk=77,d=64,mask=bool",
                                           "attention:bf16:b=3,h=4,l=512,d=64,mask=padding",
                                           "attention:bf16:b=2,h=12,l=2048,d=64,mask=bool",
                                           "attention:bf16:b=2,h=2,l=3001,d=64,mask=bool",
                                           "attention:bf16:b=1,h=4,l=512,d=64,mask=causal;bool"};
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        const dnn_target asked = {.device = device, .most = 1 << 20};
        tn_error err = {0};
        dnn_graph graph;
        dnn_desc made = NULL;
        tn_op op;
        if (!is_sampled())
            continue;
        parse(problems[i], &op);
        dnn_graph_begin(dnn, &graph);
        dnn_add_bias(&graph, &op);
        if (dnn_plan_make(&graph, &asked, &made, NULL, &err))
            fail_msg("%s: %s", problems[i], err.message);
        dnn_graph_end(&graph);
        (void)dnn->desc_destroy(made);
        must_be_taken_by(&cuda_dnn_attention_row, problems[i]);
    }
}

/* Tables of what is packed are made by graphs of their own. */
static void has_tables(const char *problem, int32_t count)
{
    const dnn_target asked = {.device = device, .most = 1 << 20};
    dnn_tables tables;
    tn_op op;
    if (!is_sampled())
        return;
    parse(problem, &op);
    dnn_tables_of(&op, &tables);
    assert_int_equal(tables.count, count);
    for (int32_t i = 0; i < tables.count; i++) {
        dnn_graph graph;
        dnn_desc made = NULL;
        tn_error err = {0};
        dnn_graph_begin(dnn, &graph);
        dnn_add_table(&graph, &op, i);
        if (dnn_plan_make(&graph, &asked, &made, NULL, &err))
            fail_msg("%s: table %d: %s", problem, (int)i, err.message);
        dnn_graph_end(&graph);
        (void)dnn->desc_destroy(made);
    }
    must_be_taken_by(&cuda_dnn_attention_row, problem);
}

static void packed_sequences_have_one(void **state)
{
    (void)state;
    begin();
    has_tables("attention:bf16:h=8,hk=2,varlen=100;513;1,d=128,layout=blhd,lse=1", 4);
    has_tables("attention:f16:h=4,varlen=100;513;1,d=64,dv=128,mask=causal,lse=1", 6);
    has_tables(
        "attention:bf16:h=4,varlen=10;13;1,varlenk=64;100;77,d=64,layout=blhd,mask=causal-br", 4);
}

static void gradients_have_one(void **state)
{
    static const char *const problems[] = {
        "attention-backward:bf16:b=1,h=4,l=512,d=128",
        "attention-backward:f16:b=2,h=4,l=256,d=64,mask=causal",
        "attention-backward:bf16:b=1,h=8,hk=2,l=256,d=128,mask=causal",
        "attention-backward:bf16:b=1,h=4,lq=128,lk=256,d=64,mask=causal-br",
        "attention-backward:bf16:b=1,h=4,lq=100,lk=77,d=64,layout=blhd",
        "attention-backward:bf16:b=1,h=4,l=256,d=64,mask=window:64;0",
        "attention-backward:bf16:b=1,h=4,l=256,d=256",
        "attention-backward:bf16:b=2,h=4,l=256,d=64,mask=additive",
        "attention-backward:f16:b=2,h=4,lq=100,lk=77,d=64,mask=bool",
    };
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        is_taken_by(&cuda_dnn_gradient_row, problems[i]);
        is_taken_by(&cuda_dnn_gradient_repeating_row, problems[i]);
    }
}

/* A mask of what is kept is given. */
static void dropout_has_one(void **state)
{
    (void)state;
    begin();
    is_taken("attention:bf16:b=1,h=24,l=1024,d=128,lse=1,dropout=0.25");
    is_taken("attention:f16:b=2,h=4,lq=100,lk=77,d=64,lse=1,dropout=0.25");
    is_taken("attention:bf16:b=1,h=8,hk=2,l=512,d=128,mask=causal,lse=1,dropout=0.25");
    is_taken("attention:bf16:b=2,h=4,l=512,d=64,mask=additive,lse=1,dropout=0.25");
}

/* A head of 12 is no multiple of 8, which the row refuses before. */
static void a_refusal_has_the_librarys_words(void **state)
{
    tn_error err = {0};
    dnn_graph graph;
    dnn_desc made = NULL;
    tn_op op;
    (void)state;
    begin();
    const dnn_target here = {.device = device, .most = 1 << 20};
    parse("attention:bf16:b=1,h=4,l=256,d=12", &op);
    add(&graph, &op, false);
    assert_int_equal(dnn_plan_make(&graph, &here, &made, NULL, &err), TN_UNSUPPORTED);
    dnn_graph_end(&graph);
    assert_null(made);
    assert_contains(err.message, "cuDNN has no engine for this attention: ");
    assert_contains(err.message, "multiple of 8");
}

/* Without workspace there is another engine than the first. */
static void workspace_bounds_the_choice(void **state)
{
    tn_error err = {0};
    dnn_graph graph;
    dnn_desc made = NULL;
    uint64_t needs = 1;
    tn_op op;
    (void)state;
    begin();
    const dnn_target asked = {.device = device, .most = 0};
    parse("attention:bf16:b=1,h=24,l=1024,d=128", &op);
    add(&graph, &op, false);
    if (dnn_plan_make(&graph, &asked, &made, &needs, &err))
        fail_msg("%s", err.message);
    dnn_graph_end(&graph);
    assert_int_equal(needs, 0);
    (void)dnn->desc_destroy(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_row_admits_has_an_engine),
        cmocka_unit_test(bounds_masks_and_lengths_have_one),
        cmocka_unit_test(masks_of_bool_have_one),
        cmocka_unit_test(pages_have_one),
        cmocka_unit_test(packed_sequences_have_one),
        cmocka_unit_test(gradients_have_one),
        cmocka_unit_test(dropout_has_one),
        cmocka_unit_test(a_refusal_has_the_librarys_words),
        cmocka_unit_test(workspace_bounds_the_choice),
    };
    return run_suite("cuda.cudnn_engines", tests);
}
