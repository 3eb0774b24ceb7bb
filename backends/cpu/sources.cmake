# The module `cpu`: built in, so its files are part of the library. src/CMakeLists.txt has its platform.
target_sources(tenon_core PRIVATE cpu/kernels.c cpu/fork_gate.c cpu/cpu_process.c cpu/room.c cpu/vendor_threads.c)
# Vendor libraries; cblas has what those with its interface share.
foreach(part blis/blis_library blis/blis_start cblas/cblas_cost cblas/cblas_finish cblas/cblas_matmul cblas/cblas_side
             cblas/cblas_tiles mkl/mkl_library onednn/onednn_cost onednn/onednn_library onednn/onednn_matmul
             onednn/onednn_primitive onednn/onednn_rows onednn/onednn_seat onednn/onednn_shim_2 onednn/onednn_shim_3
             openblas/openblas_core openblas/openblas_library)
  target_sources(tenon_core PRIVATE cpu/lib/${part}.c)
endforeach()
foreach(part blocking cost cost_low cpu in_place lowp_narrow lowp_thin packed product rows_low strips thin)
  target_sources(tenon_core PRIVATE cpu/matmul/matmul_${part}.c)
endforeach()
foreach(part backward_pass cpu cpu_problem forward_pass layout math rows_low rows_low_back rows_math share split)
  target_sources(tenon_core PRIVATE cpu/attention/attention_${part}.c)
endforeach()

set(isas plain avx2 avx512)
foreach(op attention_merge binary cast fill norm permute reduce rotary softmax unary)
  tenon_isa_template(tenon_core cpu/${op}/${op}_tmpl.c ISA ${isas})
endforeach()
foreach(op attention matmul)
  tenon_isa_template(tenon_core cpu/${op}/${op}_real_tmpl.c ISA ${isas} DTYPE f32 f64)
  tenon_isa_template(tenon_core cpu/${op}/${op}_half_tmpl.c ISA ${isas})
  tenon_isa_sources(tenon_core avx512_bf16 cpu/${op}/${op}_bf16_avx512_bf16.c)
  tenon_isa_sources(tenon_core amx cpu/${op}/${op}_bf16_amx.c)
endforeach()
tenon_isa_template(tenon_core cpu/matmul/matmul_i8_tmpl.c ISA ${isas} avx_vnni avx512_vnni arm_dotprod)
tenon_isa_sources(tenon_core amx cpu/matmul/matmul_i8_amx.c)
