"""Xiangqi's rules by pyffish (Fairy-Stockfish), which shares no code with ours."""

import pyffish

from experiments.uci_client import shift_ranks

VARIANT = "xiangqi"
MAX_QUIET_PLIES = 120
MAX_PLIES = 400


def legal_moves(fen: str, moves: list[str]) -> set[str]:
    """Legal moves, in coordinates a0 ... i9, after `moves` from `fen`."""
    found = pyffish.legal_moves(VARIANT, fen, [shift_ranks(move, 1) for move in moves])
    return {shift_ranks(move, -1) for move in found}


def piece_count(fen: str, moves: list[str]) -> int:
    """Number of pieces on the board after `moves`."""
    after = pyffish.get_fen(VARIANT, fen, [shift_ranks(move, 1) for move in moves])
    return sum(letter.isalpha() for letter in after.split()[0])


def first_illegal(fen: str, moves: list[str], line: tuple[str, ...]) -> int | None:
    """Index of the first move of `line` that is not legal after `moves`, or None."""
    played = list(moves)
    for index, move in enumerate(line):
        if move not in legal_moves(fen, played):
            return index
        played.append(move)
    return None


def verdict(fen: str, moves: list[str], quiet_plies: int) -> tuple[float, str] | None:
    """(points of the side to move, reason) if the game is over, otherwise None.

    A side without a legal move has lost. Repetitions are judged by pyffish: perpetual check and chase lose.
    """
    translated = [shift_ranks(move, 1) for move in moves]
    if not pyffish.legal_moves(VARIANT, fen, translated):
        return 0.0, "no legal move"
    if quiet_plies >= MAX_QUIET_PLIES:
        return 0.5, "no capture in 60 moves"
    over, value = pyffish.is_optional_game_end(VARIANT, fen, translated)
    if over:
        return (0.5 if value == 0 else float(value > 0)), "repetition"
    if len(moves) >= MAX_PLIES:
        return 0.5, "too long"
    return None
