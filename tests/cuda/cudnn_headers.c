/* The module's own declarations of cuDNN against NVIDIA's header, where that is installed. */
#include "test.h"

#include "../../backends/cuda/lib/cudnn/dnn.h"
#include "cudnn_headers.h"

#if !defined(HAS_CUDNN_HEADER)
const header_number dnn_vendor_numbers[] = {{NULL, 0}};
#endif

static const header_number numbers[] = {
#define DNN_NUMBER_(ours, theirs, number) {#theirs, ours},
    DNN_NUMBER_LIST(DNN_NUMBER_)
#undef DNN_NUMBER_
        {NULL, 0}};

static void numbers_are_as_in_nvidias_header(void **state)
{
    (void)state;
    if (!dnn_vendor_numbers[0].name)
        skip_because("cudnn_graph.h is not here: cmake -DTENON_CUDNN_INCLUDE=FOLDER");
    for (int i = 0; numbers[i].name; i++) {
        assert_string_equal(numbers[i].name, dnn_vendor_numbers[i].name);
        if (numbers[i].value != dnn_vendor_numbers[i].value)
            fail_msg("%s: ours is %lld, NVIDIA's %lld", numbers[i].name, numbers[i].value,
                     dnn_vendor_numbers[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_as_in_nvidias_header)};
    return run_suite("cuda.cudnn_headers", tests);
}
