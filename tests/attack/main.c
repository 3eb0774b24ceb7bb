/* The program of a batch: see attack.h. */
#include "attack.h"

#include <stdarg.h>

static const struct {
    const char *name;
    void (*run)(attack *self);
} kinds[] = {
    {"numerics", attack_numerics}, {"arguments", attack_arguments}, {"bits", attack_bits},
    {"threads", attack_threads},   {"forks", attack_forks},         {"texts", attack_texts},
};

void attack_found(const attack *self, const char *format, ...)
{
    va_list arguments;
    printf("FOUND by attack %s %llu %s, try %lld: ", self->kind, (unsigned long long)self->seed,
           self->device, (long long)self->tried);
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    (void)fflush(NULL);
    _Exit(1); /* other threads are left as they are */
}

void attack_check_status(const attack *self, const char *what, tn_status status,
                         const tn_error *err)
{
    switch (status) {
    case TN_OK:
    case TN_INVALID_ARGUMENT:
    case TN_UNSUPPORTED:
    case TN_UNAVAILABLE:
    case TN_REFUSED: break;
    default: attack_found(self, "%s: %s: %s", what, tn_status_name(status), err->message);
    }
    if (status && (err->status != status || err->message[0] == '\0'))
        attack_found(self, "%s: %s without a message", what, tn_status_name(status));
}

int main(int count, char **arguments)
{
    if (count == 3 || count == 4)
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            if (strcmp(kinds[i].name, arguments[1]) == 0) {
                attack self = {.kind = kinds[i].name,
                               .device = count == 4 ? arguments[3] : "cpu:0",
                               .seed = strtoull(arguments[2], NULL, 10)};
                self.dice.state = self.seed;
                kinds[i].run(&self);
                if (self.tried > 0 && self.accepted == 0)
                    attack_found(&self, "nothing was accepted: the campaign tests nothing here");
                printf("%s %llu: %lld tried, %lld accepted\n", self.kind,
                       (unsigned long long)self.seed, (long long)self.tried,
                       (long long)self.accepted);
                return 0;
            }
    fprintf(stderr, "usage: attack KIND SEED [DEVICE]; kinds:");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        fprintf(stderr, " %s", kinds[i].name);
    fprintf(stderr, "\n");
    return 2;
}
