"""Kernels through which tests call the leaves of the rules."""

import numpy as np
from numba import int64

from games.jit import kernel
from games.memory import address_of, load_i32
from games.xiangqi.attacks import gave_check, gives_check, is_legal, king_attacked
from games.xiangqi.geometry import MOVE_SHIFT, SQUARE_MASK
from games.xiangqi.movegen import (
    ALL,
    CAPTURES,
    MAX_MOVES,
    QUIETS,
    generate_all,
    generate_captures,
    generate_evasions,
    generate_quiets,
    has_legal_move,
    is_pseudo_legal,
)
from games.xiangqi.position import key_after, make_move, pass_move, unmake_move

GUARD_WORDS = 64
EVASIONS = 3  # beside ALL, CAPTURES and QUIETS
assert EVASIONS not in (ALL, CAPTURES, QUIETS)


@kernel
def _generate(position, which, moves, count):
    if which == ALL:
        return generate_all(position, moves, count)
    if which == CAPTURES:
        return generate_captures(position, moves, count)
    if which == EVASIONS:
        return generate_evasions(position, moves, count)
    return generate_quiets(position, moves, count)


@kernel
def _are_pseudo_legal(position, words, answers):
    for i in range(len(words)):
        answers[i] = is_pseudo_legal(position, words[i])


@kernel
def _judge_moves(position, moves, count, answers):
    """answers [count, 5]: legal, and for legal moves whether they give check, by three ways, and the key after."""
    in_check = king_attacked(position, position.side)
    for i in range(count):
        move = int64(load_i32(moves, i))
        answers[i, 0] = is_legal(position, move, in_check)
        if answers[i, 0] == 0:
            continue
        answers[i, 1] = gives_check(position, move)
        answers[i, 4] = key_after(position, move)
        piece = int64(position.board[move & SQUARE_MASK])
        captured = make_move(position, move)
        answers[i, 2] = gave_check(position, piece, move)
        answers[i, 3] = king_attacked(position, position.side)
        unmake_move(position, move, captured)


@kernel
def unmake_move_kernel(position, move, captured):
    unmake_move(position, int64(move), int64(captured))


@kernel
def pass_move_kernel(position):
    pass_move(position)


@kernel
def _has_legal_move(position, moves):
    return has_legal_move(position, king_attacked(position, position.side), moves, int64(0))


def generated(position: np.ndarray, which: int, first: int = 0) -> list[int]:
    """Pseudo-legal moves of one sort, appended to `first` others; what lies before and behind them must survive."""
    moves = np.full(first + MAX_MOVES + GUARD_WORDS, -1, np.int32)
    count = _generate(position[0], which, address_of(moves), first)
    assert (moves[:first] == -1).all(), "earlier moves were overwritten"
    assert (moves[first + MAX_MOVES :] == -1).all(), "moves were written past the end of the buffer"
    return moves[first:count].tolist()


def pseudo_legal_words(position: np.ndarray, words: np.ndarray) -> list[int]:
    """Those of the int64 `words` that are pseudo-legal moves."""
    answers = np.zeros(len(words), np.bool_)
    _are_pseudo_legal(position[0], words, answers)
    return words[answers].tolist()


def judged_moves(position: np.ndarray) -> dict[int, tuple[bool, ...]]:
    """Pseudo-legal move to (legal, gives check, gave check, other king attacked, key after); zeros if illegal."""
    moves = np.zeros(MAX_MOVES, np.int32)
    count = _generate(position[0], ALL, address_of(moves), 0)
    answers = np.zeros((count, 5), np.int64)
    _judge_moves(position[0], address_of(moves), count, answers)
    return dict(zip(moves[:count].tolist(), map(tuple, answers.tolist()), strict=True))


def can_move(position: np.ndarray) -> bool:
    moves = np.zeros(MAX_MOVES, np.int32)
    return bool(_has_legal_move(position[0], address_of(moves)))


def target_of(move: int) -> int:
    return move >> MOVE_SHIFT
