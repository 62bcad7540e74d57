"""A position together with the moves that led to it: what `position fen ... moves ...` describes."""

from collections.abc import Iterable

import numpy as np

from games.xiangqi.fen import SIDE_LETTERS, START_FEN, PositionError, format_fen, parse_fen
from games.xiangqi.geometry import move_text, parse_move
from games.xiangqi.line import COUNTERS, HISTORY_LENGTH, LINE, begin_line_kernel, extend_line_kernel
from games.xiangqi.movegen import legal_moves


class Game:
    """A FEN and the moves played from it, every one checked for legality.

    position    POSITION array [1], the present position
    game_ply    plies since the game began
    moves       the moves played from the FEN
    line        LINE array [1]: what led to the present position, which is its element number `last`; at most the
                last HISTORY_LENGTH positions
    counters    COUNTERS array [1] of the present position; rule60 starts from the FEN's counter
    """

    def __init__(self, fen: str = START_FEN, moves: Iterable[str] = ()):
        parsed = parse_fen(fen)
        self.position: np.ndarray = parsed.position
        self.game_ply = parsed.game_ply
        self.moves: list[int] = []
        self.line = np.zeros(1, LINE)
        self.last = 0
        self.counters = np.zeros(1, COUNTERS)
        self.counters["rule60"] = parsed.rule60
        begin_line_kernel(self.position[0], self.line[0])
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
        if self.last == HISTORY_LENGTH - 1:
            self._forget_half()
        before = self.counters.copy()
        extend_line_kernel(self.position[0], self.line[0], self.last, before[0], self.counters[0], move)
        self.last += 1
        self.moves.append(move)
        self.game_ply += 1

    def _forget_half(self) -> None:
        """Make room in the line; what is lost lies far behind any repetition that counts."""
        kept = HISTORY_LENGTH // 2
        for name in LINE.names:
            column = self.line[name][0]
            column[:kept] = column[self.last + 1 - kept : self.last + 1].copy()
        self.last = kept - 1
        self.counters["since_pass"] = self.last  # no repetition reaches back beyond what is kept

    def legal_moves(self) -> list[int]:
        return legal_moves(self.position)

    def legal_move_texts(self) -> list[str]:
        """Legal moves as UCI text, sorted."""
        return sorted(map(move_text, self.legal_moves()))

    def fen(self) -> str:
        return format_fen(self.position, self.rule60, self.game_ply)

    def flipped(self) -> "Game":
        """The present position with colours swapped and ranks mirrored, and the other side to move.

        Both counters of the FEN stay; the moves that led here are forgotten.
        """
        placement = self.fen().split()[0]
        ranks = "/".join(reversed(placement.split("/"))).swapcase()
        game = Game(f"{ranks} {SIDE_LETTERS[1 - self.side]}")
        game.counters["rule60"] = self.rule60  # by moves it may have grown beyond what a FEN may say
        game.game_ply = self.game_ply - self.side + game.side
        return game

    @property
    def key(self) -> int:
        """Zobrist key of placement and side to move."""
        return int(self.position["key"][0])

    @property
    def past_keys(self) -> list[int]:
        """Zobrist keys of the positions before the present one, oldest first."""
        return self.line["keys"][0, : self.last].tolist()

    @property
    def rule60(self) -> int:
        """Plies that the 60-move rule counts."""
        return int(self.counters["rule60"][0])

    @property
    def checks(self) -> tuple[int, int]:
        """Checks given by White and by Black since the last capture."""
        white, black = self.counters["checks"][0].tolist()
        return white, black

    @property
    def side(self) -> int:
        return int(self.position["side"][0])

    @property
    def in_check(self) -> bool:
        return bool(self.line["in_check"][0, self.last])
