#include "openmp.h"

#include "file.h"

bool tni_openmp_is_runtime(const char *path)
{
    static const char *const stems[] = {"libgomp", "libiomp5", "libomp5", "libomp"};
    const char *name = tni_path_name(path);
    for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++) {
        size_t length = strlen(stems[i]);
        if (strncmp(name, stems[i], length) == 0 && (name[length] == '.' || name[length] == '-'))
            return true;
    }
    return false;
}
