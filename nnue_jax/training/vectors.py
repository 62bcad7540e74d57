"""Vectors of sixteen floats inside Numba kernels; `store_vector` of `nnue_jax.simd`, which has the integers, fits them.

Memory is given as an address and an index that counts elements, as in `games.memory`.
"""

from llvmlite import ir
from numba import types
from numba.core.typing import signature
from numba.extending import intrinsic, models, register_model

from games.memory import element_pointer

FLOATS = 16  # in a vector
_F32X16 = ir.VectorType(ir.FloatType(), FLOATS)


class _Floats(types.Type):
    def __init__(self):
        super().__init__(name="f32x16")


@register_model(_Floats)
class _FloatsModel(models.PrimitiveModel):
    def __init__(self, data_model_manager, frontend_type):
        super().__init__(data_model_manager, frontend_type, _F32X16)


F32X16 = _Floats()


@intrinsic
def load_f32x16(typing_context, address, index):
    """Sixteen neighbouring floats."""

    def generate(context, builder, sig, args):
        pointer = element_pointer(context, builder, sig, args, _F32X16.element)
        value = builder.load(builder.bitcast(pointer, _F32X16.as_pointer()))
        value.align = 4
        return value

    return signature(F32X16, address, index), generate


@intrinsic
def add_floats(typing_context, left, right):
    """Lane by lane."""

    def generate(context, builder, sig, args):
        return builder.fadd(*args)

    return signature(F32X16, left, right), generate
