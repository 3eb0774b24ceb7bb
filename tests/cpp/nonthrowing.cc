// tenon.hpp with -fno-exceptions, in one program with a file that has them. Prints what does not hold.
#include <tenon/tenon.hpp>

#include "check.hpp"

#include <vector>

#if defined(__cpp_exceptions)
#error "expected to be compiled without exceptions"
#endif

void check_without_exceptions()
{
    tn_error err;
    tn_device *cpu = tenon::device("cpu", err);
    CHECK(cpu && err.status == TN_OK);
    CHECK(!tenon::device("no-such-device", err) && err.status == TN_NOT_FOUND);

    tenon::tensor none(cpu, TN_F32, {-1}, err);
    CHECK(!none && err.status == TN_INVALID_ARGUMENT);
    std::vector<float> memory = {3, 1, 2};
    tenon::tensor x = tenon::tensor::wrap(memory, {3}, err);
    CHECK(tenon::unary(
              x, x, [](tn_unary_args &args) { args.kind = TN_UNARY_NEG; }, err) == TN_OK);
    CHECK(memory[0] == -3);
    CHECK(tenon::unary(x, none, err) == err.status && err.status != TN_OK);
    CHECK(x.values<double>(err).empty() && err.status == TN_INVALID_ARGUMENT);
    tenon::tensor longer = tenon::tensor::copy_of(cpu, memory, {4}, err);
    CHECK(!longer && err.status == TN_INVALID_ARGUMENT);

    tenon::scope refused({tn_with_tuning_limit(-1)}, err);
    CHECK(err.status == TN_INVALID_ARGUMENT && tn_get_tuning_limit(nullptr) == 10);
    tenon::scope entered({tn_with_tuning_limit(5)}, err);
    CHECK(err.status == TN_OK && tn_get_tuning_limit(nullptr) == 5);
    tenon::decision why = tenon::softmax.explain(x, x, err);
    CHECK(why && tn_decision_count(why) > 0);
}
