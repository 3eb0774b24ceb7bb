/* Templates of test problems (tn_check_aspect) that attention and attention-backward share. */
#ifndef TNI_OP_ATTENTION_TEMPLATES_H
#define TNI_OP_ATTENTION_TEMPLATES_H

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

#endif
