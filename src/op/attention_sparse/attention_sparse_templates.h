/* Templates of test problems (tn_check_aspect) that attention-sparse and its backward pass share. Small
 * problems come first: their failures are the easiest to analyse. */
#ifndef TNI_OP_ATTENTION_SPARSE_TEMPLATES_H
#define TNI_OP_ATTENTION_SPARSE_TEMPLATES_H

#define SPARSE_SMOKE                                                   \
    "b=2,h=3,l=65,d=64,bq=16", "b=1,h=2,l=192,d=128,bq=64,entries=13", \
        "!b=1,h=2,lq=17,lk=33,d=40,bq=5,bk=7", "b=1,h=1,l=1,d=1,bq=1", \
        "b=1,h=4,hk=2,l=100,d=32,bq=16,bk=32,mask=causal,entries=60",  \
        "b=1,h=2,lq=70,lk=90,d=24,dv=40,bq=64,mask=causal-br,layout=blhd"

#define SPARSE_SHAPES                                                                         \
    "b=1,h=1,l=1,d=1,bq=1", "b=2,h=3,l=65,d=64,bq=16", "b=1,h=2,lq=17,lk=33,d=40,bq=5,bk=7",  \
        "b=1,h=2,l=192,d=128,bq=64", "b=1,h=1,lq=?q<90>,lk=?k<200>,d=64,bq=?m<40>,bk=?n<70>", \
        "b=?b<3>,h=?h<3>,lq=?q<90>,lk=?k<90>,d=?d<40>,bq=?m<40>"

#define SPARSE_WINDOWS                                                                            \
    "b=1,h=2,l=64,d=128,bq=16,mask=causal", "b=1,h=2,lq=19,lk=67,d=32,bq=8,bk=16,mask=causal-br", \
        "b=2,h=2,l=70,d=16,bq=16,mask=window:9;3",                                                \
        "b=1,h=1,l=?q<90>,d=64,bq=?m<40>,bk=?n<40>,mask=causal"

#define SPARSE_MASKS                                                  \
    "b=2,h=2,l=35,d=24,bq=8", "b=2,h=2,l=35,d=24,bq=7,smask=0;0;5;1", \
        "b=1,h=2,lq=?q<90>,lk=?k<90>,d=64,bq=16,bk=32"

#define SPARSE_LISTS                                                                        \
    "b=2,h=2,l=35,d=24,bq=8,entries=50", "b=2,h=2,l=35,d=24,bq=7,entries=13,sstarts=0;0;1", \
        "b=1,h=2,lq=?q<90>,lk=?k<90>,d=64,bq=16,bk=32,entries=?e<20>"

#define SPARSE_SIZES                                                            \
    "b=2,h=2,l=35,d=24,bq=8,sizes=1",                                           \
        "b=2,h=1,lq=?q<90>,lk=?k<190>,d=64,bq=16,bk=64,sizes=1,entries=?e<20>", \
        "b=2,h=1,l=64,d=64,bq=32,sizes=1,ssizes=0;1"

#define SPARSE_OUTS "b=1,h=2,l=35,d=24,bq=8,out=f32", "b=1,h=2,l=?q<60>,d=64,bq=16,out=f32"

#define SPARSE_VALUE_SIZES "b=2,h=2,l=70,d=48,dv=72,bq=32", "b=1,h=2,l=?q<60>,d=64,dv=32,bq=16"

#define SPARSE_STRIDES                                                              \
    "b=2,h=2,l=33,d=48,bq=16,layout=blhd", "b=1,h=2,l=9,d=24,bq=4,sq=864;432;48;2", \
        "b=1,h=1,l=33,d=64,bq=16,sk=4224;4224;128;2", "b=1,h=2,l=9,d=24,bq=4,sv=432;216;24;-1"

#endif
