"""Raw memory for kernels: aligned allocation, and loads, stores and prefetches at an address.

Arrays of more than a megabyte cannot be constants of a cached kernel, and passing an array costs
seven machine words and two reference counts a call, even when the callee is inlined. So big tables and
buffers are reached through one int64, their address. Every index counts elements of the accessed type
from that address.

The caller keeps the memory alive and the index inside it; nothing here checks either.
"""

import mmap
from pathlib import Path

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import intrinsic

CACHE_LINE_BYTES = 64
HUGE_PAGE_BYTES = 1 << 21
OWN_MAPPINGS = Path("/proc/self/smaps")  # Linux: every mapping of this process, with what its pages are


def aligned_zeros(shape, dtype) -> np.ndarray:
    """Zeros of `dtype` that start on a cache line; large arrays lie on huge pages where the system gives them.

    Untouched pages take no memory.
    """
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if size < HUGE_PAGE_BYTES // 2:
        buffer = np.zeros(size + CACHE_LINE_BYTES, np.uint8)
        start = -buffer.ctypes.data % CACHE_LINE_BYTES
    else:
        length = -(-size // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES + HUGE_PAGE_BYTES
        memory = _anonymous_memory(length)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        buffer = np.frombuffer(memory, np.uint8)
        start = -buffer.ctypes.data % HUGE_PAGE_BYTES
    return buffer[start : start + size].view(dtype).reshape(shape)


def sparse_zeros(shape, dtype) -> np.ndarray:
    """Zeros of `dtype` on ordinary pages, of which only those that are touched take memory."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = _anonymous_memory(max(1, size))
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.uint8)[:size].view(dtype).reshape(shape)


def _anonymous_memory(length: int) -> mmap.mmap:
    """Private where the system knows the word: shared memory, the default, gets no huge pages."""
    if hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, length)


def aligned_copy(array: np.ndarray) -> np.ndarray:
    """A C-ordered copy of `array` that starts on a cache line."""
    copy = aligned_zeros(array.shape, array.dtype)
    copy[...] = array
    return copy


def address_of(array: np.ndarray) -> int:
    """Address of the first byte of a C-contiguous array."""
    if not array.flags.c_contiguous:
        raise ValueError("only the address of a C-contiguous array describes its contents")
    return array.ctypes.data


def huge_page_bytes(array: np.ndarray, mappings: Path = OWN_MAPPINGS) -> int | None:
    """How much of an array lies on huge pages; None where the system does not tell.

    The system tells it of whole mappings, so it is an upper bound where others share that of the array.
    """
    try:
        lines = mappings.read_text(errors="replace").splitlines()
    except OSError:
        return None
    start = address_of(array)
    size = 0
    is_ours = False
    for words in map(str.split, lines):
        if not words[0].endswith(":"):
            first, end = (int(word, 16) for word in words[0].split("-"))
            is_ours = first < start + array.nbytes and start < end
        elif is_ours and words[0] == "AnonHugePages:":
            size += 1024 * int(words[1])
    return min(size, array.nbytes)


def element_pointer(context, builder, sig, args, element):
    """Pointer to element number args[1] of an array of `element` at address args[0]."""
    address = context.cast(builder, args[0], sig.args[0], types.intp)
    index = context.cast(builder, args[1], sig.args[1], types.intp)
    return builder.gep(builder.inttoptr(address, element.as_pointer()), [index])


def _load(element, numba_type, ordering=None):
    def load(typing_context, address, index):
        def generate(context, builder, sig, args):
            pointer = element_pointer(context, builder, sig, args, element)
            if ordering is not None:
                return builder.load_atomic(pointer, ordering, element.width // 8)
            return builder.load(pointer)

        return signature(numba_type, address, index), generate

    return intrinsic(load)


def _store(element, numba_type):
    def store(typing_context, address, index, value):
        def generate(context, builder, sig, args):
            pointer = element_pointer(context, builder, sig, args, element)
            builder.store(context.cast(builder, args[2], sig.args[2], numba_type), pointer)
            return context.get_dummy_value()

        return signature(types.void, address, index, value), generate

    return intrinsic(store)


load_i64 = _load(ir.IntType(64), types.int64)
load_i32 = _load(ir.IntType(32), types.int32)
load_u8 = _load(ir.IntType(8), types.uint8)
load_u16 = _load(ir.IntType(16), types.uint16)
store_i64 = _store(ir.IntType(64), types.int64)
store_i32 = _store(ir.IntType(32), types.int32)
store_u8 = _store(ir.IntType(8), types.uint8)
store_u16 = _store(ir.IntType(16), types.uint16)
# A flag that another thread sets: an ordinary load may be hoisted out of a loop.
load_i64_acquire = _load(ir.IntType(64), types.int64, ordering="acquire")


@intrinsic
def prefetch(typing_context, address, offset):
    """Ask for the cache line `offset` bytes after `address`."""

    def generate(context, builder, sig, args):
        byte = ir.IntType(8)
        word = ir.IntType(32)
        pointer = element_pointer(context, builder, sig, args, byte)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word]),
            "llvm.prefetch.p0",
        )
        read, keep_in_all_caches, data = word(0), word(3), word(1)
        builder.call(function, [pointer, read, keep_in_all_caches, data])
        return context.get_dummy_value()

    return signature(types.void, address, offset), generate
