"""Batches for training: features and targets of positions, laid out for the kernels of `table` and for `model`.

Letters, beside those of `architecture`:

    n   positions of a batch
    N   slots of a batch: n and some that stay empty, a multiple of the tile
    R   2N rows: row 2 i holds the features of the side to move of slot i, row 2 i + 1 those of the other side

Positions are sorted by layer stack, and each stack begins with a new tile, so a tile of slots shares its weights.
`order` lists the rows by bucket, so that the part of the table in use stays in a core's cache.

There is no point in mirroring positions at random, to learn from twice as many: a perspective whose pieces lean to one
wing is mirrored anyway (`reference.is_mirrored`), so a position and its mirror image have the same features.
"""

from dataclasses import dataclass, replace

import numpy as np
from numba import int64

from games.jit import kernel, leaf
from games.xiangqi.geometry import (
    BLACK,
    CANNON,
    FIRST_OF_KIND,
    KING,
    KNIGHT,
    NO_SQUARE,
    PIECES,
    PIECES_PER_SIDE,
    ROOK,
    SQUARES,
    WHITE,
)
from games.xiangqi.position import POSITION
from games.xiangqi.tables import MATERIAL_UNIT
from nnue_jax.accumulator import LOCAL_FEATURES, MIRROR_TERMS, orientation
from nnue_jax.architecture import FEATURE_BUCKETS, LAYER_STACKS, PIECE_SQUARES
from nnue_jax.features import layer_stack_table
from nnue_jax.value import attacking_material

MIN_TILE, MAX_TILE = 8, 128
TILE_GROUP = 16
# `value.blend` and `value.damp`: what a value counts for is (GAIN_OFFSET + material) / GAIN_DIVISOR, and so on.
GAIN_OFFSET, GAIN_DIVISOR, DAMPING = 17380, 20582, 253
WHITE_KING, BLACK_KING = WHITE * PIECES_PER_SIDE + KING, BLACK * PIECES_PER_SIDE + KING

_LAYER_STACK = layer_stack_table()


def _identities(*kinds: int) -> np.ndarray:
    return np.concatenate([np.arange(FIRST_OF_KIND[kind], FIRST_OF_KIND[kind + 1]) for kind in kinds])


_ROOKS, _MINORS = _identities(ROOK), _identities(KNIGHT, CANNON)


@dataclass(frozen=True)
class Batch:
    """Positions, with their targets; empty slots have weight 0 and no features."""

    count: int  # n
    features: np.ndarray  # [R, 32] uint16, each below Q
    lengths: np.ndarray  # [R] uint8, how many features a row has
    order: np.ndarray  # [R] int32, all rows, by bucket, and at last those of empty slots
    bucket_ends: np.ndarray  # [24] int64, where the rows of each bucket end in `order`
    stack_of_tile: np.ndarray  # [N / tile] int32
    sample: np.ndarray  # [N] int64, number of the record in each slot, -1 for none
    weight: np.ndarray  # [N] float32, 1 for a position and 0 for none
    score: np.ndarray  # [N] float32, the search's score in internal units
    result: np.ndarray  # [N] float32, points of the side to move: 1, 0.5 or 0
    gain: np.ndarray  # [N] float32, what the network's value is multiplied by in the search, see `model.search_value`

    @property
    def slots(self) -> int:
        return len(self.weight)

    @property
    def tile(self) -> int:
        return self.slots // len(self.stack_of_tile)


def tile_of(size: int) -> int:
    """Slots in a tile for batches of `size` positions: the waste stays below an eighth, where that is possible."""
    tile = MIN_TILE
    while tile < MAX_TILE and 2 * tile * LAYER_STACKS <= size // 8:
        tile *= 2
    return tile


def slots_of(size: int) -> int:
    """N, with room for `size` positions whatever their stacks; the number of tiles is a multiple of TILE_GROUP."""
    group = tile_of(size) * TILE_GROUP
    return group * (-(-size // group) + LAYER_STACKS // TILE_GROUP)


def empty_batch(size: int) -> Batch:
    """A batch with room for `size` positions."""
    slots = slots_of(size)
    return Batch(
        count=0,
        features=np.zeros((2 * slots, PIECES), np.uint16),
        lengths=np.zeros(2 * slots, np.uint8),
        order=np.zeros(2 * slots, np.int32),
        bucket_ends=np.zeros(FEATURE_BUCKETS, np.int64),
        stack_of_tile=np.zeros(slots // tile_of(size), np.int32),
        sample=np.zeros(slots, np.int64),
        weight=np.zeros(slots, np.float32),
        score=np.zeros(slots, np.float32),
        result=np.zeros(slots, np.float32),
        gain=np.zeros(slots, np.float32),
    )


def make_batch(records: np.ndarray, size: int) -> Batch:
    """A batch for `size` positions of [n] RECORD, n <= size."""
    count = len(records)
    if count > size:
        raise ValueError(f"There are {count} positions for a batch of {size}.")
    batch = replace(empty_batch(size), count=count)
    position = np.zeros(1, POSITION)
    position["square_of"] = NO_SQUARE
    slot_of = np.empty(count, np.int32)
    _assign_slots(records, batch.tile, slot_of, batch.stack_of_tile)
    batch.sample[:] = -1
    bucket = np.full(2 * batch.slots, FEATURE_BUCKETS, np.uint8)
    _fill(
        records, slot_of, position[0], batch.features, batch.lengths, bucket, batch.sample, batch.weight, batch.score,
        batch.result, batch.gain,
    )  # fmt: skip
    _sort_rows(bucket, batch.order, batch.bucket_ends)
    return batch


@kernel
def _assign_slots(records, tile, slot_of, stack_of_tile):
    """Fill the slots of all records, and the stacks of all tiles."""
    next_slot = np.zeros(LAYER_STACKS, np.int64)
    for i in range(len(records)):
        packed = records[i].packed
        us = int64(packed.side) * PIECES_PER_SIDE
        them = PIECES_PER_SIDE - us
        rooks = _count(packed, us, _ROOKS) * 3 + _count(packed, them, _ROOKS)
        minors = _count(packed, us, _MINORS) * 5 + _count(packed, them, _MINORS)
        stack = int64(_LAYER_STACK[rooks * 25 + minors])
        slot_of[i] = stack
        next_slot[stack] += 1
    first_tile = int64(0)
    for stack in range(LAYER_STACKS):
        tiles = (next_slot[stack] + tile - 1) // tile
        next_slot[stack] = first_tile * tile
        stack_of_tile[first_tile : first_tile + tiles] = stack
        first_tile += tiles
    stack_of_tile[first_tile:] = 0
    for i in range(len(records)):
        stack = slot_of[i]
        slot_of[i] = next_slot[stack]
        next_slot[stack] += 1


@leaf
def _count(packed, first, identities):
    """Number of pieces that are there, of some identities of the side that begins with `first`."""
    number = int64(0)
    for k in range(len(identities)):
        number += int64(packed.square_of[first + identities[k]] != NO_SQUARE)
    return number


@leaf
def _list_pieces(packed, position, places):
    """Set the kings, side and material of a POSITION record, and list identity * SQUARES + square of all pieces.

    Returns the number of White's pieces, which come first, and of all. No branches: which pieces are gone is nothing
    that a processor could foresee.
    """
    material = int64(0)
    number = int64(0)
    white = int64(0)
    for piece in range(PIECES):
        if piece == PIECES_PER_SIDE:
            white = number
        square = int64(packed.square_of[piece])
        present = int64(square != NO_SQUARE)
        places[number] = piece * SQUARES + square
        material += MATERIAL_UNIT[piece] * present
        number += present
    position.square_of[WHITE_KING] = places[0] - WHITE_KING * SQUARES
    position.square_of[BLACK_KING] = places[white] - BLACK_KING * SQUARES
    position.side = packed.side
    position.material = material
    return white, number


@leaf
def _mirror_code(places, first, end):
    """Of the side with these pieces, less MIRROR_BASE."""
    code = int64(0)
    for i in range(first, end):
        code += MIRROR_TERMS[places[i]]
    return code


@kernel
def _fill(records, slot_of, position, features, lengths, bucket, sample, weight, score, result, gain):
    places = np.empty(PIECES, np.int64)
    codes = np.empty(2, np.int64)
    for i in range(len(records)):
        record = records[i]
        white, number = _list_pieces(record.packed, position, places)
        codes[WHITE] = _mirror_code(places, int64(0), white)
        codes[BLACK] = _mirror_code(places, white, number)
        slot = int64(slot_of[i])
        for part in range(2):
            perspective = position.side ^ part
            facing = orientation(position, perspective, codes[perspective], codes[1 - perspective])
            first = (facing >> 1) * PIECE_SQUARES
            table = (perspective * 2 + (facing & 1)) * (PIECES + 1) * SQUARES
            row = 2 * slot + part
            for k in range(number):
                features[row, k] = first + int64(LOCAL_FEATURES[table + places[k]])
            lengths[row] = number
            bucket[row] = facing >> 1
        sample[slot] = i
        weight[slot] = 1
        score[slot] = record.score
        result[slot] = (record.result + 1) / 2
        kept = 1 - record.packed.rule60 / DAMPING
        gain[slot] = (GAIN_OFFSET + attacking_material(position)) / GAIN_DIVISOR * kept


@kernel
def _sort_rows(bucket, order, bucket_ends):
    """Fill `order` with the numbers of all rows, by bucket; rows of empty slots, in no bucket, come last."""
    place = np.zeros(FEATURE_BUCKETS + 2, np.int64)
    for row in range(len(bucket)):
        place[int64(bucket[row]) + 1] += 1
    for b in range(FEATURE_BUCKETS):
        place[b + 1] += place[b]
        bucket_ends[b] = place[b + 1]
    for row in range(len(bucket)):
        b = int64(bucket[row])
        order[place[b]] = row
        place[b] += 1
