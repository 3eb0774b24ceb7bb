#include "kernel_problems.h"

#include <stdlib.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Small problems first: their failures are the easiest to analyse. Sizes on both sides of powers of
 * two, single rows and columns, one large dimension at a time, and multiples of 16 and 64 for
 * kernels that require them. */
static const problem_aspect matmul[] = {
    {"shapes",
     LIST("m=1,n=1,k=1", "m=3,n=4,k=0", "m=17,n=13,k=31", "m=16,n=16,k=16", "m=64,n=64,k=64",
          "m=63,n=65,k=33", "m=1,n=?n<300>,k=?k<300>", "m=?m<300>,n=1,k=?k<300>",
          "m=?m<300>,n=?n<300>,k=1", "m=?m<40>,n=?n<40>,k=?k<40>", "m=?m<160>,n=?n<160>,k=?k<160>",
          "m=?m<8>*16,n=?n<8>*16,k=?k<8>*16", "m=?m<3>*64,n=?n<3>*64,k=?k<3>*64", "m=1025,n=9,k=17",
          "m=9,n=1031,k=17", "m=7,n=5,k=4099", "m=1024,n=16,k=64", "m=16,n=1024,k=64",
          "m=16,n=16,k=2048", "m=257,n=129,k=65", "m=?m<80>,n=?n<80>,k=?k<80>,grouped=1")},
    {"pitches",
     LIST("m=9,n=11,k=13,sa=20;1,sb=24;1,sc=16;1", "m=?m<90>,n=?n<90>,k=?k<90>,sa=?k+5;1",
          "m=?m<90>,n=?n<90>,k=?k<90>,sb=?n+3;1", "m=?m<90>,n=?n<90>,k=?k<90>,sc=?n+7;1",
          "m=?m<6>*16,n=?n<6>*16,k=?k<6>*16,sa=?k*16+64;1,sb=?n*16+64;1,sc=?n*16+64;1",
          "m=64,n=64,k=64,sa=80;1,sb=80;1,sc=80;1")},
    {"alignment", LIST("m=17,n=13,k=31,align=&;&;~", "m=64,n=64,k=64,align=&;64;64",
                       "m=64,n=64,k=64,align=64;&;64", "m=64,n=64,k=64,align=64;64;~",
                       "m=33,n=40,k=48,align=16;16;16", "m=32,n=32,k=32,align=32;32;32",
                       "m=?m<80>,n=?n<80>,k=?k<80>,align=&;&;~")},
    {"batch",
     LIST("m=5,n=7,k=3,batch=2x3", "m=64,n=32,k=16,batch=4", "m=32,n=48,k=64,batch=2x2x2",
          "m=?m<60>,n=?n<60>,k=?k<60>,batch=?b<5>", "m=5,n=7,k=3,batch=3,sa=-15;3;1,sc=-35;7;1",
          "m=?m<60>,n=?n<60>,k=?k<60>,batch=?b<5>,sb=-?k*?n;?n;1")},
    {"broadcast",
     LIST("m=16,n=24,k=8,batch=3,sa=0;8;1", "m=9,n=8,k=5,batch=2,sb=0;8;1",
          "m=32,n=32,k=64,batch=4,sa=0;64;1", "m=?m<50>,n=?n<50>,k=?k<50>,batch=?b<4>,sa=0;?k;1",
          "m=?m<50>,n=?n<50>,k=?k<50>,batch=?b<4>,sb=0;?n;1")},
    {"transpose", LIST("m=33,n=5,k=7,ta=1", "m=16,n=16,k=32,tb=1", "m=64,n=64,k=64,ta=1,tb=1",
                       "m=?m<90>,n=?n<90>,k=?k<90>,ta=1", "m=?m<90>,n=?n<90>,k=?k<90>,tb=1",
                       "m=?m<90>,n=?n<90>,k=?k<90>,ta=1,tb=1")},
    {"strides", LIST("m=9,n=11,k=13,sa=39;3,sb=22;2,sc=33;3", "m=8,n=12,k=10,sc=1;8",
                     "m=64,n=64,k=64,sa=128;2", "m=?m<50>,n=?n<50>,k=?k<50>,sa=?k*2;2",
                     "m=?m<50>,n=?n<50>,k=?k<50>,sb=?n*3;3", "m=?m<50>,n=?n<50>,k=?k<50>,sc=?n*2;2",
                     "m=9,n=11,k=13,sa=13;-1,sb=-11;1,sc=-11;-1", "m=64,n=64,k=64,sa=64;-1",
                     "m=64,n=64,k=64,sb=-64;1", "m=64,n=64,k=64,sc=-64;1",
                     "m=?m<50>,n=?n<50>,k=?k<50>,sa=?k;-1", "m=?m<50>,n=?n<50>,k=?k<50>,sa=-?k;1",
                     "m=?m<50>,n=?n<50>,k=?k<50>,sb=?n;-1", "m=?m<50>,n=?n<50>,k=?k<50>,sb=1;-?k",
                     "m=?m<50>,n=?n<50>,k=?k<50>,sc=?n;-1",
                     "m=?m<50>,n=?n<50>,k=?k<50>,sa=-?k*2;-2", "m=9,n=11,k=13,sa=0;1,sb=1;0",
                     "m=9,n=11,k=13,sa=0;0", "m=64,n=64,k=64,sa=0;1", "m=64,n=64,k=64,sb=0;1",
                     "m=?m<50>,n=?n<50>,k=?k<50>,sa=0;1", "m=?m<50>,n=?n<50>,k=?k<50>,sa=1;0",
                     "m=?m<50>,n=?n<50>,k=?k<50>,sb=0;1", "m=?m<50>,n=?n<50>,k=?k<50>,sb=1;0")},
    {"alpha", LIST("m=15,n=17,k=19,alpha=0.75", "m=64,n=64,k=64,alpha=-1.5",
                   "m=15,n=17,k=19,alpha=0", "m=?m<90>,n=?n<90>,k=?k<90>,alpha=2.5")},
    {"beta", LIST("m=15,n=17,k=19,beta=0.5", "m=15,n=17,k=0,beta=0.5", "m=64,n=64,k=64,beta=1",
                  "m=?m<90>,n=?n<90>,k=?k<90>,beta=-0.75")},
    {"bias",
     LIST("m=15,n=17,k=19,bias=1", "m=64,n=64,k=64,bias=1", "m=?m<90>,n=?n<90>,k=?k<90>,bias=1",
          "m=?m<60>,n=?n<60>,k=?k<60>,bias=1,sbias=1;0",
          "m=?m<60>,n=?n<60>,k=?k<60>,bias=1,sbias=?n;1",
          "m=?m<60>,n=?n<60>,k=?k<60>,bias=1,sbias=0;-1",
          "m=?m<60>,n=?n<60>,k=?k<60>,bias=1,sbias=-?n;1",
          "m=?m<60>,n=?n<60>,k=?k<60>,bias=1,sbias=0;0")},
    {"activation",
     LIST("m=15,n=17,k=19,act=relu", "m=15,n=17,k=19,act=gelu", "m=15,n=17,k=19,act=gelu-tanh",
          "m=15,n=17,k=19,act=silu", "m=64,n=64,k=64,act=relu", "m=64,n=64,k=64,act=gelu",
          "m=64,n=64,k=64,act=gelu-tanh", "m=64,n=64,k=64,act=silu",
          "m=?m<90>,n=?n<90>,k=?k<90>,act=relu")},
    {"out", LIST("m=15,n=17,k=19,out=f32", "m=15,n=17,k=19,out=f16", "m=15,n=17,k=19,out=bf16",
                 "m=15,n=17,k=19,out=f64", "m=64,n=64,k=64,out=f32", "m=64,n=64,k=64,out=bf16",
                 "m=?m<90>,n=?n<90>,k=?k<90>,out=f32")},
    {"acc", LIST("m=15,n=17,k=19,acc=$", "m=15,n=17,k=19,acc=f64", "m=15,n=17,k=19,acc=f32",
                 "m=64,n=64,k=64,acc=$", "m=64,n=64,k=64,acc=f64")},
    {"scales", LIST("m=16,n=16,k=32,scale_a=tensor,scale_b=tensor", "m=17,n=13,k=31,scale_a=rows",
                    "m=17,n=13,k=31,scale_b=columns", "m=64,n=64,k=64,scale_a=rows,scale_b=columns",
                    "m=64,n=64,k=64,tb=1,scale_a=tensor,scale_b=tensor")},
    {"far-factors", LIST("m=15,n=17,k=19,alpha=1e-60", "m=64,n=64,k=64,alpha=1e-60,beta=0.5")},
    {"together",
     LIST("m=32,n=24,k=16,tb=1,alpha=0.5,beta=1", "m=15,n=17,k=19,alpha=0.5,bias=1,act=silu",
          "m=33,n=20,k=17,ta=1,alpha=0.5,beta=-1,bias=1,act=relu",
          "m=?m<60>,n=?n<60>,k=?k<60>,batch=?b<4>,tb=1,bias=1,act=gelu",
          "m=?m<60>,n=?n<60>,k=?k<60>,ta=1,tb=1,alpha=-0.5,beta=0.25",
          "m=?m<60>,n=?n<60>,k=?k<60>,tb=1,bias=1,out=f32")},
    {"nonfinite",
     LIST("m=9,n=11,k=13", "m=33,n=40,k=48", "m=64,n=64,k=64", "m=257,n=129,k=65",
          "m=1,n=?n<300>,k=?k<300>", "m=?m<300>,n=1,k=?k<300>", "m=?m<90>,n=?n<90>,k=?k<90>",
          "m=?m<90>,n=?n<90>,k=?k<90>,ta=1", "m=?m<90>,n=?n<90>,k=?k<90>,tb=1",
          "m=?m<50>,n=?n<50>,k=?k<50>,sa=?k*2;2", "m=?m<60>,n=?n<60>,k=?k<60>,batch=?b<5>",
          "m=?m<90>,n=?n<90>,k=?k<90>,alpha=2.5", "m=?m<90>,n=?n<90>,k=?k<90>,beta=0.5",
          "m=?m<90>,n=?n<90>,k=?k<90>,bias=1")},
    {0},
};

static const problem_aspect permute[] = {
    {"shapes", LIST("shape=1", "shape=1000", "shape=16x256", "shape=?a<70>x?b<70>",
                    "shape=?a<20>x?b<20>x?c<20>")},
    {"alignment", LIST("shape=77,align=&;&", "shape=16x256,align=&;64", "shape=16x256,align=64;&")},
    {"strides", LIST("shape=64x64,order=1;0", "shape=?a<90>x?b<90>,order=1;0",
                     "shape=?a<20>x?b<20>x?c<20>,order=2;0;1", "shape=4x3x5x6,order=0;2;1;3",
                     "shape=?a<30>x?b<30>,si=?b*2;2", "shape=?a<30>x?b<30>,so=?b*3;3",
                     "shape=?a<30>x?b<30>,si=?b+5;1", "shape=?a<30>x?b<30>,so=?b+5;1",
                     "shape=9x11,si=-11;-1", "shape=64x64,si=64;-1", "shape=?a<30>x?b<30>,si=-?b;1",
                     "shape=?a<30>x?b<30>,so=?b;-1", "shape=?a<30>x?b<30>,si=1;-?a")},
    {"broadcast",
     LIST("shape=9x11,si=0;1", "shape=?a<30>x?b<30>,si=0;1", "shape=9x11,si=1;0",
          "shape=9x11,si=0;0", "shape=?a<30>x?b<30>,si=1;0", "shape=?a<30>x?b<30>,si=0;-1")},
    {0},
};

static const problem_aspect cast[] = {
    {"shapes", LIST("shape=16x256,to=f32", "shape=16x256,to=bf16", "shape=37x13,to=f64",
                    "shape=37x13,to=f32", "shape=37x13,to=f16", "shape=37x13,to=bf16",
                    "shape=37x13,to=i8", "shape=37x13,to=u8", "shape=37x13,to=i32",
                    "shape=37x13,to=i64", "shape=37x13,to=bool", "shape=?a<70>x?b<70>,to=f32",
                    "shape=?a<70>x?b<70>,to=bf16", "shape=?a<70>x?b<70>,to=i32")},
    {"alignment", LIST("shape=77,to=f32,align=&;4", "shape=77,to=bf16,align=&;2",
                       "shape=16x256,to=f32,align=&;64", "shape=16x256,to=f32,align=64;4")},
    {"strides",
     LIST("shape=9x11,si=22;2,to=f32", "shape=9x11,so=33;3,to=f32",
          "shape=?a<30>x?b<30>,si=?b+5;1,to=f32", "shape=?a<30>x?b<30>,so=?b*2;2,to=bf16",
          "shape=9x11,si=-11;-1,to=f32", "shape=?a<30>x?b<30>,si=?b;-1,to=f32",
          "shape=?a<30>x?b<30>,so=-?b;1,to=bf16")},
    {"broadcast", LIST("shape=9x11,si=0;1,to=bf16", "shape=?a<30>x?b<30>,si=0;1,to=f32",
                       "shape=?a<30>x?b<30>,si=1;0,to=f32", "shape=9x11,si=0;0,to=bf16",
                       "shape=9x11,si=0;-1,to=f32")},
    {"in-place", LIST("shape=5x67,to=$,inplace=1", "shape=16x64,to=$,inplace=1")},
    {0},
};

static const problem_aspect fill[] = {
    {"shapes", LIST("shape=1,value=2", "shape=1000,value=1", "shape=?a<70>x?b<70>,value=3")},
    {"alignment", LIST("shape=77,value=3,align=&", "shape=?a<300>,value=1,align=&")},
    {"strides", LIST("shape=9x11,so=33;3,value=2", "shape=?a<30>x?b<30>,so=?b+5;1,value=1",
                     "shape=9x11,so=-11;-1,value=2", "shape=?a<30>x?b<30>,so=?b;-1,value=3")},
    {0},
};

static const problem_aspect unary[] = {
    {"shapes", LIST("kind=neg,shape=1", "kind=neg,shape=16x256", "kind=neg,shape=?a<50>x?b<90>",
                    "kind=abs,shape=?a<50>x?b<90>", "kind=sqrt,shape=?a<50>x?b<90>",
                    "kind=rsqrt,shape=?a<50>x?b<90>", "kind=exp,shape=?a<50>x?b<90>",
                    "kind=log,shape=?a<50>x?b<90>", "kind=tanh,shape=?a<50>x?b<90>",
                    "kind=sigmoid,shape=?a<50>x?b<90>", "kind=relu,shape=?a<50>x?b<90>",
                    "kind=gelu,shape=?a<50>x?b<90>", "kind=gelu-tanh,shape=?a<50>x?b<90>",
                    "kind=silu,shape=?a<50>x?b<90>", "kind=relu,shape=8x16x64")},
    {"alignment", LIST("kind=neg,shape=77,align=&;&", "kind=relu,shape=16x256,align=&;64",
                       "kind=relu,shape=16x256,align=64;&")},
    {"strides",
     LIST("kind=abs,shape=9x11,si=22;2", "kind=abs,shape=9x11,so=33;3",
          "kind=neg,shape=?a<30>x?b<30>,si=?b+5;1", "kind=neg,shape=?a<30>x?b<30>,so=?b+5;1",
          "kind=exp,shape=?a<30>x?b<30>,si=1;?a", "kind=abs,shape=9x11,si=-11;-1",
          "kind=neg,shape=?a<30>x?b<30>,si=?b;-1", "kind=relu,shape=?a<30>x?b<30>,si=-?b;1",
          "kind=neg,shape=?a<30>x?b<30>,so=?b;-1")},
    {"broadcast", LIST("kind=neg,shape=9x11,si=0;1", "kind=relu,shape=?a<30>x?b<30>,si=1;0",
                       "kind=neg,shape=9x11,si=0;0", "kind=neg,shape=?a<30>x?b<30>,si=0;-1")},
    {"out", LIST("kind=exp,shape=5x67,out=f32", "kind=silu,shape=?a<30>x?b<30>,out=f32")},
    {"in-place", LIST("kind=neg,shape=5x67,inplace=1", "kind=gelu,shape=?a<30>x?b<30>,inplace=1")},
    {0},
};

static const problem_aspect binary[] = {
    {"shapes", LIST("kind=add,shape=1", "kind=add,shape=16x256", "kind=add,shape=?a<50>x?b<90>",
                    "kind=sub,shape=?a<50>x?b<90>", "kind=mul,shape=?a<50>x?b<90>",
                    "kind=div,shape=?a<50>x?b<90>", "kind=max,shape=?a<50>x?b<90>",
                    "kind=min,shape=?a<50>x?b<90>", "kind=mul,shape=8x16x64")},
    {"alignment", LIST("kind=add,shape=77,align=&;&;&", "kind=mul,shape=16x256,align=&;64;64",
                       "kind=mul,shape=16x256,align=64;64;&")},
    {"strides",
     LIST("kind=add,shape=9x11,si=22;2", "kind=add,shape=9x11,so=33;3",
          "kind=sub,shape=?a<30>x?b<30>,s2=?b+5;1", "kind=sub,shape=?a<30>x?b<30>,si=1;?a",
          "kind=mul,shape=?a<30>x?b<30>,so=?b+5;1", "kind=sub,shape=9x11,si=-11;-1",
          "kind=sub,shape=?a<30>x?b<30>,si=?b;-1", "kind=sub,shape=?a<30>x?b<30>,s2=-?b;1",
          "kind=add,shape=?a<30>x?b<30>,s2=?b;-1", "kind=add,shape=?a<30>x?b<30>,so=?b;-1")},
    {"broadcast", LIST("kind=mul,shape=9x11,s2=0;1", "kind=mul,shape=9x11,s2=1;0",
                       "kind=sub,shape=9x11,s2=0;0", "kind=sub,shape=?a<30>x?b<30>,s2=0;1",
                       "kind=div,shape=?a<30>x?b<30>,si=0;1", "kind=add,shape=?a<30>x?b<30>,si=1;0",
                       "kind=add,shape=9x11,si=0;0", "kind=sub,shape=?a<30>x?b<30>,s2=0;-1")},
    {"out", LIST("kind=add,shape=5x67,out=f32", "kind=mul,shape=?a<30>x?b<30>,out=f32")},
    {"in-place", LIST("kind=add,shape=5x67,inplace=1", "kind=sub,shape=?a<30>x?b<30>,inplace=1")},
    {0},
};

static const problem_aspect reduce[] = {
    {"shapes",
     LIST("kind=sum,shape=1,axes=1", "kind=sum,shape=1000,axes=1", "kind=sum,shape=16x256,axes=1",
          "kind=sum,shape=?a<40>x?b<300>,axes=1", "kind=mean,shape=?a<40>x?b<300>,axes=1",
          "kind=max,shape=?a<40>x?b<300>,axes=1", "kind=min,shape=?a<40>x?b<300>,axes=1",
          "kind=prod,shape=?a<40>x?b<40>,axes=1", "kind=sum,shape=3x5x7,axes=2",
          "kind=mean,shape=3x5x7,axes=3", "kind=sum,shape=3x?b<4099>,axes=1")},
    {"alignment",
     LIST("kind=sum,shape=77,axes=1,align=&;&", "kind=max,shape=16x256,axes=1,align=&;64",
          "kind=max,shape=16x256,axes=1,align=64;&")},
    {"strides",
     LIST("kind=max,shape=9x11,axes=1,si=1;9", "kind=sum,shape=?a<30>x?b<60>,axes=1,si=?b+5;1",
          "kind=sum,shape=?a<30>x?b<60>,axes=1,si=1;?a",
          "kind=min,shape=?a<30>x?b<60>,axes=1,si=?b*2;2", "kind=sum,shape=9x11,axes=1,si=-11;-1",
          "kind=max,shape=?a<30>x?b<60>,axes=1,si=-?b;1",
          "kind=sum,shape=?a<30>x?b<60>,axes=1,si=?b;-1",
          "kind=sum,shape=3x5x7,axes=2,si=35;-7;1")},
    {"broadcast",
     LIST("kind=sum,shape=9x11,axes=1,si=0;1", "kind=mean,shape=?a<30>x?b<60>,axes=1,si=0;1",
          "kind=sum,shape=9x11,axes=1,si=1;0", "kind=sum,shape=?a<30>x?b<60>,axes=1,si=1;0",
          "kind=max,shape=9x11,axes=1,si=0;0", "kind=sum,shape=3x5x7,axes=2,si=7;0;1")},
    {"out",
     LIST("kind=sum,shape=5x67,axes=1,out=f32", "kind=mean,shape=?a<30>x?b<60>,axes=1,out=f32")},
    {"nonfinite",
     LIST("kind=sum,shape=9x11,axes=1", "kind=sum,shape=?a<40>x?b<300>,axes=1",
          "kind=mean,shape=?a<40>x?b<300>,axes=1", "kind=max,shape=?a<40>x?b<300>,axes=1",
          "kind=min,shape=?a<40>x?b<300>,axes=1", "kind=prod,shape=?a<40>x?b<40>,axes=1",
          "kind=max,shape=16x256,axes=1", "kind=min,shape=13x5x7,axes=2",
          "kind=max,shape=?a<30>x?b<60>,axes=1,si=1;?a")},
    {0},
};

static const problem_aspect softmax[] = {
    {"shapes", LIST("shape=7x1", "shape=8x1024", "shape=3x1000", "shape=?a<40>x?b<300>",
                    "shape=2x3x64", "shape=3x?b<4099>", "shape=?a<300>x?b<8>")},
    {"alignment",
     LIST("shape=3x77,align=&;&", "shape=16x256,align=&;64", "shape=16x256,align=64;&")},
    {"strides",
     LIST("shape=9x11,si=22;2", "shape=9x11,so=33;3", "shape=?a<30>x?b<60>,si=?b+5;1",
          "shape=?a<30>x?b<60>,so=?b+5;1", "shape=?a<30>x?b<60>,si=1;?a", "shape=9x11,si=-11;-1",
          "shape=?a<30>x?b<60>,si=-?b;1", "shape=?a<30>x?b<60>,si=?b;-1",
          "shape=?a<30>x?b<60>,so=?b;-1", "shape=?a<30>x?b<60>,so=-?b;1")},
    {"broadcast", LIST("shape=9x11,si=0;1", "shape=?a<30>x?b<60>,si=0;1",
                       "shape=?a<30>x?b<60>,si=1;0", "shape=9x11,si=0;0", "shape=9x11,si=0;-1")},
    {"out", LIST("shape=5x67,out=f32", "shape=?a<30>x?b<60>,out=f32")},
    {"in-place", LIST("shape=5x67,inplace=1", "shape=?a<30>x?b<60>,inplace=1")},
    {"log", LIST("shape=5x67,log=1", "shape=8x1024,log=1", "shape=?a<30>x?b<300>,log=1")},
    {"nonfinite", LIST("shape=9x11", "shape=8x1024", "shape=?a<40>x?b<300>", "shape=?a<300>x?b<8>",
                       "shape=?a<40>x?b<300>,log=1")},
    {0},
};

static const problem_aspect norm[] = {
    {"shapes",
     LIST("kind=layer,shape=5x67", "kind=rms,shape=5x67", "kind=layer,shape=?a<40>x?b<300>",
          "kind=rms,shape=?a<40>x?b<300>", "kind=rms,shape=8x1024", "kind=layer,shape=2x3x64",
          "kind=rms,shape=3x?b<4099>,eps=0.01")},
    {"alignment",
     LIST("kind=rms,shape=3x77,align=&;&", "kind=layer,shape=16x256,align=&;64",
          "kind=layer,shape=16x256,align=64;&", "kind=rms,shape=3x77,weight=1,align=&;&;&")},
    {"strides",
     LIST("kind=layer,shape=9x11,si=22;2", "kind=rms,shape=9x11,so=33;3",
          "kind=rms,shape=?a<30>x?b<60>,si=?b+5;1", "kind=layer,shape=?a<30>x?b<60>,so=?b+5;1",
          "kind=layer,shape=9x11,si=-11;-1", "kind=rms,shape=?a<30>x?b<60>,si=-?b;1",
          "kind=rms,shape=?a<30>x?b<60>,weight=1,si=?b;-1",
          "kind=layer,shape=?a<30>x?b<60>,weight=1,so=?b;-1",
          "kind=rms,shape=?a<30>x?b<60>,so=-?b;1")},
    {"broadcast", LIST("kind=rms,shape=9x11,si=0;1", "kind=layer,shape=?a<30>x?b<60>,si=0;1",
                       "kind=rms,shape=?a<30>x?b<60>,si=1;0", "kind=rms,shape=9x11,si=0;-1")},
    {"out", LIST("kind=rms,shape=5x67,out=f32", "kind=layer,shape=?a<30>x?b<60>,out=f32")},
    {"in-place", LIST("kind=layer,shape=5x67,inplace=1", "kind=rms,shape=?a<30>x?b<60>,inplace=1")},
    {"weight",
     LIST("kind=layer,shape=5x67,weight=1", "kind=rms,shape=8x1024,weight=1",
          "kind=rms,shape=?a<40>x?b<300>,weight=1", "kind=layer,shape=?a<40>x?b<300>,weight=1",
          "kind=rms,shape=?a<30>x?b<60>,weight=f32")},
    {"bias",
     LIST("kind=layer,shape=3x1000,weight=1,bias=1", "kind=rms,shape=3x1000,weight=1,bias=1",
          "kind=layer,shape=?a<40>x?b<300>,bias=1")},
    {"nonfinite", LIST("kind=layer,shape=9x11", "kind=rms,shape=9x11", "kind=rms,shape=8x1024",
                       "kind=layer,shape=?a<40>x?b<300>", "kind=rms,shape=?a<40>x?b<300>",
                       "kind=rms,shape=?a<40>x?b<300>,weight=1")},
    {0},
};

static const problem_aspect rotary[] = {
    {"shapes",
     LIST("kind=halves,shape=4x8x128", "kind=pairs,shape=4x8x128", "kind=halves,shape=3x5x2",
          "kind=halves,shape=?a<12>x?b<12>x?c<40>*2", "kind=pairs,shape=?a<12>x?b<12>x?c<40>*2",
          "kind=halves,shape=?a<30>x?c<40>*2")},
    {"alignment",
     LIST("kind=halves,shape=7x18,align=&;&;&;&", "kind=pairs,shape=8x64,align=&;64;64;64",
          "kind=pairs,shape=8x64,align=64;&;64;64")},
    {"strides",
     LIST("kind=halves,shape=5x16,si=32;2", "kind=pairs,shape=5x16,so=48;3",
          "kind=halves,shape=?a<30>x?c<40>*2,si=?c*2+6;1",
          "kind=pairs,shape=?a<30>x?c<40>*2,so=?c*2+6;1", "kind=halves,shape=5x16,si=-16;-1",
          "kind=pairs,shape=5x16,si=16;-1", "kind=halves,shape=?a<30>x?c<40>*2,si=-?c*2;1",
          "kind=pairs,shape=?a<30>x?c<40>*2,so=?c*2;-1")},
    {"broadcast", LIST("kind=halves,shape=5x16,si=0;1", "kind=pairs,shape=?a<30>x?c<40>*2,si=0;1",
                       "kind=halves,shape=?a<30>x?c<40>*2,si=1;0", "kind=pairs,shape=5x16,si=0;0")},
    {"out", LIST("kind=halves,shape=5x16,out=f32", "kind=pairs,shape=?a<30>x?c<40>*2,out=f32")},
    {"in-place",
     LIST("kind=halves,shape=5x16,inplace=1", "kind=pairs,shape=?a<30>x?c<40>*2,inplace=1")},
    {"partial", LIST("kind=halves,shape=3x5x70,size=34", "kind=pairs,shape=3x5x70,size=34",
                     "kind=halves,shape=?a<20>x?c<40>*4,size=?c*2",
                     "kind=pairs,shape=?a<20>x?c<40>*4,size=?c*2")},
    {"nonfinite",
     LIST("kind=halves,shape=5x16", "kind=pairs,shape=5x16",
          "kind=halves,shape=?a<12>x?b<12>x?c<40>*2", "kind=pairs,shape=?a<12>x?b<12>x?c<40>*2")},
    {0},
};

#define ATTENTION_SHAPES                                                                      \
    "b=1,h=1,l=1,d=1", "b=2,h=3,l=65,d=64", "b=1,h=2,lq=17,lk=33,d=40", "b=1,h=2,l=64,d=128", \
        "b=1,h=1,lq=?q<40>,lk=?k<90>,d=64", "b=?b<3>,h=?h<3>,lq=?q<90>,lk=?k<90>,d=?d<40>",   \
        "b=1,h=2,l=?q<8>*16,d=32", "b=1,h=1,l=130,d=96"
#define ATTENTION_PITCHES                                                                    \
    "b=2,h=2,l=9,d=24,sq=432;216;-24;1", "b=2,h=2,l=33,d=64,sk=4224;-2112;64;1",             \
        "b=2,h=2,l=9,d=24,sv=-432;216;-24;1", "b=2,h=2,l=33,d=64,so=4224;2112;-64;1",        \
        "b=2,h=2,l=9,d=24,sq=0;216;24;1", "b=2,h=2,l=33,d=64,sk=2112;0;64;1,sv=2112;0;64;1", \
        "b=1,h=2,l=33,d=64,sk=4224;2112;0;1", "b=1,h=2,l=33,d=64,sv=4224;2112;0;1"
#define ATTENTION_STRIDES                                                            \
    "b=1,h=2,l=9,d=24,sq=864;432;48;2", "b=1,h=1,l=33,d=64,sk=4224;4224;128;2",      \
        "b=1,h=2,l=9,d=24,sq=432;216;24;-1", "b=1,h=1,l=33,d=64,sk=2112;2112;64;-1", \
        "b=1,h=2,l=9,d=24,sv=432;216;24;-1", "b=1,h=2,l=33,d=64,so=4224;2112;64;-1", \
        "b=1,h=2,l=9,d=24,sq=18;9;1;0", "b=1,h=1,l=33,d=64,sk=33;33;1;0",            \
        "b=1,h=2,l=9,d=24,sv=18;9;1;0"
#define ATTENTION_WINDOWS                                                         \
    "b=1,h=2,l=64,d=128,mask=causal", "b=1,h=2,lq=19,lk=67,d=32,mask=causal-br",  \
        "b=2,h=2,l=70,d=16,mask=window:9;3", "b=1,h=1,l=?q<90>,d=64,mask=causal", \
        "b=1,h=2,lq=?q<40>,lk=?k<90>,d=32,mask=window-tl:?a<9>;?b<9>"

static const problem_aspect attention[] = {
    {"shapes", LIST(ATTENTION_SHAPES, "b=1,h=2,l=35,d=24,scale=0.5", "b=1,h=4,lq=1,lk=300,d=64")},
    {"pitches", LIST("b=2,h=2,l=33,d=48,layout=blhd", "b=2,h=2,l=64,d=64,layout=blhd",
                     "b=1,h=2,l=?q<60>,d=64,layout=blhd", ATTENTION_PITCHES)},
    {"alignment", LIST("b=1,h=2,lq=17,lk=33,d=40,align=&;&;&;&",
                       "b=1,h=2,l=64,d=64,align=&;64;64;64", "b=1,h=2,l=64,d=64,align=64;64;64;&")},
    {"window", LIST(ATTENTION_WINDOWS)},
    {"mask", LIST("b=2,h=2,l=35,d=24,mask=bool", "b=3,h=2,l=35,d=24,mask=padding",
                  "b=1,h=2,lq=?q<60>,lk=?k<60>,d=64,mask=bool")},
    {"additive",
     LIST("b=2,h=2,l=35,d=24,mask=additive", "b=1,h=2,l=35,d=24,mask=additive,mdtype=f32",
          "b=1,h=2,lq=?q<60>,lk=?k<60>,d=64,mask=additive")},
    {"groups", LIST("b=1,h=4,hk=1,lq=1,lk=300,d=64", "b=1,h=4,hk=2,lq=19,lk=67,d=32",
                    "b=1,h=6,hk=3,l=?q<60>,d=64")},
    {"softcap", LIST("b=1,h=2,l=35,d=24,softcap=5", "b=1,h=2,l=?q<60>,d=64,softcap=5")},
    {"sinks", LIST("b=1,h=2,l=35,d=24,sink=1", "b=1,h=2,l=?q<60>,d=64,sink=1")},
    {"lse", LIST("b=1,h=2,l=35,d=24,lse=1", "b=1,h=2,lq=9,lk=0,d=24,lse=1",
                 "b=1,h=2,lq=?q<60>,lk=?k<60>,d=64,lse=1")},
    {"dropout", LIST("b=1,h=2,l=35,d=24,dropout=0.25,seed=7,offset=3",
                     "b=1,h=2,l=?q<60>,d=64,dropout=0.5,seed=9")},
    {"packed", LIST("h=2,varlen=33;0;1;20,d=24", "h=2,varlen=33;5,varlenk=40;17,d=24",
                    "h=2,varlen=?q<40>;?k<40>,d=64")},
    {"lengths", LIST("b=3,h=2,l=35,d=24,used=1", "b=2,h=1,lq=5,lk=?k<90>,d=64,used=1")},
    {"pages", LIST("b=3,h=4,lq=3,lk=35,d=24,page=16", "b=2,h=2,lq=1,lk=?k<90>,d=64,page=16")},
    {"dv", LIST("b=2,h=2,l=70,d=48,dv=72", "b=1,h=2,l=?q<60>,d=64,dv=32")},
    {"strides", LIST(ATTENTION_STRIDES)},
    {"out", LIST("b=1,h=2,l=35,d=24,out=f32", "b=1,h=2,l=?q<60>,d=64,out=f32")},
    {"shift", LIST("b=2,h=2,lq=33,lk=70,d=16,mask=window-tl:-1;7,shift=5",
                   "b=1,h=1,lq=5,lk=40,d=64,mask=causal,shift=20")},
    {"together", LIST("b=2,h=4,hk=2,l=35,d=24,mask=causal;additive,lse=1",
                      "h=2,varlen=33;0;1;20,d=24,mask=causal-br,lse=1",
                      "b=3,h=4,hk=2,lq=3,lk=35,d=24,page=16,mask=causal-br")},
    {"nonfinite",
     LIST("b=1,h=2,l=35,d=24", "b=1,h=2,l=64,d=128,mask=causal",
          "b=2,h=2,l=70,d=16,mask=window:9;3", "b=1,h=4,hk=2,lq=19,lk=67,d=32,mask=causal-br",
          "b=2,h=2,l=35,d=24,mask=bool", "b=3,h=2,l=35,d=24,mask=padding",
          "b=3,h=2,l=35,d=24,used=1", "b=3,h=4,lq=3,lk=35,d=24,page=16",
          "h=2,varlen=33;0;1;20,d=24", "b=1,h=2,lq=?q<40>,lk=?k<90>,d=64",
          "b=1,h=2,l=?q<90>,d=64,mask=causal")},
    {0},
};

static const problem_aspect attention_backward[] = {
    {"shapes", LIST(ATTENTION_SHAPES, "b=1,h=2,l=35,d=24,scale=0.5")},
    {"pitches",
     LIST("b=2,h=2,l=33,d=48,layout=blhd", "b=1,h=2,l=?q<60>,d=64,layout=blhd", ATTENTION_PITCHES)},
    {"alignment", LIST("b=1,h=2,lq=17,lk=33,d=40,align=&;&;&;&;8;&;&;&;&",
                       "b=1,h=2,l=64,d=64,align=&;64;64;64;64;64;64;64;64",
                       "b=1,h=2,l=64,d=64,align=64;64;64;64;64;64;&;&;&")},
    {"window", LIST(ATTENTION_WINDOWS)},
    {"mask", LIST("b=2,h=2,l=35,d=24,mask=bool", "b=1,h=2,lq=?q<60>,lk=?k<60>,d=64,mask=bool")},
    {"additive",
     LIST("b=2,h=2,l=35,d=24,mask=additive", "b=1,h=2,lq=?q<60>,lk=?k<60>,d=64,mask=additive")},
    {"groups", LIST("b=1,h=4,hk=2,lq=19,lk=37,d=32", "b=1,h=6,hk=3,l=?q<40>,d=64")},
    {"softcap", LIST("b=1,h=2,l=35,d=24,softcap=5", "b=1,h=2,l=?q<60>,d=64,softcap=5")},
    {"dropout", LIST("b=1,h=2,l=35,d=24,dropout=0.25,seed=7,offset=3",
                     "b=1,h=2,l=?q<60>,d=64,dropout=0.5,seed=9")},
    {"dv", LIST("b=2,h=2,l=40,d=48,dv=72", "b=1,h=2,l=?q<60>,d=64,dv=32")},
    {"strides", LIST(ATTENTION_STRIDES)},
    {"shift", LIST("b=2,h=2,lq=33,lk=40,d=16,mask=window-tl:-1;7,shift=5",
                   "b=1,h=1,lq=5,lk=40,d=64,mask=causal,shift=20")},
    {"together", LIST("b=2,h=4,hk=2,l=35,d=24,mask=causal;additive",
                      "b=1,h=4,hk=2,lq=19,lk=37,d=32,mask=causal-br,softcap=5")},
    {0},
};

static const problem_aspect attention_merge[] = {
    {"shapes", LIST("b=1,h=1,l=1,d=1", "b=2,h=3,l=17,d=64,lse=1", "b=1,h=2,l=33,d=40",
                    "b=?b<3>,h=?h<4>,l=?l<60>,d=?d<90>,lse=1")},
    {"alignment", LIST("b=1,h=1,l=7,d=5,align=&;8;&;8;&", "b=1,h=2,l=33,d=64,align=&;64;&;64;64",
                       "b=1,h=1,l=7,d=5,lse=1,align=&;8;&;8;&;8")},
    {"strides",
     LIST("b=2,h=3,l=17,d=64,layout=blhd", "b=1,h=2,l=9,d=24,si=864;432;48;2,lse=1",
          "b=1,h=2,l=?l<60>,d=64,layout=blhd,lse=1", "b=1,h=2,l=9,d=24,si=432;216;-24;1,lse=1",
          "b=1,h=2,l=9,d=24,si=432;216;24;-1,lse=1", "b=1,h=2,l=9,d=24,so=432;216;-24;1,lse=1",
          "b=1,h=2,l=9,d=24,si=216;0;24;1")},
    {"out", LIST("b=1,h=2,l=9,d=24,out=f32", "b=1,h=2,l=?l<60>,d=64,out=f32,lse=1")},
    {0},
};

static const problem_aspect none[] = {{0}};

const problem_aspect *problem_aspects(int32_t op)
{
    static const problem_aspect *const all[TN_OP_COUNT] = {
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
    return op > TN_OP_NONE && op < TN_OP_COUNT && all[op] ? all[op] : none;
}

const char *problem_op_word(int32_t op)
{
    static const char *const words[TN_OP_COUNT] = {
#define WORD(NAME, number, word) [number] = (word),
        TN_OP_LIST(WORD)
#undef WORD
    };
    return op > TN_OP_NONE && op < TN_OP_COUNT ? words[op] : "";
}

bool problem_is_random(const char *template)
{
    return strchr(template, '?') != NULL;
}

bool problem_is_nonfinite(const problem_aspect *aspect)
{
    return strcmp(aspect->word, "nonfinite") == 0;
}

/* State of expanding a template to text. */
typedef struct expansion {
    const char *at; /* position in the template */
    tn_dtype dtype;
    problem_draw *draw;
    void *user;
    int64_t numbers[26]; /* by letter; 0: not drawn yet */
    char *out;
    size_t used;
} expansion;

static void put(expansion *e, const char *text)
{
    size_t length = strlen(text);
    if (e->used + length < PROBLEM_TEXT)
        memcpy(e->out + e->used, text, length + 1);
    e->used += length;
}

static void put_number(expansion *e, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    put(e, text);
}

/* Reads a number of the template, `?x`, or `?x<N>`. */
static int64_t read_term(expansion *e)
{
    char *end;
    if (*e->at != '?') {
        int64_t number = strtoll(e->at, &end, 10);
        e->at = end;
        return number;
    }
    int64_t *of = &e->numbers[(e->at[1] - 'a') % 26];
    e->at += 2;
    if (*e->at == '<') {
        size_t most = (size_t)strtoull(e->at + 1, &end, 10);
        e->at = end + 1;
        *of = (int64_t)(e->draw(e->user, most - 1) + 2);
    }
    return *of;
}

static int64_t read_number(expansion *e)
{
    int64_t number = read_term(e);
    while (*e->at == '+' || *e->at == '*') {
        bool adds = *e->at++ == '+';
        int64_t term = read_term(e);
        number = adds ? number + term : number * term;
    }
    return number;
}

static void expand(expansion *e)
{
    const int64_t bytes = (e->dtype >> 8 & 0xFF) / 8;
    while (*e->at) {
        char one[] = {*e->at, '\0'};
        if (*e->at == '?') {
            put_number(e, read_number(e));
            continue;
        }
        if (*e->at == '$')
            put(e, tn_dtype_name(e->dtype));
        else if (*e->at == '&')
            put_number(e, bytes);
        else if (*e->at == '~')
            put_number(e, bytes > 1 ? bytes : 4);
        else
            put(e, one);
        e->at++;
    }
}

bool problem_write(int32_t op, const char *template, tn_dtype dtype, const char *device,
                   problem_draw *draw, void *user, char out[PROBLEM_TEXT])
{
    expansion e = {.at = template, .dtype = dtype, .draw = draw, .user = user, .out = out};
    put(&e, problem_op_word(op));
    put(&e, ":");
    put(&e, tn_dtype_name(dtype));
    put(&e, ":");
    expand(&e);
    put(&e, "@");
    put(&e, device);
    return e.used < PROBLEM_TEXT;
}
