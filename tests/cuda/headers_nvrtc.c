/* The compiler's side of headers.c: our list with NVIDIA's types under our names. */
#include <nvrtc.h>

#include "../../backends/cuda/compile/nvrtc_list.h"
#include "headers.h"

#include <stddef.h>

typedef nvrtcResult nvrtc_result;
typedef nvrtcProgram nvrtc_program;

const header_number vendor_nvrtc_numbers[] = {
#define NVRTC_NUMBER_(name, value) {#name, name},
    NVRTC_NUMBER_LIST(NVRTC_NUMBER_)
#undef NVRTC_NUMBER_
        {"sizeof nvrtc_result", (long long)sizeof(nvrtc_result)},
    {NULL, 0}};

/* A function that is declared otherwise does not compile. */
#define NVRTC_CALL_(field, name, parameters)                                                    \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), nvrtc_result(*) parameters), \
                   #name " is declared otherwise");
NVRTC_CALL_LIST(NVRTC_CALL_)
#undef NVRTC_CALL_
