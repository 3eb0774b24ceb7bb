/* A program over the installed library: lists the modules. */
#include <tenon/tenon.h>

int main(void)
{
    tn_error err;
    tn_module_list *list;
    if (tn_module_list_create(&list, &err)) {
        fprintf(stderr, "%s: %s\n", err.where, err.message);
        return 1;
    }
    printf("tenon %s\n", tn_version());
    for (size_t i = 0; i < tn_module_list_count(list); i++) {
        const tn_module_report *report = tn_module_list_get(list, i);
        printf("%s %s\n", report->name, tn_module_stage_name(report->stage));
    }
    tn_module_list_release(list);
    return 0;
}
