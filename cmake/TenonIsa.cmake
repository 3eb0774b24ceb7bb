function(tenon_isa_sources target)
endfunction()
