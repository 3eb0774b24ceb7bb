"""The library's types and functions, as its headers declare them.

Structures are named as in C without `tn_`, in one word. Fields that are pointers are plain addresses.
A test holds sizes and offsets against tests/abi/layout.c, and prototypes against the headers.
"""

from __future__ import annotations

from ctypes import (
    Structure,
    c_char,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
    sizeof,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TYPES: dict[str, Any] = {
    "v": None,
    "i": c_int32,
    "I": c_uint32,
    "l": c_int64,
    "L": c_uint64,
    "z": c_size_t,
    "d": c_double,
    "p": c_void_p,
    "s": c_char_p,
}

# The result's letter, then the parameters'. `p` is every pointer but one to text.
PROTOTYPES = {
    "tn_allocator_blocks": "l",
    "tn_attention": "ippp",
    "tn_attention_backend": "ipppp",
    "tn_attention_backend_explain": "ipppp",
    "tn_attention_backend_find": "ispp",
    "tn_attention_backend_name": "si",
    "tn_attention_backward": "ippp",
    "tn_attention_backward_explain": "ipppp",
    "tn_attention_backward_prepare": "ippp",
    "tn_attention_explain": "ipppp",
    "tn_attention_merge": "ippp",
    "tn_attention_merge_explain": "ipppp",
    "tn_attention_merge_prepare": "ippp",
    "tn_attention_prepare": "ippp",
    "tn_available_name": "si",
    "tn_binary": "ippp",
    "tn_binary_explain": "ipppp",
    "tn_binary_prepare": "ippp",
    "tn_build_get": "p",
    "tn_can_use_cudnn_attention": "ipppp",
    "tn_can_use_efficient_attention": "ipppp",
    "tn_can_use_flash_attention": "ipppp",
    "tn_cast": "ippp",
    "tn_cast_explain": "ipppp",
    "tn_cast_prepare": "ippp",
    "tn_context_derive": "ippzpp",
    "tn_context_release": "vp",
    "tn_copy": "ipppp",
    "tn_cpu_architecture": "i",
    "tn_cpu_capability": "s",
    "tn_cpu_level": "s",
    "tn_decision_candidate": "ppz",
    "tn_decision_chosen": "pp",
    "tn_decision_count": "zp",
    "tn_decision_device": "pp",
    "tn_decision_problem": "sp",
    "tn_decision_release": "vp",
    "tn_decision_runs_now": "pp",
    "tn_decision_runs_once_tested": "pp",
    "tn_decision_status": "ipp",
    "tn_decision_unmet": "sp",
    "tn_device_at": "pz",
    "tn_device_bus": "sp",
    "tn_device_capability": "ippp",
    "tn_device_count": "ipp",
    "tn_device_current": "ip",
    "tn_device_default": "ipp",
    "tn_device_exchange": "ipipp",
    "tn_device_file_add": "isp",
    "tn_device_get": "ispp",
    "tn_device_guard_enter": "ippp",
    "tn_device_guard_leave": "vp",
    "tn_device_has_capability_int": "ipi",
    "tn_device_id": "sp",
    "tn_device_index": "ip",
    "tn_device_is_triton_capable": "ip",
    "tn_device_link": "ipppp",
    "tn_device_maybe_exchange": "ipipp",
    "tn_device_memory_get": "ippp",
    "tn_device_name": "sp",
    "tn_device_origin": "sp",
    "tn_device_plans_only": "ip",
    "tn_device_platform": "pp",
    "tn_device_properties_get": "pp",
    "tn_device_set": "ipip",
    "tn_device_supports_bf16": "ipi",
    "tn_device_synchronize": "ipp",
    "tn_device_uuid": "sp",
    "tn_device_verify_dtype": "ipIp",
    "tn_dlpack_export": "iplpp",
    "tn_dlpack_export_legacy": "iplpp",
    "tn_dlpack_import": "ippp",
    "tn_dlpack_import_legacy": "ippp",
    "tn_event_create": "ipppp",
    "tn_event_device": "pp",
    "tn_event_elapsed_time": "ipppp",
    "tn_event_query": "ippp",
    "tn_event_record": "ippp",
    "tn_event_release": "vp",
    "tn_event_synchronize": "ipp",
    "tn_event_wait": "ippp",
    "tn_explain": "ipspp",
    "tn_fallbacks_get": "ipp",
    "tn_fallbacks_reset": "v",
    "tn_fill": "ippp",
    "tn_fill_explain": "ipppp",
    "tn_fill_prepare": "ippp",
    "tn_is_ck_sdpa_available": "ippp",
    "tn_is_flash_attention_available": "ipppp",
    "tn_level_name": "si",
    "tn_library_at": "pz",
    "tn_library_count": "ipp",
    "tn_library_get": "ispp",
    "tn_library_state_get": "ipppp",
    "tn_library_try": "ipp",
    "tn_lock_check": "ipsppp",
    "tn_lock_diff": "isspp",
    "tn_lock_report_count": "zp",
    "tn_lock_report_differences": "zp",
    "tn_lock_report_release": "vp",
    "tn_lock_report_row": "ppz",
    "tn_lock_row_name": "si",
    "tn_lock_use": "isp",
    "tn_lock_used": "zpz",
    "tn_lock_write": "ippp",
    "tn_matmul": "ippp",
    "tn_matmul_explain": "ipppp",
    "tn_matmul_prepare": "ippp",
    "tn_memory_fill": "ipp",
    "tn_module_file_add": "isLp",
    "tn_module_list_count": "zp",
    "tn_module_list_create": "ipp",
    "tn_module_list_get": "ppz",
    "tn_module_list_release": "vp",
    "tn_module_stage_name": "si",
    "tn_norm": "ippp",
    "tn_norm_explain": "ipppp",
    "tn_norm_prepare": "ippp",
    "tn_op_name": "si",
    "tn_op_next": "ii",
    "tn_parallel_threads": "i",
    "tn_permute": "ippp",
    "tn_permute_explain": "ipppp",
    "tn_permute_prepare": "ippp",
    "tn_plan_cache_clear": "vpi",
    "tn_plan_cache_state_get": "ippipp",
    "tn_platform_communicator": "spp",
    "tn_platform_current": "ipp",
    "tn_platform_device_count": "ip",
    "tn_platform_device_get": "ipipp",
    "tn_platform_device_name": "sp",
    "tn_platform_device_type": "sp",
    "tn_platform_dispatch_key": "sp",
    "tn_platform_get": "ispp",
    "tn_platform_is_async_output_supported": "ipippp",
    "tn_platform_is_available": "ip",
    "tn_platform_is_cuda_alike": "ip",
    "tn_platform_kind": "ip",
    "tn_platform_kind_name": "si",
    "tn_platform_list_choice": "sp",
    "tn_platform_list_count": "zp",
    "tn_platform_list_create": "ipp",
    "tn_platform_list_get": "ppz",
    "tn_platform_list_release": "vp",
    "tn_platform_name": "sp",
    "tn_platform_select": "isp",
    "tn_platform_simple_compile_backend": "spp",
    "tn_platform_supported_model_arch": "pp",
    "tn_platform_supported_quantization": "pp",
    "tn_platform_unspecified": "p",
    "tn_platform_verdict_name": "si",
    "tn_platform_verify_model_arch": "ipsp",
    "tn_platform_verify_quantization": "ipsp",
    "tn_platform_visible_variable": "sp",
    "tn_prepare": "ipsp",
    "tn_random_normal": "ippp",
    "tn_random_uniform": "ippp",
    "tn_reduce": "ippp",
    "tn_reduce_explain": "ipppp",
    "tn_reduce_prepare": "ippp",
    "tn_refusal_name": "si",
    "tn_rotary": "ippp",
    "tn_rotary_explain": "ipppp",
    "tn_rotary_prepare": "ippp",
    "tn_sdpa_params_get": "ippppdiipp",
    "tn_seed_everything": "iLp",
    "tn_setting_get": "ispp",
    "tn_setting_info": "pi",
    "tn_setting_origin": "ipipp",
    "tn_setting_parse": "ispp",
    "tn_setting_reader": "siz",
    "tn_setting_resolved": "lpi",
    "tn_setting_value": "lpi",
    "tn_setting_write": "zpipz",
    "tn_setting_write_resolved": "zpipz",
    "tn_settings_change": "ipzp",
    "tn_settings_file": "s",
    "tn_settings_freeze": "v",
    "tn_settings_frozen": "i",
    "tn_settings_problem": "sz",
    "tn_settings_reset": "isp",
    "tn_settings_save": "isp",
    "tn_softmax": "ippp",
    "tn_softmax_explain": "ipppp",
    "tn_softmax_prepare": "ippp",
    "tn_status_name": "si",
    "tn_stream_create": "ipppp",
    "tn_stream_current": "pp",
    "tn_stream_default": "pp",
    "tn_stream_device": "pp",
    "tn_stream_guard_enter": "ippp",
    "tn_stream_guard_leave": "vp",
    "tn_stream_priority": "ip",
    "tn_stream_query": "ippp",
    "tn_stream_raw": "zp",
    "tn_stream_raw_current": "zp",
    "tn_stream_release": "vp",
    "tn_stream_set": "ipp",
    "tn_stream_synchronize": "ipp",
    "tn_stream_wait_event": "ippp",
    "tn_stream_wait_stream": "ippp",
    "tn_stream_wrap": "ipppp",
    "tn_tensor_create": "ipIpipp",
    "tn_tensor_device": "ippp",
    "tn_tensor_release": "vp",
    "tn_unary": "ippp",
    "tn_unary_explain": "ipppp",
    "tn_unary_prepare": "ippp",
    "tn_verdict_name": "si",
    "tn_version": "s",
    "tn_worker_current_device": "ispp",
    "tn_worker_device_count": "ispp",
    "tn_worker_properties": "isipp",
    "tn_worker_set_device": "isip",
    "tn_worker_snapshot_take": "ip",
}


class Sized(Structure):
    """A structure whose first field, struct_size, is set when it is made."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=sizeof(type(self)), **fields)


def _layout(text: str) -> list[tuple[str, Any]]:
    """Fields from lines of `letter names`; a letter may be followed by [length]."""
    fields = []
    for line in text.strip().splitlines():
        letter, _, names = line.strip().partition(" ")
        kind, _, length = letter.partition("[")
        base = c_char if kind == "c" else TYPES[kind]
        fields += [(name, base * int(length[:-1]) if length else base) for name in names.split()]
    return fields


class Error(Structure):
    _fields_ = _layout("i status native_code\n c[88] where\n c[416] message")


class Change(Structure):
    _fields_ = _layout("i setting strength\n l value\n p text")


class Tensor(Structure):
    __slots__ = ("keep", "dims", "source")
    _fields_ = _layout("""p data
        i device_type device_id ndim
        I dtype
        p shape strides
        L byte_offset
        p owner
        L flags""")


class DlpackTensor(Structure):
    _fields_ = Tensor._fields_[:8]


class DlpackManaged(Structure):
    _fields_ = [("tensor", DlpackTensor), *_layout("p manager deleter")]


class DlpackVersioned(Structure):
    _fields_ = [*_layout("I major minor\n p manager deleter\n L flags"), ("tensor", DlpackTensor)]


class MatmulArgs(Structure):
    _fields_ = _layout("""z struct_size
        p a b out bias
        d alpha beta
        i activation transpose_a transpose_b
        I acc set reserved
        p stream workspace
        L workspace_bytes
        p scale_a scale_b""")


class AttentionArgs(Structure):
    _fields_ = _layout("""z struct_size
        p q k v out lse mask_tensor sinks starts_q starts_k lengths pages
        d scale softcap dropout
        L seed offset
        l window_left window_right max_queries max_keys
        i mask layout
        I set
        i backend
        p stream workspace
        L workspace_bytes
        p seed_tensor""")


class AttentionBackwardArgs(Structure):
    _fields_ = _layout("""z struct_size
        p q k v out lse mask_tensor dout dq dk dv
        d scale softcap dropout
        L seed offset
        l window_left window_right
        i mask layout
        I set
        i backend
        p stream workspace
        L workspace_bytes
        p seed_tensor""")


class AttentionMergeArgs(Structure):
    _fields_ = _layout("""z struct_size
        p in lse_in other lse_other out lse
        i layout reserved
        p stream workspace
        L workspace_bytes""")


class MemoryFillArgs(Structure):
    _fields_ = _layout("""z struct_size
        p device to
        L bytes pattern
        I pattern_bytes reserved
        p stream""")


class PermuteArgs(Structure):
    _fields_ = _layout("""z struct_size
        p in out order
        i order_count reserved
        p stream workspace
        L workspace_bytes""")


class CastArgs(Structure):
    _fields_ = _layout("z struct_size\n p in out stream workspace\n L workspace_bytes")


class FillArgs(Structure):
    _fields_ = _layout("""z struct_size
        p out
        d value imaginary
        p stream workspace
        L workspace_bytes""")


class UnaryArgs(Structure):
    _fields_ = _layout("""z struct_size
        p in out
        i kind reserved
        p stream workspace
        L workspace_bytes""")


class BinaryArgs(Structure):
    _fields_ = _layout("""z struct_size
        p in other out
        i kind reserved
        p stream workspace
        L workspace_bytes""")


class ReduceArgs(Structure):
    _fields_ = _layout("""z struct_size
        p in out
        L axes
        i kind keep
        p stream workspace
        L workspace_bytes""")


class SoftmaxArgs(Structure):
    _fields_ = _layout("""z struct_size
        p in out
        i axis log
        p stream workspace
        L workspace_bytes""")


class NormArgs(Structure):
    _fields_ = _layout("""z struct_size
        p in out weight bias
        d epsilon
        i kind
        I set
        p stream workspace
        L workspace_bytes""")


class RotaryArgs(Structure):
    _fields_ = _layout("""z struct_size
        p in out cos sin
        l size
        i kind reserved
        p stream workspace
        L workspace_bytes""")


class StreamArgs(Sized):
    _fields_ = _layout("z struct_size\n i priority reserved")


class EventArgs(Sized):
    _fields_ = _layout("z struct_size\n i enable_timing blocking interprocess reserved")


class DeviceGuard(Structure):
    _fields_ = _layout("p platform\n i previous entered\n p vendors")


class StreamGuard(Structure):
    _fields_ = [("previous", c_void_p), ("device", DeviceGuard)]


class Capability(Structure):
    _fields_ = _layout("i major minor")


class Fact(Structure):
    _fields_ = _layout("l value\n i known reserved\n c[112] origin")


DEVICE_NUMBERS = (
    "memory_bytes numa_node physical_index multi_processor_count max_threads_per_multi_processor "
    "max_threads_per_block warp_size registers_per_multi_processor shared_memory_per_block "
    "shared_memory_per_multi_processor l2_cache_bytes clock_khz memory_bandwidth is_integrated "
    "pinned_memory triton_capable"
).split()
CAPABILITY_BIT = 63


class DeviceProperties(Sized):
    _fields_ = [
        *_layout("z struct_size\n L known\n c[128] name\n c[48] uuid\n c[32] bus architecture"),
        ("capability", Capability),
        ("dtypes", c_uint32 * 32),
        *[(name, c_int64) for name in DEVICE_NUMBERS],
    ]


class DeviceMemory(Sized):
    _fields_ = [("struct_size", c_size_t), ("total", Fact), ("available", Fact), ("in_use", Fact)]


class Refusal(Sized):
    _fields_ = _layout("z struct_size\n i code reserved\n l needed found\n c[32] what\n c[224] text")


class Candidate(Structure):
    _fields_ = _layout("""z struct_size
        s kernel library backend platform module rule overruled
        i verdict standing
        d predicted_us tuned_us
        L workspace_bytes numerics
        p why
        s predicted_by note""")


class SettingFacts(Structure):
    _fields_ = _layout("""z struct_size
        s key kind standard environment allowed effect since
        i view process_only""")


class Origin(Sized):
    _fields_ = _layout("z struct_size\n i level from\n c[256] text")


class LibraryState(Sized):
    _fields_ = _layout("""z struct_size
        s name platform what module verbose
        i built available enabled kernels
        l version
        c[96] version_text
        c[512] path
        c[416] reason remedy""")


class LockWriteArgs(Sized):
    _fields_ = _layout("z struct_size\n s path\n p problems\n z count\n L flags")


class LockRow(Structure):
    _fields_ = _layout("z struct_size\n s problem locked found text\n i kind reserved")


class PlatformReport(Structure):
    _fields_ = _layout("""z struct_size
        p platform
        s name module reason remedy
        i verdict kind devices current
        z evidence_count""")


class ModuleReport(Structure):
    _fields_ = _layout("""z struct_size
        s name version path origin message remedy
        i stage status
        I abi_major abi_minor
        i platforms libraries kernels languages communicators devices
        d ms""")


class Fallbacks(Sized):
    _fields_ = _layout("""z struct_size
        l preferred avoided unavailable quarantined reference
        c[512] last""")


class PlanCacheState(Sized):
    _fields_ = _layout("""z struct_size
        l size max_size bytes max_bytes hits misses shared evictions""")


class AttentionBackendArgs(Sized):
    _fields_ = _layout("""z struct_size
        p device platform supported
        z supported_count
        l head_size value_size heads groups batch queries keys window_left window_right
        d dropout
        I dtype mask_dtype
        i mask training backend strength layer_default reserved""")


class AttentionChoice(Sized):
    _fields_ = [
        *_layout("z struct_size\n s name kernel\n i backend sdp from fell_back\n c[256] origin"),
        ("why", Refusal),
    ]


class Layout(Structure):
    _fields_ = _layout("I dtype\n i rank\n l alignment\n l[8] shape stride")


class SdpaTensor(Structure):
    _fields_ = [("device", c_void_p), ("lengths", c_void_p), ("layout", Layout),
                *_layout("i nested requires_grad")]


class SdpaParams(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("query", SdpaTensor),
        ("key", SdpaTensor),
        ("value", SdpaTensor),
        ("attn_mask", SdpaTensor),
        *_layout("d dropout\n l library_version\n i is_causal enable_gqa flash\n I permits"),
    ]


class SdpaCheck(Structure):
    _fields_ = [("name", c_char_p), ("outcome", c_int32), ("reserved", c_int32), ("why", Refusal)]


class SdpaReport(Sized):
    _fields_ = [*_layout("z struct_size\n i usable first\n z count"), ("checks", SdpaCheck * 40)]
