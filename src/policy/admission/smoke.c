#include "smoke.h"

#include "base/dtype.h"
#include "op/op_check.h"

static const char *const *problems_of(int32_t op)
{
    static const char *const none[] = {NULL};
    const tni_op_class *class = tni_op_class_of(op);
    return class ? class->check->smoke : none;
}

size_t tni_smoke_count(int32_t op)
{
    const char *const *problems = problems_of(op);
    size_t count = 0;
    while (problems[count])
        count++;
    return count;
}

/* A trailing '$' is replaced by the dtype. */
static bool write_text(const char *word, const char *dtype, const char *fields, char *out,
                       size_t size)
{
    const char *mark = strchr(fields, '$');
    size_t length = mark ? (size_t)(mark - fields) : strlen(fields);
    int needed =
        snprintf(out, size, "%s:%s:%.*s%s", word, dtype, (int)length, fields, mark ? dtype : "");
    return needed > 0 && (size_t)needed < size;
}

bool tni_smoke_make(int32_t op, size_t index, tn_dtype dtype, tn_op *out)
{
    const char *fields = problems_of(op)[index], *name = tn_dtype_name(dtype);
    bool loose = fields[0] == '!';
    char text[160], device[8];
    tn_op made;
    if (!name || !write_text(tni_op_class_of(op)->word, name, fields + loose, text, sizeof text) ||
        tni_problem_parse(text, &made, device, sizeof device, NULL))
        return false;
    for (int32_t i = 0; i < made.count && loose; i++) {
        int64_t bytes = tni_dtype_bytes(made.operand[i].dtype);
        if (made.operand[i].dtype && bytes < TN_OP_ALIGNMENT_MAX)
            made.operand[i].alignment = bytes;
    }
    *out = made;
    return true;
}
