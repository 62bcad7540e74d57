"""Batches for training: features and targets of positions, laid out for the kernels of `table` and for `model`.

Letters, beside those of `architecture`:

    n   positions of a batch
    N   slots of a batch: n and some that stay empty, a multiple of the tile
    R   2N rows: row 2 i holds the features of the side to move of slot i, row 2 i + 1 those of the other side

Positions are sorted by layer stack, and each stack begins with a new tile, so a tile of slots shares its weights.
`order` lists the rows by bucket, so that the part of the table in use stays in a core's cache.

A position may be mirrored, files a and i swapped: it is worth the same. Which positions are is a function of the
seed, the epoch and the number of the sample alone.
"""

from dataclasses import dataclass

import numpy as np
from numba import int64, uint64

from games.jit import kernel, leaf
from games.xiangqi.geometry import FILES, NO_SQUARE, PIECES, PIECES_PER_SIDE, SQUARES
from games.xiangqi.position import POSITION
from games.xiangqi.tables import MATERIAL_UNIT
from nnue_jax.accumulator import MIRROR_TERMS, feature_row, orientation
from nnue_jax.architecture import FEATURE_BUCKETS, LAYER_STACKS
from nnue_jax.numba_evaluator import layer_stack
from nnue_jax.value import attacking_material

MIN_TILE, MAX_TILE = 8, 128
# `value.blend` and `value.damp`: what a value counts for is (GAIN_OFFSET + material) / GAIN_DIVISOR, and so on.
GAIN_OFFSET, GAIN_DIVISOR, DAMPING = 17380, 20582, 253

# [2 * 256] uint8: the square that a piece on a square has, as it is and mirrored.
_SQUARE = np.tile(np.arange(256, dtype=np.uint8), 2)
_SQUARE[256 : 256 + SQUARES] += (FILES - 1 - 2 * (np.arange(SQUARES) % FILES)).astype(np.uint8)


@dataclass(frozen=True)
class Batch:
    """Positions, with their targets; empty slots have weight 0 and no features."""

    count: int  # n
    features: np.ndarray  # [R, 32] uint16, each below Q
    lengths: np.ndarray  # [R] uint8, how many features a row has
    order: np.ndarray  # [R] int32, all rows, by bucket
    stack_of_tile: np.ndarray  # [N / tile] int32
    sample: np.ndarray  # [N] int64, number of the sample in each slot, -1 for none
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
    """N, with room for `size` positions whatever their stacks."""
    tile = tile_of(size)
    return tile * (-(-size // tile) + LAYER_STACKS)


def empty_batch(size: int) -> Batch:
    """A batch with room for `size` positions."""
    slots = slots_of(size)
    return Batch(
        count=0,
        features=np.zeros((2 * slots, PIECES), np.uint16),
        lengths=np.zeros(2 * slots, np.uint8),
        order=np.zeros(2 * slots, np.int32),
        stack_of_tile=np.zeros(slots // tile_of(size), np.int32),
        sample=np.zeros(slots, np.int64),
        weight=np.zeros(slots, np.float32),
        score=np.zeros(slots, np.float32),
        result=np.zeros(slots, np.float32),
        gain=np.zeros(slots, np.float32),
    )


def make_batch(records: np.ndarray, chosen: np.ndarray, size: int, mirror_seed: int | None) -> Batch:
    """The samples `chosen` [n] of the RECORDs `records`, in a batch for `size` >= n positions.

    With a `mirror_seed` about half of the positions are mirrored, otherwise none.
    """
    if len(chosen) > size:
        raise ValueError(f"{len(chosen)} samples were chosen for a batch of {size}.")
    empty = empty_batch(size)
    batch = Batch(**{**vars(empty), "count": len(chosen)})
    position = np.zeros(1, POSITION)
    position["square_of"] = NO_SQUARE
    slot_of = np.empty(len(chosen), np.int32)
    chosen = np.ascontiguousarray(chosen, np.int64)
    _assign_slots(records, chosen, tile_of(size), position[0], slot_of, batch.stack_of_tile)
    batch.sample[:] = -1
    bucket = np.full(2 * batch.slots, FEATURE_BUCKETS, np.uint8)
    mirrors = mirror_seed is not None
    seed = np.uint64((mirror_seed or 0) % 2**64)
    _fill(
        records, chosen, slot_of, mirrors, seed, position[0], batch.features, batch.lengths, bucket, batch.sample,
        batch.weight, batch.score, batch.result, batch.gain,
    )  # fmt: skip
    _sort_rows(bucket, batch.order)
    return batch


@leaf
def _unpack_mirrored(packed, mirrored, position):
    """Set piece list, side and material of a POSITION record, mirrored or not."""
    material = int64(0)
    for piece in range(PIECES):
        square = int64(packed.square_of[piece])
        position.square_of[piece] = _SQUARE[mirrored * 256 + square]
        if square != NO_SQUARE:
            material += MATERIAL_UNIT[piece]
    position.side = packed.side
    position.material = material


@kernel
def _assign_slots(records, chosen, tile, position, slot_of, stack_of_tile):
    """Fill the slots of the chosen samples, and the stacks of all tiles."""
    next_slot = np.zeros(LAYER_STACKS, np.int64)
    for i in range(len(chosen)):
        _unpack_mirrored(records[chosen[i]].packed, int64(0), position)
        stack = layer_stack(position)
        slot_of[i] = stack
        next_slot[stack] += 1
    first_tile = int64(0)
    for stack in range(LAYER_STACKS):
        tiles = (next_slot[stack] + tile - 1) // tile
        next_slot[stack] = first_tile * tile
        stack_of_tile[first_tile : first_tile + tiles] = stack
        first_tile += tiles
    stack_of_tile[first_tile:] = 0
    for i in range(len(chosen)):
        stack = slot_of[i]
        slot_of[i] = next_slot[stack]
        next_slot[stack] += 1


@leaf
def is_mirrored_sample(seed, sample):
    """A random bit for each sample: the top one of splitmix64."""
    word = (uint64(sample) + seed) * uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> uint64(27))) * uint64(0x94D049BB133111EB)
    return int64((word ^ (word >> uint64(31))) >> uint64(63))


@leaf
def _mirror_codes(position):
    """Codes of White and Black, less MIRROR_BASE."""
    white = int64(0)
    black = int64(0)
    for piece in range(PIECES_PER_SIDE):
        square = int64(position.square_of[piece])
        if square != NO_SQUARE:
            white += MIRROR_TERMS[piece * SQUARES + square]
        square = int64(position.square_of[PIECES_PER_SIDE + piece])
        if square != NO_SQUARE:
            black += MIRROR_TERMS[(PIECES_PER_SIDE + piece) * SQUARES + square]
    return white, black


@leaf
def _fill_row(position, perspective, facing, row):
    """Write the features of one perspective; returns how many there are."""
    length = int64(0)
    for piece in range(PIECES):
        square = int64(position.square_of[piece])
        if square != NO_SQUARE:
            row[length] = feature_row(perspective, facing, piece, square)
            length += 1
    return length


@kernel
def _fill(
    records, chosen, slot_of, mirrors, seed, position, features, lengths, bucket, sample, weight, score, result, gain
):
    for i in range(len(chosen)):
        record = records[chosen[i]]
        mirrored = is_mirrored_sample(seed, chosen[i]) if mirrors else int64(0)
        _unpack_mirrored(record.packed, mirrored, position)
        slot = int64(slot_of[i])
        codes = _mirror_codes(position)
        for part in range(2):
            perspective = position.side ^ part
            facing = orientation(position, perspective, codes[perspective], codes[1 - perspective])
            row = 2 * slot + part
            lengths[row] = _fill_row(position, perspective, facing, features[row])
            bucket[row] = facing >> 1
        sample[slot] = chosen[i]
        weight[slot] = 1
        score[slot] = record.score
        result[slot] = (record.result + 1) / 2
        kept = 1 - record.packed.rule60 / DAMPING
        gain[slot] = (GAIN_OFFSET + attacking_material(position)) / GAIN_DIVISOR * kept


@kernel
def _sort_rows(bucket, order):
    """Fill `order` with the numbers of all rows, by bucket; rows of empty slots, in no bucket, come last."""
    place = np.zeros(FEATURE_BUCKETS + 2, np.int64)
    for row in range(len(bucket)):
        place[int64(bucket[row]) + 1] += 1
    for i in range(FEATURE_BUCKETS + 1):
        place[i + 1] += place[i]
    for row in range(len(bucket)):
        order[place[bucket[row]]] = row
        place[bucket[row]] += 1
