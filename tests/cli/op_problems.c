/* op_problems: prints the fixed test problems of every operator, without those with random sizes, a line for each:
 * operator, aspect, fields. Suites in Python use them for operators that they know nothing about. */
#include "tenon/tenon.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    for (int32_t op = tn_op_next(0); op; op = tn_op_next(op)) {
        for (const tn_check_aspect *aspect = tn_check_aspects(op); aspect->word; aspect++) {
            for (const char *const *fields = aspect->templates; *fields; fields++) {
                if (!strpbrk(*fields, "$&~?"))
                    printf("%s %s %s\n", tn_op_name(op), aspect->word, *fields);
            }
        }
    }
    return 0;
}
