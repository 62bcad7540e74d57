"""A position together with the moves that led to it: what `position fen ... moves ...` describes."""

from collections.abc import Iterable

import numpy as np

from games.xiangqi.fen import START_FEN, PositionError, format_fen, parse_fen
from games.xiangqi.geometry import EMPTY, move_text, parse_move
from games.xiangqi.movegen import in_check_kernel, legal_moves, make_move_kernel


class Game:
    """A FEN and the moves played from it, every one checked for legality.

    position: POSITION array [1], the present position. rule60: plies since the last capture, started from the
    FEN's counter. game_ply: plies since the game began. past_keys: Zobrist keys of the positions before the
    present one, oldest first. moves: the moves played from the FEN.
    """

    def __init__(self, fen: str = START_FEN, moves: Iterable[str] = ()):
        parsed = parse_fen(fen)
        self.position: np.ndarray = parsed.position
        self.rule60 = parsed.rule60
        self.game_ply = parsed.game_ply
        self.past_keys: list[int] = []
        self.moves: list[int] = []
        for text in moves:
            self.play(text)

    def play(self, text: str) -> None:
        """Play a move given as UCI text; PositionError, and no change, if it is not legal."""
        try:
            move = parse_move(text)
        except ValueError as error:
            raise PositionError(f"Illegal move: '{text}' is not a move; expected two squares, such as h2e2.") from error
        if move not in self.legal_moves():
            raise PositionError(f"Illegal move: '{text}' is not legal in {self.fen()}.")
        self.past_keys.append(self.key)
        self.moves.append(move)
        captured = make_move_kernel(self.position[0], move)
        self.rule60 = self.rule60 + 1 if captured == EMPTY else 0
        self.game_ply += 1

    def legal_moves(self) -> list[int]:
        return legal_moves(self.position)

    def legal_move_texts(self) -> list[str]:
        """Legal moves as UCI text, sorted."""
        return sorted(map(move_text, self.legal_moves()))

    def fen(self) -> str:
        return format_fen(self.position, self.rule60, self.game_ply)

    @property
    def key(self) -> int:
        """Zobrist key of placement and side to move."""
        return int(self.position["key"][0])

    @property
    def side(self) -> int:
        return int(self.position["side"][0])

    @property
    def in_check(self) -> bool:
        return bool(in_check_kernel(self.position[0]))
