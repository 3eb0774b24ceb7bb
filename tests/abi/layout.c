/* What of the headers is an ABI, written down a second time: a change to either must be made in
 * both, on purpose, and gets its line in docs/abi-changes.md. */
#include "test.h"

#include "tenon/module/communicator.h"
#include "tenon/module/device.h"
#include "tenon/module/dtype.h"
#include "tenon/module/kernel.h"
#include "tenon/module/language.h"
#include "tenon/module/library.h"
#include "tenon/module/machine.h"
#include "tenon/module/module.h"
#include "tenon/module/platform.h"
#include "tenon/tenon.h"

#include <stdbool.h>

/* A struct, or a field of the struct before it. */
struct row {
    const char *type;
    const char *field; /* NULL for the struct itself */
    size_t offset, size;
    size_t golden_offset, golden_size;
};

/* For machines whose longs and pointers have 64 bits. */
// clang-format off
#define STRUCT(type, size) {#type, NULL, 0, sizeof(type), 0, (size)}
#define FIELD(type, field, offset, size) \
    {#type, #field, offsetof(type, field), sizeof(((type *)0)->field), (offset), (size)}

static const struct row rows[] = {
    STRUCT(tn_error, 512),
    FIELD(tn_error, status, 0, 4),
    FIELD(tn_error, native_code, 4, 4),
    FIELD(tn_error, where, 8, 88),
    FIELD(tn_error, message, 96, 416),
    STRUCT(tn_symbol, 16),
    FIELD(tn_symbol, name, 0, 8),
    FIELD(tn_symbol, offset, 8, 8),
    STRUCT(tn_allocator, 32),
    FIELD(tn_allocator, struct_size, 0, 8),
    FIELD(tn_allocator, self, 8, 8),
    FIELD(tn_allocator, alloc, 16, 8),
    FIELD(tn_allocator, release, 24, 8),
    STRUCT(tn_log_sink, 32),
    FIELD(tn_log_sink, struct_size, 0, 8),
    FIELD(tn_log_sink, write, 8, 8),
    FIELD(tn_log_sink, user, 16, 8),
    FIELD(tn_log_sink, level, 24, 4),
    FIELD(tn_log_sink, reserved, 28, 4),
    STRUCT(tn_module_report, 104),
    FIELD(tn_module_report, struct_size, 0, 8),
    FIELD(tn_module_report, name, 8, 8),
    FIELD(tn_module_report, version, 16, 8),
    FIELD(tn_module_report, path, 24, 8),
    FIELD(tn_module_report, origin, 32, 8),
    FIELD(tn_module_report, message, 40, 8),
    FIELD(tn_module_report, remedy, 48, 8),
    FIELD(tn_module_report, stage, 56, 4),
    FIELD(tn_module_report, status, 60, 4),
    FIELD(tn_module_report, abi_major, 64, 4),
    FIELD(tn_module_report, abi_minor, 68, 4),
    FIELD(tn_module_report, platforms, 72, 4),
    FIELD(tn_module_report, libraries, 76, 4),
    FIELD(tn_module_report, kernels, 80, 4),
    FIELD(tn_module_report, languages, 84, 4),
    FIELD(tn_module_report, communicators, 88, 4),
    FIELD(tn_module_report, devices, 92, 4),
    FIELD(tn_module_report, ms, 96, 8),
    STRUCT(tn_module_place, 40),
    FIELD(tn_module_place, struct_size, 0, 8),
    FIELD(tn_module_place, path, 8, 8),
    FIELD(tn_module_place, origin, 16, 8),
    FIELD(tn_module_place, message, 24, 8),
    FIELD(tn_module_place, status, 32, 4),
    FIELD(tn_module_place, modules, 36, 4),
    STRUCT(tn_parallel_engine, 32),
    FIELD(tn_parallel_engine, struct_size, 0, 8),
    FIELD(tn_parallel_engine, self, 8, 8),
    FIELD(tn_parallel_engine, parallel_for, 16, 8),
    FIELD(tn_parallel_engine, threads, 24, 4),
    FIELD(tn_parallel_engine, reserved, 28, 4),
    STRUCT(tn_generator_state, 32),
    FIELD(tn_generator_state, struct_size, 0, 8),
    FIELD(tn_generator_state, seed, 8, 8),
    FIELD(tn_generator_state, subsequence, 16, 8),
    FIELD(tn_generator_state, offset, 24, 8),
    STRUCT(tn_build, 56),
    FIELD(tn_build, struct_size, 0, 8),
    FIELD(tn_build, major, 8, 4),
    FIELD(tn_build, minor, 12, 4),
    FIELD(tn_build, patch, 16, 4),
    FIELD(tn_build, module_abi_major, 20, 4),
    FIELD(tn_build, module_abi_minor, 24, 4),
    FIELD(tn_build, reserved, 28, 4),
    FIELD(tn_build, compiler, 32, 8),
    FIELD(tn_build, target, 40, 8),
    FIELD(tn_build, sanitizer, 48, 8),
    STRUCT(tn_host, 72),
    FIELD(tn_host, struct_size, 0, 8),
    FIELD(tn_host, abi_major, 8, 4),
    FIELD(tn_host, abi_minor, 12, 4),
    FIELD(tn_host, self, 16, 8),
    FIELD(tn_host, alloc, 24, 8),
    FIELD(tn_host, release, 32, 8),
    FIELD(tn_host, log, 40, 8),
    FIELD(tn_host, library_bind, 48, 8),
    FIELD(tn_host, parallel_for, 56, 8),
    FIELD(tn_host, machine, 64, 8),
    STRUCT(tn_module, 80),
    FIELD(tn_module, struct_size, 0, 8),
    FIELD(tn_module, abi_major, 8, 4),
    FIELD(tn_module, abi_minor, 12, 4),
    FIELD(tn_module, flags, 16, 8),
    FIELD(tn_module, name, 24, 8),
    FIELD(tn_module, version, 32, 8),
    FIELD(tn_module, platforms, 40, 8),
    FIELD(tn_module, libraries, 48, 8),
    FIELD(tn_module, kernels, 56, 8),
    FIELD(tn_module, languages, 64, 8),
    FIELD(tn_module, communicators, 72, 8),
    STRUCT(tn_copy_job, 72),
    FIELD(tn_copy_job, struct_size, 0, 8),
    FIELD(tn_copy_job, to, 8, 8),
    FIELD(tn_copy_job, from, 16, 8),
    FIELD(tn_copy_job, bytes, 24, 8),
    FIELD(tn_copy_job, to_device, 32, 4),
    FIELD(tn_copy_job, from_device, 36, 4),
    FIELD(tn_copy_job, stream, 40, 8),
    FIELD(tn_copy_job, rows, 48, 8),
    FIELD(tn_copy_job, to_pitch, 56, 8),
    FIELD(tn_copy_job, from_pitch, 64, 8),
    STRUCT(tn_platform_row, 336),
    FIELD(tn_platform_row, struct_size, 0, 8),
    FIELD(tn_platform_row, name, 8, 8),
    FIELD(tn_platform_row, kind, 16, 4),
    FIELD(tn_platform_row, flags, 20, 4),
    FIELD(tn_platform_row, remedy, 24, 8),
    FIELD(tn_platform_row, probe, 32, 8),
    FIELD(tn_platform_row, memory_alloc, 40, 8),
    FIELD(tn_platform_row, memory_free, 48, 8),
    FIELD(tn_platform_row, copy, 56, 8),
    FIELD(tn_platform_row, device_name, 64, 8),
    FIELD(tn_platform_row, device_type, 72, 8),
    FIELD(tn_platform_row, dispatch_key, 80, 8),
    FIELD(tn_platform_row, visible_variable, 88, 8),
    FIELD(tn_platform_row, async_output_reason, 96, 8),
    FIELD(tn_platform_row, quantizations, 104, 8),
    FIELD(tn_platform_row, model_archs, 112, 8),
    FIELD(tn_platform_row, evidence, 120, 8),
    FIELD(tn_platform_row, device_properties, 128, 8),
    FIELD(tn_platform_row, device_memory, 136, 8),
    FIELD(tn_platform_row, device_link, 144, 8),
    FIELD(tn_platform_row, topology, 152, 8),
    FIELD(tn_platform_row, describe, 160, 8),
    FIELD(tn_platform_row, stream_create, 168, 8),
    FIELD(tn_platform_row, stream_destroy, 176, 8),
    FIELD(tn_platform_row, stream_query, 184, 8),
    FIELD(tn_platform_row, stream_synchronize, 192, 8),
    FIELD(tn_platform_row, stream_wait, 200, 8),
    FIELD(tn_platform_row, device_synchronize, 208, 8),
    FIELD(tn_platform_row, stream_call, 216, 8),
    FIELD(tn_platform_row, event_create, 224, 8),
    FIELD(tn_platform_row, event_destroy, 232, 8),
    FIELD(tn_platform_row, event_record, 240, 8),
    FIELD(tn_platform_row, event_query, 248, 8),
    FIELD(tn_platform_row, event_synchronize, 256, 8),
    FIELD(tn_platform_row, event_elapsed, 264, 8),
    FIELD(tn_platform_row, event_export, 272, 8),
    FIELD(tn_platform_row, event_import, 280, 8),
    FIELD(tn_platform_row, fill, 288, 8),
    FIELD(tn_platform_row, host_alloc, 296, 8),
    FIELD(tn_platform_row, host_free, 304, 8),
    FIELD(tn_platform_row, device_activate, 312, 8),
    FIELD(tn_platform_row, device_is_initialized, 320, 8),
    FIELD(tn_platform_row, device_reset, 328, 8),
    STRUCT(tn_capability, 8),
    FIELD(tn_capability, major, 0, 4),
    FIELD(tn_capability, minor, 4, 4),
    STRUCT(tn_fact, 128),
    FIELD(tn_fact, value, 0, 8),
    FIELD(tn_fact, known, 8, 4),
    FIELD(tn_fact, reserved, 12, 4),
    FIELD(tn_fact, origin, 16, 112),
    STRUCT(tn_device_properties, 512),
    FIELD(tn_device_properties, struct_size, 0, 8),
    FIELD(tn_device_properties, known, 8, 8),
    FIELD(tn_device_properties, name, 16, 128),
    FIELD(tn_device_properties, uuid, 144, 48),
    FIELD(tn_device_properties, bus, 192, 32),
    FIELD(tn_device_properties, architecture, 224, 32),
    FIELD(tn_device_properties, capability, 256, 8),
    FIELD(tn_device_properties, dtypes, 264, 128),
    FIELD(tn_device_properties, memory_bytes, 392, 8),
    FIELD(tn_device_properties, numa_node, 400, 8),
    FIELD(tn_device_properties, physical_index, 408, 8),
    FIELD(tn_device_properties, multi_processor_count, 416, 8),
    FIELD(tn_device_properties, max_threads_per_multi_processor, 424, 8),
    FIELD(tn_device_properties, max_threads_per_block, 432, 8),
    FIELD(tn_device_properties, warp_size, 440, 8),
    FIELD(tn_device_properties, registers_per_multi_processor, 448, 8),
    FIELD(tn_device_properties, shared_memory_per_block, 456, 8),
    FIELD(tn_device_properties, shared_memory_per_multi_processor, 464, 8),
    FIELD(tn_device_properties, l2_cache_bytes, 472, 8),
    FIELD(tn_device_properties, clock_khz, 480, 8),
    FIELD(tn_device_properties, memory_bandwidth, 488, 8),
    FIELD(tn_device_properties, is_integrated, 496, 8),
    FIELD(tn_device_properties, pinned_memory, 504, 8),
    STRUCT(tn_device_memory, 392),
    FIELD(tn_device_memory, struct_size, 0, 8),
    FIELD(tn_device_memory, total, 8, 128),
    FIELD(tn_device_memory, available, 136, 128),
    FIELD(tn_device_memory, in_use, 264, 128),
    STRUCT(tn_machine_facts, 2160),
    FIELD(tn_machine_facts, struct_size, 0, 8),
    FIELD(tn_machine_facts, model, 8, 128),
    FIELD(tn_machine_facts, architecture, 136, 32),
    FIELD(tn_machine_facts, uuid, 168, 48),
    FIELD(tn_machine_facts, uuid_source, 216, 112),
    FIELD(tn_machine_facts, hypervisor, 328, 32),
    FIELD(tn_machine_facts, features, 360, 512),
    FIELD(tn_machine_facts, threads, 872, 4),
    FIELD(tn_machine_facts, reserved, 876, 4),
    FIELD(tn_machine_facts, packages, 880, 128),
    FIELD(tn_machine_facts, cores, 1008, 128),
    FIELD(tn_machine_facts, hardware_threads, 1136, 128),
    FIELD(tn_machine_facts, nodes, 1264, 128),
    FIELD(tn_machine_facts, max_khz, 1392, 128),
    FIELD(tn_machine_facts, l2_cache, 1520, 128),
    FIELD(tn_machine_facts, l3_cache, 1648, 128),
    FIELD(tn_machine_facts, memory_total, 1776, 128),
    FIELD(tn_machine_facts, memory_available, 1904, 128),
    FIELD(tn_machine_facts, memory_in_use, 2032, 128),
    STRUCT(tn_topology_object, 40),
    FIELD(tn_topology_object, struct_size, 0, 8),
    FIELD(tn_topology_object, type, 8, 4),
    FIELD(tn_topology_object, parent, 12, 4),
    FIELD(tn_topology_object, number, 16, 4),
    FIELD(tn_topology_object, level, 20, 4),
    FIELD(tn_topology_object, bytes, 24, 8),
    FIELD(tn_topology_object, usable, 32, 4),
    FIELD(tn_topology_object, speed_class, 36, 4),
    STRUCT(tn_topology_sink, 32),
    FIELD(tn_topology_sink, struct_size, 0, 8),
    FIELD(tn_topology_sink, self, 8, 8),
    FIELD(tn_topology_sink, add, 16, 8),
    FIELD(tn_topology_sink, source, 24, 8),
    STRUCT(tn_evidence_row, 24),
    FIELD(tn_evidence_row, struct_size, 0, 8),
    FIELD(tn_evidence_row, what, 8, 8),
    FIELD(tn_evidence_row, look, 16, 4),
    FIELD(tn_evidence_row, shows, 20, 4),
    STRUCT(tn_description_entry, 32),
    FIELD(tn_description_entry, struct_size, 0, 8),
    FIELD(tn_description_entry, key, 8, 8),
    FIELD(tn_description_entry, value, 16, 8),
    FIELD(tn_description_entry, origin, 24, 8),
    STRUCT(tn_description, 48),
    FIELD(tn_description, struct_size, 0, 8),
    FIELD(tn_description, name, 8, 8),
    FIELD(tn_description, origin, 16, 8),
    FIELD(tn_description, properties, 24, 8),
    FIELD(tn_description, entries, 32, 8),
    FIELD(tn_description, entry_count, 40, 8),
    STRUCT(tn_platform_evidence, 40),
    FIELD(tn_platform_evidence, struct_size, 0, 8),
    FIELD(tn_platform_evidence, what, 8, 8),
    FIELD(tn_platform_evidence, found, 16, 8),
    FIELD(tn_platform_evidence, shows, 24, 8),
    FIELD(tn_platform_evidence, holds, 32, 4),
    FIELD(tn_platform_evidence, reserved, 36, 4),
    STRUCT(tn_platform_report, 72),
    FIELD(tn_platform_report, struct_size, 0, 8),
    FIELD(tn_platform_report, platform, 8, 8),
    FIELD(tn_platform_report, name, 16, 8),
    FIELD(tn_platform_report, module, 24, 8),
    FIELD(tn_platform_report, reason, 32, 8),
    FIELD(tn_platform_report, remedy, 40, 8),
    FIELD(tn_platform_report, verdict, 48, 4),
    FIELD(tn_platform_report, kind, 52, 4),
    FIELD(tn_platform_report, devices, 56, 4),
    FIELD(tn_platform_report, current, 60, 4),
    FIELD(tn_platform_report, evidence_count, 64, 8),
    STRUCT(tn_machine_limit, 48),
    FIELD(tn_machine_limit, struct_size, 0, 8),
    FIELD(tn_machine_limit, name, 8, 8),
    FIELD(tn_machine_limit, state, 16, 8),
    FIELD(tn_machine_limit, origin, 24, 8),
    FIELD(tn_machine_limit, value, 32, 8),
    FIELD(tn_machine_limit, least, 40, 4),
    FIELD(tn_machine_limit, reserved, 44, 4),
    STRUCT(tn_machine_node, 280),
    FIELD(tn_machine_node, struct_size, 0, 8),
    FIELD(tn_machine_node, cpus, 8, 8),
    FIELD(tn_machine_node, total, 16, 128),
    FIELD(tn_machine_node, free, 144, 128),
    FIELD(tn_machine_node, number, 272, 4),
    FIELD(tn_machine_node, cpu_count, 276, 4),
    STRUCT(tn_machine_class, 48),
    FIELD(tn_machine_class, struct_size, 0, 8),
    FIELD(tn_machine_class, name, 8, 8),
    FIELD(tn_machine_class, cpus, 16, 8),
    FIELD(tn_machine_class, capacity, 24, 8),
    FIELD(tn_machine_class, max_khz, 32, 8),
    FIELD(tn_machine_class, cpu_count, 40, 4),
    FIELD(tn_machine_class, reserved, 44, 4),
    STRUCT(tn_fill_job, 48),
    FIELD(tn_fill_job, struct_size, 0, 8),
    FIELD(tn_fill_job, to, 8, 8),
    FIELD(tn_fill_job, bytes, 16, 8),
    FIELD(tn_fill_job, pattern, 24, 8),
    FIELD(tn_fill_job, pattern_bytes, 32, 4),
    FIELD(tn_fill_job, device, 36, 4),
    FIELD(tn_fill_job, stream, 40, 8),
    STRUCT(tn_stream_spec, 16),
    FIELD(tn_stream_spec, struct_size, 0, 8),
    FIELD(tn_stream_spec, priority, 8, 4),
    FIELD(tn_stream_spec, reserved, 12, 4),
    STRUCT(tn_event_spec, 16),
    FIELD(tn_event_spec, struct_size, 0, 8),
    FIELD(tn_event_spec, flags, 8, 4),
    FIELD(tn_event_spec, reserved, 12, 4),
    STRUCT(tn_event_handle, 64),
    FIELD(tn_event_handle, bytes, 0, 64),
    STRUCT(tn_device_guard, 16),
    FIELD(tn_device_guard, platform, 0, 8),
    FIELD(tn_device_guard, previous, 8, 4),
    FIELD(tn_device_guard, entered, 12, 4),
    STRUCT(tn_stream_args, 16),
    FIELD(tn_stream_args, struct_size, 0, 8),
    FIELD(tn_stream_args, priority, 8, 4),
    FIELD(tn_stream_args, reserved, 12, 4),
    STRUCT(tn_stream_guard, 24),
    FIELD(tn_stream_guard, previous, 0, 8),
    FIELD(tn_stream_guard, device, 8, 16),
    STRUCT(tn_event_args, 24),
    FIELD(tn_event_args, struct_size, 0, 8),
    FIELD(tn_event_args, enable_timing, 8, 4),
    FIELD(tn_event_args, blocking, 12, 4),
    FIELD(tn_event_args, interprocess, 16, 4),
    FIELD(tn_event_args, reserved, 20, 4),
    STRUCT(tn_memory_stats, 80),
    FIELD(tn_memory_stats, struct_size, 0, 8),
    FIELD(tn_memory_stats, current, 8, 8),
    FIELD(tn_memory_stats, peak, 16, 8),
    FIELD(tn_memory_stats, count, 24, 8),
    FIELD(tn_memory_stats, allocations, 32, 8),
    FIELD(tn_memory_stats, kept, 40, 8),
    FIELD(tn_memory_stats, host, 48, 8),
    FIELD(tn_memory_stats, limit, 56, 8),
    FIELD(tn_memory_stats, failures, 64, 8),
    FIELD(tn_memory_stats, wrong_frees, 72, 8),
    STRUCT(tn_memory_copy_args, 80),
    FIELD(tn_memory_copy_args, struct_size, 0, 8),
    FIELD(tn_memory_copy_args, to_device, 8, 8),
    FIELD(tn_memory_copy_args, to, 16, 8),
    FIELD(tn_memory_copy_args, from_device, 24, 8),
    FIELD(tn_memory_copy_args, from, 32, 8),
    FIELD(tn_memory_copy_args, bytes, 40, 8),
    FIELD(tn_memory_copy_args, rows, 48, 8),
    FIELD(tn_memory_copy_args, to_pitch, 56, 8),
    FIELD(tn_memory_copy_args, from_pitch, 64, 8),
    FIELD(tn_memory_copy_args, stream, 72, 8),
    STRUCT(tn_memory_fill_args, 56),
    FIELD(tn_memory_fill_args, struct_size, 0, 8),
    FIELD(tn_memory_fill_args, device, 8, 8),
    FIELD(tn_memory_fill_args, to, 16, 8),
    FIELD(tn_memory_fill_args, bytes, 24, 8),
    FIELD(tn_memory_fill_args, pattern, 32, 8),
    FIELD(tn_memory_fill_args, pattern_bytes, 40, 4),
    FIELD(tn_memory_fill_args, reserved, 44, 4),
    FIELD(tn_memory_fill_args, stream, 48, 8),
    STRUCT(tn_tensor, 64),
    FIELD(tn_tensor, data, 0, 8),
    FIELD(tn_tensor, device_type, 8, 4),
    FIELD(tn_tensor, device_id, 12, 4),
    FIELD(tn_tensor, ndim, 16, 4),
    FIELD(tn_tensor, dtype, 20, 4),
    FIELD(tn_tensor, shape, 24, 8),
    FIELD(tn_tensor, strides, 32, 8),
    FIELD(tn_tensor, byte_offset, 40, 8),
    FIELD(tn_tensor, owner, 48, 8),
    FIELD(tn_tensor, flags, 56, 8),
    STRUCT(tn_dlpack_tensor, 48),
    FIELD(tn_dlpack_tensor, data, 0, 8),
    FIELD(tn_dlpack_tensor, device_type, 8, 4),
    FIELD(tn_dlpack_tensor, device_id, 12, 4),
    FIELD(tn_dlpack_tensor, ndim, 16, 4),
    FIELD(tn_dlpack_tensor, dtype, 20, 4),
    FIELD(tn_dlpack_tensor, shape, 24, 8),
    FIELD(tn_dlpack_tensor, strides, 32, 8),
    FIELD(tn_dlpack_tensor, byte_offset, 40, 8),
    STRUCT(tn_dlpack_managed, 64),
    FIELD(tn_dlpack_managed, tensor, 0, 48),
    FIELD(tn_dlpack_managed, manager, 48, 8),
    FIELD(tn_dlpack_managed, deleter, 56, 8),
    STRUCT(tn_dlpack_versioned, 80),
    FIELD(tn_dlpack_versioned, major, 0, 4),
    FIELD(tn_dlpack_versioned, minor, 4, 4),
    FIELD(tn_dlpack_versioned, manager, 8, 8),
    FIELD(tn_dlpack_versioned, deleter, 16, 8),
    FIELD(tn_dlpack_versioned, flags, 24, 8),
    FIELD(tn_dlpack_versioned, tensor, 32, 48),
    STRUCT(tn_library_row, 40),
    FIELD(tn_library_row, struct_size, 0, 8),
    FIELD(tn_library_row, name, 8, 8),
    FIELD(tn_library_row, platform, 16, 8),
    FIELD(tn_library_row, files, 24, 8),
    FIELD(tn_library_row, remedy, 32, 8),
    STRUCT(tn_kernel_row, 104),
    FIELD(tn_kernel_row, struct_size, 0, 8),
    FIELD(tn_kernel_row, name, 8, 8),
    FIELD(tn_kernel_row, platform, 16, 8),
    FIELD(tn_kernel_row, op, 24, 4),
    FIELD(tn_kernel_row, version, 28, 4),
    FIELD(tn_kernel_row, dtypes, 32, 8),
    FIELD(tn_kernel_row, numerics, 40, 8),
    FIELD(tn_kernel_row, honours, 48, 8),
    FIELD(tn_kernel_row, free_dims, 56, 8),
    FIELD(tn_kernel_row, flops_per_us, 64, 8),
    FIELD(tn_kernel_row, bytes_per_us, 72, 8),
    FIELD(tn_kernel_row, overhead_us, 80, 8),
    FIELD(tn_kernel_row, admit, 88, 8),
    FIELD(tn_kernel_row, run, 96, 8),
    STRUCT(tn_language_row, 40),
    FIELD(tn_language_row, struct_size, 0, 8),
    FIELD(tn_language_row, name, 8, 8),
    FIELD(tn_language_row, platform, 16, 8),
    FIELD(tn_language_row, remedy, 24, 8),
    FIELD(tn_language_row, version, 32, 8),
    STRUCT(tn_communicator_row, 40),
    FIELD(tn_communicator_row, struct_size, 0, 8),
    FIELD(tn_communicator_row, name, 8, 8),
    FIELD(tn_communicator_row, platform, 16, 8),
    FIELD(tn_communicator_row, remedy, 24, 8),
    FIELD(tn_communicator_row, version, 32, 8),
};
// clang-format on

enum { ROWS = sizeof rows / sizeof rows[0] };

// clang-format off
#define NUMBER(name, golden) {#name, (uint64_t)(name), UINT64_C(golden)}

static const struct {
    const char *name;
    uint64_t value, golden;
} numbers[] = {
    NUMBER(TN_OK, 0), NUMBER(TN_INVALID_ARGUMENT, 1), NUMBER(TN_UNSUPPORTED, 2),
    NUMBER(TN_UNAVAILABLE, 3), NUMBER(TN_INCOMPATIBLE, 4), NUMBER(TN_NOT_FOUND, 5),
    NUMBER(TN_ALREADY_EXISTS, 6), NUMBER(TN_REFUSED, 7), NUMBER(TN_NOT_PERMITTED, 8),
    NUMBER(TN_OUT_OF_MEMORY, 9), NUMBER(TN_TIMEOUT, 10), NUMBER(TN_BUSY, 11),
    NUMBER(TN_NOT_READY, 12), NUMBER(TN_DEVICE_LOST, 13), NUMBER(TN_IO, 14),
    NUMBER(TN_CORRUPT, 15), NUMBER(TN_CRASHED, 16), NUMBER(TN_CANCELLED, 17),
    NUMBER(TN_INTERNAL, 18), NUMBER(TN_STATUS_COUNT, 19),
    NUMBER(TN_LOG_OFF, 0), NUMBER(TN_LOG_ERROR, 1), NUMBER(TN_LOG_WARNING, 2),
    NUMBER(TN_LOG_INFO, 3), NUMBER(TN_LOG_DEBUG, 4),
    NUMBER(TN_STAGE_FOUND, 0), NUMBER(TN_STAGE_OPENED, 1), NUMBER(TN_STAGE_NEGOTIATED, 2),
    NUMBER(TN_STAGE_PROBED, 3), NUMBER(TN_STAGE_READY, 4),
    NUMBER(TN_MODULE_TRUSTED, 1),
    NUMBER(TN_MODULE_SANITIZER_ADDRESS, 1), NUMBER(TN_MODULE_SANITIZER_THREAD, 2),
    NUMBER(TN_MODULE_SANITIZER_MEMORY, 4), NUMBER(TN_MODULE_SANITIZERS, 7),
    NUMBER(TN_PLATFORM_UNSPECIFIED, 0), NUMBER(TN_PLATFORM_CPU, 1), NUMBER(TN_PLATFORM_CUDA, 2),
    NUMBER(TN_PLATFORM_ROCM, 3), NUMBER(TN_PLATFORM_TPU, 4), NUMBER(TN_PLATFORM_MPS, 5),
    NUMBER(TN_PLATFORM_XPU, 6), NUMBER(TN_PLATFORM_NPU, 7), NUMBER(TN_PLATFORM_OPENCL, 8),
    NUMBER(TN_PLATFORM_OOT, 9), NUMBER(TN_PLATFORM_KIND_COUNT, 10),
    NUMBER(TN_OP_NONE, 0), NUMBER(TN_OP_MATMUL, 1), NUMBER(TN_OP_COUNT, 2),
    NUMBER(TN_NUM_RUN_TO_RUN, 1), NUMBER(TN_NUM_BATCH_INVARIANT, 2),
    NUMBER(TN_NUM_CROSS_DEVICE, 4), NUMBER(TN_NUM_ROUNDS_F32_TF32, 8),
    NUMBER(TN_NUM_ROUNDS_F32_BF16, 16), NUMBER(TN_NUM_REDUCED_REDUCTION, 32),
    NUMBER(TN_NUM_KNOWN, 63),
    NUMBER(TN_DTYPE_NONE, 0),
    NUMBER(TN_I8, 0x10800), NUMBER(TN_I16, 0x11000), NUMBER(TN_I32, 0x12000),
    NUMBER(TN_I64, 0x14000), NUMBER(TN_U8, 0x10801), NUMBER(TN_U16, 0x11001),
    NUMBER(TN_U32, 0x12001), NUMBER(TN_U64, 0x14001), NUMBER(TN_F16, 0x11002),
    NUMBER(TN_F32, 0x12002), NUMBER(TN_F64, 0x14002), NUMBER(TN_BF16, 0x11004),
    NUMBER(TN_C64, 0x14005), NUMBER(TN_C128, 0x18005), NUMBER(TN_BOOL, 0x10806),
    NUMBER(TN_F8_E4M3FN, 0x1080a), NUMBER(TN_F8_E4M3FNUZ, 0x1080b), NUMBER(TN_F8_E5M2, 0x1080c),
    NUMBER(TN_F8_E5M2FNUZ, 0x1080d),
    NUMBER(TN_LOOK_FILE, 1), NUMBER(TN_LOOK_PCI, 2), NUMBER(TN_LOOK_LIBRARY, 3),
    NUMBER(TN_LOOK_SYSTEM, 4), NUMBER(TN_LOOK_COUNT, 5),
    NUMBER(TN_SHOWS_HARDWARE, 1), NUMBER(TN_SHOWS_DRIVER, 2), NUMBER(TN_SHOWS_LIBRARY, 3),
    NUMBER(TN_SHOWS_COUNT, 4),
    NUMBER(TN_PLATFORM_STAND_IN, 1), NUMBER(TN_PLATFORM_ASYNC_OUTPUT, 2),
    NUMBER(TN_PLATFORM_ASYNC_OUTPUT_EAGER, 4), NUMBER(TN_PLATFORM_FLAGS, 7),
    NUMBER(TN_PRIORITY_LOW, 0xffffffffffffffff), NUMBER(TN_PRIORITY_DEFAULT, 0),
    NUMBER(TN_PRIORITY_HIGH, 1),
    NUMBER(TN_EVENT_TIMING, 1), NUMBER(TN_EVENT_BLOCKING, 2), NUMBER(TN_EVENT_INTERPROCESS, 4),
    NUMBER(TN_EVENT_FLAGS, 7), NUMBER(TN_MODULE_REPLACE, 2),
    NUMBER(TN_TENSOR_READ_ONLY, 1), NUMBER(TN_TENSOR_COPIED, 2), NUMBER(TN_TENSOR_NDIM_MAX, 32),
    NUMBER(TN_DLPACK_CPU, 1), NUMBER(TN_DLPACK_CUDA, 2), NUMBER(TN_DLPACK_CUDA_HOST, 3),
    NUMBER(TN_DLPACK_OPENCL, 4), NUMBER(TN_DLPACK_METAL, 8), NUMBER(TN_DLPACK_ROCM, 10),
    NUMBER(TN_DLPACK_ROCM_HOST, 11), NUMBER(TN_DLPACK_EXT_DEV, 12),
    NUMBER(TN_DLPACK_CUDA_MANAGED, 13), NUMBER(TN_DLPACK_ONE_API, 14),
    NUMBER(TN_DLPACK_VERSION_MAJOR, 1),
    NUMBER(TN_LINK_UNKNOWN, 0), NUMBER(TN_LINK_STAGED, 1), NUMBER(TN_LINK_BUS, 2),
    NUMBER(TN_LINK_FABRIC, 3),
    NUMBER(TN_TOPOLOGY_MACHINE, 0), NUMBER(TN_TOPOLOGY_PACKAGE, 1), NUMBER(TN_TOPOLOGY_DIE, 2),
    NUMBER(TN_TOPOLOGY_NODE, 3), NUMBER(TN_TOPOLOGY_CACHE, 4), NUMBER(TN_TOPOLOGY_CORE, 5),
    NUMBER(TN_TOPOLOGY_THREAD, 6), NUMBER(TN_TOPOLOGY_TYPE_COUNT, 7),
    NUMBER(TN_PLATFORM_READY, 0), NUMBER(TN_PLATFORM_HIDDEN, 1), NUMBER(TN_PLATFORM_BROKEN, 2),
    NUMBER(TN_PLATFORM_NO_MODULE, 3), NUMBER(TN_PLATFORM_NO_DRIVER, 4),
    NUMBER(TN_PLATFORM_ABSENT, 5), NUMBER(TN_PLATFORM_VERDICT_COUNT, 6),
    NUMBER(TN_ID_LOGICAL, 0), NUMBER(TN_ID_VISIBLE, 1), NUMBER(TN_ID_PHYSICAL, 2),
    NUMBER(TN_CPU_ARCH_UNSPECIFIED, 0), NUMBER(TN_CPU_ARCH_X86, 1), NUMBER(TN_CPU_ARCH_ARM, 2),
    NUMBER(TN_CPU_ARCH_POWERPC, 3), NUMBER(TN_CPU_ARCH_S390X, 4), NUMBER(TN_CPU_ARCH_RISCV, 5),
    NUMBER(TN_CPU_ARCH_OTHER, 6),
    NUMBER(TN_DEVICE_KNOWS(memory_bytes), 1), NUMBER(TN_DEVICE_KNOWS(numa_node), 2),
    NUMBER(TN_DEVICE_KNOWS(physical_index), 4), NUMBER(TN_DEVICE_KNOWS(pinned_memory), 0x4000),
    NUMBER(TN_DEVICE_KNOWS(capability), 0x8000000000000000), NUMBER(TN_DEVICE_DTYPES_MAX, 32),
    NUMBER(sizeof(tn_status), 4), NUMBER(sizeof(tn_module_stage), 4), NUMBER(sizeof(tn_dtype), 4),
};
// clang-format on

static const char *field_of(const struct row *row)
{
    return row->field ? row->field : "itself";
}

static void every_field_is_where_it_was(void **state)
{
    int wrong = 0;
    (void)state;
    if (sizeof(void *) != 8 || sizeof(long) != 8)
        skip_because("the golden offsets are those of 64-bit longs and pointers");
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        if (r->offset == r->golden_offset && r->size == r->golden_size)
            continue;
        print_message("%s %s: %zu bytes at %zu; they were %zu at %zu\n", r->type, field_of(r),
                      r->size, r->offset, r->golden_size, r->golden_offset);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* Nothing lies between fields or behind the last, so a field that is missing in the table, and
 * padding, both show as a gap. */
static void the_fields_of_the_table_fill_each_struct(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS;) {
        const struct row *whole = &rows[i++];
        size_t end = 0;
        assert_null(whole->field);
        for (; i < ROWS && rows[i].field; i++) {
            assert_string_equal(rows[i].type, whole->type);
            if (rows[i].offset != end)
                fail_msg("%s has %zu bytes at %zu, before %s, that the table does not name",
                         whole->type, rows[i].offset - end, end, rows[i].field);
            end += rows[i].size;
        }
        if (end != whole->size)
            fail_msg("%s has %zu bytes; the table's fields end at %zu", whole->type, whole->size,
                     end);
    }
}

static void structs_that_grow_begin_with_their_size(void **state)
{
    static const char *const frozen[] = {
        "tn_error",         "tn_symbol",         "tn_capability",      "tn_fact",
        "tn_event_handle",  "tn_device_guard",   "tn_stream_guard",    "tn_tensor",
        "tn_dlpack_tensor", "tn_dlpack_managed", "tn_dlpack_versioned"};
    (void)state;
    for (size_t i = 0; i + 1 < ROWS; i++) {
        bool grows = !rows[i].field;
        for (size_t j = 0; j < sizeof frozen / sizeof frozen[0]; j++)
            grows = grows && strcmp(rows[i].type, frozen[j]) != 0;
        if (grows)
            assert_string_equal(rows[i + 1].field, "struct_size");
    }
    assert_int_equal(sizeof(tn_fact), 128);
    assert_int_equal(sizeof(tn_capability), 8);
    assert_int_equal(sizeof(tn_error), 512);
    assert_int_equal(sizeof(tn_symbol), 2 * sizeof(void *));
}

static void every_number_means_what_it_did(void **state)
{
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].value == numbers[i].golden)
            continue;
        print_message("%s is %llu; it was %llu\n", numbers[i].name,
                      (unsigned long long)numbers[i].value, (unsigned long long)numbers[i].golden);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_where_it_was),
        cmocka_unit_test(the_fields_of_the_table_fill_each_struct),
        cmocka_unit_test(structs_that_grow_begin_with_their_size),
        cmocka_unit_test(every_number_means_what_it_did),
    };
    return run_suite("abi.layout", tests);
}
