#include "smoke.h"

#include "base/dtype.h"

/* The fields of a problem's text, slow ones last. A leading '!': operands are aligned only to their
 * elements. '$' inside: replaced by the dtype. */
static const char *const matmul[] = {
    "m=17,n=13,k=31",
    "!m=17,n=13,k=31",
    "m=1,n=33,k=65",
    "m=33,n=1,k=7,ta=1",
    "m=1,n=1,k=1",
    "m=3,n=4,k=0",
    "m=16,n=16,k=32,tb=1",
    "m=19,n=23,k=29,ta=1,tb=1",
    "m=5,n=7,k=3,batch=2x3",
    "m=64,n=32,k=16,batch=4",
    "m=16,n=24,k=8,batch=3,sa=0;8;1",
    "m=9,n=8,k=5,batch=2,sb=0;8;1",
    "m=9,n=11,k=13,sa=39;3,sb=22;2,sc=33;3",
    "m=9,n=11,k=13,sa=20;1,sb=24;1,sc=16;1",
    "m=8,n=12,k=10,sc=1;8",
    "m=15,n=17,k=19,alpha=0.75",
    "m=15,n=17,k=19,beta=0.5",
    "m=15,n=17,k=0,beta=0.5",
    "m=32,n=32,k=32,alpha=-1.5,beta=1",
    "m=15,n=17,k=19,bias=1",
    "m=15,n=17,k=19,bias=1,act=relu",
    "m=15,n=17,k=19,act=gelu",
    "m=15,n=17,k=19,act=gelu-tanh",
    "m=15,n=17,k=19,alpha=0.5,bias=1,act=silu",
    "m=15,n=17,k=19,out=f32",
    "m=15,n=17,k=19,acc=$",
    "m=15,n=17,k=19,acc=f64",
    "m=17,n=13,k=31,grouped=1",
    "m=32,n=24,k=16,tb=1,alpha=0.5,beta=1,grouped=1",
    "m=64,n=64,k=64",
    "m=64,n=64,k=64,out=f32",
    "m=128,n=96,k=256",
    "m=128,n=128,k=128",
    NULL,
};

static const char *const permute[] = {
    "shape=1000",
    "shape=16x256",
    "!shape=77",
    "shape=64x64,order=1;0",
    "shape=37x53,order=1;0",
    "shape=7x5x3,order=2;0;1",
    "shape=4x3x5x6,order=0;2;1;3",
    "shape=9x11,si=22;2",
    "shape=9x11,so=33;3",
    "shape=9x11,si=0;1",
    NULL,
};

static const char *const cast[] = {
    "shape=16x256,to=f32",
    "shape=16x256,to=bf16",
    "shape=37x13,to=f64",
    "shape=37x13,to=f32",
    "shape=37x13,to=f16",
    "shape=37x13,to=bf16",
    "shape=37x13,to=i8",
    "shape=37x13,to=u8",
    "shape=37x13,to=i32",
    "shape=37x13,to=i64",
    "shape=37x13,to=bool",
    "!shape=77,to=f32",
    "!shape=77,to=bf16",
    "shape=9x11,si=22;2,to=f32",
    "shape=9x11,so=33;3,to=f32",
    "shape=9x11,si=0;1,to=bf16",
    NULL,
};

static const char *const fill[] = {"shape=1000,value=1", "!shape=77,value=3",
                                   "shape=9x11,so=33;3,value=2", NULL};

static const char *const unary[] = {
    "kind=neg,shape=16x256",       "kind=neg,shape=5x67",
    "kind=abs,shape=5x67",         "kind=sqrt,shape=5x67",
    "kind=rsqrt,shape=5x67",       "kind=exp,shape=5x67",
    "kind=log,shape=5x67",         "kind=tanh,shape=5x67",
    "kind=sigmoid,shape=5x67",     "kind=relu,shape=5x67",
    "kind=gelu,shape=5x67",        "kind=gelu-tanh,shape=5x67",
    "kind=silu,shape=5x67",        "!kind=neg,shape=77",
    "kind=abs,shape=9x11,si=22;2", "kind=abs,shape=9x11,so=33;3",
    "kind=neg,shape=9x11,si=0;1",  "kind=neg,shape=5x67,inplace=1",
    "kind=exp,shape=5x67,out=f32", NULL,
};

static const char *const binary[] = {
    "kind=add,shape=16x256",       "kind=add,shape=5x67",
    "kind=sub,shape=5x67",         "kind=mul,shape=5x67",
    "kind=div,shape=5x67",         "kind=max,shape=5x67",
    "kind=min,shape=5x67",         "!kind=add,shape=77",
    "kind=add,shape=9x11,si=22;2", "kind=add,shape=9x11,so=33;3",
    "kind=mul,shape=9x11,s2=0;1",  "kind=mul,shape=9x11,s2=1;0",
    "kind=sub,shape=9x11,s2=0;0",  "kind=add,shape=5x67,inplace=1",
    "kind=add,shape=5x67,out=f32", NULL,
};

static const char *const reduce[] = {
    "kind=sum,shape=16x256,axes=1",       "kind=max,shape=16x256,axes=1",
    "kind=sum,shape=5x67,axes=1",         "kind=mean,shape=5x67,axes=1",
    "kind=max,shape=5x67,axes=1",         "kind=min,shape=5x67,axes=1",
    "kind=prod,shape=5x67,axes=1",        "kind=sum,shape=3x5x7,axes=2",
    "kind=sum,shape=1000,axes=1",         "kind=max,shape=9x11,axes=1,si=1;9",
    "!kind=sum,shape=77,axes=1",          "kind=sum,shape=9x11,axes=1,si=0;1",
    "kind=sum,shape=5x67,axes=1,out=f32", NULL,
};

static const char *const softmax[] = {
    "shape=8x1024",      "shape=5x67",           "shape=3x1000",       "shape=7x1",
    "!shape=3x77",       "shape=5x67,log=1",     "shape=9x11,si=22;2", "shape=9x11,so=33;3",
    "shape=9x11,si=0;1", "shape=5x67,inplace=1", "shape=5x67,out=f32", NULL,
};

static const char *const norm[] = {
    "kind=layer,shape=8x1024,weight=1",
    "kind=rms,shape=8x1024,weight=1",
    "kind=layer,shape=5x67",
    "kind=layer,shape=5x67,weight=1",
    "kind=layer,shape=3x1000,weight=1,bias=1",
    "kind=rms,shape=5x67",
    "kind=rms,shape=5x67,weight=1",
    "kind=rms,shape=3x1000,weight=1,bias=1",
    "!kind=rms,shape=3x77,weight=1",
    "kind=layer,shape=9x11,si=22;2",
    "kind=rms,shape=9x11,so=33;3",
    "kind=rms,shape=9x11,si=0;1",
    "kind=layer,shape=5x67,inplace=1",
    "kind=rms,shape=5x67,out=f32",
    NULL,
};

static const char *const rotary[] = {
    "kind=halves,shape=4x8x128",        "kind=pairs,shape=4x8x128",
    "kind=halves,shape=3x5x16",         "kind=pairs,shape=3x5x16",
    "kind=halves,shape=3x5x70,size=34", "kind=pairs,shape=3x5x70,size=34",
    "!kind=halves,shape=7x18",          "kind=halves,shape=5x16,si=32;2",
    "kind=pairs,shape=5x16,so=48;3",    "kind=halves,shape=5x16,inplace=1",
    "kind=halves,shape=5x16,out=f32",   NULL,
};

static const char *const attention[] = {
    "b=2,h=3,l=65,d=64",
    "b=1,h=2,l=64,d=128,mask=causal",
    "!b=1,h=2,lq=17,lk=33,d=40",
    "b=1,h=1,l=1,d=1",
    "b=1,h=2,lq=9,lk=0,d=24,lse=1",
    "b=2,h=2,l=35,d=24,mask=bool,lse=1",
    "b=3,h=2,l=35,d=24,mask=padding,lse=1",
    "b=2,h=2,l=35,d=24,mask=causal;additive",
    "b=1,h=2,l=35,d=24,mask=additive,mdtype=f32",
    "b=2,h=2,l=70,d=16,mask=window:9;3",
    "b=2,h=2,lq=33,lk=70,d=16,mask=window-tl:-1;7,shift=5",
    "b=1,h=4,hk=1,lq=1,lk=300,d=64,lse=1",
    "b=1,h=4,hk=2,lq=19,lk=67,d=32,mask=causal-br",
    "b=2,h=2,l=70,d=48,dv=72,layout=blhd",
    "b=1,h=2,l=9,d=24,sq=864;432;48;2",
    "b=1,h=2,l=35,d=24,softcap=5,scale=0.5",
    "b=1,h=2,l=35,d=24,sink=1,lse=1",
    "b=1,h=2,l=35,d=24,dropout=0.25,seed=7,offset=3",
    "b=1,h=2,l=35,d=24,out=f32",
    "h=2,varlen=33;0;1;20,d=24,mask=causal-br,lse=1",
    "h=2,varlen=33;5,varlenk=40;17,d=24,layout=blhd",
    "b=3,h=2,l=35,d=24,used=1,lse=1",
    "b=3,h=4,hk=2,lq=3,lk=35,d=24,page=16,mask=causal-br",
    "b=1,h=1,l=130,d=256",
    NULL,
};

static const char *const attention_backward[] = {
    "b=2,h=3,l=65,d=64",
    "b=1,h=2,l=64,d=128,mask=causal",
    "!b=1,h=2,lq=17,lk=33,d=40",
    "b=1,h=1,l=1,d=1",
    "b=2,h=2,l=35,d=24,mask=bool",
    "b=2,h=2,l=35,d=24,mask=causal;additive",
    "b=2,h=2,l=40,d=16,mask=window:9;3",
    "b=2,h=2,lq=33,lk=40,d=16,mask=window-tl:-1;7,shift=5",
    "b=1,h=4,hk=2,lq=19,lk=37,d=32,mask=causal-br",
    "b=2,h=2,l=40,d=48,dv=72,layout=blhd",
    "b=1,h=2,l=9,d=24,sq=864;432;48;2",
    "b=1,h=2,l=35,d=24,softcap=5,scale=0.5",
    "b=1,h=2,l=35,d=24,dropout=0.25,seed=7,offset=3",
    NULL,
};

static const char *const attention_merge[] = {
    "b=2,h=3,l=17,d=64,lse=1",
    "b=1,h=2,l=33,d=40",
    "!b=1,h=1,l=7,d=5,lse=1",
    "b=2,h=3,l=17,d=64,layout=blhd",
    "b=1,h=2,l=9,d=24,si=864;432;48;2,lse=1",
    "b=1,h=2,l=9,d=24,out=f32",
    "b=1,h=2,l=9,d=24,out=bf16",
    NULL,
};

static const char *const *const all[TN_OP_COUNT] = {
    [TN_OP_MATMUL] = matmul,
    [TN_OP_PERMUTE] = permute,
    [TN_OP_CAST] = cast,
    [TN_OP_FILL] = fill,
    [TN_OP_UNARY] = unary,
    [TN_OP_BINARY] = binary,
    [TN_OP_REDUCE] = reduce,
    [TN_OP_SOFTMAX] = softmax,
    [TN_OP_NORM] = norm,
    [TN_OP_ROTARY] = rotary,
    [TN_OP_ATTENTION] = attention,
    [TN_OP_ATTENTION_BACKWARD] = attention_backward,
    [TN_OP_ATTENTION_MERGE] = attention_merge,
};

size_t tni_smoke_count(int32_t op)
{
    size_t count = 0;
    while (op > TN_OP_NONE && op < TN_OP_COUNT && all[op][count])
        count++;
    return count;
}

/* A trailing '$' is replaced by the dtype. */
static bool write_text(const char *word, const char *dtype, const char *fields, char *out,
                       size_t size)
{
    const char *mark = strchr(fields, '$');
    size_t length = mark ? (size_t)(mark - fields) : strlen(fields);
    int needed =
        snprintf(out, size, "%s:%s:%.*s%s", word, dtype, (int)length, fields, mark ? dtype : "");
    return needed > 0 && (size_t)needed < size;
}

bool tni_smoke_make(int32_t op, size_t index, tn_dtype dtype, tn_op *out)
{
    const char *fields = all[op][index], *name = tn_dtype_name(dtype);
    bool loose = fields[0] == '!';
    char text[160], device[8];
    tn_op made;
    if (!name || !write_text(tni_op_class_of(op)->word, name, fields + loose, text, sizeof text) ||
        tni_problem_parse(text, &made, device, sizeof device, NULL))
        return false;
    for (int32_t i = 0; i < made.count && loose; i++) {
        int64_t bytes = tni_dtype_bytes(made.operand[i].dtype);
        if (made.operand[i].dtype && bytes < TN_OP_ALIGNMENT_MAX)
            made.operand[i].alignment = bytes;
    }
    *out = made;
    return true;
}
