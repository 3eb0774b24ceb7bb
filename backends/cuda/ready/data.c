/* The kernels that were compiled ahead: the file that ready/make.c wrote. */
__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".globl cuda_ready_data\n"
        ".hidden cuda_ready_data\n"
        "cuda_ready_data:\n"
        ".incbin \"" CUDA_READY_FILE "\"\n"
        ".balign 16\n"
        ".zero 96\n"
        ".popsection\n");

extern const unsigned char cuda_ready_data[];
