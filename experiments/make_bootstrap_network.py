"""Write the bootstrap network: material and simple piece-square values, nothing learnt.

    python experiments/make_bootstrap_network.py nets/bootstrap.nnue

All of its knowledge is in the piece-square part (PSQT). The positional part is exactly zero for every input,
for two reasons: weights and bias of the last layer are zero, and the two outputs of fc0 whose difference
skips the layers have equal weights and biases. The remaining parameters have no effect; they are random, so
that the network costs an evaluator what a trained one of its width costs, and training can start from it.
"""

import argparse
from pathlib import Path

import numpy as np

from games.xiangqi.geometry import (
    ADVISOR,
    BISHOP,
    CANNON,
    FILES,
    KING,
    KNIGHT,
    PAWN,
    ROOK,
    flip_ranks,
)
from nnue_jax.architecture import (
    FEATURE_BUCKETS,
    HIDDEN,
    LAYER_STACKS,
    PIECE_SQUARE_FEATURES,
    Architecture,
)
from nnue_jax.features import local_indices
from nnue_jax.network_file import LayerStack, Network, write_network
from nnue_jax.reference import OUTPUT_SCALE, SKIP_MINUS, SKIP_PLUS

PIECE_VALUES = {ROOK: 1300, ADVISOR: 220, CANNON: 770, PAWN: 120, KNIGHT: 720, BISHOP: 250, KING: 0}


def piece_square_value(kind: int, square: int) -> int:
    """Worth of an own piece in internal units; the same on both wings."""
    rank = square // FILES
    centrality = 4 - abs(square % FILES - 4)  # 0 on files a and i, 4 on file e
    bonus = {
        ROOK: 8 * centrality + 20 * (rank >= 5),
        ADVISOR: 6 * centrality,
        CANNON: 8 * centrality,
        PAWN: 5 * centrality if rank < 5 else 60 + 15 * min(rank - 5, 3) + 10 * centrality - 80 * (rank == 9),
        KNIGHT: 10 * centrality + 10 * min(rank, 7) - 60,
        BISHOP: 6 * centrality,
        KING: -30 * rank,
    }
    return PIECE_VALUES[kind] + bonus[kind]


def bootstrap_psqt() -> np.ndarray:
    """[Q, S] int32: the same value in every bucket.

    The other perspective sees every value negated, so half the difference of both sums is the sum of the side
    to move; the factor OUTPUT_SCALE makes the psqt output the difference in piece-square values.
    """
    column = [
        piece_square_value(kind, square) if own else -piece_square_value(kind, flip_ranks(square))
        for own, kind, square in local_indices()
    ]
    values = np.tile(column, FEATURE_BUCKETS) * OUTPUT_SCALE
    return np.repeat(values[:, None], LAYER_STACKS, axis=1).astype("<i4")


def uniform(stream: np.random.PCG64, shape: tuple[int, ...], amplitude: int, dtype: str) -> np.ndarray:
    """Integers from -amplitude to amplitude; the raw stream is the same in every version of NumPy."""
    words = stream.random_raw(int(np.prod(shape)))
    return ((words % np.uint64(2 * amplitude + 1)).astype(np.int64) - amplitude).reshape(shape).astype(dtype)


def silent_stack(stream: np.random.PCG64, width: int) -> LayerStack:
    """A layer stack whose output is zero whatever its input."""
    fc0_bias = uniform(stream, (HIDDEN,), 1000, "<i4")
    fc0_weight = uniform(stream, (HIDDEN, width), 40, "i1")
    fc0_bias[SKIP_MINUS] = fc0_bias[SKIP_PLUS]
    fc0_weight[SKIP_MINUS] = fc0_weight[SKIP_PLUS]
    return LayerStack(
        fc0_bias=fc0_bias,
        fc0_weight=fc0_weight,
        fc1_bias=uniform(stream, (HIDDEN,), 1000, "<i4"),
        fc1_weight=uniform(stream, (HIDDEN, 2 * HIDDEN), 24, "i1"),
        fc2_bias=np.zeros(1, "<i4"),
        fc2_weight=np.zeros((1, 4 * HIDDEN), "i1"),
    )


def bootstrap_network(width: int, seed: int) -> Network:
    stream = np.random.PCG64(seed)
    return Network(
        architecture=Architecture(width),
        description=b"jaxfish bootstrap: material and piece squares",
        transformer_bias=uniform(stream, (width,), 60, "<i2"),
        threat_weight=np.zeros((0, width), "i1"),
        threat_psqt=np.zeros((0, LAYER_STACKS), "<i4"),
        piece_square_weight=uniform(stream, (PIECE_SQUARE_FEATURES, width), 30, "i1"),
        piece_square_psqt=bootstrap_psqt(),
        stacks=tuple(silent_stack(stream, width) for _ in range(LAYER_STACKS)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    write_network(bootstrap_network(args.width, args.seed), args.output)
    print(f"{args.output}: {args.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
