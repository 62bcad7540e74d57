"""Openings for matches: a few random legal moves from the start, kept if they leave the game balanced.

    python -m experiments.openings --count 20 --seed 1
    python -m experiments.openings --count 20 --seed 1 --judge cmd=jaxfish --max-score-cp 60

prints one opening a line as JSON. Opening number n depends on the seed and n alone (and on the judge, if there
is one), so a longer list begins with the shorter one. Without a judge an opening must leave both sides the
same pieces; with one its search must also find the position about even. The judge forgets everything before each
search and searches to a fixed depth, so that a deterministic engine always judges alike.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from experiments.engine_spec import EngineSpec, parse_engine_spec
from experiments.rulebook import START_FEN, RuledGame, legal_moves
from experiments.uci_client import START_POSITION, UciClient

MIN_PLIES, MAX_PLIES = 6, 10
JUDGE_DEPTH = 8
MAX_SCORE_CP = 80
JUDGE_TIMEOUT_S = 120.0
MAX_TRIES = 2000  # about one try in four passes the test of material, one in twenty a strict judge

Accept = Callable[[tuple[str, ...]], bool]


class OpeningError(RuntimeError):
    """No opening could be found; the message is a sentence."""


@dataclass(frozen=True)
class Opening:
    """moves from the start position, drawn by a random generator with this seed."""

    seed: str
    moves: tuple[str, ...]


@dataclass(frozen=True)
class OpeningSettings:
    """judge: None to keep every opening with even material. Depth in plies, score in centipawns of the judge."""

    seed: int = 1
    min_plies: int = MIN_PLIES
    max_plies: int = MAX_PLIES
    judge: EngineSpec | None = None
    judge_depth: int = JUDGE_DEPTH
    max_score_cp: int = MAX_SCORE_CP

    def settings(self) -> dict:
        """All of it as JSON knows it."""
        return asdict(self)


def random_opening(seed: str, min_plies: int, max_plies: int, accept: Accept = lambda moves: True) -> Opening:
    """The first acceptable line of random legal moves with even material that the seed leads to."""
    chooser = random.Random(seed)
    for _ in range(MAX_TRIES):
        moves = _random_line(chooser, chooser.randint(min_plies, max_plies))
        if moves is not None and _is_even(moves) and accept(moves):
            return Opening(seed, moves)
    raise OpeningError(f"Seed '{seed}' led to no acceptable opening in {MAX_TRIES} tries.")


def make_openings(settings: OpeningSettings, numbers: list[int]) -> dict[int, Opening]:
    """The openings of these numbers."""
    with _judging(settings) as accept:
        return {
            number: random_opening(f"{settings.seed}/{number}", settings.min_plies, settings.max_plies, accept)
            for number in numbers
        }


@contextmanager
def _judging(settings: OpeningSettings):
    """The test that openings must pass; the judge's process lives as long as the context."""
    if settings.judge is None:
        yield lambda moves: True
        return
    with settings.judge.create_client() as client:
        yield lambda moves: _is_balanced(client, moves, settings.judge_depth, settings.max_score_cp)


def _is_balanced(client: UciClient, moves: tuple[str, ...], depth: int, max_score_cp: int) -> bool:
    client.new_game()
    info = client.search(START_POSITION, moves, f"depth {depth}", JUDGE_TIMEOUT_S).last_scored
    return info is not None and info.score_cp is not None and abs(info.score_cp) <= max_score_cp


def _random_line(chooser: random.Random, plies: int) -> tuple[str, ...] | None:
    """Random legal moves; None if the game ends before."""
    moves: list[str] = []
    for _ in range(plies):
        choices = legal_moves(START_FEN, moves)
        if not choices:
            return None
        moves.append(chooser.choice(choices))
    return tuple(moves)


def _is_even(moves: tuple[str, ...]) -> bool:
    """Whether the game goes on and both sides have the same pieces."""
    game = RuledGame(moves=moves)
    placement = game.fen.split()[0]
    white = sorted(letter for letter in placement if letter.isupper())
    black = sorted(letter.upper() for letter in placement if letter.islower())
    return white == black and game.verdict() is None


def add_opening_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments from which `opening_settings` makes settings."""
    group = parser.add_argument_group("openings")
    group.add_argument("--seed", type=int, default=1)
    group.add_argument("--min-plies", type=int, default=MIN_PLIES, help="default %(default)s")
    group.add_argument("--max-plies", type=int, default=MAX_PLIES, help="default %(default)s")
    group.add_argument("--judge", type=parse_engine_spec, metavar="SPEC", help="engine that tells balanced openings")
    group.add_argument("--judge-depth", type=int, default=JUDGE_DEPTH, help="plies (default %(default)s)")
    group.add_argument("--max-score-cp", type=int, default=MAX_SCORE_CP, help="the judge's limit (default %(default)s)")


def opening_settings(arguments: argparse.Namespace) -> OpeningSettings:
    if not 0 <= arguments.min_plies <= arguments.max_plies:
        raise OpeningError(f"{arguments.min_plies} to {arguments.max_plies} plies is no range of lengths.")
    return OpeningSettings(
        arguments.seed,
        arguments.min_plies,
        arguments.max_plies,
        arguments.judge,
        arguments.judge_depth,
        arguments.max_score_cp,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Print varied, balanced openings, one a line as JSON.")
    parser.add_argument("--count", type=int, default=20, help="default %(default)s")
    add_opening_arguments(parser)
    arguments = parser.parse_args()
    for opening in make_openings(opening_settings(arguments), list(range(arguments.count))).values():
        print(json.dumps(asdict(opening)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
