"""Threat features of a batch of positions, computed on the device.

Every way in which a piece may attack another is a slot: a rook or a cannon along each of four lines, the other pieces
by each of their leaps. The victim of a slot is found by comparing squares with those of all 32 pieces. What the board
alone does not forbid, such as leaps across the river or out of the palace, has no entry in the table of features and
drops out there.

Shapes: n positions, L line slots, J leap slots, A = L + J slots in all. Positions as in `jax_features`.
"""

import jax
import jax.numpy as jnp
import numpy as np

from games.xiangqi.geometry import (
    ADVISOR,
    BISHOP,
    CANNON,
    FILES,
    KIND_OF,
    KING,
    KNIGHT,
    PAWN,
    PIECES,
    PIECES_PER_SIDE,
    RANKS,
    ROOK,
    SQUARES,
)
from nnue_jax.jax_features import Pieces
from nnue_jax.reference import DIAGONAL, ORTHOGONAL
from nnue_jax.threats import NO_FEATURE, PIECE_CODES, oriented_code

_NOBODY = PIECES
_FAR = 1 << 20  # farther than any piece
_RANK_STEP = 32  # so that no square off the board coincides with one on it
_NOWHERE = -1 << 20


def _line_slots() -> tuple[np.ndarray, ...]:
    """(attacking identity, step in files, step in ranks, number of pieces to jump over), [L] each."""
    slots = [
        (piece, *step, int(KIND_OF[piece] == CANNON))
        for piece in range(PIECES)
        if KIND_OF[piece] in (ROOK, CANNON)
        for step in ORTHOGONAL
    ]
    return tuple(np.array(column, np.int32) for column in zip(*slots, strict=True))


def _leaps(piece: int) -> list[tuple[int, int, int, int]]:
    """(files, ranks) of each leap, and of the square that must be empty; the latter is the target if there is none."""
    kind = KIND_OF[piece]
    if kind == KNIGHT:
        turns = [(step, turn) for step in ORTHOGONAL for turn in DIAGONAL if step[0] == turn[0] or step[1] == turn[1]]
        return [(step[0] + turn[0], step[1] + turn[1], *step) for step, turn in turns]
    if kind == BISHOP:
        return [(2 * files, 2 * ranks, files, ranks) for files, ranks in DIAGONAL]
    if kind == PAWN:
        forward = 1 if piece < PIECES_PER_SIDE else -1
        steps = ((0, forward), (-1, 0), (1, 0))
    else:
        steps = {KING: ORTHOGONAL, ADVISOR: DIAGONAL}.get(kind, ())
    return [(*step, *step) for step in steps]


def _leap_slots() -> tuple[np.ndarray, ...]:
    """(attacking identity, files, ranks, files and ranks to the blocker), [J] each; those with a blocker first."""
    slots = [(piece, *leap) for piece in range(PIECES) for leap in _leaps(piece)]
    slots.sort(key=lambda slot: slot[1:3] == slot[3:5])
    return tuple(np.array(column, np.int32) for column in zip(*slots, strict=True))


_LINE_PIECE, _LINE_FILES, _LINE_RANKS, _LINE_JUMPS = _line_slots()
_LEAP_PIECE, _LEAP_FILES, _LEAP_RANKS, _BLOCKER_FILES, _BLOCKER_RANKS = _leap_slots()
_BLOCKABLE = int(((_LEAP_FILES != _BLOCKER_FILES) | (_LEAP_RANKS != _BLOCKER_RANKS)).sum())
_SLOT_PIECE = np.concatenate([_LINE_PIECE, _LEAP_PIECE])
THREAT_SLOTS = len(_SLOT_PIECE)

# [2 * 33] int32: code of each identity from the perspectives of us and of them; of nobody any.
_CODE = np.array(
    [
        [oriented_code(piece // PIECES_PER_SIDE == perspective, int(KIND_OF[piece])) for piece in range(PIECES)] + [0]
        for perspective in range(2)
    ],
    np.int32,
)


def _line_victims(file: jax.Array, rank: jax.Array, present: jax.Array) -> jax.Array:
    """[n, L]: the first, or for a cannon the second, piece on each line; operands are [n, 32]."""
    files = file[:, None, :] - file[:, _LINE_PIECE, None]
    ranks = rank[:, None, :] - rank[:, _LINE_PIECE, None]
    step_files, step_ranks = _LINE_FILES[:, None], _LINE_RANKS[:, None]
    along = files * step_files + ranks * step_ranks
    across = files * step_ranks - ranks * step_files
    # Distance and identity in one number, so that the nearest is a minimum.
    on_line = (across == 0) & (along > 0) & present[:, None, :]
    key = jnp.where(on_line, along * PIECES + jnp.arange(PIECES), _FAR)
    first = key.min(-1)
    second = jnp.where(key > first[:, :, None], key, _FAR).min(-1)
    found = jnp.where(_LINE_JUMPS == 1, second, first)
    return jnp.where(found < _FAR, found % PIECES, _NOBODY)


def _leap_victims(file: jax.Array, rank: jax.Array, present: jax.Array) -> jax.Array:
    """[n, J]: the piece on the target of each leap that nothing blocks."""
    place = jnp.where(present, file + _RANK_STEP * rank, _NOWHERE)

    def stands_on(leaps, files, ranks):
        squares = (file[:, leaps] + files) + _RANK_STEP * (rank[:, leaps] + ranks)
        return squares[:, :, None] == place[:, None, :]

    is_victim = stands_on(_LEAP_PIECE, _LEAP_FILES, _LEAP_RANKS)
    victim = jnp.where(is_victim, jnp.arange(PIECES), _NOBODY).min(-1)
    blockable = slice(_BLOCKABLE)
    blocked = stands_on(_LEAP_PIECE[blockable], _BLOCKER_FILES[blockable], _BLOCKER_RANKS[blockable]).any(-1)
    blocked = jnp.pad(blocked, ((0, 0), (0, len(_LEAP_PIECE) - _BLOCKABLE)))
    return jnp.where(blocked, _NOBODY, victim)


def threat_features(pieces: Pieces, mirrored: jax.Array, table: jax.Array) -> jax.Array:
    """[n, 2, A] int32: the feature of each slot from both perspectives, or NO_FEATURE.

    mirrored: [n, 2] bool by perspective; table: `threats.threat_table`, flat.
    """
    square, file, rank, present = (part.reshape(-1, PIECES) for part in pieces)
    victim = jnp.concatenate([_line_victims(file, rank, present), _leap_victims(file, rank, present)], axis=1)
    attacks = (victim != _NOBODY) & present[:, _SLOT_PIECE]
    victim = jax.lax.optimization_barrier(victim)
    origin = square[:, _SLOT_PIECE]
    target = jnp.take_along_axis(square, victim, axis=1, mode="clip")
    perspective = jnp.arange(2)[:, None]
    ends = [_oriented(end[:, None], perspective, mirrored[:, :, None]) for end in (origin, target)]
    victim_code = jnp.take(jnp.asarray(_CODE.ravel()), perspective * (PIECES + 1) + victim[:, None], mode="clip")
    attacker_code = jnp.asarray(_CODE[:, _SLOT_PIECE])
    index = ((attacker_code * SQUARES + ends[0]) * SQUARES + ends[1]) * PIECE_CODES + victim_code
    found = jnp.take(table, index, mode="clip").astype(jnp.int32)
    return jnp.where(attacks[:, None], found, NO_FEATURE)


def _oriented(square: jax.Array, perspective: jax.Array, mirrored: jax.Array) -> jax.Array:
    rank = square // FILES
    file = square - FILES * rank
    rank = jnp.where(perspective == 1, RANKS - 1 - rank, rank)
    return FILES * rank + jnp.where(mirrored, FILES - 1 - file, file)
