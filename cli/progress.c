#include "progress.h"

#include "system.h"

#include <stdlib.h>
#include <string.h>

/* Whether stderr is a terminal that supports carriage return. */
static bool can_draw(void)
{
    const char *term = getenv("TERM");
    return system_is_terminal(stderr) && !(term && strcmp(term, "dumb") == 0);
}

void progress_show(void *to, size_t done, size_t count, const char *what)
{
    enum { WIDTH = 24, NAME = 40 };
    (void)to;
    if (!can_draw())
        return;
    fputs("\r\033[K", stderr);
    if (what) {
        int filled = count > 0 ? (int)(done * WIDTH / count) : WIDTH;
        fputc('[', stderr);
        for (int i = 0; i < WIDTH; i++)
            fputc(i < filled ? '#' : '.', stderr);
        fprintf(stderr, "] %zu of %zu  %.*s", done, count, NAME, what);
    }
    (void)fflush(stderr);
}
