"""An independent rule book for xiangqi: Fairy-Stockfish's, through its Python module pyffish.

It shares no code with the engine, so whatever the two agree on is probably right. Squares are a0 to i9 for our
callers and a1 to i10 for pyffish; FENs are the same for both.

How games end here:

    no legal move     the side to move has lost, in check or not
    repetition        when a position occurs for the third time. JUDGED: perpetual check, and perpetual chase by the
                      rules of the Asian federation, lose for the side that does it; DRAWN: any repetition is a draw
    no capture        a draw after 120 plies without one
    no attackers      a draw once neither side has a rook, knight, cannon or pawn left
    length            a draw after a given number of plies, so that every match comes to an end
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyffish

from experiments.uci_client import count_ranks_from_one, count_ranks_from_zero

VARIANT = "xiangqi"
START_FEN = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w - - 0 1"

REPETITION_COUNT = 3
MAX_QUIET_PLIES = 120  # plies without capture, the 60-move rule
DEFAULT_MAX_PLIES = 300
LENGTH_LIMIT = "length limit"
ATTACKERS = frozenset("RNCPrncp")

WHITE_WINS, DRAW, BLACK_WINS = 1.0, 0.5, 0.0  # White's points


class Repetitions(StrEnum):
    """What becomes of a repeated position."""

    JUDGED = "judged"
    DRAWN = "drawn"


@dataclass(frozen=True)
class Rules:
    """The rules that are a matter of choice."""

    repetitions: Repetitions = Repetitions.JUDGED
    max_plies: int = DEFAULT_MAX_PLIES


class RuleError(ValueError):
    """A FEN or move that the rules do not allow; the message is a sentence."""


@dataclass(frozen=True)
class Verdict:
    """How a game has ended. white_points: 1, 0.5 or 0."""

    white_points: float
    reason: str


def legal_moves(fen: str, moves: Iterable[str] = ()) -> list[str]:
    """Legal moves after `moves`, sorted."""
    return sorted(map(count_ranks_from_zero, pyffish.legal_moves(VARIANT, fen, _outgoing(moves))))


def fen_after(fen: str, moves: Iterable[str]) -> str:
    """The FEN after `moves`; RuleError if one of them is not legal."""
    moves = list(moves)
    try:
        return pyffish.get_fen(VARIANT, fen, _outgoing(moves))
    except (ValueError, SystemError) as error:  # pyffish reports an illegal move by either
        at = first_illegal(fen, moves)
        where = "" if at is None else f": '{moves[at]}', number {at + 1}, is not legal"
        raise RuleError(f"The moves {' '.join(moves)} cannot be played from {fen}{where}.") from error


def is_legal_line(fen: str, moves: Iterable[str]) -> bool:
    """Whether every one of `moves` is legal when its turn comes."""
    try:
        fen_after(fen, moves)
    except RuleError:
        return False
    return True


def first_illegal(fen: str, moves: Sequence[str]) -> int | None:
    """Index of the first illegal move, or None."""
    for at, move in enumerate(moves):
        if move not in legal_moves(fen, moves[:at]):
            return at
    return None


def _outgoing(moves: Iterable[str]) -> list[str]:
    try:
        return [count_ranks_from_one(move) for move in moves]
    except ValueError as error:
        raise RuleError(f"{error}.") from error


class RuledGame:
    """A game as the rule book sees it: moves are checked, and the end is recognised.

    moves: those played from the first FEN. fens: every position so far, the first included.
    """

    def __init__(self, fen: str = START_FEN, moves: Iterable[str] = (), rules: Rules | None = None):
        if pyffish.validate_fen(fen, VARIANT) != pyffish.FEN_OK:
            raise RuleError(f"'{fen}' is no FEN that the rule book accepts.")
        self.fens: list[str] = []
        self.moves: list[str] = []
        self._rules = rules or Rules()
        self._quiet_plies = int(fen.split()[4])
        self._seen: Counter[str] = Counter()
        self._enter(fen)
        for move in moves:
            self.play(move)

    @property
    def fen(self) -> str:
        return self.fens[-1]

    @property
    def white_to_move(self) -> bool:
        return self.fen.split()[1] == "w"

    def play(self, move: str) -> None:
        """Play a move; RuleError, and no change, if it is not legal."""
        before = self.fen
        after = fen_after(before, [move])
        self.moves.append(move)
        self._quiet_plies = self._quiet_plies + 1 if _piece_count(before) == _piece_count(after) else 0
        self._enter(after)

    def legal_moves(self) -> list[str]:
        return legal_moves(self.fen)

    def verdict(self) -> Verdict | None:
        """How the game has ended, or None if it goes on."""
        if not self.legal_moves():
            reason = "checkmate" if pyffish.gives_check(VARIANT, self.fen, []) else "stalemate"
            return self._verdict_for_mover(-1, reason)
        if self._seen[_placement_and_side(self.fen)] >= REPETITION_COUNT:
            return self._judge_repetition()
        if self._quiet_plies >= MAX_QUIET_PLIES:
            return Verdict(DRAW, "120 plies without capture")
        if ATTACKERS.isdisjoint(self.fen.split()[0]):
            return Verdict(DRAW, "no attackers")
        if len(self.moves) >= self._rules.max_plies:
            return Verdict(DRAW, LENGTH_LIMIT)
        return None

    def _enter(self, fen: str) -> None:
        self.fens.append(fen)
        self._seen[_placement_and_side(fen)] += 1

    def _judge_repetition(self) -> Verdict:
        """Ask pyffish about the moves since the position first occurred.

        pyffish also draws after 100 plies without capture, by the FEN's counter, so it gets one that starts at 0.
        """
        if self._rules.repetitions == Repetitions.DRAWN:
            return Verdict(DRAW, "repetition")
        key = _placement_and_side(self.fen)
        first = next(at for at, fen in enumerate(self.fens) if _placement_and_side(fen) == key)
        ended, value = pyffish.is_optional_game_end(VARIANT, f"{key} - - 0 1", _outgoing(self.moves[first:]))
        if not ended or value == pyffish.VALUE_DRAW:
            return Verdict(DRAW, "repetition")
        return self._verdict_for_mover(value, "perpetual check or chase")

    def _verdict_for_mover(self, value: int, reason: str) -> Verdict:
        """value: positive if the side to move has won."""
        white_wins = (value > 0) == self.white_to_move
        return Verdict(WHITE_WINS if white_wins else BLACK_WINS, reason)


def _placement_and_side(fen: str) -> str:
    return " ".join(fen.split()[:2])


def _piece_count(fen: str) -> int:
    return sum(letter.isalpha() for letter in fen.split()[0])
