// Lines marked "refused" must not compile; face.py checks that each gives an error, and no other does.
#include <tenon/tenon.hpp>

#include <vector>

void refused(tn_device *device, tn_error &err)
{
    tenon::tensor x(device, TN_F32, {2}, err), y(device, TN_F32, {2}, err);
    tenon::softmax(x, y, err);
    tenon::softmax(x, y, tenon::context(), err);          // refused: a temporary context
    tenon::softmax.args().in = tenon::tensor();           // refused: a pointer to a temporary
    tenon::softmax(x, y, y, err);                         // refused: more operands than it has
    tenon::softmax(x, y, 1, err);                         // refused: not a part of a call
    tenon::tensor copy = x;                               // refused: no copies
    tenon::call(tn_device_at, 0, err);                    // refused: not a function that can fail
    tenon::call(tn_event_record, nullptr, err);           // refused: a stream is no output
    tenon::call(tn_generator_create, 1.5, err);           // refused: not an integer
    tenon::tensor::wrap(std::vector<float>(2), {2}, err); // refused: memory that is gone at once
#if !defined(__cpp_exceptions)
    tenon::softmax(x, y);                       // refused: would have to throw
    tenon::call(tn_device_synchronize, device); // refused: the same
    tenon::tensor z(device, TN_F32, {2});       // refused: the same
#endif
}
