#include "look_read.h"

/* Not implemented for this system; the result says so. */
void tni_look_pci(const char *root, const char *ids, tni_look *out)
{
    (void)root, (void)ids;
    tni_look_report(out, -1, 0, "the PCI bus is not read on this system yet");
}

void tni_look_library(const char *root, const char *files, const char *search, tni_look *out)
{
    (void)root, (void)files, (void)search;
    tni_look_report(out, -1, 0, "libraries are not searched for on this system yet");
}
