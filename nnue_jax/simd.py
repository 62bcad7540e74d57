"""Vector values inside Numba kernels: 512 bits wide, whatever the processor has.

Three types: I8X64, I16X32 and I32X16. LLVM splits them into the registers there are, so the same code runs
everywhere; the one instruction that it does not find by itself, the dot product of unsigned and signed
bytes, is called by name where the processor has it (`dot_u8_i8`).

Memory is given as an address and an index that counts elements, as in `games.memory`.
"""

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import intrinsic, models, register_model

from games.jit import PORTABLE
from games.memory import element_pointer

_WORD = ir.IntType(32)


def _vector_type(name: str, bits: int, lanes: int):
    """(Numba type, LLVM type) of a vector value."""

    class Vector(types.Type):
        def __init__(self):
            super().__init__(name=name)

    layout = ir.VectorType(ir.IntType(bits), lanes)

    @register_model(Vector)
    class VectorModel(models.PrimitiveModel):
        def __init__(self, data_model_manager, frontend_type):
            super().__init__(data_model_manager, frontend_type, layout)

    return Vector(), layout


I8X64, _I8X64 = _vector_type("i8x64", 8, 64)
I16X32, _I16X32 = _vector_type("i16x32", 16, 32)
I32X16, _I32X16 = _vector_type("i32x16", 32, 16)
_LAYOUT = {I8X64: _I8X64, I16X32: _I16X32, I32X16: _I32X16}


def _vector_pointer(context, builder, sig, args, vector):
    pointer = element_pointer(context, builder, sig, args, vector.element)
    return builder.bitcast(pointer, vector.as_pointer())


def _loader(vector, numba_type, widened=None):
    def load(typing_context, address, index):
        def generate(context, builder, sig, args):
            value = builder.load(_vector_pointer(context, builder, sig, args, vector))
            value.align = 1
            return value if widened is None else builder.sext(value, widened)

        return signature(numba_type, address, index), generate

    return intrinsic(load)


load_i8x64 = _loader(_I8X64, I8X64)
load_i16x32 = _loader(_I16X32, I16X32)
load_i32x16 = _loader(_I32X16, I32X16)
# Thirty-two signed bytes, widened.
load_i8x32_as_i16 = _loader(ir.VectorType(ir.IntType(8), 32), I16X32, widened=_I16X32)


def _storer(narrowed=None):
    def store(typing_context, address, index, value):
        def generate(context, builder, sig, args):
            vector = args[2]
            if narrowed is not None:
                vector = builder.trunc(vector, ir.VectorType(narrowed, vector.type.count))
            stored = builder.store(vector, _vector_pointer(context, builder, sig, args, vector.type))
            stored.align = 1
            return context.get_dummy_value()

        return signature(types.void, address, index, value), generate

    return intrinsic(store)


store_vector = _storer()
# The low byte of each lane; the index counts bytes.
store_as_bytes = _storer(narrowed=ir.IntType(8))


def _lanewise(operation):
    def apply(typing_context, left, right):
        def generate(context, builder, sig, args):
            return getattr(builder, operation)(args[0], args[1])

        return signature(left, left, right), generate

    return intrinsic(apply)


add, subtract, multiply = _lanewise("add"), _lanewise("sub"), _lanewise("mul")


def _lanewise_call(name):
    def apply(typing_context, left, right):
        def generate(context, builder, sig, args):
            vector = _LAYOUT[sig.args[0]]
            function = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(vector, [vector, vector]),
                f"{name}.v{vector.count}i{vector.element.width}",
            )
            return builder.call(function, args)

        return signature(left, left, right), generate

    return intrinsic(apply)


minimum, maximum = _lanewise_call("llvm.smin"), _lanewise_call("llvm.smax")


def _splat(builder, scalar, vector):
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, _WORD(0))
    lanes = ir.Constant(ir.VectorType(_WORD, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), lanes)


def _scalar(context, builder, sig, args, place, element):
    """Integer argument number `place`, truncated to the element of a vector."""
    value = context.cast(builder, args[place], sig.args[place], types.int64)
    return builder.trunc(value, element)


def _splatter(vector, numba_type):
    def splat(typing_context, value):
        def generate(context, builder, sig, args):
            return _splat(builder, _scalar(context, builder, sig, args, 0, vector.element), vector)

        return signature(numba_type, value), generate

    return intrinsic(splat)


splat_i16x32, splat_i32x16 = _splatter(_I16X32, I16X32), _splatter(_I32X16, I32X16)


def _shifter(operation):
    def shift(typing_context, value, count):
        def generate(context, builder, sig, args):
            vector = _LAYOUT[sig.args[0]]
            counts = _splat(builder, _scalar(context, builder, sig, args, 1, vector.element), vector)
            return getattr(builder, operation)(args[0], counts)

        return signature(value, value, count), generate

    return intrinsic(shift)


shift_right_logical, shift_right_arithmetic = _shifter("lshr"), _shifter("ashr")


@intrinsic
def broadcast_4_bytes(typing_context, address, index):
    """Sixteen copies of the four bytes at `address + index`."""

    def generate(context, builder, sig, args):
        pointer = element_pointer(context, builder, sig, args, ir.IntType(8))
        word = builder.load(builder.bitcast(pointer, _WORD.as_pointer()))
        word.align = 1
        return builder.bitcast(_splat(builder, word, _I32X16), _I8X64)

    return signature(I8X64, address, index), generate


@intrinsic
def sum_lanes(typing_context, value):
    """Sum of the sixteen lanes, as int32."""

    def generate(context, builder, sig, args):
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_WORD, [_I32X16]), "llvm.vector.reduce.add.v16i32"
        )
        return builder.call(function, args)

    return signature(types.int32, value), generate


@intrinsic
def greatest_lane(typing_context, value):
    """Greatest of the sixteen lanes, as int32."""

    def generate(context, builder, sig, args):
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_WORD, [_I32X16]), "llvm.vector.reduce.smax.v16i32"
        )
        return builder.call(function, args)

    return signature(types.int32, value), generate


@intrinsic
def lane_of(typing_context, value, sought):
    """Number of the first of the sixteen lanes that holds the int32 `sought`; 16 if none does."""

    def generate(context, builder, sig, args):
        mask_type = ir.IntType(16)
        equal = builder.icmp_signed("==", args[0], _splat(builder, args[1], _I32X16))
        mask = builder.bitcast(equal, mask_type)
        return builder.zext(builder.cttz(mask, ir.Constant(ir.IntType(1), 0)), ir.IntType(64))

    return signature(types.int64, value, types.int32), generate


_I8X32 = ir.VectorType(ir.IntType(8), 32)


@intrinsic
def differing_bytes(typing_context, left, right):
    """Word of 32 bits, one for each of the 32 bytes at the addresses `left` and `right` that differs."""

    def generate(context, builder, sig, args):
        values = []
        for address, numba_type in zip(args, sig.args, strict=True):
            pointer = builder.inttoptr(context.cast(builder, address, numba_type, types.intp), _I8X32.as_pointer())
            values.append(builder.load(pointer))
            values[-1].align = 1
        mask = builder.bitcast(builder.icmp_unsigned("!=", *values), _WORD)
        return builder.zext(mask, ir.IntType(64))

    return signature(types.int64, left, right), generate


@intrinsic
def copy_32_bytes(typing_context, target, source):
    """Copy the 32 bytes at the address `source` to `target`."""

    def generate(context, builder, sig, args):
        to, origin = (
            builder.inttoptr(context.cast(builder, address, numba_type, types.intp), _I8X32.as_pointer())
            for address, numba_type in zip(args, sig.args, strict=True)
        )
        value = builder.load(origin)
        value.align = 1
        builder.store(value, to).align = 1
        return context.get_dummy_value()

    return signature(types.void, target, source), generate


@intrinsic
def keep_first_lanes(typing_context, value, count, fill):
    """The first `count` of sixteen lanes, which may be more than there are, and the integer `fill` in the others."""

    def generate(context, builder, sig, args):
        limit = _splat(builder, _scalar(context, builder, sig, args, 1, _WORD), _I32X16)
        other = _splat(builder, _scalar(context, builder, sig, args, 2, _WORD), _I32X16)
        numbers = ir.Constant(_I32X16, list(range(16)))
        return builder.select(builder.icmp_signed("<", numbers, limit), args[0], other)

    return signature(I32X16, value, count, fill), generate


_DOT_NAME = "llvm.x86.avx512.vpdpbusd.512"


def _native_dot_operand():
    """Operand type of the processor's byte dot product, which differs between LLVM versions; None without it."""
    features = llvm.get_host_cpu_features()
    if PORTABLE or not (features.get("avx512vnni") and features.get("avx512bw")):
        return None
    for operand in (_I8X64, _I32X16):
        module = ir.Module()
        function_type = ir.FunctionType(_I32X16, [_I32X16, operand, operand])
        declared = ir.Function(module, function_type, _DOT_NAME)
        caller = ir.Function(module, function_type, "probe")
        builder = ir.IRBuilder(caller.append_basic_block())
        builder.ret(builder.call(declared, caller.args))
        try:
            llvm.parse_assembly(str(module)).verify()
        except RuntimeError:
            continue
        return operand
    return None


_DOT_OPERAND = _native_dot_operand()
HAS_NATIVE_DOT = _DOT_OPERAND is not None


@intrinsic
def dot_u8_i8(typing_context, sums, unsigned, signed):
    """sums[i] + the sum over k < 4 of unsigned[4i + k] * signed[4i + k]; bytes in, int32 out."""

    def generate(context, builder, sig, args):
        if _DOT_OPERAND is not None:
            function = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(_I32X16, [_I32X16, _DOT_OPERAND, _DOT_OPERAND]), _DOT_NAME
            )
            operands = [builder.bitcast(value, _DOT_OPERAND) for value in args[1:]]
            return builder.call(function, [args[0], *operands])
        wide = ir.VectorType(_WORD, 64)
        products = builder.mul(builder.zext(args[1], wide), builder.sext(args[2], wide))
        total = args[0]
        for k in range(4):
            lanes = ir.Constant(ir.VectorType(_WORD, 16), list(range(k, 64, 4)))
            total = builder.add(total, builder.shuffle_vector(products, ir.Constant(wide, ir.Undefined), lanes))
        return total

    return signature(I32X16, sums, unsigned, signed), generate
