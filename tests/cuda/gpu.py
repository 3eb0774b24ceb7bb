"""What only a machine with an NVIDIA GPU can show: the conformance suite on the real driver, every CUDA row
against the reference, settings, DLPack beside PyTorch and CuPy, our kernels under compute-sanitizer, and how
fast copies and kernels are.

`make gpu-test` runs this, tests/cuda/hardware*.c and calls.c. What was found out about the machine, and each result, is
added to gpu-test.txt in the build folder, run after run; the summary also goes to stdout. Timings stand there
to be read and decide nothing."""

import concurrent.futures
import ctypes
import importlib.util
import json
import os
import random
import shutil
import sys
import time

# In place of this folder, whose platform.py is not Python's.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
import harness
import script

try:
    import torch
except ImportError:
    torch = None
try:
    import cupy
except ImportError:
    cupy = None

FLOATS = ("f32", "bf16", "f16", "f64")
COMPLEX = ("c64", "c128")
WHOLE = ("i8", "i32", "i64", "u8", "u64")


def problems():
    """Those that are listed here, and the test problems of operators with rows that none of the lists has."""
    listed = list(listed_problems())
    yield from listed
    grouped = (listed, attentions(), own_attentions(), own_gradients(), sparse_attentions())
    known = {problem.split(":")[0] for problems_of_one in grouped for problem in problems_of_one}
    offered = {row.split(".")[1] for row in kernel_rows()}
    for op, tested in script.op_problems().items():
        if op in offered - known:
            every = (f"{op}:{dtype}:{fields}" for dtype in (*FLOATS, *COMPLEX) for _, fields in tested)
            yield from filter(is_sound, every)


def is_sound(problem):
    """Whether the operator has the problem: not every field goes with every dtype."""
    return script.run(script.build.tenon, "explain", problem, env=script.environment()).returncode == 0


def listed_problems():
    """At least one case of every path through the kernels: dense, strided, tiled, rows of every length that
    is shared otherwise, parts."""
    for kind in ("neg", "abs", "sqrt", "rsqrt", "exp", "log", "tanh", "sigmoid", "relu", "gelu",
                 "gelu-tanh", "silu"):
        for dtype in FLOATS:
            yield f"unary:{dtype}:kind={kind},shape=1003x517"
    yield "unary:f32:kind=exp,shape=1000x500,si=1;1000"
    for kind in ("add", "sub", "mul", "div", "max", "min"):
        for dtype in (*FLOATS, *WHOLE):
            yield f"binary:{dtype}:kind={kind},shape=1003x517"
        yield f"binary:f32:kind={kind},shape=64x1000,s2=0;1"
    for one in (*FLOATS, *WHOLE, "bool"):
        for other in (*FLOATS, *WHOLE, "bool"):
            if one != other:
                yield f"cast:{one}:shape=100003,to={other}"
    for dtype in (*FLOATS, *WHOLE, "bool"):
        yield f"fill:{dtype}:shape=1003x517,value=3"
    for dtype in (*FLOATS, *WHOLE, "bool", "c64", "c128"):
        yield f"permute:{dtype}:shape=1003x517,order=1;0"
        yield f"permute:{dtype}:shape=33x65x129,order=2;0;1"
    for dtype in FLOATS:
        for kind in ("sum", "mean", "max", "min"):
            yield f"reduce:{dtype}:kind={kind},shape=513x1001,axes=1"
            yield f"reduce:{dtype}:kind={kind},shape=513x1001,axes=1,si=1;513"
            yield f"reduce:{dtype}:kind={kind},shape=3x300007,axes=1"
        for size in (7, 64, 1000, 1024, 1025, 4096, 5000, 16384, 20001):
            yield f"softmax:{dtype}:shape=129x{size}"
            yield f"norm:{dtype}:kind=layer,shape=129x{size},weight=1,bias=1"
            yield f"norm:{dtype}:kind=rms,shape=129x{size},weight=1"
        yield f"softmax:{dtype}:shape=129x1000,log=1"
        for kind in ("halves", "pairs"):
            yield f"rotary:{dtype}:kind={kind},shape=2x8x257x64"
            yield f"rotary:{dtype}:kind={kind},shape=2x8x257x64,size=32"
    for dtype in WHOLE:
        for kind in ("sum", "max", "min"):
            yield f"reduce:{dtype}:kind={kind},shape=513x1001,axes=1"
    yield from products()


def products():
    """Of every dtype, awkward and not, in every way to lie, with all that can follow."""
    for dtype in (*FLOATS, "c64", "c128"):
        for sizes in ("m=1,n=1,k=1", "m=127,n=65,k=33", "m=33,n=1,k=257", "m=1,n=129,k=64",
                      "m=512,n=512,k=512", "m=64,n=64,k=16384"):
            yield f"matmul:{dtype}:{sizes}"
        yield f"matmul:{dtype}:m=127,n=65,k=33,ta=1"
        yield f"matmul:{dtype}:m=127,n=65,k=33,tb=1"
        yield f"matmul:{dtype}:m=64,n=48,k=32,batch=7"
        yield f"matmul:{dtype}:m=64,n=48,k=32,alpha=2,beta=0.5"
    for dtype in FLOATS:
        yield f"matmul:{dtype}:m=127,n=65,k=33,bias=1"
        yield f"matmul:{dtype}:m=127,n=65,k=33,bias=1,act=relu"
    yield "matmul:f32:m=127,n=65,k=33,bias=1,act=gelu-tanh"
    for dtype in ("f32", "bf16", "f16"):  # what follows sums of cuBLASLt's
        yield f"matmul:{dtype}:m=300,n=520,k=64,bias=1,act=gelu"
        yield f"matmul:{dtype}:m=48,n=1100,k=64,batch=3,act=silu,sc=52800;1;48"
    yield "matmul:bf16:m=300,n=520,k=64,act=gelu-tanh,out=f32"
    for dtype in ("bf16", "f16"):  # cuBLASLt gets aligned copies of these operands
        for fields in ("m=333,n=555,k=777", "m=257,n=301,k=501,ta=1,tb=1", "m=333,n=512,k=641", "m=333,n=513,k=640",
                       "m=256,n=513,k=640,tb=1", "m=333,n=512,k=640,align=2;16;16", "m=256,n=512,k=640,align=16;4;8",
                       "m=333,n=555,k=777,align=2;2;2", "m=77,n=99,k=111,batch=3x2", "m=77,n=99,k=111,batch=3,sa=0;111;1",
                       "m=100,n=300,k=64,sa=67;1,sb=303;1,sc=301;1", "m=333,n=555,k=777,sc=1;335,beta=0.5",
                       "m=333,n=555,k=777,bias=1,act=relu", "m=333,n=555,k=777,bias=1,act=gelu",
                       "m=333,n=555,k=777,out=f32", "m=333,n=555,k=777,out=f32,act=silu", "m=3,n=5,k=7", "m=1,n=4099,k=129",
                       "m=1025,n=2051,k=65"):
            yield f"matmul:{dtype}:{fields}"
    for dtype in ("c64", "c128"):  # a bias that follows complex sums, in whole lines and others
        for fields in ("m=127,n=65,k=33", "m=300,n=520,k=64,alpha=2,beta=0.5", "m=64,n=48,k=32,batch=7,sbias=48;0;1",
                       "m=127,n=65,k=33,sbias=1;0", "m=48,n=1100,k=64,sc=1;48,sbias=1;48"):
            yield f"matmul:{dtype}:{fields},bias=1"
    for more in ("", ",scale_a=tensor,scale_b=tensor", ",scale_a=rows,scale_b=columns"):
        yield f"matmul:f8_e4m3fn:m=128,n=64,k=256,tb=1,out=bf16,bias=1,act=gelu{more}"
    yield "matmul:bf16:m=127,n=65,k=33,out=f32"
    for dtype in FLOATS:
        yield f"matmul:{dtype}:m=127,n=65,k=33,grouped=1"
        yield f"matmul:{dtype}:m=64,n=48,k=32,ta=1,alpha=2,beta=0.5,grouped=1"
        yield f"matmul:{dtype}:m=100,n=65,k=33,act=gelu"
        yield f"matmul:{dtype}:m=100,n=65,k=33,bias=1,act=silu,beta=0.5"
        yield f"matmul:{dtype}:m=20,n=30,k=40,sa=200;3,sb=1;77,sc=1;25"
        yield f"matmul:{dtype}:m=33,n=40,k=70,batch=3x500"
        yield f"matmul:{dtype}:m=5,n=6,k=0,beta=2"
    yield "matmul:f32:m=64,n=64,k=64,acc=f64"
    for empty in ("f8_e4m3fn:m=0,n=16,k=32,tb=1,out=bf16,bias=1", "c64:m=0,n=16,k=32",
                  "c64:m=0,n=16,k=32,bias=1", "bf16:m=16,n=0,k=32,batch=3"):
        yield f"matmul:{empty}"
    yield "matmul:f32:m=50,n=60,k=70,batch=2x3,sa=0;3500;70;1,sb=4200;0;1;70"
    yield "matmul:i8:m=127,n=64,k=36,tb=1"
    yield "matmul:i8:m=127,n=65,k=33"
    yield "matmul:i8:m=64,n=48,k=32,batch=7,ta=1"
    yield "matmul:f16:m=127,n=64,k=33,acc=f16"
    for more in ("", ",b=f8_e5m2", ",out=bf16,bias=1", ",scale_a=tensor,scale_b=tensor,out=bf16",
                 ",scale_a=rows,scale_b=columns,out=bf16"):
        yield f"matmul:f8_e4m3fn:m=128,n=64,k=256,tb=1{more}"


def attentions():
    """What cuDNN's rows take: lengths awkward and not, every bound and mask, few queries, pages,
    packed sequences, gradients."""
    for dtype in ("bf16", "f16"):
        for fields in ("b=2,h=4,l=512,d=64,lse=1", "b=2,h=4,lq=100,lk=77,d=128,lse=1", "b=1,h=8,hk=2,l=257,d=128,lse=1",
                       "b=2,h=4,l=256,d=64,layout=blhd,mask=causal,lse=1", "b=1,h=4,l=300,d=256,mask=causal",
                       "b=1,h=4,l=130,d=40,dv=72", "b=2,h=4,lq=128,lk=300,d=64,mask=causal-br,lse=1",
                       "b=2,h=4,l=300,d=64,mask=window:40;20", "b=2,h=4,l=300,d=64,mask=window:40;0",
                       "b=2,h=4,lq=33,lk=70,d=64,mask=window-tl:-1;7,shift=5",
                       "b=2,h=4,lq=64,lk=512,d=64,mask=window:128;0", "b=2,h=4,l=300,d=64,mask=window:40;-1", "b=2,h=4,l=256,d=64,mask=additive",
                       "b=2,h=4,l=256,d=64,mask=causal;additive", "b=2,h=4,l=256,d=64,mask=additive,mdtype=f32",
                       "b=2,h=4,l=256,d=64,sink=f32,lse=1", "b=2,h=4,l=256,d=64,softcap=5",
                       "b=5,h=4,l=256,d=64,used=1,lse=1",
                       "b=5,h=4,lq=64,lk=256,d=64,used=1,mask=causal-br,lse=1",
                       "b=2,h=32,hk=8,lq=1,lk=4096,d=128,lse=1",
                       "b=5,h=32,hk=8,lq=1,lk=4096,d=128,used=1", "b=1,h=4,lq=1,lk=300,d=64,mask=causal-br",
                       "b=2,h=8,hk=2,lq=1,lk=1000,d=128,lse=1", "b=2,h=8,hk=2,lq=1,lk=1001,d=128,lse=1",
                       "b=2,h=8,hk=2,lq=1,lk=1040,d=128,lse=1", "b=2,h=8,hk=2,lq=1,lk=777,d=128,layout=blhd,lse=1",
                       "b=2,h=8,hk=2,lq=1,lk=33,d=128,lse=1", "b=2,h=8,hk=2,lq=4,lk=512,d=128,mask=causal-br,lse=1",
                       "b=2,h=8,hk=2,lq=4,lk=519,d=128,mask=causal-br,lse=1",
                       "b=3,h=8,hk=2,lq=1,lk=640,d=128,page=16,pool=200",
                       "b=3,h=4,lq=1,lk=512,d=64,page=64,pool=30,lse=1",
                       "b=3,h=8,hk=2,lq=64,lk=512,d=128,page=32,pool=60,mask=causal-br,lse=1",
                       "h=8,hk=2,varlen=100;513;1,d=128,layout=blhd,lse=1",
                       "h=4,varlen=100;213;1,d=64,mask=causal,lse=1",
                       "h=4,varlen=10;13;1,varlenk=64;100;77,d=64,layout=blhd,mask=causal-br,lse=1",
                       "h=4,varlen=100;64;33,varlenk=100;0;33,d=64,lse=1", "h=4,varlen=100;64;33,varlenk=64;0;33,d=64,sink=f32,lse=1",
                       "b=2,h=4,lq=33,lk=70,d=64,mask=window-tl:-1;7,shift=-20,lse=1",
                       "h=4,varlen=130;40,d=64,dv=128,layout=blhd,softcap=5",
                       "b=2,h=4,lq=100,lk=77,d=64,mask=bool,lse=1",
                       "b=2,h=4,l=256,d=64,mask=causal;bool,lse=1", "b=3,h=4,lq=64,lk=256,d=64,mask=padding"):
            yield f"attention:{dtype}:{fields}"
        # Few weights: what the reference keeps of each is found out for every number of out.
        for fields in ("b=2,h=2,l=128,d=64,lse=1", "b=1,h=2,lq=100,lk=77,d=128,lse=1",
                       "b=1,h=4,hk=2,l=129,d=64,mask=causal", "b=1,h=2,l=150,d=64,mask=window-tl:40;20",
                       "b=1,h=2,l=128,d=64,mask=additive,lse=1", "b=1,h=2,l=128,d=64,mask=causal;bool,lse=1",
                       "b=5,h=2,l=128,d=64,used=1,lse=1", "h=2,varlen=100;64;33,varlenk=100;0;33,d=64,lse=1",
                       "b=1,h=2,l=150,d=64,mask=window-tl:-1;7,shift=-20,lse=1"):
            yield f"attention:{dtype}:{fields},dropout=0.3,seed=77,offset=5"
        for fields in ("b=2,h=4,l=256,d=64", "b=1,h=8,hk=2,l=256,d=128,mask=causal",
                       "b=1,h=4,lq=128,lk=256,d=64,mask=causal-br",
                       "b=1,h=4,lq=100,lk=77,d=64,layout=blhd", "b=1,h=4,l=256,d=64,mask=additive",
                       "b=1,h=4,l=256,d=64,mask=window:64;0", "b=1,h=4,l=256,d=256",
                       "b=1,h=4,l=256,d=64,mask=causal;bool", "b=3,h=4,lq=128,lk=256,d=64,mask=bool"):
            yield f"attention-backward:{dtype}:{fields}"


def own_attentions():
    """What our own kernels take besides: every dtype, odd sizes, any strides, dropout; few rows in one part of the
    keys and in several, many rows."""
    for dtype in FLOATS:
        for fields in ("b=2,h=3,l=65,d=64,lse=1", "b=1,h=2,lq=17,lk=33,d=41", "b=1,h=1,l=1,d=1",
                       "b=1,h=2,lq=9,lk=0,d=24,lse=1", "b=4,h=16,l=257,d=64,lse=1", "b=8,h=8,l=200,d=128,mask=causal",
                       "b=2,h=32,hk=8,lq=1,lk=4096,d=128,lse=1", "b=1,h=8,hk=2,lq=3,lk=1031,d=72,mask=causal-br,lse=1",
                       "b=3,h=16,lq=70,lk=130,d=40,dv=100,mask=causal-br,layout=blhd,lse=1",
                       "b=3,h=16,l=100,d=36,mask=window:30;10,lse=1", "b=3,h=16,l=100,d=36,mask=bool,lse=1",
                       "b=2,h=2,l=100,d=36,mask=causal;bool,lse=1", "b=3,h=16,l=100,d=36,mask=causal;additive",
                       "b=3,h=16,l=100,d=64,sink=1,softcap=5,lse=1", "b=2,h=2,l=100,d=64,sink=1,softcap=5,lse=1",
                       "b=3,h=16,l=100,d=64,dropout=0.25,seed=7,offset=3,lse=1",
                       "b=5,h=2,l=96,d=64,used=1,dropout=0.3,seed=77,offset=5,lse=1",
                       "b=1,h=4,lq=2,lk=1500,d=64,dropout=0.5,seed=9,lse=1", "b=1,h=2,l=9,d=24,sq=864;432;48;2",
                       "h=16,varlen=133;0;1;70,d=64,mask=causal-br,lse=1", "h=4,varlen=33;0;1;20,d=64,lse=1",
                       "b=5,h=16,lq=64,lk=256,d=64,used=1,mask=causal-br,lse=1",
                       "b=3,h=8,hk=2,lq=1,lk=1640,d=128,page=16,pool=400,lse=1",
                       "b=3,h=32,hk=16,lq=40,lk=500,d=64,page=32,pool=60,mask=causal-br,lse=1",
                       "b=1,h=4,l=130,d=256", "b=6,h=16,l=130,d=200,mask=causal"):
            yield f"attention:{dtype}:{fields}"
    yield "attention:f32:b=1,h=2,lq=5,lk=300,d=512"
    yield "attention:bf16:b=6,h=16,l=100,d=512,lse=1"
    yield "attention:bf16:b=3,h=16,l=100,d=64,mask=additive,mdtype=f32,out=f32"


def hopper_attentions():
    """What the kernel for Hopper computes: each size of head that its tiles are cut for and some between, every bound and
    mask, several tiles of keys and of queries, rows without keys, and layouts."""
    for dtype in ("bf16", "f16"):
        for fields in (*(f"b=2,h=3,l=333,d={size},lse=1" for size in (8, 40, 64, 72, 96, 128, 160, 192, 256)),
                       *(f"b=1,h=4,lq=300,lk=517,d={size},mask=causal-br,lse=1" for size in (64, 96, 128, 200, 256)),
                       "b=2,h=12,l=1500,d=128,lse=1", "b=3,h=5,l=1111,d=64,mask=causal,lse=1",
                       "b=1,h=8,hk=2,l=700,d=128,mask=causal,lse=1", "b=1,h=2,lq=500,lk=130,d=64,mask=causal-br,lse=1",
                       "b=1,h=2,lq=1,lk=1000,d=128,lse=1", "b=1,h=4,l=1000,d=192,dv=128,mask=causal,lse=1",
                       "b=2,h=3,lq=257,lk=600,d=64,dv=136,layout=blhd,lse=1", "b=2,h=4,l=800,d=128,mask=window:100;0,lse=1",
                       "b=2,h=4,l=800,d=64,mask=window:130;77", "b=1,h=2,lq=300,lk=700,d=64,mask=window-tl:-1;7,shift=5,lse=1",
                       "b=2,h=2,l=400,d=128,mask=bool,lse=1", "b=2,h=2,l=400,d=64,mask=causal;bool,lse=1",
                       "b=2,h=2,l=400,d=128,mask=additive,lse=1", "b=2,h=2,l=400,d=256,mask=additive,mdtype=f32",
                       "b=2,h=2,l=400,d=64,mask=causal;additive", "b=2,h=2,l=400,d=128,softcap=5,lse=1",
                       "b=2,h=2,l=400,d=64,sink=1,softcap=20,mask=causal,lse=1", "b=2,h=2,l=400,d=128,sink=1,lse=1",
                       "b=2,h=2,l=400,d=64,softcap=3000,lse=1",
                       "b=2,h=2,l=400,d=128,softcap=1e9,lse=1", "b=2,h=2,l=300,d=64,scale=-0.3,lse=1", "b=2,h=2,l=300,d=128,scale=0,mask=causal,lse=1",
                       "h=4,varlen=333;0;1;270,d=64,mask=causal-br,lse=1", "h=2,hk=1,varlen=130;700,d=128,lse=1",
                       "b=5,h=4,lq=264,lk=512,d=64,used=1,mask=causal-br,lse=1", "b=3,h=4,lq=200,lk=512,d=128,used=1,lse=1"):
            yield f"attention:{dtype}:{fields}"


def decode_attentions():
    """What the kernel for few rows computes: sizes of heads, one part of the keys and many, one tile of rows and two, few
    keys, every bound and mask, tables, pages and layouts."""
    for dtype in ("bf16", "f16"):
        for fields in (*(f"b=2,h=8,hk=2,lq=1,lk=1111,d={size},lse=1" for size in (8, 40, 64, 72, 96, 128, 160, 192, 256)),
                       *(f"b=1,h=20,hk=1,lq=1,lk=777,d={size},lse=1" for size in (16, 64, 80, 128, 256)),
                       "b=8,h=32,hk=8,lq=1,lk=8192,d=128,lse=1", "b=1,h=32,hk=8,lq=1,lk=32768,d=128,lse=1",
                       "b=1,h=1,lq=1,lk=1,d=64,lse=1", "b=1,h=2,lq=1,lk=15,d=128", "b=1,h=2,lq=1,lk=65,d=128,lse=1",
                       "b=40,h=16,lq=1,lk=300,d=64,lse=1", "b=1,h=8,hk=2,lq=5,lk=2000,d=128,mask=causal-br,lse=1",
                       "b=2,h=3,l=65,d=64,lse=1", "b=1,h=4,hk=2,l=200,d=128,mask=causal,lse=1",
                       "b=1,h=8,hk=1,lq=16,lk=1000,d=256,mask=causal-br,lse=1", "b=2,h=4,lq=3,lk=900,d=192,dv=128,lse=1",
                       "b=2,h=4,lq=3,lk=900,d=64,dv=136,layout=blhd,lse=1", "b=2,h=4,lq=7,lk=3000,d=128,mask=window:500;0,lse=1",
                       "b=1,h=2,lq=30,lk=70,d=64,mask=window-tl:-1;7,shift=5,lse=1", "b=2,h=4,lq=9,lk=1000,d=128,mask=bool,lse=1",
                       "b=3,h=4,lq=9,lk=1000,d=64,mask=padding,lse=1", "b=2,h=4,lq=9,lk=500,d=64,mask=causal;additive",
                       "b=2,h=2,lq=4,lk=600,d=128,mask=additive,mdtype=f32,lse=1", "b=2,h=4,hk=1,lq=2,lk=900,d=128,softcap=5,lse=1",
                       "b=2,h=4,hk=1,lq=2,lk=900,d=64,sink=1,softcap=20,lse=1", "b=2,h=4,hk=1,lq=1,lk=900,d=128,sink=1,lse=1",
                       "b=2,h=4,lq=1,lk=900,d=64,scale=-0.3,lse=1", "b=2,h=4,lq=2,lk=700,d=128,out=f32,lse=1",
                       "h=4,varlen=3;0;1;17,varlenk=300;5;1000;17,d=64,mask=causal-br,lse=1", "h=8,hk=2,varlen=1;1;1,varlenk=700;64;2100,d=128,lse=1",
                       "b=5,h=8,hk=2,lq=1,lk=4096,d=128,used=1,lse=1", "b=5,h=4,lq=3,lk=512,d=64,used=1,mask=causal-br,lse=1",
                       "b=3,h=8,hk=2,lq=1,lk=1640,d=128,page=16,pool=400,lse=1",
                       "b=2,h=16,hk=2,lq=2,lk=3000,d=256,page=64,pool=100,mask=causal-br,lse=1"):
            yield f"attention:{dtype}:{fields}"


def sparse_attentions():
    """What the kernels for listed blocks compute on every GPU: blocks that are smaller than a tile, as large, larger, and no whole number of
    tiles; lists and masks; valid keys; every bound; rows without keys; layouts."""
    for dtype in ("bf16", "f16"):
        for fields in (*(f"b=2,h=3,l=333,d={size},bq=64,entries=60,lse=1" for size in (8, 40, 64, 72, 96, 128, 160, 192, 256)),
                       *(f"b=1,h=2,lq=400,lk=517,d={size},bq=128,bk=96,mask=causal-br,lse=1" for size in (64, 96, 128, 200, 256)),
                       "b=1,h=4,l=1536,d=128,bq=384,entries=40,lse=1", "b=2,h=4,l=1000,d=128,bq=64,sizes=1,entries=300,lse=1",
                       "b=1,h=8,hk=2,l=700,d=128,bq=128,mask=causal,entries=200,lse=1", "b=1,h=2,lq=500,lk=130,d=64,bq=100,bk=33",
                       "b=1,h=2,l=300,d=64,bq=9,bk=5,entries=2000", "b=1,h=2,l=200,d=128,bq=16,bk=1,sizes=1,lse=1",
                       "b=1,h=4,l=800,d=64,bq=192,bk=64,mask=window:130;77,lse=1", "b=1,h=2,l=800,d=128,bq=128,bk=32,mask=window:100;0",
                       "b=1,h=4,l=600,d=192,dv=128,bq=128,bk=64,entries=60,lse=1", "b=2,h=3,lq=257,lk=600,d=64,dv=136,bq=64,layout=blhd,lse=1",
                       "b=1,h=2,l=300,d=128,bq=64,out=f32,entries=20,lse=1", "b=1,h=2,l=300,d=64,bq=64,scale=-0.3,lse=1",
                       "b=2,h=4,l=512,d=128,bq=64,entries=100,sstarts=0;0;1,lse=1", "b=3,h=2,l=512,d=64,bq=128,sizes=1,ssizes=0;1",
                       "b=1,h=2,l=400,d=64,bq=64,smask=0;0;7;1", "b=1,h=1,l=1,d=8,bq=1,lse=1",
                       "b=1,h=2,l=700,d=128,bq=1000000,bk=99999999999,lse=1", "b=1,h=2,l=300,d=64,bq=64,so=38400;19200;64;-1"):
            yield f"attention-sparse:{dtype}:{fields}"


def hopper_sparse_attentions():
    """What the kernel for listed blocks on Hopper computes: one, two and three groups of rows; blocks of keys that are a tile, several,
    no whole number of them, and less; ragged ends; lists and masks; valid keys; rows without keys; many tiles of rows for each
    multiprocessor; layouts."""
    for dtype in ("bf16", "f16"):
        for fields in (*(f"b=2,h=3,l=333,d={size},bq=64,entries=60,lse=1" for size in (8, 40, 64, 72, 96, 128, 160, 192, 256)),
                       *(f"b=1,h=2,lq=400,lk=517,d={size},bq=128,bk=96,lse=1" for size in (64, 96, 128, 200, 256)),
                       *(f"b=1,h=4,l={length},d={size},bq={block},entries={entries},lse=1" for size in (64, 128)
                         for block, length, entries in ((64, 1024, 400), (64, 1000, 300), (128, 2048, 600), (128, 2000, 500),
                                                        (192, 1536, 150), (192, 1500, 150), (384, 2304, 90), (384, 2222, 90))),
                       "b=2,h=12,l=4096,d=64,bq=64,entries=30000,lse=1", "b=2,h=12,l=3000,d=128,bq=128,lse=1",
                       "b=1,h=16,l=4096,d=128,bq=64,entries=9000", "b=1,h=4,l=1000,d=128,bq=64,bk=128,entries=100,lse=1",
                       "b=2,h=4,l=1000,d=128,bq=64,sizes=1,entries=300,lse=1", "b=2,h=4,l=1100,d=64,bq=384,sizes=1,lse=1",
                       "b=2,h=3,l=900,d=128,bq=128,sizes=1,lse=1", "b=1,h=8,hk=2,l=700,d=128,bq=128,entries=200,lse=1",
                       "b=1,h=2,lq=500,lk=130,d=64,bq=100,bk=33", "b=1,h=2,l=300,d=64,bq=9,bk=5,entries=2000",
                       "b=1,h=2,l=200,d=128,bq=16,bk=1,sizes=1,lse=1", "b=1,h=4,l=600,d=192,dv=128,bq=128,bk=64,entries=60,lse=1",
                       "b=2,h=3,lq=257,lk=600,d=64,dv=136,bq=64,layout=blhd,lse=1", "b=2,h=6,hk=3,l=777,d=128,bq=384,layout=blhd,lse=1",
                       "b=1,h=2,l=300,d=64,bq=64,scale=-0.3,lse=1", "b=1,h=2,l=300,d=128,bq=128,scale=-0.3,sizes=1,lse=1",
                       "b=2,h=4,l=512,d=128,bq=64,entries=100,sstarts=0;0;1,lse=1", "b=3,h=2,l=512,d=64,bq=128,sizes=1,ssizes=0;1",
                       "b=1,h=2,l=400,d=64,bq=64,smask=0;0;7;1", "b=1,h=2,l=640,d=128,bq=128,entries=3,lse=1",
                       "b=1,h=1,l=1,d=8,bq=1,lse=1", "b=1,h=2,l=700,d=128,bq=1000000,bk=99999999999,lse=1"):
            yield f"attention-sparse:{dtype}:{fields}"


def own_sparse_attentions():
    """What only the kernel without tensor cores computes: the other dtypes, odd sizes, any strides."""
    for dtype in FLOATS:
        for fields in ("b=2,h=3,l=165,d=41,bq=64,entries=30,lse=1", "b=1,h=2,lq=170,lk=333,d=36,bq=100,bk=33,mask=causal-br,lse=1",
                       "b=2,h=4,hk=2,l=200,d=25,bq=16,bk=10,sizes=1,entries=500,mask=causal", "b=1,h=2,l=9,d=24,bq=4,sq=864;432;48;2",
                       "b=1,h=2,l=300,d=16,bq=1,bk=1,mask=window:30;10,sk=9600;4800;16;-1,lse=1", "b=1,h=2,l=130,d=250,bq=48,bk=24",
                       "b=1,h=2,lq=9,lk=0,d=8,bq=4,lse=1"):
            yield f"attention-sparse:{dtype}:{fields}"
    yield "attention-sparse:f32:h=2,l=300,d=512,bq=64,entries=20,lse=1"


def own_gradients():
    """Those of our own, of every dtype, with all that they have."""
    for dtype in FLOATS:
        for fields in ("b=2,h=4,l=257,d=64", "b=1,h=8,hk=2,l=200,d=128,mask=causal", "b=1,h=2,lq=17,lk=33,d=41",
                       "b=1,h=2,lq=9,lk=0,d=24", "b=1,h=2,lq=0,lk=9,d=24", "b=1,h=1,l=1,d=1",
                       "b=1,h=4,lq=70,lk=130,d=40,dv=100,mask=causal-br,layout=blhd", "b=1,h=2,lq=80,lk=30,d=24,mask=causal-br",
                       "b=2,h=4,hk=2,l=100,d=36,mask=window:30;10", "b=2,h=4,hk=2,l=100,d=36,mask=padding",
                       "b=2,h=2,l=100,d=36,mask=causal;bool", "b=2,h=2,l=100,d=36,mask=additive",
                       "b=2,h=2,l=100,d=64,softcap=5", "b=2,h=4,hk=2,l=100,d=64,dropout=0.25,seed=7,offset=3",
                       "b=1,h=2,l=130,d=64,dropout=0.5,seed=9,mask=causal", "b=1,h=2,l=9,d=24,sq=864;432;48;2",
                       "b=1,h=2,l=130,d=256"):
            yield f"attention-backward:{dtype}:{fields}"


def mma_gradients():
    """What the kernel for gradients on tensor cores computes: each size of head that it is cut for and some between, several
    blocks of keys and of queries, every bound and mask, rows without keys and keys without rows, and layouts."""
    for dtype in ("bf16", "f16"):
        for fields in (*(f"b=2,h=3,l=333,d={size}" for size in (8, 40, 64, 72, 96, 112, 128, 136, 256)),
                       *(f"b=1,h=4,lq=300,lk=217,d={size},mask=causal-br" for size in (24, 64, 80, 128, 192)),
                       "b=1,h=4,hk=2,l=300,d=192,dv=128,mask=causal", "b=1,h=2,l=200,d=256,mask=bool",
                       "b=1,h=8,hk=2,l=400,d=128,mask=causal", "b=1,h=6,hk=2,lq=70,lk=333,d=64,mask=causal",
                       "b=1,h=2,lq=17,lk=33,d=40", "b=1,h=1,l=1,d=8", "b=1,h=2,lq=500,lk=130,d=128,mask=causal-br",
                       "b=1,h=4,lq=70,lk=130,d=40,dv=104,mask=causal-br,layout=blhd", "b=2,h=3,lq=257,lk=300,d=128,dv=64,layout=blhd",
                       "b=2,h=4,hk=2,l=300,d=64,mask=window:30;10", "b=1,h=2,l=500,d=128,mask=window:100;0",
                       "b=2,h=2,lq=133,lk=270,d=64,mask=window-tl:-1;7,shift=5", "b=1,h=2,l=300,d=128,mask=window:40;-1",
                       "b=2,h=4,hk=2,l=100,d=40,mask=padding", "b=2,h=2,l=200,d=128,mask=causal;bool", "b=2,h=2,l=200,d=64,mask=bool",
                       "b=2,h=2,l=100,d=128,mask=additive", "b=1,h=2,l=150,d=64,mask=additive,mdtype=f32",
                       "b=2,h=2,l=200,d=64,softcap=5", "b=1,h=2,l=150,d=128,softcap=20,mask=causal", "b=1,h=2,l=150,d=64,scale=-0.3",
                       "b=2,h=4,hk=2,l=100,d=64,dropout=0.25,seed=7,offset=3", "b=1,h=2,l=130,d=128,dropout=0.5,seed=9,mask=causal"):
            yield f"attention-backward:{dtype}:{fields}"


def hopper_gradients():
    """What the kernels for gradients on Hopper compute: both sizes of heads, several blocks and tiles of queries and of keys, the
    last ones not whole, bounds on both sides, rows without keys and keys without rows, groups, and layouts."""
    for dtype in ("bf16", "f16"):
        for fields in (*(f"b=2,h=3,l={length},d={size}" for length in (1, 17, 64, 127, 333, 1000) for size in (64, 128)),
                       *(f"b=1,h=4,l={length},d={size},mask=causal" for length in (64, 333, 1000) for size in (64, 128)),
                       *(f"b=1,h=4,lq=300,lk=517,d={size},mask={corner}" for corner in ("causal", "causal-br") for size in (64, 128)),
                       *(f"b=1,h=4,lq=500,lk=130,d={size},mask={corner}" for corner in ("causal", "causal-br") for size in (64, 128)),
                       "b=1,h=8,hk=2,l=400,d=128,mask=causal", "b=2,h=6,hk=2,lq=70,lk=333,d=64", "b=3,h=8,hk=1,l=260,d=128",
                       "b=1,h=2,lq=1,lk=1000,d=128", "b=1,h=2,lq=1000,lk=1,d=64", "b=2,h=3,lq=257,lk=300,d=128,dv=64",
                       "b=2,h=4,hk=2,lq=257,lk=600,d=64,dv=128,mask=causal,layout=blhd", "b=2,h=4,l=500,d=128,layout=blhd",
                       "b=2,h=4,hk=2,l=300,d=64,mask=window:30;10", "b=1,h=2,l=1000,d=128,mask=window:100;0",
                       "b=2,h=2,lq=133,lk=270,d=64,mask=window-tl:-1;7,shift=5", "b=1,h=2,l=700,d=128,mask=window:40;-1",
                       "b=1,h=2,l=600,d=64,mask=window:300;77", "b=1,h=2,l=300,d=64,scale=-0.3", "b=2,h=16,l=1024,d=128"):
            yield f"attention-backward:{dtype}:{fields}"


# Large enough that nothing is kept in a cache.
LARGE = (
    "permute:f32:shape=8192x8192,order=1;0", "cast:f32:shape=67108864,to=bf16",
    "fill:f32:shape=67108864,value=1", "unary:f32:kind=exp,shape=67108864",
    "binary:f32:kind=add,shape=67108864", "reduce:f32:kind=sum,shape=8192x8192,axes=1",
    "softmax:bf16:shape=16384x4096", "norm:bf16:kind=rms,shape=16384x4096,weight=1",
    "rotary:bf16:kind=halves,shape=4x32x4096x128",
)


# Of each kernel of attention one that no library takes.
SANITIZED = (
    "attention:f32:b=1,h=2,l=35,d=24,mask=causal,lse=1", "attention:f32:b=1,h=2,lq=2,lk=1100,d=24,dropout=0.5",
    "attention:f32:b=3,h=16,lq=70,lk=66,d=24,dropout=0.25,mask=bool",
    "attention-backward:f32:b=1,h=4,hk=2,lq=70,lk=66,d=24,dropout=0.25,mask=causal",
    "attention-backward:bf16:b=1,h=4,hk=2,lq=70,lk=166,d=64,mask=causal-br", "attention-backward:f16:b=1,h=2,l=140,d=128",
    "fill:f32:shape=1003x517,value=3", "reduce:f32:kind=sum,shape=3x300007,axes=1",
    "attention:bf16:b=1,h=3,l=300,d=64,mask=causal,lse=1", "attention:bf16:b=1,h=8,hk=1,lq=3,lk=1100,d=72,mask=causal-br,lse=1",
    "attention:f16:b=2,h=4,lq=1,lk=700,d=64,page=16,pool=100,lse=1",
    "attention-sparse:bf16:h=2,l=300,d=64,bq=128,bk=48,entries=15,mask=causal,lse=1",
    "attention-sparse:f16:h=2,l=300,d=128,bq=64,bk=10,sizes=1,entries=90", "attention-sparse:f32:h=2,l=150,d=24,bq=48,bk=7,sizes=1",
)


# Problems with the settings under which every kernel that these permit is checked.
PERMITTED = (
    ("matmul:f32:m=512,n=512,k=512",), ("matmul:f32:m=512,n=512,k=512", "cuda.matmul.fp32_precision=tf32"),
    ("matmul:bf16:m=64,n=64,k=65536",), ("matmul:f16:m=333,n=555,k=777", "cuda.matmul.allow_fp16_accumulation=true"),
    ("attention:bf16:b=2,h=6,lq=200,lk=333,d=72,mask=bool,lse=1", "cuda.allow_fp16_bf16_reduction_math_sdp=true"),
    ("attention:f16:b=2,h=6,l=300,d=128,scale=0.01", "cuda.allow_fp16_bf16_reduction_math_sdp=true"),
)


class FillArguments(ctypes.Structure):
    """tn_memory_fill_args."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("device", ctypes.c_void_p),
                ("to", ctypes.c_void_p), ("bytes", ctypes.c_uint64), ("pattern", ctypes.c_uint64),
                ("pattern_bytes", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("stream", ctypes.c_void_p)]

    def __init__(self, device, to, size, pattern, pattern_bytes, stream):
        super().__init__(ctypes.sizeof(FillArguments), device, to, size, pattern, pattern_bytes, 0,
                         stream)


SEED = os.environ.get("TN_TEST_SEED") or str(time.time_ns())


def some(problems):
    """A third of them, chosen by the seed; all in a full run."""
    listed = list(problems)
    if os.environ.get("TN_TEST_FULL") == "1":
        return listed
    chosen = set(random.Random(SEED).sample(range(len(listed)), -(-len(listed) // 3)))
    return [problem for n, problem in enumerate(listed) if n in chosen]


def awaiting():
    """The cases that were not recorded on a GPU yet."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "transcript.py")
    spec = importlib.util.spec_from_file_location("transcript", path)
    transcript = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(transcript)
    return transcript.read_transcript(script.read_text(transcript.TRANSCRIPT))[1]


def find_gpu():
    done = script.run(script.build.tenon, "devices", "--json", env=script.environment())
    found = [row for row in json.loads(done.stdout or '{"devices": []}')["devices"]
             if row["platform"] == "cuda"]
    return found[0] if found else None


def version_of(module):
    return f"{module.__name__} {module.__version__}" if module else None


def program(name):
    return os.path.join(script.build.folder, "tests", "cuda", f"test_cuda_{name}")


def kernel_rows():
    """Every kernel row of the module, with its library."""
    done = script.run(program("hardware_kernels"), "--rows", env=script.environment())
    return dict(line.split() for line in done.stdout.splitlines())


def not_run(rows, ran, available):
    """Rows that nothing ran though their library is there; and those whose library is not."""
    idle = [name for name in rows if name not in ran]
    return ([name for name in idle if rows[name] in available],
            [name for name in idle if rows[name] not in available])


def side_by_side(work, items):
    """The results, in order, of work that several processes of ours do side by side."""
    with concurrent.futures.ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        yield from pool.map(work, items)


class Gpu(script.Case):
    log = None
    summary = []
    ran = set()  # kernel rows that were right on some problem

    @classmethod
    def setUpClass(cls):
        cls.device = find_gpu()
        if cls.device:
            path = os.path.join(script.build.folder, "gpu-test.txt")
            cls.log = open(path, "a", encoding="utf-8")
            cls.write(f"\n=== {time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime())}")
            cls.write("device", json.dumps(cls.device))

    @classmethod
    def tearDownClass(cls):
        if cls.log:
            for line in ("summary", *cls.summary):
                cls.write(line)
                print(line)
            cls.log.close()

    @classmethod
    def write(cls, *words):
        print(*words, file=cls.log, flush=True)

    @classmethod
    def sum_up(cls, what, result):
        cls.summary.append(f"  {what:<14} {result}")

    def setUp(self):
        super().setUp()
        if not self.device:
            self.skipTest("no NVIDIA GPU is here that the driver shows")
        begun = time.monotonic()
        self.addCleanup(lambda: self.write(f"{self._testMethodName} took {time.monotonic() - begun:.1f} s"))

    def leave_out(self, what, why):
        self.sum_up(what, f"left out: {why}")
        self.skipTest(why)

    def command(self, *words):
        return script.run(script.build.tenon, *words, env=script.environment())

    def note(self, done):
        """The results of `tenon check`, written down."""
        for row in json.loads(done.stdout)["results"]:
            self.write(row["problem"], row["kernel"], row["ok"], row["error"], row["message"])
            if row["ok"] is True:
                self.ran.add(row["kernel"])
            yield row

    def check(self, names, at_once, *kernels):
        """The rows of `tenon check` on these kernels, or on all, by several processes: most of the time the reference
        computes, or a library compiles."""
        which = [("--kernel", kernel) for kernel in kernels] or [("--all-kernels",)]
        lots = [(*names[first:first + at_once], *words) for words in which for first in range(0, len(names), at_once)]
        for done in side_by_side(lambda lot: self.command("check", *lot, "--json"), lots):
            yield from self.note(done)

    def check_permitted(self, permitted):
        """Nothing is wrong with any kernel that the settings permit."""
        problem, *settings = permitted
        words = [word for setting in settings for word in ("--set", setting)]
        done = self.command(*words, "check", f"{problem}@cuda:0", "--all-kernels", "--json")
        rows = list(self.note(done))
        self.assertEqual(done.returncode, 0, f"{settings} {rows}")

    def test_1_machine(self):
        self.write(self.command("version").stdout)
        self.sum_up("seed", f"TN_TEST_SEED={SEED} chooses the same third of the problems")
        driver = script.run("nvidia-smi", "--query-gpu=name,driver_version,vbios_version",
                            "--format=csv,noheader").stdout.strip() \
            if shutil.which("nvidia-smi") else "nvidia-smi is not here"
        self.sum_up("machine", " ".join(os.uname()))
        self.sum_up("device", driver or self.device["name"])
        self.sum_up("tenon", self.command("version").stdout.split("\n")[0])
        self.sum_up("beside", ", ".join(filter(None, map(version_of, (torch, cupy)))) or "nothing")
        libraries = json.loads(self.command("libraries", "--try", "--json").stdout)["libraries"]
        here = [f'{row["name"]} {row["version_text"]}' for row in libraries
                if row["platform"] == "cuda" and row["available"] == "yes" and row["version_text"]]
        self.sum_up("libraries", ", ".join(here))
        self.write(self.command("libraries", "--try").stdout)
        if shutil.which("nvidia-smi"):
            self.write(script.run("nvidia-smi", "-q", "-i", "0").stdout[:4000])

    def test_2_conformance(self):
        done = self.command("conformance", "--platform", "cuda", "--out", self.place("result.txt"))
        self.write(done.stdout)
        self.sum_up("conformance", done.stdout.strip().split("\n")[-1])
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)

    def test_3_every_row_against_the_reference(self):
        names = [f"{problem}@cuda:0" for problem in problems()]
        wrong, ran, served = [], 0, set()
        for row in self.check(names, 40):
            if row["ok"] is True:
                ran += 1
                served.add(row["problem"])
            else:
                wrong.append(f'{row["problem"]} {row["kernel"]}: {row["message"] or row["error"]}')
        self.sum_up("kernels", f"{ran} checks of {len(names)} problems are right, {len(wrong)} wrong")
        self.assertEqual(wrong, [])
        self.assertEqual(len(served), len(set(names)), "a problem that no row served")

    def test_3_attention_by_cudnn(self):
        """Right wherever it is taken, and what cuDNN declines is said in its words."""
        listed = json.loads(self.command("libraries", "--try", "--json").stdout)["libraries"]
        found = {row["name"]: row for row in listed}["cudnn"]
        self.write("cudnn", found["available"], found["version"], found["path"], found["reason"])
        if found["available"] != "yes":
            self.leave_out("attention", found["reason"])
        names, right, wrong, declined = [f"{p}@cuda:0" for p in some(attentions())], 0, [], []
        for row in self.check(names, 5):
            said = f'{row["problem"]} {row["kernel"]}: {row["message"] or row["error"]}'
            right += row["ok"] is True
            # By its version or what is known of it, or by cuDNN itself, in its words.
            known = any(word in said for word in (": version:", ": known-bad:", "cuDNN does not take it"))
            if row["ok"] is None and known:
                declined.append(said)
            elif row["ok"] is not True:
                wrong.append(said)
        self.sum_up("attention", f"{right} right, {len(declined)} declined by cuDNN {found['version']}, "
                    f"{len(wrong)} wrong")
        self.assertEqual(wrong, [])
        self.assertGreater(right, len(declined))

    def hold_own(self, problems, what, each, name=".own"):
        """So many rows of our own are right for each of them, and none refuses."""
        names, right, wrong = [f"{p}@cuda:0" for p in some(problems)], 0, []
        (op,) = {one.split(":")[0] for one in names}
        kernels = [row for row in kernel_rows() if f"{row}.".startswith(f"cuda.{op}{name}.")]
        for row in self.check(names, 4, *kernels):
            right += row["ok"] is True
            if row["ok"] is not True:
                wrong.append(f'{row["problem"]} {row["kernel"]}: {row["message"] or row["error"]}')
        self.sum_up(what, f"{right} right by our own kernels, {len(wrong)} wrong")
        self.assertEqual(wrong, [])
        self.assertEqual(right, each * len(names))

    def test_3_attention_by_our_own(self):
        """All that attention has, by both rows."""
        self.hold_own(own_attentions(), "attention", 2)

    def test_3_attention_by_two_products(self):
        """The same, as long as there are keys, by cuBLASLt and kernels of ours."""
        listed = json.loads(self.command("libraries", "--try", "--json").stdout)["libraries"]
        found = {row["name"]: row for row in listed}["cublaslt"]
        if found["available"] != "yes":
            self.leave_out("two products", found["reason"])
        self.hold_own([problem for problem in own_attentions() if "lk=0" not in problem], "two products", 1, ".math")

    def test_3_attention_on_hopper(self):
        """By the kernel that has Hopper's instructions."""
        if self.device["capability"] != "9.0":
            self.skipTest("the GPU's capability is not 9.0")
        self.hold_own(hopper_attentions(), "attention on Hopper", 1, ".hopper")

    def test_3_attention_on_hopper_with_nonfinite_values(self):
        """NaN and infinity in V, with several tiles of keys and some excluded keys."""
        if self.device["capability"] != "9.0":
            self.skipTest("the GPU's capability is not 9.0")
        problems = [f"attention:{dtype}:{fields}@cuda:0" for dtype in ("bf16", "f16") for fields in (
            "b=1,h=2,l=900,d=64,mask=causal,lse=1", "b=1,h=2,l=900,d=128,mask=causal-br", "b=1,h=2,l=900,d=256,mask=causal",
            "b=1,h=2,l=900,d=64,mask=window:130;77", "b=1,h=2,l=900,d=128,mask=bool,lse=1",
            "b=5,h=2,lq=300,lk=900,d=128,used=1", "h=2,varlen=333;0;700,d=64,mask=causal-br")]
        done = self.command("check", *problems, "--kernel", "cuda.attention.hopper", "--nonfinite", "--json")
        self.assertEqual([row["problem"] for row in self.note(done) if row["ok"] is not True], [])

    def test_3_attention_of_few_rows(self):
        """By the kernel for decoding."""
        if float(self.device["capability"]) < 8:
            self.skipTest("the GPU's capability is less than 8.0")
        self.hold_own(decode_attentions(), "decoding", 1, ".decode")

    def test_3_attention_of_few_rows_with_nonfinite_values(self):
        """NaN and infinity in V, under keys that only some rows of a block see."""
        if float(self.device["capability"]) < 8:
            self.skipTest("the GPU's capability is less than 8.0")
        problems = [f"attention:{dtype}:{fields}@cuda:0" for dtype in ("bf16", "f16") for fields in (
            "b=1,h=4,hk=1,lq=9,lk=900,d=128,mask=causal-br,lse=1", "b=1,h=2,lq=40,lk=300,d=64,mask=window:30;0,lse=1",
            "b=1,h=2,lq=16,lk=900,d=256,mask=causal-br", "b=2,h=2,lq=5,lk=600,d=72,mask=bool,lse=1",
            "b=5,h=8,hk=2,lq=1,lk=900,d=128,used=1", "h=2,varlen=33;0;7,varlenk=333;5;900,d=64,mask=causal-br")]
        done = self.command("check", *problems, "--kernel", "cuda.attention.decode", "--nonfinite", "--json")
        self.assertEqual([row["problem"] for row in self.note(done) if row["ok"] is not True], [])

    def test_3_gradients_by_our_own(self):
        self.hold_own(own_gradients(), "gradients", 1)

    def test_3_gradients_on_tensor_cores(self):
        if float(self.device["capability"]) < 8:
            self.skipTest("the GPU's capability is less than 8.0")
        self.hold_own(mma_gradients(), "gradients by mma", 1, ".mma")

    def test_3_gradients_on_tensor_cores_with_nonfinite_values(self):
        """NaN and infinity in all inputs, also where pairs of a query and a key do not count."""
        if float(self.device["capability"]) < 8:
            self.skipTest("the GPU's capability is less than 8.0")
        problems = [f"attention-backward:{dtype}:{fields}@cuda:0" for dtype in ("bf16", "f16") for fields in (
            "b=1,h=4,hk=2,lq=90,lk=200,d=128,mask=causal-br", "b=1,h=2,l=200,d=64,mask=window:30;10", "b=1,h=2,l=150,d=72,mask=bool",
            "b=1,h=2,lq=200,lk=90,d=128,mask=causal-br", "b=1,h=2,l=100,d=64,mask=causal,dropout=0.25,seed=7")]
        done = self.command("check", *problems, "--kernel", "cuda.attention-backward.mma", "--nonfinite", "--json")
        self.assertEqual([row["problem"] for row in self.note(done) if row["ok"] is not True], [])

    def test_3_gradients_on_hopper(self):
        if self.device["capability"] != "9.0":
            self.skipTest("the GPU's capability is not 9.0")
        self.hold_own(hopper_gradients(), "gradients on Hopper", 1, ".hopper")

    def test_3_gradients_on_hopper_with_nonfinite_values(self):
        """NaN and infinity in all inputs, in tiles with pairs that do not count and in others."""
        if self.device["capability"] != "9.0":
            self.skipTest("the GPU's capability is not 9.0")
        problems = [f"attention-backward:{dtype}:{fields}@cuda:0" for dtype in ("bf16", "f16") for fields in (
            "b=1,h=4,hk=2,lq=90,lk=200,d=128,mask=causal-br", "b=1,h=2,l=400,d=64,mask=window:30;10", "b=1,h=2,l=500,d=128,mask=causal",
            "b=1,h=2,lq=200,lk=90,d=128,mask=causal-br", "b=1,h=2,lq=300,lk=177,d=64")]
        done = self.command("check", *problems, "--kernel", "cuda.attention-backward.hopper", "--nonfinite", "--json")
        self.assertEqual([row["problem"] for row in self.note(done) if row["ok"] is not True], [])

    def test_3_attention_of_listed_blocks(self):
        """By each kernel: with tensor cores, with those of Hopper, and without."""
        self.hold_own((*sparse_attentions(), *own_sparse_attentions()), "listed blocks", 1)
        if float(self.device["capability"]) >= 8:
            self.hold_own(sparse_attentions(), "listed blocks by mma", 1, ".mma")
        if self.device["capability"] == "9.0":
            self.hold_own(hopper_sparse_attentions(), "listed blocks on Hopper", 1, ".hopper")

    def test_3_attention_of_listed_blocks_with_nonfinite_values(self):
        """NaN and infinity in K and V, in blocks that are not listed, behind valid keys, and at bounds by position."""
        problems = [f"attention-sparse:{dtype}:{fields}@cuda:0" for dtype in ("bf16", "f16") for fields in (
            "b=1,h=2,l=400,d=64,bq=128,bk=48,mask=causal,lse=1", "b=2,h=2,l=300,d=128,bq=64,sizes=1,entries=30,lse=1",
            "b=1,h=2,l=300,d=72,bq=32,bk=10,mask=window:30;0", "b=1,h=2,l=300,d=256,bq=128,bk=64,mask=causal")]
        for name in ("own", "mma") if float(self.device["capability"]) >= 8 else ("own",):
            done = self.command("check", *problems, "--kernel", f"cuda.attention-sparse.{name}", "--nonfinite", "--json")
            self.assertEqual([row["problem"] for row in self.note(done) if row["ok"] is not True], [])

    def test_3_attention_of_listed_blocks_on_hopper_with_nonfinite_values(self):
        """The same, with several tiles of keys after the first that has such a value."""
        if self.device["capability"] != "9.0":
            self.skipTest("the GPU's capability is not 9.0")
        problems = [f"attention-sparse:{dtype}:{fields}@cuda:0" for dtype in ("bf16", "f16") for fields in (
            "b=2,h=2,l=1000,d=128,bq=64,sizes=1,entries=300,lse=1", "b=1,h=2,l=900,d=64,bq=128,sizes=1,lse=1",
            "b=1,h=2,l=900,d=64,bq=192,bk=48,sizes=1,lse=1", "b=1,h=2,l=700,d=128,bq=128,bk=100,entries=50,lse=1",
            "b=1,h=2,l=1200,d=128,bq=384,sizes=1,lse=1", "b=1,h=2,l=600,d=256,bq=128,bk=80,sizes=1,entries=30")]
        done = self.command("check", *problems, "--kernel", "cuda.attention-sparse.hopper", "--nonfinite", "--json")
        self.assertEqual([row["problem"] for row in self.note(done) if row["ok"] is not True], [])

    def test_4_sanitizer(self):
        sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        if not os.path.exists(sanitizer):
            self.leave_out("sanitizer", "compute-sanitizer is not here")
        some = [f"{p}@cuda:0" for p in (*list(problems())[::17], *SANITIZED)]
        # Racecheck reports races within cuDNN's kernels.
        under = (("", [script.build.tenon, "--set", "cudnn.enabled=false", "check", *some, "--all-kernels"]),
                 (" of random numbers and dropout", [program("hardware_kernels")]))
        for tool in ("memcheck", "racecheck"):
            for what, command in under:
                done = script.run(sanitizer, "--tool", tool, "--error-exitcode", "99", *command,
                                  env=script.environment())
                said = done.stdout + done.stderr
                self.write(tool + what, done.returncode, said[-2000:])
                self.sum_up(tool, ("clean" if done.returncode == 0 else said.strip().split("\n")[-1]) + what)
                if "not supported" in said:
                    self.leave_out("sanitizer", "compute-sanitizer does not accept this device")
                self.assertEqual(done.returncode, 0, said[-2000:])

    def test_5_settings(self):
        """What is computed stays right, and what is refused is refused, whatever is set."""
        problem = "softmax:f32:shape=129x1000@cuda:0"
        for setting in ("determinism=run-to-run", "determinism=batch-invariant", "debug.sync=true",
                        "admission=always", "plan.cache_size=0"):
            done = self.command("--set", setting, "check", problem, "--json")
            self.write(setting, done.returncode, done.stdout[-300:])
            self.assertEqual(done.returncode, 0, f"{setting}: {done.stdout}{done.stderr}")
        done = self.command("--set", "rules=forbid:cuda.softmax.own", "explain", problem)
        self.write(done.stdout)
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.sum_up("settings", "5 kept right, 1 refused")

    def taken(self, problem, *settings):
        words = [word for setting in settings for word in ("--set", setting)]
        said = json.loads(self.command(*words, "explain", problem, "--json").stdout)
        self.write(problem, *settings, [(c["kernel"], c["verdict"]) for c in said["candidates"]])
        return said["chosen"]

    def taken_by(self, problem, *settings):
        """What is taken with settings, after what that gives was checked."""
        words = [word for setting in settings for word in ("--set", setting)]
        done = self.command(*words, "check", problem)
        self.assertEqual(done.returncode, 0, f"{settings}: {done.stdout}{done.stderr}")
        return self.taken(problem, *settings)

    def hold_settings(self, name, plain, wanted):
        """What is taken by itself, problem by problem, and what with a setting, each after what it gives was checked."""
        found = dict(zip(plain, side_by_side(self.taken_by, plain)))
        self.assertEqual(found, plain)
        taken = list(side_by_side(lambda one: self.taken_by(*one[:2]), wanted))
        self.assertEqual([(one[1], kernel) for one, kernel in zip(wanted, taken)], [one[1:] for one in wanted])
        changed = sum(kernel != plain[one[0]] for one, kernel in zip(wanted, taken))
        self.sum_up(name, f"{changed} settings seen to change what is taken, {len(wanted) - changed} to leave it")

    def test_5_settings_of_cudnn(self):
        """What takes its kernels away, and what chooses among its gradients."""
        row, back, own = "cuda.attention.cudnn", "cuda.attention-backward.cudnn", "cuda.attention.own"
        forward = "attention:bf16:b=8,h=16,l=512,d=64,mask=causal@cuda:0"
        backward = "attention-backward:bf16:b=2,h=16,l=1024,d=128@cuda:0"
        small = "attention:bf16:b=1,h=4,l=64,d=64@cuda:0"
        # 9.13 and 9.14 are refused more keys.
        single = "attention:bf16:b=16,h=32,hk=8,lq=1,lk=1024,d=128,used=1,lse=1@cuda:0"
        long = "attention:bf16:b=1,h=16,l=8192,d=128,mask=causal@cuda:0"
        on_hopper = self.device["capability"] == "9.0"
        few = "cuda.attention.decode" if float(self.device["capability"]) >= 8 else own
        flash = "cuda.attention.hopper" if on_hopper else few
        repeating = "cuda.attention-backward.hopper" if on_hopper else back + ".repeating"
        plain = {forward: row, backward: back, small: own, single: row + ".single", long: flash if on_hopper else row}
        self.hold_settings("cudnn", plain, (
            (forward, "cudnn.enabled=true", row), (forward, "cudnn.enabled=false", flash),
            (forward, "cuda.cudnn_sdp=false", flash), (forward, "cudnn.deterministic=true", row),
            (long, "cuda.flash_sdp=false", row), (long, "cuda.sdp_priority=mem_efficient", own),
            (forward, "attention.backend=FLASH_ATTN", row),
            *([(forward, "attention.backend=flash", flash)] if on_hopper else []),
            (forward, "determinism=batch-invariant", own + ".invariant"), (small, "attention.backend=cudnn", row),
            (backward, "cudnn.deterministic=false", back), (backward, "cudnn.deterministic=true", repeating),
            (backward, "determinism=run-to-run", repeating),
            (single, "determinism=run-to-run", few), (single, "cudnn.deterministic=true", few)))

    def test_5_settings_of_products(self):
        """Each changes which kernel is taken, or leaves it as it has to, and what that gives is right by the bounds of
        its own."""
        lt, f32 = "cuda.matmul.cublaslt", "matmul:f32:m=512,n=512,k=512@cuda:0"
        # Where computing, and not memory, takes the time.
        f16, bf16 = (f"matmul:{dtype}:m=2048,n=2048,k=2048@cuda:0" for dtype in ("f16", "bf16"))
        groups = "matmul:bf16:m=64,n=512,k=512,grouped=1@cuda:0"
        plain = {f32: lt, f16: lt + ".half-reduced", bf16: lt + ".half-reduced", groups: "cuda.matmul.cublas.grouped-half"}
        wanted = (
            (f32, "cuda.matmul.fp32_precision=tf32", lt + ".tf32"), (f32, "fp32_precision=tf32", lt + ".tf32"),
            (bf16, "cuda.matmul.allow_bf16_reduced_precision_reduction=false", lt + ".half"),
            (bf16, "cuda.matmul.allow_bf16_reduced_precision_reduction_split_k=false", lt + ".half-whole"),
            (f16, "cuda.matmul.allow_fp16_reduced_precision_reduction=false", lt + ".half"),
            (f16, "cuda.matmul.allow_fp16_reduced_precision_reduction_split_k=false", lt + ".half-whole"),
            (f16, "cuda.matmul.allow_fp16_accumulation=true", lt + ".f16-sums"),
            (f16, "cuda.preferred_blas_library=cublas", "cuda.matmul.cublas.half-reduced"),
            (f16, "matmul.library=cublas", "cuda.matmul.cublas.half-reduced"),
            (groups, "cuda.matmul.prefer_cublaslt_grouped_gemm=true", lt + ".half"),
            (f16, "cuda.cublaslt_workspace_size=1m", plain[f16]), (f16, "cuda.cublaslt_workspace_size=0", plain[f16]),
            (f16, "determinism=run-to-run", plain[f16]))
        list(side_by_side(self.check_permitted, PERMITTED))
        self.hold_settings("products", plain, wanted)

    def dlpack_both_ways(self, name, fill, total, from_dlpack, context):
        """What one side queues on a stream of its own the other sees, without anyone waiting on the host."""
        tenon = harness.Library(script.build.folder)
        elements, times = 1 << 26, 8
        raw = ctypes.c_void_p()
        create = tenon._fallible("tn_stream_create", [ctypes.c_void_p] * 3)
        choose = tenon._fallible("tn_stream_set", [ctypes.c_void_p])
        fill_ours = tenon._fallible("tn_memory_fill", [ctypes.c_void_p])
        tenon.native.tn_stream_raw.restype = ctypes.c_size_t
        device = tenon.device("cuda:0").handle
        create(device, None, ctypes.byref(raw))
        choose(raw)
        handle = tenon.native.tn_stream_raw(raw)
        ours = tenon.tensor("f32", (elements,), "cuda:0")
        for i in range(times):  # one, at the end
            fill_ours(ctypes.byref(FillArguments(device, ours.address, elements * 4,
                                                 0x3F800000 if i == times - 1 else i, 4, raw)))
        with context:
            self.assertEqual(total(from_dlpack(ours)), elements, f"{name} read too early")
            theirs = fill(elements, times)
            taken = tenon.from_capsule(theirs.__dlpack__(stream=handle))
        tenon.tn_copy(None, taken.struct, ours.struct)
        with context:
            self.assertEqual(total(from_dlpack(ours)), 3 * elements, f"{name} was read too early")
        self.write(f"dlpack with {name}: well")
        self.sum_up("dlpack", f"{name}: in the order of streams, both ways")

    def test_6_dlpack_torch(self):
        if torch is None or not torch.cuda.is_available():
            self.leave_out("dlpack", "PyTorch with CUDA is not here")
        side = torch.cuda.Stream()

        def fill(elements, times):
            made = torch.empty(elements, device="cuda")
            for i in range(times):
                made.fill_(3 if i == times - 1 else i)
            return made

        self.dlpack_both_ways("PyTorch", fill, lambda t: t.sum(dtype=torch.float64).item(),
                              torch.from_dlpack, torch.cuda.stream(side))

    def test_6_dlpack_cupy(self):
        if cupy is None:
            self.leave_out("dlpack", "CuPy is not here")
        side = cupy.cuda.Stream(non_blocking=True)

        def fill(elements, times):
            made = cupy.empty(elements, dtype="float32")
            for i in range(times):
                made.fill(3 if i == times - 1 else i)
            return made

        self.dlpack_both_ways("CuPy", fill, lambda a: float(a.sum(dtype="float64")),
                              cupy.from_dlpack, side)

    def test_7_speed(self):
        """Told, not judged. Beside each rate stands that of a plain copy within the device."""
        problems = [f"{problem}@cuda:0" for problem in ("permute:f32:shape=67108864", *LARGE)]
        done = self.command("bench", *problems, "--seconds", "0.1")
        self.write(done.stdout or done.stderr)

    def test_9_every_row_ran(self):
        """Of those whose library is here: right on one problem at least, in the tests above."""
        if not self.ran:
            self.skipTest("no row ran: the tests of kernels were not among those asked for")
        listed = json.loads(self.command("libraries", "--try", "--json").stdout)["libraries"]
        available = {"-"} | {row["name"] for row in listed if row["available"] == "yes"}
        rows = kernel_rows()
        missed, without = not_run(rows, self.ran, available)
        self.write("rows that ran:", *sorted(self.ran & set(rows)))
        self.write("rows without their library:", *without)
        self.sum_up("rows", f"{len(self.ran & set(rows))} of {len(rows)} ran, {len(missed)} were missed, "
                    f"{len(without)} have no library here")
        self.assertGreater(len(rows), 40)
        self.assertEqual(missed, [], "no test ran these rows")

    def test_8_no_case_awaits_its_recording(self):
        names = awaiting()
        self.sum_up("transcript", f"{len(names)} cases await recording" if names else "every case is recorded")
        self.assertEqual(names, [], "these have to be recorded here: "
                         "python3 tests/cuda/transcript.py BUILD --record, and commit what it writes")


if __name__ == "__main__":
    script.main()
