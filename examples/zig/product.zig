//! A matrix product on the best device, called from Zig, and the kernels that could compute it.
//!
//! The module `tenon` is the C header, translated by the compiler: see the Makefile.
const std = @import("std");
const c = @import("tenon");

const Failure = error{Tenon};

/// A tensor of the C interface that is released by `deinit`.
const Tensor = struct {
    raw: c.tn_tensor,

    fn init(device: ?*c.tn_device, shape: []const i64, err: *c.tn_error) Failure!Tensor {
        var made = Tensor{ .raw = std.mem.zeroes(c.tn_tensor) };
        try check(c.tn_tensor_create(device, c.TN_F32, shape.ptr, @intCast(shape.len), &made.raw, err));
        return made;
    }

    fn deinit(self: *Tensor) void {
        c.tn_tensor_release(&self.raw);
    }
};

fn check(status: c.tn_status) Failure!void {
    if (status != c.TN_OK) return Failure.Tenon;
}

fn multiply(err: *c.tn_error) Failure!void {
    var device: ?*c.tn_device = null;
    try check(c.tn_device_get("best", &device, err));
    var a = try Tensor.init(device, &.{ 64, 32 }, err);
    defer a.deinit();
    var out = try Tensor.init(device, &.{ 64, 64 }, err);
    defer out.deinit();
    var ones: [64 * 32]f32 = undefined;
    @memset(&ones, 1);
    try check(c.tn_tensor_write(&a.raw, &ones, @sizeOf(@TypeOf(ones)), err));

    const args = std.mem.zeroInit(c.tn_matmul_args, .{
        .struct_size = @sizeOf(c.tn_matmul_args),
        .a = &a.raw,
        .b = &a.raw,
        .out = &out.raw,
        .transpose_b = 1,
    });
    try check(c.tn_matmul(null, &args, err));
    var result: [64 * 64]f32 = undefined;
    try check(c.tn_tensor_read(&out.raw, &result, @sizeOf(@TypeOf(result)), err));
    std.debug.print("{d} on {s} ({s})\n", .{ result[0], c.tn_device_id(device), c.tn_device_name(device) });

    // Settings of this thread, until the scope is left.
    const changes = [_]c.tn_change{c.tn_with_fp32_precision(c.TN_FP32_IEEE)};
    var scope = std.mem.zeroes(c.tn_scope);
    try check(c.tn_scope_enter(&scope, &changes, changes.len, err));
    defer c.tn_scope_leave(&scope);
    var decision: ?*c.tn_decision = null;
    try check(c.tn_matmul_explain(null, &args, &decision, err));
    defer c.tn_decision_release(decision);
    for (0..c.tn_decision_count(decision)) |index| {
        const candidate = c.tn_decision_candidate(decision, index);
        std.debug.print("{s}: {s}\n", .{ candidate[0].kernel, c.tn_verdict_name(candidate[0].verdict) });
    }
}

pub fn main() u8 {
    var err = std.mem.zeroes(c.tn_error);
    multiply(&err) catch {
        const message: [*:0]const u8 = @ptrCast(&err.message);
        std.debug.print("{s}: {s}\n", .{ c.tn_status_name(err.status), message });
        return 1;
    };
    return 0;
}
