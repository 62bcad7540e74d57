"""Piece-square features, mirroring and layer stacks of a batch of positions, computed on the device.

The arithmetic of `features` in vectors: few look-ups and no branches. A position is first seen from the side to move,
"us": if that is Black, sides are swapped and ranks flipped. Then both perspectives have a fixed place:

    perspective 0, us      pieces 0 to 15 are the own ones, ranks count from our side
    perspective 1, them    pieces 16 to 31 are the own ones, ranks count from the other side

Shapes: n positions. Index arrays are int32.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from games.xiangqi.geometry import (
    CANNON,
    FILES,
    FIRST_OF_KIND,
    KIND_LETTERS,
    KIND_OF,
    KING,
    KNIGHT,
    NO_SQUARE,
    PIECES,
    PIECES_PER_SIDE,
    RANKS,
    ROOK,
    SQUARES,
    flip_ranks,
)
from games.xiangqi.packed import PACKED
from nnue_jax.architecture import ATTACK_BUCKETS, PIECE_SQUARE_FEATURES, PIECE_SQUARES
from nnue_jax.features import E_FILE, F_FILE, MIRROR_SHIFTS, layer_stack_table, local_indices

GONE = SQUARES  # square of a piece that is not on the board
NO_PIECE_SQUARE = PIECE_SQUARE_FEATURES  # feature of such a piece
SIDE_OFFSET = PACKED.fields["side"][1]

# Places of the three parts of a mid-mirror code's distance from MIRROR_BASE, see `_leaning`.
_COUNT_PLACE, _HIGH_PLACE, _LOW_PLACE = 44, 21, 0


class Pieces(NamedTuple):
    """The position as the side to move sees it: int32 [n, 2, 16] by side, ours first, and identity."""

    square: jax.Array  # GONE for a piece that is not there
    file: jax.Array
    rank: jax.Array
    present: jax.Array  # bool


class PieceSquares(NamedTuple):
    """Active features of both perspectives."""

    features: jax.Array  # [n, 2, 32] below Q, or NO_PIECE_SQUARE
    bucket: jax.Array  # [n, 2], the block of 689 features that all of them lie in
    local: jax.Array  # [n, 2, 32] index in that block, or NO_PIECE_SQUARE
    mirrored: jax.Array  # [n, 2] bool


def seen_from_side_to_move(records: jax.Array) -> Pieces:
    """Pieces of PACKED records, given as their bytes [n, 36] uint8."""
    listed = records[:, :PIECES].astype(jnp.int32).reshape(-1, 2, PIECES_PER_SIDE)
    black = records[:, SIDE_OFFSET, None, None] != 0
    seen = jnp.where(black, listed[:, ::-1], listed)
    present = seen != NO_SQUARE
    flipped = seen + FILES * (RANKS - 1 - 2 * (seen // FILES))
    # Without a barrier XLA computes the squares anew wherever they are used, which costs more than to keep them.
    square = jax.lax.optimization_barrier(jnp.where(present, jnp.where(black, flipped, seen), GONE))
    rank = square // FILES
    return Pieces(square, square - FILES * rank, rank, square != GONE)


def _local_table() -> np.ndarray:
    """[2 * 2 * 32 * 91] int32: local index by perspective, mirrored, identity and square; Q where there is none."""
    table = np.full((2, 2, PIECES, SQUARES + 1), NO_PIECE_SQUARE, np.int32)
    indices = local_indices()
    for perspective, mirrored, piece, square in np.ndindex(2, 2, PIECES, SQUARES):
        oriented = flip_ranks(square) if perspective else square
        if mirrored:
            oriented += FILES - 1 - 2 * (oriented % FILES)
        own = piece // PIECES_PER_SIDE == perspective
        local = indices.get((own, int(KIND_OF[piece]), oriented))
        if local is not None:
            table[perspective, mirrored, piece, square] = local
    return table.ravel()


def _mirror_weights() -> np.ndarray:
    """[3, 16] int32: by identity, what a piece counts and what its square counts in the high and the low part."""
    weights = np.zeros((3, PIECES_PER_SIDE), np.int32)
    for piece in range(PIECES_PER_SIDE):
        kind = int(KIND_OF[piece])
        if kind == KING:
            continue
        count_shift, square_shift = MIRROR_SHIFTS[KIND_LETTERS[kind]]
        part, place = (1, _HIGH_PLACE) if square_shift >= _HIGH_PLACE else (2, _LOW_PLACE)
        weights[0, piece] = 1 << count_shift - _COUNT_PLACE
        weights[part, piece] = 1 << square_shift - place
    return weights


_LOCAL = _local_table()
_MIRROR_WEIGHTS = _mirror_weights()
_LAYER_STACK = layer_stack_table().astype(np.int32)


def _own_rank(pieces: Pieces) -> jax.Array:
    """[n, 2, 16] ranks, counted from the back rank of the side that the piece belongs to."""
    return jnp.where(jnp.arange(2)[:, None] == 0, pieces.rank, RANKS - 1 - pieces.rank)


def _leaning(pieces: Pieces) -> tuple[jax.Array, jax.Array]:
    """(negative, zero), bool [n, 2]: of each side, how its mid-mirror code lies to MIRROR_BASE.

    The distance has 63 bits, more than an integer here. It is summed in three parts, counts * 2**44 + high * 2**21 +
    low, and the carries go up before the sign is read; no part needs more than 27 bits.
    """
    off_centre = pieces.present & (pieces.file != E_FILE)
    sign = jnp.where(off_centre, jnp.where(pieces.file < E_FILE, 1, -1), 0)
    column = jnp.minimum(pieces.file, FILES - 1 - pieces.file)
    place = sign * ((3 - column) * RANKS + _own_rank(pieces))
    count, high, low = (
        (term * weight).sum(-1) for term, weight in zip((sign, place, place), jnp.asarray(_MIRROR_WEIGHTS), strict=True)
    )
    high += low >> _HIGH_PLACE - _LOW_PLACE
    count += high >> _COUNT_PLACE - _HIGH_PLACE
    rest = (low & (1 << _HIGH_PLACE - _LOW_PLACE) - 1) | (high & (1 << _COUNT_PLACE - _HIGH_PLACE) - 1)
    return count < 0, (count == 0) & (rest == 0)


def _is_mirrored(pieces: Pieces) -> jax.Array:
    """[n, 2] bool by perspective."""
    own = pieces.file[:, :, KING]
    other = own[:, ::-1]
    negative, zero = _leaning(pieces)
    leans_right = negative | (zero & negative[:, ::-1])
    return (own == F_FILE) | ((own == E_FILE) & ((other == F_FILE) | ((other == E_FILE) & leans_right)))


def _count(pieces: Pieces, kind: int) -> jax.Array:
    """[n, 2]: pieces of a kind that each side has."""
    of_kind = slice(FIRST_OF_KIND[kind], FIRST_OF_KIND[kind + 1])
    return pieces.present[:, :, of_kind].sum(-1, dtype=jnp.int32)


def _rooks_and_minors(pieces: Pieces) -> tuple[jax.Array, jax.Array]:
    """Numbers of rooks, and of knights and cannons, [n, 2] each."""
    return _count(pieces, ROOK), _count(pieces, KNIGHT) + _count(pieces, CANNON)


def layer_stacks(pieces: Pieces) -> jax.Array:
    """[n]: layer stack 0 ... 15."""
    rooks, minors = _rooks_and_minors(pieces)
    material = ((rooks[:, 0] * 3 + rooks[:, 1]) * 5 + minors[:, 0]) * 5 + minors[:, 1]
    return jnp.take(jnp.asarray(_LAYER_STACK), material, mode="clip")


def piece_square_features(pieces: Pieces) -> PieceSquares:
    """Features as in reference.piece_square_features, in the order of identities."""
    mirrored = _is_mirrored(pieces)
    rooks, minors = _rooks_and_minors(pieces)
    king_bucket = 2 * _own_rank(pieces)[:, :, KING] + (pieces.file[:, :, KING] == E_FILE)
    bucket = ATTACK_BUCKETS * king_bucket + 2 * (rooks > 0) + (minors > 0)
    block = (2 * jnp.arange(2) + mirrored) * PIECES
    place = (block[:, :, None] + jnp.arange(PIECES)) * (SQUARES + 1) + pieces.square.reshape(-1, 1, PIECES)
    local = jnp.take(jnp.asarray(_LOCAL), place, mode="clip")
    features = jnp.minimum(PIECE_SQUARES * bucket[:, :, None] + local, NO_PIECE_SQUARE)
    return PieceSquares(features, bucket, local, mirrored)
