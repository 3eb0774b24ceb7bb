// A C++ caller of the settings: what a destructor leaves when an exception passes, and what a thrown
// exception finds. Ends with 0 when all of it holds; otherwise says which line does not.
#include "tenon/tenon.h"

#include <cstdio>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace
{

int wrong;

void check(bool holds, int line)
{
    if (holds)
        return;
    std::printf("line %d does not hold\n", line);
    wrong++;
}
#define CHECK(condition) check(condition, __LINE__)

class scope
{
  public:
    explicit scope(std::initializer_list<tn_change> changes)
    {
        tn_error err;
        if (tn_scope_enter(&inside_, changes.begin(), changes.size(), &err) != TN_OK)
            throw std::invalid_argument(err.message);
    }
    ~scope()
    {
        tn_scope_leave(&inside_);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

  private:
    tn_scope inside_{};
};

void throw_inside()
{
    scope outer{tn_with_tuning_limit(3), tn_with_matmul_library(TN_PREFER, "mkl")};
    scope inner{tn_with_inference(1)};
    CHECK(tn_get_tuning_limit(nullptr) == 3);
    CHECK(tn_get_inference(nullptr) == 1);
    throw std::runtime_error("out of both");
}

void an_exception_leaves_scopes()
{
    bool caught = false;
    try {
        throw_inside();
    } catch (const std::runtime_error &) {
        caught = true;
    }
    CHECK(caught);
    CHECK(tn_get_tuning_limit(nullptr) == 10);
    CHECK(tn_get_inference(nullptr) == 0);
}

// The constructor throws, so that no destructor runs: nothing was entered.
void a_scope_that_was_refused_is_none()
{
    bool caught = false;
    try {
        scope refused{tn_with_inference(1), tn_with_tuning_limit(-1)};
        CHECK(false);
    } catch (const std::invalid_argument &error) {
        caught = std::string(error.what()).find("tuning.limit cannot be") == 0;
    }
    CHECK(caught);
    CHECK(tn_get_inference(nullptr) == 0);
}

void an_exception_ends_a_thread_s_scope()
{
    tn_context *captured = nullptr;
    {
        scope outer{tn_with_tuning_limit(3)};
        CHECK(tn_context_capture(&captured, nullptr) == TN_OK);
    }
    std::thread worker([captured] {
        tn_scope handed{};
        CHECK(tn_scope_enter_context(&handed, captured, nullptr) == TN_OK);
        CHECK(tn_get_tuning_limit(nullptr) == 3);
        try {
            scope inner{tn_with_tuning_limit(4)};
            throw 1;
        } catch (int) {
        }
        CHECK(tn_get_tuning_limit(nullptr) == 3);
        tn_scope_leave(&handed);
        CHECK(tn_get_tuning_limit(nullptr) == 10);
    });
    worker.join();
    tn_context_release(captured);
}

// Scopes that a container holds are left in whatever order it pleases.
void scopes_may_live_in_containers()
{
    std::vector<tn_scope> scopes(3);
    for (int i = 0; i < 3; i++) {
        const tn_change change = tn_with_tuning_limit(i + 1);
        CHECK(tn_scope_enter(&scopes[static_cast<size_t>(i)], &change, 1, nullptr) == TN_OK);
    }
    for (tn_scope &each : scopes)
        tn_scope_leave(&each);
    CHECK(tn_get_tuning_limit(nullptr) == 10);
}

} // namespace

int main()
{
    an_exception_leaves_scopes();
    a_scope_that_was_refused_is_none();
    an_exception_ends_a_thread_s_scope();
    scopes_may_live_in_containers();
    return wrong == 0 ? 0 : 1;
}
