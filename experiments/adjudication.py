"""When the runner ends a game because both engines have agreed on its outcome for long enough.

Scores are those of the engines' info lines, turned to White's view: centipawns, and infinity for a mate. A search
that reported no score agrees with nothing, so it breaks every streak. The rule book comes first: where it ends
the game, nobody asks here.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from experiments.rulebook import BLACK_WINS, DRAW, WHITE_WINS, Verdict
from experiments.uci_client import InfoLine

ADJUDICATED_WIN = "adjudicated win"
ADJUDICATED_DRAW = "adjudicated draw"


class AdjudicationError(ValueError):
    """Text that is no rule of adjudication; the message is a sentence."""


@dataclass(frozen=True)
class ResignRule:
    """A side has lost once the last `moves` moves of both found it at least score_cp centipawns behind."""

    score_cp: int
    moves: int


@dataclass(frozen=True)
class DrawRule:
    """A draw once the last `moves` moves of both found the score within score_cp of zero, but not before from_ply.

    from_ply: plies of the game, the opening's included.
    """

    score_cp: int
    moves: int
    from_ply: int


@dataclass(frozen=True)
class Adjudication:
    """The rules in force; None for one that is not."""

    resign: ResignRule | None = None
    draw: DrawRule | None = None

    def settings(self) -> dict:
        """All of it as JSON knows it."""
        return asdict(self)

    def verdict(self, scores: Sequence[float | None], plies: int) -> Verdict | None:
        """How the game has ended, or None if it goes on.

        scores: of every search of the game, from White's view, None for a search without one. plies: played so far.
        """
        if self.resign is not None:
            winner = agreed_winner(scores, self.resign)
            if winner is not None:
                return Verdict(winner, ADJUDICATED_WIN)
        if self.draw is not None and is_agreed_draw(scores, plies, self.draw):
            return Verdict(DRAW, ADJUDICATED_DRAW)
        return None


NO_ADJUDICATION = Adjudication()


def agreed_winner(scores: Sequence[float | None], rule: ResignRule) -> float | None:
    """White's points if both engines agree on a winner."""
    last = _last_agreement(scores, rule.moves)
    if last is None:
        return None
    if min(last) >= rule.score_cp:
        return WHITE_WINS
    return BLACK_WINS if max(last) <= -rule.score_cp else None


def is_agreed_draw(scores: Sequence[float | None], plies: int, rule: DrawRule) -> bool:
    last = _last_agreement(scores, rule.moves)
    return plies >= rule.from_ply and last is not None and max(map(abs, last)) <= rule.score_cp


def _last_agreement(scores: Sequence[float | None], moves: int) -> list[float] | None:
    """Scores of the last `moves` moves of both sides; None if there are not so many, or if one has no score."""
    last = [score for score in scores[-2 * moves :] if score is not None]
    return last if len(last) == 2 * moves else None


def white_score(info: InfoLine | None, white_to_move: bool) -> float | None:
    """The score of an info line, which is the mover's, from White's view; infinite for a mate."""
    if info is None:
        return None
    if info.mate_moves is not None:
        score = math.inf if info.mate_moves > 0 else -math.inf
    else:
        score = info.score_cp
    return score if white_to_move or score is None else -score


def parse_resign_rule(text: str) -> ResignRule:
    """SCORE_CP,MOVES, such as 800,4."""
    return ResignRule(*_numbers(text, "rule to resign", {"SCORE_CP": 1, "MOVES": 1}))


def parse_draw_rule(text: str) -> DrawRule:
    """SCORE_CP,MOVES,FROM_PLY, such as 10,8,80."""
    return DrawRule(*_numbers(text, "rule for draws", {"SCORE_CP": 0, "MOVES": 1, "FROM_PLY": 0}))


def _numbers(text: str, what: str, minima: dict[str, int]) -> list[int]:
    words = text.split(",")
    if not all(word.isdecimal() for word in words) or len(words) != len(minima):
        raise AdjudicationError(f"'{text}' is no {what}; expected {','.join(minima)} in whole numbers.")
    numbers = list(map(int, words))
    for (name, minimum), number in zip(minima.items(), numbers, strict=True):
        if number < minimum:
            raise AdjudicationError(f"{name} is {number} in '{text}'; expected at least {minimum}.")
    return numbers
