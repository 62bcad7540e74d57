"""The incremental accumulators of the Numba evaluator, one pair a ply of a line of moves.

`push` notes a move; the sums are brought up to date when an evaluation asks for them, by walking back to the
last ply that has them. A perspective whose orientation (bucket and mirror) changed on the way is refreshed
instead: from the sums it had when it last stood in this orientation, by the pieces that have moved since.

EVALUATOR
    width                             W
    *_weight, *_bias, *_psqt          addresses of parameters, see `numba_evaluator.EvaluatorMemory`
    accumulators                      address of i16 [plies, 2, W]
    psqt_sums                         address of i32 [plies, 2, S]
    cached_accumulators               address of i16 [CACHE_ENTRIES, W]
    cached_psqt                       address of i32 [CACHE_ENTRIES, S]
    cached_squares                    address of u8 [CACHE_ENTRIES, 32], squares of the cached sums' pieces
    transformed, hidden, fc0_out      addresses of scratch: u8 [W], u8 [4H], i32 [H]
    changed_rows                      [64] i4, scratch: rows to add, then rows to remove
    threats                           whether the network has threat features; see `threat_accumulator`
    states                            [plies] STATE
    psqt, positional                  result of the last evaluation

STATE, of one ply
    mirror_code  [2] i8   mid-mirror codes less MIRROR_BASE, modulo 2**64
    orientation  [2] u1   2 * bucket + mirrored, for each perspective
    computed     [2] u1   whether the sums of the ply are there
    threats_computed, threat_count   [2] u1, the same for the threats, and how many there are
    move, piece, captured   the move that led here; NO_MOVE for a pass

An array index of a perspective is the side itself.
"""

import numpy as np
from numba import int64

from games.integers import bit_count, lowest_bit
from games.jit import leaf
from games.memory import load_u8
from games.xiangqi.geometry import (
    BLACK,
    EMPTY,
    FILE_OF,
    FILES,
    KIND_OF,
    NO_MOVE,
    NO_SQUARE,
    PIECES,
    PIECES_PER_SIDE,
    RANKS,
    SQUARES,
    WHITE,
    flip_ranks,
)
from games.xiangqi.position import minor_count, origin_of, rook_count, target_of
from nnue_jax.architecture import ATTACK_BUCKETS, FEATURE_BUCKETS, LAYER_STACKS, PIECE_SQUARES
from nnue_jax.features import E_FILE, F_FILE, local_indices, mirror_term
from nnue_jax.rows import LANES, apply_psqt_rows, apply_rows, copy_sums
from nnue_jax.simd import (
    add,
    copy_32_bytes,
    differing_bytes,
    load_i8x32_as_i16,
    load_i16x32,
    load_i32x16,
    store_vector,
    subtract,
)
from nnue_jax.value import MAX_PLY

PLIES = MAX_PLY + 2
ORIENTATIONS = 2 * FEATURE_BUCKETS
EMPTY_ENTRY = 2 * ORIENTATIONS  # the sums of an empty board, which never change
CACHE_ENTRIES = EMPTY_ENTRY + 1
# A side attacks at most 8 pieces each with its rooks and its cannons, 16 with its knights, 8 each with its elephants
# and its advisors, 4 with its king and 15 with its pawns; some words more may be written than are counted.
MAX_ATTACKS = 2 * 67 + 10

STATE = np.dtype(
    [
        ("mirror_code", "i8", (2,)),
        ("orientation", "u1", (2,)),
        ("computed", "u1", (2,)),
        ("threats_computed", "u1", (2,)),
        ("threat_count", "u1", (2,)),
        ("piece", "u1"),
        ("captured", "u1"),
        ("move", "u2"),
    ],
    align=True,
)

ADDRESSES = (
    "transformer_bias",
    "piece_square_weight",
    "piece_square_psqt",
    "fc0_weight",
    "fc0_bias",
    "fc1_weight",
    "fc1_bias",
    "fc2_weight",
    "fc2_bias",
    "accumulators",
    "psqt_sums",
    "cached_accumulators",
    "cached_psqt",
    "cached_squares",
    "transformed",
    "hidden",
    "fc0_out",
    "threat_weight",
    "threat_psqt",
    "threat_table",
    "threat_accumulators",
    "threat_psqt_sums",
    "threat_lists",
    "threat_marks",
)

EVALUATOR = np.dtype(
    [("width", "i8")]
    + [(name, "i8") for name in ADDRESSES]
    + [
        ("psqt", "i8"),
        ("positional", "i8"),
        ("changed_rows", "i4", (2 * PIECES,)),
        ("threats", "i8"),
        ("attacks", "i4", (MAX_ATTACKS,)),
        ("changed_threats", "i4", (2 * MAX_ATTACKS,)),
        ("states", STATE, (PLIES,)),
    ],
    align=True,
)


def _mirror_terms() -> np.ndarray:
    """[33 * 90] int64, piece * 90 + square; zero for EMPTY."""
    terms = [
        [mirror_term(piece // PIECES_PER_SIDE, int(KIND_OF[piece]), square) for square in range(SQUARES)]
        for piece in range(PIECES)
    ]
    words = np.array([[term % 2**64 for term in row] for row in terms], np.uint64).view(np.int64)
    return np.concatenate([words.ravel(), np.zeros(SQUARES, np.int64)])


def _local_features() -> np.ndarray:
    """[2 * 2 * 33 * 90] uint16: local feature index by ((perspective * 2 + mirrored) * 33 + piece) * 90 + square."""
    index_of = local_indices()
    table = np.zeros((2, 2, PIECES + 1, SQUARES), np.uint16)
    for perspective in (WHITE, BLACK):
        for mirrored in (0, 1):
            for piece in range(PIECES):
                own = piece // PIECES_PER_SIDE == perspective
                for square in range(SQUARES):
                    seen = flip_ranks(square) if perspective == BLACK else square
                    if mirrored:
                        seen += FILES - 1 - 2 * (seen % FILES)
                    table[perspective, mirrored, piece, square] = index_of.get((own, int(KIND_OF[piece]), seen), 0)
    return table.ravel()


MIRROR_TERMS = _mirror_terms()
LOCAL_FEATURES = _local_features()
_KING_BUCKET = np.array(
    [2 * min(s // FILES, RANKS - 1 - s // FILES) + (s % FILES == E_FILE) for s in range(SQUARES)], np.uint8
)


@leaf
def is_mirrored(position, perspective, own_code, other_code):
    """Codes are less MIRROR_BASE, so that their sign tells the side to which pieces lean."""
    own_file = int64(FILE_OF[int64(position.square_of[perspective * PIECES_PER_SIDE])])
    if own_file != E_FILE:
        return own_file == F_FILE
    other_file = int64(FILE_OF[int64(position.square_of[(1 - perspective) * PIECES_PER_SIDE])])
    if other_file != E_FILE:
        return other_file == F_FILE
    return own_code < 0 or (own_code == 0 and other_code < 0)


@leaf
def orientation(position, perspective, own_code, other_code):
    king = int64(position.square_of[perspective * PIECES_PER_SIDE])
    attackers = 2 * int64(rook_count(position, perspective) > 0) + int64(minor_count(position, perspective) > 0)
    bucket = ATTACK_BUCKETS * int64(_KING_BUCKET[king]) + attackers
    return 2 * bucket + int64(is_mirrored(position, perspective, own_code, other_code))


@leaf
def _orient(position, state):
    for side in range(2):
        state.orientation[side] = orientation(position, side, state.mirror_code[side], state.mirror_code[1 - side])
        state.computed[side] = 0
        state.threats_computed[side] = 0


@leaf
def reset(evaluator, position):
    """Start a new line of moves: ply 0 is `position`."""
    state = evaluator.states[0]
    for side in range(2):
        code = int64(0)
        for piece in range(side * PIECES_PER_SIDE, side * PIECES_PER_SIDE + PIECES_PER_SIDE):
            square = int64(position.square_of[piece])
            if square != NO_SQUARE:
                code += MIRROR_TERMS[piece * SQUARES + square]
        state.mirror_code[side] = code
    _orient(position, state)


@leaf
def push(evaluator, position, ply, move, captured):
    """Note that `move`, already made in `position`, leads from `ply` to the next."""
    before = evaluator.states[ply]
    after = evaluator.states[ply + 1]
    origin = origin_of(move)
    target = target_of(move)
    piece = int64(position.board[target])
    mover = 1 - position.side
    terms = MIRROR_TERMS[piece * SQUARES + target] - MIRROR_TERMS[piece * SQUARES + origin]
    after.mirror_code[mover] = before.mirror_code[mover] + terms
    after.mirror_code[1 - mover] = before.mirror_code[1 - mover] - MIRROR_TERMS[captured * SQUARES + target]
    after.move = move
    after.piece = piece
    after.captured = captured
    _orient(position, after)


@leaf
def push_pass(evaluator, ply):
    """Note a pass: the next ply has the same pieces."""
    before = evaluator.states[ply]
    after = evaluator.states[ply + 1]
    for side in range(2):
        after.mirror_code[side] = before.mirror_code[side]
        after.orientation[side] = before.orientation[side]
        after.computed[side] = 0
        after.threats_computed[side] = 0
    after.move = NO_MOVE


@leaf
def feature_row(perspective, orientation, piece, square):
    """Row of the piece-square tables."""
    table = ((perspective * 2 + (orientation & 1)) * (PIECES + 1) + piece) * SQUARES
    return (orientation >> 1) * PIECE_SQUARES + int64(LOCAL_FEATURES[table + square])


@leaf
def _copy(evaluator, perspective, ply):
    sums = evaluator.accumulators
    source = ((ply - 1) * 2 + perspective) * evaluator.width
    copy_sums(evaluator.width, sums, source, sums, source + 2 * evaluator.width)
    sums = evaluator.psqt_sums
    source = ((ply - 1) * 2 + perspective) * LAYER_STACKS
    store_vector(sums, source + 2 * LAYER_STACKS, load_i32x16(sums, source))


@leaf
def _update_quiet(evaluator, perspective, ply, added, removed):
    """Sums of `ply` from those of the ply before it; arguments are feature rows."""
    width = evaluator.width
    weight = evaluator.piece_square_weight
    psqt = evaluator.piece_square_psqt
    source = ((ply - 1) * 2 + perspective) * width
    target = source + 2 * width
    for i in range(0, width, LANES):
        value = add(load_i16x32(evaluator.accumulators, source + i), load_i8x32_as_i16(weight, added * width + i))
        value = subtract(value, load_i8x32_as_i16(weight, removed * width + i))
        store_vector(evaluator.accumulators, target + i, value)
    source = ((ply - 1) * 2 + perspective) * LAYER_STACKS
    sums = add(load_i32x16(evaluator.psqt_sums, source), load_i32x16(psqt, added * LAYER_STACKS))
    sums = subtract(sums, load_i32x16(psqt, removed * LAYER_STACKS))
    store_vector(evaluator.psqt_sums, source + 2 * LAYER_STACKS, sums)


@leaf
def _update_capture(evaluator, perspective, ply, added, removed, captured):
    width = evaluator.width
    weight = evaluator.piece_square_weight
    psqt = evaluator.piece_square_psqt
    source = ((ply - 1) * 2 + perspective) * width
    target = source + 2 * width
    for i in range(0, width, LANES):
        value = add(load_i16x32(evaluator.accumulators, source + i), load_i8x32_as_i16(weight, added * width + i))
        value = subtract(value, load_i8x32_as_i16(weight, removed * width + i))
        value = subtract(value, load_i8x32_as_i16(weight, captured * width + i))
        store_vector(evaluator.accumulators, target + i, value)
    source = ((ply - 1) * 2 + perspective) * LAYER_STACKS
    sums = add(load_i32x16(evaluator.psqt_sums, source), load_i32x16(psqt, added * LAYER_STACKS))
    sums = subtract(sums, load_i32x16(psqt, removed * LAYER_STACKS))
    sums = subtract(sums, load_i32x16(psqt, captured * LAYER_STACKS))
    store_vector(evaluator.psqt_sums, source + 2 * LAYER_STACKS, sums)


@leaf
def _update(evaluator, perspective, ply):
    state = evaluator.states[ply]
    move = state.move
    if move == NO_MOVE:
        _copy(evaluator, perspective, ply)
    else:
        facing = state.orientation[perspective]
        target = target_of(move)
        added = feature_row(perspective, facing, state.piece, target)
        removed = feature_row(perspective, facing, state.piece, origin_of(move))
        if state.captured == EMPTY:
            _update_quiet(evaluator, perspective, ply, added, removed)
        else:
            captured = feature_row(perspective, facing, state.captured, target)
            _update_capture(evaluator, perspective, ply, added, removed, captured)
    state.computed[perspective] = 1


@leaf
def _list_changes(evaluator, position, perspective, facing, cached, changed):
    """Fill `changed_rows` with the difference to a cache entry, given its squares' address and the pieces that differ.

    Returns (number of rows to add, number of rows to remove); the latter start at index PIECES.
    """
    added = 0
    removed = 0
    while changed != 0:
        piece = lowest_bit(changed)
        changed &= changed - 1
        old = int64(load_u8(cached, piece))
        new = int64(position.square_of[piece])
        if old != NO_SQUARE:
            evaluator.changed_rows[PIECES + removed] = feature_row(perspective, facing, piece, old)
            removed += 1
        if new != NO_SQUARE:
            evaluator.changed_rows[added] = feature_row(perspective, facing, piece, new)
            added += 1
    return added, removed


@leaf
def _refresh(evaluator, position, perspective, ply):
    """Sums of `ply`, which is the present position, by way of the cache."""
    width = evaluator.width
    facing = int64(evaluator.states[ply].orientation[perspective])
    entry = perspective * ORIENTATIONS + facing
    squares = position.square_of.ctypes.data
    source = entry
    changed = differing_bytes(squares, evaluator.cached_squares + entry * PIECES)
    if bit_count(changed) > PIECES // 2:
        # A piece that moved costs two rows, so from nothing it may be fewer: one for each piece.
        source = EMPTY_ENTRY
        changed = differing_bytes(squares, evaluator.cached_squares + EMPTY_ENTRY * PIECES)
    cached = evaluator.cached_squares + source * PIECES
    added, removed = _list_changes(evaluator, position, perspective, facing, cached, changed)
    copy_32_bytes(evaluator.cached_squares + entry * PIECES, squares)
    rows = evaluator.changed_rows
    cache = evaluator.cached_accumulators
    place = entry * width
    apply_rows(evaluator.piece_square_weight, width, rows, added, PIECES, removed, cache, source * width, cache, place)
    copy_sums(width, cache, place, evaluator.accumulators, (ply * 2 + perspective) * width)
    cache = evaluator.cached_psqt
    place = entry * LAYER_STACKS
    start = source * LAYER_STACKS
    apply_psqt_rows(evaluator.piece_square_psqt, rows, added, PIECES, removed, cache, start, cache, place)
    store_vector(evaluator.psqt_sums, (ply * 2 + perspective) * LAYER_STACKS, load_i32x16(cache, place))
    evaluator.states[ply].computed[perspective] = 1


@leaf
def bring_up_to_date(evaluator, position, perspective, ply):
    """Make the sums of `ply`, which is the present position, for one perspective."""
    states = evaluator.states
    known = ply
    while states[known].computed[perspective] == 0:
        if known == 0 or states[known].orientation[perspective] != states[known - 1].orientation[perspective]:
            _refresh(evaluator, position, perspective, ply)
            return
        known -= 1
    for next_ply in range(known + 1, ply + 1):
        _update(evaluator, perspective, next_ply)
