/* The files that `tenon new-module` writes: those of the folder new_module/, as the build embeds
 * them. */
#include "new_module.h"

#define EMBEDDED(symbol)                 \
    extern const unsigned char symbol[]; \
    extern const size_t symbol##_size

EMBEDDED(new_module_expected);
EMBEDDED(new_module_platform_source);
EMBEDDED(new_module_platform_makefile);
EMBEDDED(new_module_platform_cmake);
EMBEDDED(new_module_platform_readme);
EMBEDDED(new_module_platform_unsupported);
EMBEDDED(new_module_kernel_source);
EMBEDDED(new_module_kernel_makefile);
EMBEDDED(new_module_kernel_cmake);
EMBEDDED(new_module_kernel_readme);
EMBEDDED(new_module_library_source);
EMBEDDED(new_module_library_stand_in);
EMBEDDED(new_module_library_makefile);
EMBEDDED(new_module_library_cmake);
EMBEDDED(new_module_library_readme);

#define FILE_OF(path, symbol)        \
    {                                \
        path, symbol, &symbol##_size \
    }

/* The files that every kind has. */
#define COMMON(kind)                                          \
    FILE_OF("tenon-@NAME@.c", new_module_##kind##_source),    \
        FILE_OF("Makefile", new_module_##kind##_makefile),    \
        FILE_OF("CMakeLists.txt", new_module_##kind##_cmake), \
        FILE_OF("README.md", new_module_##kind##_readme),     \
        FILE_OF("conformance/expected.txt", new_module_expected)

static const new_module_file platform_files[] = {
    COMMON(platform),
    FILE_OF("conformance/unsupported.txt", new_module_platform_unsupported),
    {NULL, NULL, NULL},
};

static const new_module_file kernel_files[] = {COMMON(kernel), {NULL, NULL, NULL}};

static const new_module_file library_files[] = {
    COMMON(library),
    FILE_OF("stand-in/stand_in.c", new_module_library_stand_in),
    {NULL, NULL, NULL},
};

static const char *const folders[] = {"conformance", NULL};
static const char *const library_folders[] = {"conformance", "stand-in", NULL};

const new_module_kind new_module_kinds[] = {
    {"platform", folders, platform_files},
    {"kernel", folders, kernel_files},
    {"library", library_folders, library_files},
    {NULL, NULL, NULL},
};
