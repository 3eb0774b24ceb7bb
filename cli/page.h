/* The findings of the doctor as one self-contained HTML page: no script, no file, no font. Readable
 * in print, on a phone, in light and dark mode. */
#ifndef TENON_CLI_PAGE_H
#define TENON_CLI_PAGE_H

#include "findings.h"

/* Writes the page. Check ferror(to) for errors. */
void page_write(const findings *found, FILE *to);

/* Writes the page to a temporary file beside `path` and renames it, so that a partial page is never
 * visible. TN_IO has the system's error text. */
tn_status page_save(const findings *found, const char *path, tn_error *err);

#endif
