"""Integer operations of the processor for which Python has no operator; int64 in, int64 out, in kernels only."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def truncated_division(typing_context, numerator, denominator):
    """Quotient rounded toward zero; one multiplication where the denominator is a constant."""

    def generate(context, builder, sig, args):
        dividend, divisor = (context.cast(builder, args[k], sig.args[k], types.int64) for k in range(2))
        return builder.sdiv(dividend, divisor)

    return types.int64(numerator, denominator), generate


@intrinsic
def lowest_bit(typing_context, word):
    """Number of the lowest bit set in a word that is not zero."""

    def generate(context, builder, sig, args):
        value = context.cast(builder, args[0], sig.args[0], types.int64)
        return builder.cttz(value, ir.Constant(ir.IntType(1), 1))

    return types.int64(word), generate


@intrinsic
def bit_count(typing_context, word):
    """Number of bits set in a word."""

    def generate(context, builder, sig, args):
        return builder.ctpop(context.cast(builder, args[0], sig.args[0], types.int64))

    return types.int64(word), generate
