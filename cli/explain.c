/* `tenon explain`: every kernel that could compute a problem, which one is chosen, why the others
 * are not, and what --set would change. */
#include "explain.h"

#include "devices.h"
#include "document.h"
#include "mask_image.h"
#include "options.h"
#include "rules.h"
#include "text.h"
#include "video_problem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct explain_request {
    option_values problems;
    option_values files;
    option_values image; /* file for the picture of a mask */
    option_values head;  /* whose mask it is */
    bool as_json;
    bool full;
} explain_request;

enum { NAME_WIDTH = 8 }; /* a longer name of an operator is on a line of its own */

static const char who[] = " explain";

bool is_changed(const found_setting *row)
{
    return row->origin.from == row->number && strcmp(row->value, row->facts->standard) != 0;
}

const char *explained_class(const explained_world *world)
{
    const found_setting *row = &world->settings.rows[TN_SETTING_DETERMINISM];
    return tn_setting_resolved(NULL, TN_SETTING_DETERMINISM) == TN_DETERMINISM_ANY ? NULL
                                                                                   : row->effective;
}

bool is_offender(const tn_candidate *candidate)
{
    return candidate->why && candidate->why->code == TN_REFUSE_DETERMINISM;
}

/* Exit code for the outcome of a call. */
static int code_of_decision(const tn_decision *decision)
{
    return code_of_status(tn_decision_status(decision, NULL));
}

static void print_all(const explained_world *world, const explained *problems, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            putchar('\n');
        explained_print(world, &problems[i]);
    }
}

/* The first problem's keys are at the top level of the document; further problems are in a list. */
static void write_all(const command *self, const explained_world *world, const explained *problems,
                      size_t count)
{
    json to = {0};
    char lock[4096] = "";
    (void)tn_lock_used(lock, sizeof lock);
    json_begin_document(&to, self->name);
    json_text(&to, "version", tn_version());
    json_known_text(&to, "lock", lock);
    json_begin_list(&to, "settings");
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const found_setting *row = &world->settings.rows[i];
        if (!is_changed(row))
            continue;
        json_begin_object(&to, NULL);
        json_text(&to, "key", row->facts->key);
        json_text(&to, "value", row->value);
        json_text(&to, "default", row->facts->standard);
        json_text(&to, "origin", row->origin.text);
        json_end_object(&to);
    }
    json_end_list(&to);
    write_problems(&to);
    explained_write(&to, world, &problems[0]);
    json_begin_list(&to, "further");
    for (size_t i = 1; i < count; i++) {
        json_begin_object(&to, NULL);
        explained_write(&to, world, &problems[i]);
        json_end_object(&to);
    }
    json_end_list(&to);
    json_end_document(&to);
}

/* Decides without --set first, because --set applies to the whole process. */
static int decide(const option_values *wanted, explained *out)
{
    tn_error err;
    for (size_t i = 0; options_sets() > 0 && i < wanted->count; i++) {
        if (tn_explain(NULL, wanted->texts[i], &out[i].before, &err))
            return report_request(who, &err);
    }
    int code = options_apply();
    if (code == OPTIONS_RUN)
        rules_say_unknown();
    for (size_t i = 0; code == OPTIONS_RUN && i < wanted->count; i++) {
        if (tn_explain(NULL, wanted->texts[i], &out[i].now, &err))
            return report_request(who, &err);
    }
    return code;
}

static tn_status parse_head(const option_values *given, int64_t heads, int32_t *out, tn_error *err)
{
    const char *text = given->count ? given->texts[0] : "0";
    char *end = NULL;
    const long found = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
    if (found < 0 || *end || found >= heads)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "",
                       "--head: expected a head from 0 to %" PRId64 ", got \"%.40s\"", heads - 1,
                       text);
    *out = (int32_t)found;
    return TN_OK;
}

/* Writes the picture of the mask of attention for video. */
static tn_status save_window(const explain_request *request, const video_problem *of, tn_error *err)
{
    mask_image image = {0};
    int32_t head = 0;
    if (of->args.kind != TN_VIDEO_SLIDING_TILE)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "",
                       "--mask-image: expected kind=sliding-tile, got kind=sparse, whose tiles "
                       "depend on q and k");
    tn_status status = parse_head(&request->head, of->heads, &head, err);
    if (!status)
        status = mask_image_of_window(&of->args, of->text_tokens, head, &image, err);
    if (!status)
        status = mask_image_save(&image, request->image.texts[0], err);
    mask_image_release(&image);
    return status;
}

/* Writes a picture of a mask such as a problem of attention-sparse has. */
static tn_status save_sample(const explain_request *request, const tn_decision *decision,
                             tn_error *err)
{
    static const char needed[] = "attention-sparse:";
    const char *problem = tn_decision_problem(decision);
    const char *heads = strstr(problem, ",h=");
    mask_image image = {0};
    int32_t head = 0;
    if (strncmp(problem, needed, sizeof needed - 1) != 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "",
                       "--mask-image: expected a problem of attention-sparse or attention-video, "
                       "got \"%.80s\"",
                       problem);
    tn_status status =
        parse_head(&request->head, heads ? strtoll(heads + 3, NULL, 10) : 1, &head, err);
    if (!status)
        status = mask_image_of_problem(problem, head, &image, err);
    if (!status)
        status = mask_image_save(&image, request->image.texts[0], err);
    mask_image_release(&image);
    return status;
}

static void print_video(const video_problem *of)
{
    const tn_attention_video_part *part;
    printf("%s\n\n", text_clean(of->text));
    printf("tiles      %" PRId64 "\n", of->info.tiles);
    printf("blocks     %" PRId64 "\n", of->info.blocks);
    printf("slots      %" PRId64 "\n", of->info.slots);
    if (of->info.keep)
        printf("keep       %" PRId64 "\n", of->info.keep);
    printf("density    %.4g\n", of->info.density);
    printf("workspace  %" PRIu64 " bytes\n\n", of->info.workspace_bytes);
    for (size_t i = 0; (part = tn_attention_video_part_get(of->plan, i)); i++)
        printf("%-10s %s\n           %s\n", part->stage,
               part->kernel[0] ? part->kernel : "no kernel", part->problem);
}

static void write_video(const command *self, const video_problem *of)
{
    json to = {0};
    const tn_attention_video_part *part;
    json_begin_document(&to, self->name);
    json_text(&to, "version", tn_version());
    json_text(&to, "problem", of->text);
    json_integer(&to, "tiles", of->info.tiles);
    json_integer(&to, "blocks", of->info.blocks);
    json_integer(&to, "slots", of->info.slots);
    json_known_integer(&to, "keep", of->info.keep > 0, of->info.keep);
    json_exact_number(&to, "density", of->info.density);
    json_integer(&to, "workspace", (int64_t)of->info.workspace_bytes);
    json_begin_list(&to, "parts");
    for (size_t i = 0; (part = tn_attention_video_part_get(of->plan, i)); i++) {
        json_begin_object(&to, NULL);
        json_text(&to, "stage", part->stage);
        json_text(&to, "problem", part->problem);
        json_known_text(&to, "kernel", part->kernel);
        json_end_object(&to);
    }
    json_end_list(&to);
    json_end_document(&to);
}

/* Explains attention for video, which consists of calls of several operators. */
static int explain_video(const command *self, const explain_request *request)
{
    video_problem *of = NULL;
    tn_error err;
    int code = options_apply();
    if (code != OPTIONS_RUN)
        return code;
    rules_say_unknown();
    tn_status status = video_problem_create(request->problems.texts[0], &of, &err);
    if (!status && request->image.count)
        status = save_window(request, of, &err);
    code = status ? report_request(who, &err) : EXIT_DONE;
    if (!status && request->as_json)
        write_video(self, of);
    else if (!status)
        print_video(of);
    video_problem_release(of);
    return code;
}

static int report_problems(const command *self, const explain_request *request,
                           const explained *problems)
{
    explained_world world = {.full = request->full};
    size_t count = request->problems.count;
    int code = EXIT_DONE;
    tn_error err;
    tn_status status = findings_gather(FIND_PLATFORMS | FIND_MACHINE, &world.found, &err);
    if (!status)
        status = settings_gather(&world.settings, &err);
    if (status)
        code = report_error(&err);
    else if (request->as_json)
        write_all(self, &world, problems, count);
    else
        print_all(&world, problems, count);
    for (size_t i = 0; i < count && code == EXIT_DONE; i++)
        code = code_of_decision(problems[i].now);
    settings_release(&world.settings);
    findings_release(&world.found);
    return code;
}

/* A test compares the fields with docs/names.md and with those that the parser accepts. */
static void print_problem_help(void)
{
    printf("\nA problem is OP:DTYPE[:FIELD=VALUE,...][@DEVICE]; the default device is best. "
           "Fields:\n\n");
    for (int32_t op = 0; (op = tn_op_next(op)) != 0;) {
        const char *name = tn_op_name(op);
        if (text_columns(name) > NAME_WIDTH) {
            printf("  %s\n", name);
            text_wrapped(2, "", NAME_WIDTH + 1, tn_op_fields(op));
        } else {
            text_wrapped(2, name, NAME_WIDTH + 1, tn_op_fields(op));
        }
    }
    printf(
        "\nSizes are 64x1024, lists 1;0, switches 0 or 1; sa, si, scos and the like are strides.\n"
        "docs/names.md describes each field; an invalid value lists the valid ones.\n\n"
        "Attention for video, which consists of several operators, is\n"
        "attention-video:DTYPE:canvas=30x48x80,window=3x3x3,h=24,d=128; docs/attention-video.md\n"
        "describes its fields.\n");
}

int run_explain(const command *self, int count, char **arguments)
{
    explain_request request = {0};
    explained problems[OPTION_VALUES_MAX] = {{0}};
    const option_row rows[] = {
        {"PROBLEM", NULL, "the problem, such as matmul:f32:m=512,n=512,k=64@cpu:0", NULL,
         &request.problems, OPTION_VALUES_MAX},
        {"--device-file", "F", "also use the devices described in F; may be repeated", NULL,
         &request.files, OPTION_VALUES_MAX},
        {"--full", NULL, "also list the kernels that compute with other dtypes", &request.full,
         NULL, 0},
        {"--json", NULL, "print JSON", &request.as_json, NULL, 0},
        {"--mask-image", "FILE",
         "also draw which blocks of keys the blocks of queries of a head see, of attention-video or "
         "attention-sparse, to FILE.png or FILE.svg",
         NULL, &request.image, 1},
        {"--head", "N", "the head that --mask-image draws; 0 is the first and the default", NULL,
         &request.head, 1},
    };
    int code = options_parse(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code == EXIT_DONE)
        print_problem_help();
    if (code != OPTIONS_RUN || (code = options_need(self, &rows[0], 1)) != OPTIONS_RUN ||
        (code = add_device_files(&request.files)))
        return code;
    if (request.problems.count == 1 && video_problem_is(request.problems.texts[0]))
        return explain_video(self, &request);
    code = decide(&request.problems, problems);
    tn_error err;
    if (code == OPTIONS_RUN && request.image.count && save_sample(&request, problems[0].now, &err))
        code = report_request(who, &err);
    if (code == OPTIONS_RUN)
        code = report_problems(self, &request, problems);
    for (size_t i = 0; i < request.problems.count; i++) {
        tn_decision_release(problems[i].now);
        tn_decision_release(problems[i].before);
    }
    return code;
}
