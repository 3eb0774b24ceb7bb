/* HTML, only ever written. Markup stands in the format alone: every text that comes in through one
 * is escaped, so that what strangers wrote stays text wherever it is put, also between quotes. */
#ifndef TENON_CLI_HTML_H
#define TENON_CLI_HTML_H

#include <tenon/tenon.h>

/* printf with %s (escaped; NULL is nothing), %d, %u, %lld, %zu, %f and %%, the numbers with a
 * precision if wanted: "<td title=\"%s\">%.1f</td>". */
void html_write(FILE *to, const char *format, ...) TN_PRINTF(2, 3);

#endif
