#include "library.h"

/* Files are named only on systems where they can be looked for. */
#if defined(__linux__)
#define FILES(text) (text)
#else
#define FILES(text) NULL
#endif

#if defined(__APPLE__)
#define OF_APPLE NULL
#else
#define OF_APPLE "part of macOS"
#endif

#if defined(__aarch64__) || defined(_M_ARM64)
#define OF_ARM NULL
#else
#define OF_ARM "for Arm processors"
#endif

#define TOOLKIT "install NVIDIA's CUDA toolkit"

/* AMD's packages are for x86-64; distributions build ROCm for Arm, too, except AOTriton. */
#if defined(__x86_64__) || defined(_M_X64)
#define ROCM     "install AMD's ROCm"
#define AOTRITON "install AOTriton"
#else
#define ROCM     "install your distribution's build of ROCm: AMD's packages are for x86-64 only"
#define AOTRITON "build AOTriton from source: AMD's packages are for x86-64 only"
#endif

// clang-format off
const tni_library_known tni_libraries_known[] = {
    /* Parts of Tenon. */
    {"cpu", "cpu", "the processor", NULL, NULL, NULL, TNI_LIBRARY_PART},
    {"opt_einsum", "", "einsum's search for a cheap order: torch.backends has this name; not Python's package", NULL,
     NULL, NULL, TNI_LIBRARY_PART},

    /* Libraries that the module cpu has rows for. */
    {"blis", "cpu", "matrix products", NULL, NULL, NULL, 0},
    {"hwloc", "cpu", "the topology of the machine", NULL, NULL, NULL, 0},
    {"mkl", "cpu", "Intel's mathematics", NULL, NULL, NULL, TNI_LIBRARY_X86},
    {"mkldnn", "cpu", "neural-network operators, oneDNN", NULL, NULL, NULL, 0},
    {"openblas", "cpu", "matrix products and factorisations", NULL, NULL, NULL, 0},

    /* For the processor. */
    {"accelerate", "cpu", "Apple's matrix products and factorisations", NULL, NULL, OF_APPLE, 0},
    {"acl", "cpu", "Arm's neural-network operators, the Compute Library", FILES("libarm_compute.so"),
     "install Arm's Compute Library", OF_ARM, 0},
    {"fbgemm", "cpu", "int8 matrix products for servers", FILES("libfbgemm.so"), "install FBGEMM", NULL, 0},
    {"fftw", "cpu", "Fourier transforms", FILES("libfftw3f.so.3|libfftw3.so.3"),
     "install libfftw3-double3 and libfftw3-single3 (Debian), fftw-libs (Fedora) or fftw (Arch)", NULL, 0},
    {"kleidiai", "cpu", "Arm's matrix products", FILES("libkleidiai.so"), "install Arm's "
"KleidiAI", OF_ARM, 0},
    {"lapacke", "cpu", "factorisations", FILES("liblapacke.so.3"),
     "install liblapacke (Debian), lapack (Fedora) or lapacke (Arch)", NULL, 0},
    {"mpi", "cpu", "messages between processes", FILES("libmpi.so.40|libmpi.so.12"),
     "install libopenmpi40 or libopenmpi3 (Debian), openmpi (Fedora, Arch)", NULL, 0},
    {"nnpack", "cpu", "convolutions", FILES("libnnpack.so"), "install NNPACK", NULL, 0},
    {"openmp", "cpu", "threads of compiled code",
     FILES("libgomp.so.1|libomp.so.5|libomp.so|libiomp5.so"),
     "install libgomp1 (Debian) or libgomp (Fedora)", NULL, TNI_LIBRARY_OPENMP},
    {"qnnpack", "cpu", "int8 operators for phones", FILES("libpytorch_qnnpack.so|libqnnpack.so"),
     "install QNNPACK", NULL, 0},
    {"xnnpack", "cpu", "neural-network operators", FILES("libXNNPACK.so.0|libXNNPACK.so"),
     "install libxnnpack0 (Debian 12), or build XNNPACK as a shared library", NULL, 0},

    /* For NVIDIA's devices. */
    {"cublas", "cuda", "NVIDIA's matrix products", FILES("libcublas.so.13|libcublas.so.12|libcublas.so.11"),
     TOOLKIT, NULL, 0},
    {"cublaslt", "cuda", "NVIDIA's matrix products with epilogues",
     FILES("libcublasLt.so.13|libcublasLt.so.12|libcublasLt.so.11"), TOOLKIT, NULL, 0},
    {"cuda", "cuda", "NVIDIA's driver", FILES("libcuda.so.1"), "install NVIDIA's driver", NULL, 0},
    {"cudnn", "cuda", "NVIDIA's neural-network operators", FILES("libcudnn.so.9|libcudnn.so.8"),
     "install NVIDIA's cuDNN", NULL, 0},
    {"cufft", "cuda", "NVIDIA's Fourier transforms", FILES("libcufft.so.12|libcufft.so.11|libcufft.so.10"),
     TOOLKIT, NULL, 0},
    {"cusolver", "cuda", "NVIDIA's factorisations", FILES("libcusolver.so.12|libcusolver.so.11"),
     TOOLKIT, NULL, 0},
    {"cusparselt", "cuda", "NVIDIA's 2:4 sparse matrix products", FILES("libcusparseLt.so.0"),
     "install NVIDIA's cuSPARSELt", NULL, 0},
    {"magma", "cuda", "factorisations", FILES("libmagma.so.2|libmagma.so"), "install MAGMA", NULL, 0},
    {"nccl", "cuda", "NVIDIA's collectives", FILES("libnccl.so.2"), "install NVIDIA's NCCL", NULL, 0},
    {"nvml", "cuda", "status of NVIDIA's devices", FILES("libnvidia-ml.so.1"), "install NVIDIA's "
"driver",
     NULL, 0},
    {"nvrtc", "cuda", "NVIDIA's compiler at run time",
     FILES("libnvrtc.so.13|libnvrtc.so.12|libnvrtc.so.11.2"), TOOLKIT, NULL, 0},

    /* For AMD's devices. */
    {"aotriton", "rocm", "AMD's attention", FILES("libaotriton_v2.so"), AOTRITON, NULL, 0},
    {"ck", "rocm", "AMD's Composable Kernel, compiled into its users", NULL, NULL, NULL, 0},
    {"hipblaslt", "rocm", "AMD's matrix products with epilogues",
     FILES("libhipblaslt.so.1|libhipblaslt.so.0"), ROCM, NULL, 0},
    {"hipfft", "rocm", "AMD's Fourier transforms", FILES("libhipfft.so.0"), ROCM, NULL, 0},
    {"hipsolver", "rocm", "AMD's factorisations", FILES("libhipsolver.so.1|libhipsolver.so.0"), ROCM, NULL, 0},
    {"miopen", "rocm", "AMD's neural-network operators", FILES("libMIOpen.so.1"), ROCM, NULL, 0},
    {"rccl", "rocm", "AMD's collectives", FILES("librccl.so.1"), ROCM, NULL, 0},
    {"rocblas", "rocm", "AMD's matrix products", FILES("librocblas.so.5|librocblas.so.4"), ROCM, NULL, 0},

    /* For other devices. */
    {"libtpu", "tpu", "Google's driver of TPUs", FILES("libtpu.so"), "install libtpu", NULL, 0},
    {"mps", "mps", "Apple's Metal Performance Shaders", NULL, NULL, OF_APPLE, 0},
    {"opencl", "opencl", "the loader of OpenCL's drivers", FILES("libOpenCL.so.1"),
     "install ocl-icd-libopencl1 (Debian) or ocl-icd (Fedora, Arch)", NULL, 0},
    {NULL, NULL, NULL, NULL, NULL, NULL, 0},
};
// clang-format on

const char *tni_library_other_name(const char *name)
{
    static const char *const names[] = {"mkldnn", "onednn"};
    for (size_t i = 0; i < 2; i++) {
        if (strcmp(names[i], name) == 0)
            return names[1 - i];
    }
    return NULL;
}

bool tni_library_look(const char *files, tni_look *out, tn_library_state *to)
{
    const bool is_here = tni_look_loaded(files, out);
    size_t length = strlen(out->text);
    bool is_cut = strncmp(out->text, "...", 3) == 0 ||
                  (length >= 3 && strcmp(out->text + length - 3, "...") == 0);
    if (out->holds > 0 && !is_cut)
        tn_text_fit(to->path, sizeof to->path, out->text);
    return is_here;
}
