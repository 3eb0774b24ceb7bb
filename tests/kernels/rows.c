/* Every kernel row, with every dtype it lists, on awkward problems, against the reference: no output out of
 * its bound, no byte beside the output written. What a row refuses it refuses with a reason; each takes
 * some. */
#include "test.h"

#include "dispatch/kernels.h"
#include "op/elementwise.h"
#include "os/cpu.h"
#include "tenon/tenon.h"

#include <stdbool.h>

/* Fields of problems by op. "%s" is where the dtype of another operand goes, where there is one. */
static const char *const matmuls[] = {
    "m=1,n=1,k=1",
    "m=0,n=3,k=2",
    "m=3,n=0,k=2",
    "m=3,n=2,k=0",
    "m=3,n=2,k=0,beta=0.5",
    "m=7,n=13,k=31",
    "m=64,n=48,k=33",
    "m=1,n=257,k=129",
    "m=257,n=1,k=129",
    "m=33,n=65,k=1",
    "m=17,n=19,k=23,ta=1",
    "m=17,n=19,k=23,tb=1",
    "m=17,n=19,k=23,ta=1,tb=1",
    "m=5,n=7,k=11,alpha=-1.5",
    "m=5,n=7,k=11,beta=1",
    "m=5,n=7,k=11,alpha=0.25,beta=-2",
    "m=5,n=7,k=11,bias=1",
    "m=5,n=7,k=11,bias=1,act=relu",
    "m=5,n=7,k=11,act=gelu",
    "m=5,n=7,k=11,act=gelu-tanh,alpha=2",
    "m=5,n=7,k=11,act=silu,beta=1,bias=1",
    "m=5,n=7,k=11,batch=3",
    "m=5,n=7,k=11,batch=2x3,tb=1",
    "m=5,n=7,k=11,batch=3,sa=0;11;1",
    "m=5,n=7,k=11,batch=3,sb=0;7;1,bias=1",
    "m=5,n=7,k=11,sa=40;1",
    "m=5,n=7,k=11,sa=1;5",
    "m=5,n=7,k=11,sa=44;4",
    "m=5,n=7,k=11,sc=64;1",
    "m=5,n=7,k=11,sc=1;5",
    "m=5,n=7,k=11,sc=64;3",
    "m=5,n=7,k=11,sa=-11;1",
    "m=5,n=7,k=11,sb=7;-1",
    "m=5,n=7,k=11,bias=1,sbias=1;0",
    "m=40,n=7,k=300,align=%d;%d;%d",
    "m=128,n=96,k=200",
    "m=16,n=24,k=32",
    "m=33,n=20,k=64,tb=1",
    "m=65,n=48,k=96,bias=1,act=relu",
    "m=5,n=7,k=32,batch=3,sb=0;7;1",
    NULL,
};
static const char *const transforms[] = {
    "shape=1",
    "shape=0x5",
    "shape=3x1024",
    "shape=1024",
    "shape=40x96,dir=inverse",
    "shape=3x1009",
    "shape=20x101,norm=ortho",
    "shape=2x4095,norm=forward",
    "shape=3x20x24,dims=2",
    "shape=2x300x48,dims=2,dir=inverse",
    "shape=3x4x5x7,dims=3",
    "shape=2x16x1x9,dims=3,norm=ortho",
    "shape=5x1000,si=3000;3",
    "shape=5x1000,so=2000;2",
    "shape=5x64,so=1;6",
    "shape=40x300,si=1;41,so=-600;-2",
    "shape=5x300,si=0;1",
    "shape=5x64,si=1;0",
    "shape=40x300,si=0;0",
    NULL,
};
/* Of the way back, those without what only the way there has. */
static const char *const attentions[] = {
    "b=1,h=1,l=1,d=1",
    "b=0,h=2,l=3,d=4",
    "b=2,h=0,l=3,d=4",
    "b=2,h=0,hk=3,lq=3,lk=5,d=4",
    "b=1,h=2,lq=0,lk=5,d=8",
    "b=1,h=2,lq=5,lk=0,d=8",
    "b=1,h=1,l=64,d=64",
    "b=2,h=1,l=63,d=64",
    "b=1,h=1,l=65,d=128",
    "b=1,h=1,lq=65,lk=129,d=80",
    "b=1,h=1,lq=129,lk=31,d=33",
    "b=1,h=1,l=17,d=512",
    "b=1,h=3,l=40,d=64,mask=causal",
    "b=1,h=1,lq=40,lk=90,d=64,mask=causal",
    "b=1,h=1,lq=90,lk=40,d=64,mask=causal-br",
    "b=1,h=1,l=90,d=64,mask=window:20;0",
    "b=1,h=2,lq=33,lk=70,d=32,mask=window-tl:-1;7,shift=5",
    "b=2,h=2,l=40,d=32,mask=bool",
    "b=2,h=2,l=40,d=32,mask=causal;additive",
    "b=1,h=4,hk=2,l=40,d=64",
    "b=1,h=6,hk=1,l=40,d=64,mask=causal",
    "b=1,h=2,l=40,d=64,dv=96",
    "b=1,h=2,l=40,d=96,dv=64",
    "b=2,h=3,l=40,d=64,layout=blhd",
    "b=1,h=2,l=9,d=24,sq=864;432;48;2",
    "b=1,h=2,l=9,d=24,sk=-216;-216;-24;1",
    "b=1,h=2,l=40,d=64,scale=0.25",
    "b=1,h=7,hk=1,l=17,d=511,scale=5",
    "b=1,h=2,l=40,d=64,softcap=3",
    "b=1,h=2,l=40,d=64,dropout=0.5,seed=9",
    "b=1,h=2,l=40,d=64,align=%d;%d;%d;%d",
    NULL,
};
static const char *const forwards[] = {
    "b=1,h=2,l=40,d=64,lse=1",
    "b=1,h=4,hk=2,lq=1,lk=500,d=64,lse=1",
    "b=2,h=2,l=40,d=64,mask=padding,lse=1",
    "b=1,h=2,l=40,d=64,sink=1,lse=1",
    "b=1,h=2,l=40,d=64,out=f32",
    "h=2,varlen=65;0;1;20,d=64,mask=causal-br,lse=1",
    "h=2,varlen=33;5,varlenk=40;17,d=24,layout=blhd",
    "b=3,h=2,l=70,d=64,used=1",
    "b=3,h=4,hk=2,lq=3,lk=70,d=64,page=16,mask=causal-br",
    NULL,
};
/* Small ones first: a row computes its first three in every run. */
static const char *const sparses[] = {
    "b=1,h=2,l=9,d=24,bq=4,out=f32",
    "b=1,h=2,lq=7,lk=0,d=24,bq=4,lse=1",
    "b=1,h=2,lq=19,lk=23,d=16,bq=8,bk=5,entries=9,sizes=1,mask=causal-br",
    "b=2,h=2,l=65,d=24,bq=16,lse=1",
    "b=1,h=4,hk=2,lq=70,lk=100,d=64,bq=32,bk=24,mask=causal-br",
    "b=1,h=2,l=130,d=64,dv=40,bq=64,entries=7,layout=blhd",
    "b=2,h=2,l=90,d=32,bq=32,entries=20,sizes=1,lse=1",
    "b=1,h=1,l=300,d=128,bq=128,bk=64,mask=causal",
    "b=2,h=4,hk=2,l=60,d=24,bq=16,entries=30,sizes=1,slots=75,lse=1",
    "b=2,h=1,l=90,d=64,bq=32,slots=90,layout=blhd,sorder=0;1",
    NULL,
};
static const char *const sparse_gradients[] = {
    "b=1,h=2,l=9,d=24,bq=4",
    "b=1,h=2,lq=7,lk=0,d=24,bq=4",
    "b=1,h=2,lq=19,lk=23,d=16,bq=8,bk=5,entries=9,sizes=1,mask=causal-br",
    "b=2,h=2,l=65,d=24,bq=16",
    "b=1,h=4,hk=2,lq=70,lk=100,d=64,bq=32,bk=24,mask=causal-br",
    "b=1,h=2,l=130,d=64,dv=40,bq=64,entries=7,layout=blhd",
    "b=2,h=2,l=90,d=32,bq=32,entries=20,sizes=1",
    "b=1,h=1,l=140,d=64,bq=128,bk=64,mask=causal",
    NULL,
};
static const char *const quantized[] = {
    "b=1,h=2,l=9,d=24,lse=1",
    "b=1,h=2,lq=5,lk=19,d=16,weights=u8,mask=causal-br",
    "b=1,h=2,lq=7,lk=11,d=40,weights=f8_e4m3fn",
    "b=1,h=2,l=35,d=24,lse=1",
    "b=1,h=2,hk=1,lq=40,lk=70,d=64,mask=causal-br,lse=1",
    "b=1,h=1,l=130,d=64,weights=u8,scales=block",
    "b=1,h=2,l=40,d=64,weights=f16,smoothing=none,layout=blhd",
    "b=1,h=1,l=135,d=32,weights=i8,scales=warp,mask=causal",
    "b=1,h=2,lq=7,lk=150,d=40,weights=f8_e4m3fn",
    NULL,
};

static const char *const merges[] = {
    "b=1,h=1,l=1,d=1",
    "b=0,h=2,l=3,d=4",
    "b=2,h=3,l=17,d=64,lse=1",
    "b=2,h=3,l=17,d=65,layout=blhd,lse=1",
    "b=1,h=2,l=9,d=24,si=864;432;48;2",
    "b=1,h=2,l=9,d=24,out=f32",
    "b=1,h=2,l=9,d=24,out=bf16",
    NULL,
};
static const char *const shapes[] = {
    "shape=1",
    "shape=0x3",
    "shape=7",
    "shape=1000",
    "shape=13x31",
    "shape=2x3x5x7",
    "shape=64x257",
    "shape=3x1x1024",
    "shape=5x4096",
    "shape=33x65,si=130;2",
    "shape=9x17,si=-17;1",
    "shape=9x17,so=40;1",
    "shape=9x17,si=1;9",
    "shape=9x17,inplace=1",
    "shape=20000",
    "shape=9x17,align=%d;%d",
    "shape=4x3x2x2x2x2x2x2",
    NULL,
};

typedef struct subject {
    const tni_kernel *kernel;
    tn_dtype dtype;
    int64_t taken, refused;
} subject;

static uint64_t seed = 1;

static void check(subject *s, const char *problem)
{
    const tn_check_args args = {.struct_size = sizeof args,
                                .problem = problem,
                                .kernel = s->kernel->row->name,
                                .seed = seed++};
    tn_check_result result = {.struct_size = sizeof result};
    tn_error err = {0};
    tn_status status = tn_check(NULL, &args, &result, &err);
    if (status == TN_UNSUPPORTED || status == TN_INVALID_ARGUMENT) { /* its row, or its op */
        assert_int_not_equal(err.message[0], '\0');
        s->refused++;
        return;
    }
    if (status)
        fail_msg("%s by %s: %s", problem, args.kernel, err.message);
    if (!result.ok)
        fail_msg("%s by %s, seed %llu: %s", problem, args.kernel, (unsigned long long)result.seed,
                 result.text);
    s->taken++;
}

/* With the alignment of one element where the text asks for some. The first problems that a row takes are
 * of every run, the others are sampled. */
static void check_fields(subject *s, const char *prefix, const char *fields)
{
    static uint64_t number;
    const char *word = tn_dtype_name(s->dtype);
    const char *op = tni_op_class_of(s->kernel->row->op)->word;
    int size = (int)((s->dtype >> 8 & 0xFF) / 8), align = size > 8 ? 8 : size;
    char problem[256], rest[160];
    snprintf(rest, sizeof rest, "%s", fields);
    for (char *mark; (mark = strstr(rest, "%d"));) {
        mark[0] = (char)('0' + align);
        memmove(mark + 1, mark + 2, strlen(mark + 2) + 1);
    }
    snprintf(problem, sizeof problem, "%s:%s:%s%s@%s:0", op, word, prefix, rest,
             s->kernel->row->platform);
    if (s->taken < 3 || test_sampled(number++, test_reduced() ? 60 : 12))
        check(s, problem);
}

static void check_all(subject *s, const char *const *fields)
{
    for (size_t i = 0; fields[i]; i++)
        check_fields(s, "", fields[i]);
}

/* Other thirds of them for every kernel and dtype where each costs much. */
static void check_attentions(subject *s, const char *const *fields)
{
    static size_t turn;
    turn++;
    for (size_t i = 0; fields[i]; i++) {
        if (!test_reduced() || (i + turn) % 3 == 0)
            check_fields(s, "", fields[i]);
    }
}

static void check_shapes(subject *s, const char *prefix)
{
    for (size_t i = 0; shapes[i]; i++)
        check_fields(s, prefix, shapes[i]);
}

static void check_kinds(subject *s, const char *const *kinds, const char *more)
{
    char prefix[64];
    for (size_t i = 0; kinds[i]; i++) {
        snprintf(prefix, sizeof prefix, "kind=%s,%s", kinds[i], more);
        check_shapes(s, prefix);
    }
}

static void check_casts(subject *s)
{
    char prefix[32];
#define CAST(name, word, code, bits)                 \
    snprintf(prefix, sizeof prefix, "to=%s,", word); \
    check_shapes(s, prefix);
    TN_DTYPE_LIST(CAST)
#undef CAST
}

static void check_op(subject *s)
{
    const tni_elementwise *family = tni_op_class_of(s->kernel->row->op)->elementwise;
    const char *const *kinds = family ? family->kinds : NULL;
    switch (s->kernel->row->op) {
    case TN_OP_MATMUL: check_all(s, matmuls); break;
    case TN_OP_ATTENTION:
        check_attentions(s, attentions);
        check_attentions(s, forwards);
        break;
    case TN_OP_ATTENTION_BACKWARD: check_attentions(s, attentions); break;
    case TN_OP_ATTENTION_MERGE: check_all(s, merges); break;
    case TN_OP_ATTENTION_SPARSE: check_all(s, sparses); break;
    case TN_OP_ATTENTION_SPARSE_BACKWARD: check_all(s, sparse_gradients); break;
    case TN_OP_ATTENTION_QUANTIZED: check_all(s, quantized); break;
    case TN_OP_CAST: check_casts(s); break;
    case TN_OP_FILL: check_shapes(s, "value=3,"); break;
    case TN_OP_UNARY: check_kinds(s, kinds, ""); break;
    case TN_OP_BINARY: check_kinds(s, kinds, ""); break;
    case TN_OP_REDUCE:
        check_kinds(s, kinds, "axes=1,");
        check_kinds(s, kinds, "");
        break;
    case TN_OP_SOFTMAX:
        check_shapes(s, "");
        check_shapes(s, "log=1,");
        break;
    case TN_OP_NORM:
        check_kinds(s, kinds, "");
        check_kinds(s, kinds, "weight=1,bias=1,");
        break;
    case TN_OP_ROTARY:
        check_kinds(s, kinds, "");
        check_fields(s, "", "kind=halves,shape=2x3x8x64");
        check_fields(s, "", "kind=pairs,shape=2x3x8x64,size=32");
        check_fields(s, "", "kind=halves,shape=5x16,size=6");
        break;
    case TN_OP_FFT:
        check_shapes(s, "");
        check_all(s, transforms);
        break;
    default: check_shapes(s, ""); break;
    }
}

static bool is_here(const char *platform)
{
    char name[64];
    tn_device *device = NULL;
    snprintf(name, sizeof name, "%.48s:0", platform);
    return tn_device_get(name, &device, NULL) == TN_OK;
}

/* A row whose library or whose instructions are not here takes nothing. */
static bool can_run(const tni_kernel *kernel)
{
    const tn_library *library = NULL;
    if (kernel->row->cpu_needs & TN_CPU_BIT(AMX_TILE))
        (void)tni_cpu_amx_request();
    if (kernel->row->cpu_needs & ~tni_cpu_features())
        return false;
    return !kernel->row->library ||
           (tn_library_get(kernel->row->library, &library, NULL) == TN_OK &&
            tn_library_try(library, NULL) == TN_OK);
}

static void every_row_is_right(void **state)
{
    const tni_kernel *kernel;
    size_t rows = 0;
    (void)state;
    for (size_t i = 0; (kernel = tni_kernel_at(i)); i++) {
        if (!is_here(kernel->row->platform) || !can_run(kernel)) {
            print_message("%s cannot run here\n", kernel->row->name);
            continue;
        }
        for (const tn_dtype *dtype = kernel->row->dtypes; *dtype; dtype++) {
            subject s = {.kernel = kernel, .dtype = *dtype};
            check_op(&s);
            if (s.taken < 3)
                fail_msg("%s takes %lld problems of %s", kernel->row->name, (long long)s.taken,
                         tn_dtype_name(*dtype));
        }
        rows++;
    }
    assert_true(rows >= 10);
}

/* Problems whose operands lie one byte behind an alignment of 64: every way that matmul reads and writes elements, and
 * one of each other op. Fields that an op or a row does not have are refused. */
static const char *const odd_addresses[] = {
    "m=16,n=16,k=16,align=1;1;1",
    "m=7,n=13,k=31,align=1;1;1",
    "m=40,n=3,k=40,align=1;1;1",
    "m=40,n=8,k=40,align=1;1;1",
    "m=1,n=70,k=300,align=1;1;1",
    "m=3,n=19,k=270,tb=1,align=1;1;1",
    "m=2,n=3,k=2100,align=1;1;1",
    "m=1,n=1,k=4200,align=1;1;1",
    "m=5,n=9,k=270,ta=1,align=1;1;1",
    "m=20,n=11,k=16,tb=1,align=1;1;1",
    "m=20,n=11,k=16,sa=48;3,sb=33;3,sc=33;3,align=1;1;1",
    "m=10,n=11,k=16,batch=3,align=1;1;1",
    "m=10,n=11,k=16,bias=1,act=relu,beta=0.5,align=1;1;1;1",
    "m=9,n=11,k=260,sb=4000;1,align=1;1;1",
    "m=9,n=11,k=260,ta=1,tb=1,align=1;1;1",
    "m=9,n=11,k=260,sa=780;3,sb=33;3,bias=1,align=1;1;1;1",
    "shape=9x70,align=1;1",
    "shape=9x70,si=140;2,align=1;1",
    "shape=9x70,order=1;0,align=1;1",
    "shape=9x70,inplace=1,align=1",
    "shape=9x70,to=f32,align=1;1",
    "shape=9x70,to=i64,align=1;1",
    "shape=9x70,value=3,align=1",
    "kind=neg,shape=9x70,align=1;1",
    "kind=exp,shape=9x70,align=1;1",
    "kind=exp,shape=9x70,si=140;2,align=1;1",
    "kind=add,shape=9x70,align=1;1;1",
    "kind=add,shape=9x70,s2=0;0,align=1;1;1",
    "kind=sum,shape=9x70,axes=1,align=1;1",
    "kind=max,shape=9x70,axes=2,align=1;1",
    "kind=rms,shape=9x70,weight=1,bias=1,align=1;1;1;1",
    "kind=layer,shape=9x70,si=140;2,align=1;1",
    "kind=halves,shape=3x5x70,align=1;1;1;1",
    "kind=pairs,shape=3x5x70,size=34,align=1;1;1;1",
    "b=1,h=2,lq=17,lk=20,d=24,align=1;1;1;1",
    "b=1,h=2,lq=1,lk=90,d=64,align=1;1;1;1",
    "b=1,h=1,l=20,d=24,sq=960;960;48;2,sk=960;960;48;2,align=1;1;1;1",
    "b=1,h=2,lq=17,lk=20,d=24,align=1;1;1;1;1;1;1;1;1",
    "b=1,h=2,l=9,d=24,align=1;1;1;1;1",
    "b=1,h=2,lq=17,lk=20,d=24,bq=8,align=1;1;1;1;1",
    "b=1,h=2,l=33,d=24,bq=8,entries=20,align=1;1;1;1;1;1",
    "b=1,h=2,lq=17,lk=20,d=24,bq=8,align=1;1;1;1;1;1;1;1;1;1",
    NULL,
};

/* The reference is slow: after the first problem that it takes, it has a sample. */
static bool is_due(const subject *s)
{
    static uint64_t number;
    return s->taken == 0 || !strstr(s->kernel->row->name, ".ref") || test_sampled(number++, 12);
}

static void operands_at_odd_addresses(void **state)
{
    const tni_kernel *kernel;
    (void)state;
    for (size_t i = 0; (kernel = tni_kernel_at(i)); i++) {
        if (strcmp(kernel->row->platform, "cpu") != 0 || !can_run(kernel))
            continue;
        for (const tn_dtype *dtype = kernel->row->dtypes; *dtype; dtype++) {
            subject s = {.kernel = kernel, .dtype = *dtype};
            for (size_t p = 0; odd_addresses[p]; p++) {
                char problem[256];
                snprintf(problem, sizeof problem, "%s:%s:%s@cpu:0",
                         tni_op_class_of(kernel->row->op)->word, tn_dtype_name(*dtype),
                         odd_addresses[p]);
                if (is_due(&s))
                    check(&s, problem);
            }
            if (s.taken == 0)
                fail_msg("%s takes no problem of %s", kernel->row->name, tn_dtype_name(*dtype));
        }
    }
}

/* Sums of few weights, whose errors do not even out, by any inputs. */
static void few_weights_of_16_bits(void **state)
{
    static const char fields[] = "b=1,h=3,lq=9,lk=2,d=8,sink=1,lse=1,scale=0.01";
    const tni_kernel *kernel;
    (void)state;
    for (size_t i = 0; (kernel = tni_kernel_at(i)); i++) {
        subject s = {.kernel = kernel, .dtype = kernel->row->dtypes[0]};
        if (kernel->row->op != TN_OP_ATTENTION || s.dtype != TN_BF16 ||
            strcmp(kernel->row->platform, "cpu") != 0 || !can_run(kernel))
            continue;
        for (int turn = 0; turn < (test_reduced() ? 20 : test_full() ? 400 : 100); turn++)
            check_fields(&s, "", fields);
        assert_true(s.taken > 0);
    }
}

/* What a call takes with the instructions of one row alone, and it is right. */
static void check_masked(const tn_kernel_row *row, tn_dtype dtype, const char *fields)
{
    const tni_kernel *taken = NULL;
    char problem[256];
    snprintf(problem, sizeof problem, "%s:%s:%s@cpu:0", tni_op_class_of(row->op)->word,
             tn_dtype_name(dtype), fields);
    const tn_check_args args = {.struct_size = sizeof args, .problem = problem, .seed = seed++};
    tn_check_result result = {.struct_size = sizeof result};
    tn_error err = {0};
    tni_cpu_mask_set(row->cpu_needs);
    tn_status status = tn_check(NULL, &args, &result, &err);
    tni_cpu_mask_set(UINT64_MAX);
    if (status || !result.ok)
        fail_msg("%s as %s may: %s", problem, row->name, status ? err.message : result.text);
    assert_int_equal(tni_kernel_find(result.kernel, &taken, NULL), TN_OK);
    if (taken->row->cpu_needs & ~row->cpu_needs)
        fail_msg("%s takes %s with the instructions of %s", problem, result.kernel, row->name);
}

/* Of the ops that have the most sets of instructions; the others are asked the same way. */
static const char *masked_fields(int32_t op)
{
    switch (op) {
    case TN_OP_MATMUL: return "m=33,n=40,k=70";
    case TN_OP_ATTENTION:
    case TN_OP_ATTENTION_BACKWARD: return "b=1,h=2,l=70,d=40,mask=causal";
    case TN_OP_SOFTMAX: return "shape=9x70";
    default: return NULL;
    }
}

static void each_set_of_instructions_alone(void **state)
{
    const tni_kernel *kernel;
    size_t checked = 0;
    (void)state;
    for (size_t i = 0; (kernel = tni_kernel_at(i)); i++) {
        const tn_kernel_row *row = kernel->row;
        const char *fields = masked_fields(row->op);
        if (!fields || row->library || strcmp(row->platform, "cpu") != 0 || !can_run(kernel))
            continue;
        for (const tn_dtype *dtype = row->dtypes; *dtype; dtype++, checked++)
            check_masked(row, *dtype, fields);
    }
    assert_true(checked >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_right), cmocka_unit_test(operands_at_odd_addresses),
        cmocka_unit_test(few_weights_of_16_bits), cmocka_unit_test(each_set_of_instructions_alone)};
    return run_suite("kernels.rows", tests);
}
