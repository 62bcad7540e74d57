"""The specification: every step of an evaluation in plain Python and NumPy, slow and obvious.

Fast evaluators are compared with this one and must agree bit for bit.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from games.xiangqi.geometry import (
    ADVISOR,
    BISHOP,
    BLACK,
    CANNON,
    EMPTY,
    FILES,
    KIND_OF,
    KING,
    KNIGHT,
    NO_SQUARE,
    PAWN,
    PIECES_PER_SIDE,
    RANKS,
    ROOK,
    WHITE,
    flip_ranks,
)
from nnue_jax.architecture import ATTACK_BUCKETS, HIDDEN, PIECE_SQUARES
from nnue_jax.features import (
    E_FILE,
    F_FILE,
    KING_ON_E_FILE,
    MIRROR_BASE,
    layer_stack_of,
    local_indices,
    mirror_term,
)
from nnue_jax.network_file import LayerStack, Network
from nnue_jax.threats import oriented_code, threat_indices

CLIP_MAX = 255  # accumulator units are clipped to 0 ... CLIP_MAX
PRODUCT_SHIFT = 9
ACTIVATION_MAX = 127
FC0_SHIFT, FC0_SQUARE_SHIFT = 7, 21
FC1_SHIFT, FC1_SQUARE_SHIFT = 6, 19
SKIP_PLUS, SKIP_MINUS = HIDDEN - 2, HIDDEN - 1
OUTPUT_SCALE = 16

ORTHOGONAL = ((1, 0), (-1, 0), (0, 1), (0, -1))
DIAGONAL = ((1, 1), (-1, 1), (1, -1), (-1, -1))
# Network output units to values times OUTPUT_SCALE.
POSITIONAL_NUMERATOR = 600 * OUTPUT_SCALE
POSITIONAL_DENOMINATOR = 128 * 64 * 2

_LOCAL_INDICES = local_indices()


@dataclass(frozen=True)
class Evaluation:
    """Network output from the side to move's view; `raw` outputs are values times OUTPUT_SCALE."""

    layer_stack: int
    psqt_raw: int
    positional_raw: int
    transformed: np.ndarray  # [W] uint8, input of fc0
    fc0_out: np.ndarray  # [H] int32

    @property
    def psqt(self) -> int:
        return _truncated(self.psqt_raw, OUTPUT_SCALE)

    @property
    def positional(self) -> int:
        return _truncated(self.positional_raw, OUTPUT_SCALE)


def _truncated(numerator: int, denominator: int) -> int:
    """Integer quotient rounded toward zero."""
    quotient = abs(numerator) // denominator
    return quotient if numerator >= 0 else -quotient


def pieces_of(position, side: int) -> list[tuple[int, int]]:
    """(kind, square) of each piece of one side, from a POSITION record."""
    first = side * PIECES_PER_SIDE
    squares = position["square_of"][first : first + PIECES_PER_SIDE].tolist()
    kinds = KIND_OF[:PIECES_PER_SIDE].tolist()
    return [(kind, square) for kind, square in zip(kinds, squares, strict=True) if square != NO_SQUARE]


def count(position, side: int, *kinds: int) -> int:
    return sum(kind in kinds for kind, _ in pieces_of(position, side))


def king_square(position, side: int) -> int:
    return int(position["square_of"][side * PIECES_PER_SIDE])


def mirror_code(position, side: int) -> int:
    """64-bit summary of how the pieces of one side lean to the left or right wing."""
    code = MIRROR_BASE + sum(mirror_term(side, kind, square) for kind, square in pieces_of(position, side))
    return code & (1 << 64) - 1


def leans_right(position, perspective: int) -> bool:
    """Whether the perspective is mirrored while both kings are on the e-file."""
    own = mirror_code(position, perspective)
    other = mirror_code(position, 1 - perspective)
    if not own & other & KING_ON_E_FILE:
        return False
    return own < MIRROR_BASE or (own == MIRROR_BASE and other < MIRROR_BASE)


def is_mirrored(position, perspective: int) -> bool:
    own_file = king_square(position, perspective) % FILES
    other_file = king_square(position, 1 - perspective) % FILES
    if own_file != E_FILE:
        return own_file == F_FILE
    if other_file != E_FILE:
        return other_file == F_FILE
    return leans_right(position, perspective)


def oriented(square: int, perspective: int, mirrored: bool) -> int:
    if perspective == BLACK:
        square = flip_ranks(square)
    if mirrored:
        square += FILES - 1 - 2 * (square % FILES)
    return square


def feature_bucket(position, perspective: int) -> int:
    """Bucket 0 ... 23 that selects a block of features."""
    king = oriented(king_square(position, perspective), perspective, is_mirrored(position, perspective))
    king_bucket = 2 * (king // FILES) + (king % FILES == E_FILE)
    has_rook = count(position, perspective, ROOK) > 0
    has_minor = count(position, perspective, KNIGHT, CANNON) > 0
    return ATTACK_BUCKETS * king_bucket + 2 * has_rook + has_minor


def piece_square_features(position, perspective: int) -> list[int]:
    """Sorted active piece-square features, each below Q."""
    first = PIECE_SQUARES * feature_bucket(position, perspective)
    mirrored = is_mirrored(position, perspective)
    return sorted(
        first + _LOCAL_INDICES[side == perspective, kind, oriented(square, perspective, mirrored)]
        for side in (perspective, 1 - perspective)
        for kind, square in pieces_of(position, side)
    )


def _walk(square: int, step: tuple[int, int]) -> list[int]:
    """Squares from the one after `square` to the edge of the board, in steps of (files, ranks)."""
    file, rank = square % FILES + step[0], square // FILES + step[1]
    squares = []
    while 0 <= file < FILES and 0 <= rank < RANKS:
        squares.append(rank * FILES + file)
        file, rank = file + step[0], rank + step[1]
    return squares


def _in_palace(square: int) -> bool:
    return 3 <= square % FILES <= 5 and square // FILES not in range(3, RANKS - 3)


def attacked_pieces(board: np.ndarray, side: int, kind: int, square: int) -> list[int]:
    """Occupied squares, of either side, that a piece standing on `square` attacks; facing kings do not count."""
    occupied = {s for s in range(len(board)) if board[s] != EMPTY}
    if kind in (ROOK, CANNON):
        pieces = [[s for s in _walk(square, step) if s in occupied] for step in ORTHOGONAL]
        return [line[kind == CANNON] for line in pieces if len(line) > (kind == CANNON)]
    targets = []
    for step in ORTHOGONAL if kind in (KING, KNIGHT) else DIAGONAL:
        line = _walk(square, step)
        if kind == KNIGHT and line and line[0] not in occupied:
            for turn in DIAGONAL:
                if step[0] == turn[0] or step[1] == turn[1]:
                    targets += _walk(line[0], turn)[:1]
        elif kind == BISHOP and len(line) > 1 and line[0] not in occupied:
            if (line[1] // FILES < RANKS // 2) == (square // FILES < RANKS // 2):
                targets.append(line[1])
        elif kind in (KING, ADVISOR) and line and _in_palace(line[0]):
            targets.append(line[0])
    if kind == PAWN:
        forward = 1 if side == WHITE else -1
        has_crossed = (square // FILES >= RANKS // 2) == (side == WHITE)
        for step in [(0, forward), (-1, 0), (1, 0)][: 3 if has_crossed else 1]:
            targets += _walk(square, step)[:1]
    return [target for target in targets if target in occupied]


def threat_features(position, perspective: int) -> list[int]:
    """Sorted active threat features, each below T."""
    board = position["board"]
    mirrored = is_mirrored(position, perspective)
    indices = threat_indices()
    features = []
    for side in (WHITE, BLACK):
        for kind, square in pieces_of(position, side):
            attacker = oriented_code(side == perspective, kind)
            for target in attacked_pieces(board, side, kind, square):
                piece = int(board[target])
                victim = oriented_code(piece // PIECES_PER_SIDE == perspective, int(KIND_OF[piece]))
                ends = [oriented(s, perspective, mirrored) for s in (square, target)]
                features.append(indices.get((attacker, *ends, victim)))
    return sorted(feature for feature in features if feature is not None)


def accumulate(network: Network, position, perspective: int) -> tuple[np.ndarray, np.ndarray]:
    """([W] int16 accumulator, which wraps around, and [S] int32 PSQT sums) of one perspective."""
    features = piece_square_features(position, perspective)
    hidden = network.transformer_bias + network.piece_square_weight[features].sum(axis=0, dtype=np.int16)
    psqt = network.piece_square_psqt[features].sum(axis=0, dtype=np.int32)
    if network.architecture.threats:
        threats = threat_features(position, perspective)
        hidden += network.threat_weight[threats].sum(axis=0, dtype=np.int16)
        psqt += network.threat_psqt[threats].sum(axis=0, dtype=np.int32)
    return hidden, psqt


def pairwise_product(hidden: np.ndarray) -> np.ndarray:
    """[W] int16 accumulator -> [W / 2] uint8 activations, at most 127."""
    clipped = np.clip(hidden, 0, CLIP_MAX).astype(np.int32)
    first, second = np.split(clipped, 2)
    return (first * second >> PRODUCT_SHIFT).astype(np.uint8)


def affine(weight: np.ndarray, bias: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """weight [out, in] int8, bias [out] int32, inputs [in] -> [out] int32."""
    return weight.astype(np.int32) @ inputs.astype(np.int32) + bias


def squared_and_clipped(values: np.ndarray, square_shift: int, shift: int) -> np.ndarray:
    """[n] int32 -> [2n] activations: squared and capped, then clipped."""
    values = values.astype(np.int64)
    squared = np.minimum(values * values >> square_shift, ACTIVATION_MAX)
    clipped = np.clip(values >> shift, 0, ACTIVATION_MAX)
    return np.concatenate([squared, clipped])


def propagate(stack: LayerStack, transformed: np.ndarray) -> tuple[int, np.ndarray]:
    """(positional value times OUTPUT_SCALE, outputs of fc0) of one layer stack."""
    fc0 = affine(stack.fc0_weight, stack.fc0_bias, transformed)
    hidden0 = squared_and_clipped(fc0, FC0_SQUARE_SHIFT, FC0_SHIFT)
    fc1 = affine(stack.fc1_weight, stack.fc1_bias, hidden0)
    hidden1 = squared_and_clipped(fc1, FC1_SQUARE_SHIFT, FC1_SHIFT)
    fc2 = affine(stack.fc2_weight, stack.fc2_bias, np.concatenate([hidden0, hidden1]))
    output = int(fc2[0]) + int(fc0[SKIP_PLUS]) - int(fc0[SKIP_MINUS])
    return _truncated(output * POSITIONAL_NUMERATOR, POSITIONAL_DENOMINATOR), fc0


def layer_stack(position) -> int:
    """The layer stack, or bucket, that a POSITION record uses."""
    us = int(position["side"])
    return layer_stack_of(
        (count(position, us, ROOK), count(position, 1 - us, ROOK)),
        (count(position, us, KNIGHT, CANNON), count(position, 1 - us, KNIGHT, CANNON)),
    )


def evaluate_with(network: Network, position, stacks: Iterable[int]) -> list[Evaluation]:
    """Evaluate a POSITION record with each of these layer stacks, whether it uses them or not."""
    us = int(position["side"])
    hidden_us, psqt_us = accumulate(network, position, us)
    hidden_them, psqt_them = accumulate(network, position, 1 - us)
    transformed = np.concatenate([pairwise_product(hidden_us), pairwise_product(hidden_them)])
    evaluations = []
    for stack in stacks:
        positional_raw, fc0 = propagate(network.stacks[stack], transformed)
        psqt_raw = _truncated(int(psqt_us[stack]) - int(psqt_them[stack]), 2)
        evaluations.append(Evaluation(stack, psqt_raw, positional_raw, transformed, fc0))
    return evaluations


def evaluate(network: Network, position) -> Evaluation:
    """Evaluate a POSITION record."""
    return evaluate_with(network, position, [layer_stack(position)])[0]
