#include "loaded.h"

#include <link.h>
#include <stddef.h>

struct viewer {
    void (*see)(void *user, const char *path);
    void *user;
};

/* Skips the program itself, whose name is empty. */
static int show(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct viewer *viewer = data;
    (void)size;
    if (info->dlpi_name && info->dlpi_name[0])
        viewer->see(viewer->user, info->dlpi_name);
    return 0;
}

bool tni_loaded_each(void (*see)(void *user, const char *path), void *user)
{
    struct viewer viewer = {see, user};
    (void)dl_iterate_phdr(show, &viewer);
    return true;
}
