/* What is compared between our declarations and NVIDIA's headers: each side is a unit of its own. */
#ifndef TESTS_CUDA_HEADERS_H
#define TESTS_CUDA_HEADERS_H

typedef struct header_number {
    const char *name;
    long long value;
} header_number;

/* A type's size, and where our field is, which is `their` in the header; of our own side they are one. */
#define SIZE(type)                               \
    {                                            \
        "sizeof " #type, (long long)sizeof(type) \
    }
#define OFFSET(type, field, their)                         \
    {                                                      \
#type "." #field, (long long)offsetof(type, their) \
    }

/* Ended by a NULL name. Numbers of the lists; sizes and offsets. */
extern const header_number vendor_numbers[];
extern const header_number vendor_sizes[];
extern const header_number vendor_nvml_numbers[];
extern const header_number vendor_nvml_sizes[];
extern const header_number vendor_nvrtc_numbers[];

#endif
