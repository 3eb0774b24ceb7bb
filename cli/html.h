/* HTML output. Markup may only be in the format string: every inserted text is escaped, so that
 * untrusted text stays text everywhere, also inside attribute quotes. */
#ifndef TENON_CLI_HTML_H
#define TENON_CLI_HTML_H

#include <tenon/tenon.h>

/* printf with %s (escaped; NULL prints nothing), %d, %u, %lld, %zu, %f and %%; numbers may have a
 * precision: "<td title=\"%s\">%.1f</td>". */
void html_write(FILE *to, const char *format, ...) TN_PRINTF(2, 3);

#endif
