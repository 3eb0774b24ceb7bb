/* The findings of a doctor as one HTML page that needs nothing else: no script, no file, no font.
 * Reads well on paper, on a telephone, in light and in dark. */
#ifndef TENON_CLI_PAGE_H
#define TENON_CLI_PAGE_H

#include "findings.h"

/* Writes the page. What went wrong is in ferror(to). */
void page_write(const findings *found, FILE *to);

/* Writes the page to `path`: to a file beside it that then takes its place, so that nobody ever
 * sees half a page. TN_IO has the system's words. */
tn_status page_save(const findings *found, const char *path, tn_error *err);

#endif
