"""Roots and outcomes as callers see them: from FENs and Games to ROOTs, and from FOUND_LINEs to reports."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from games.xiangqi.fen import PositionError
from games.xiangqi.game import Game
from games.xiangqi.geometry import NO_MOVE, move_text
from games.xiangqi.line import LINE
from games.xiangqi.packed import pack_position
from nnue_jax.win_rate import WinRateModel
from search.limits import BOUND_NAMES, Score
from search.roots import NO_LINE, ROOT

BLOCK_POSITIONS = 256


@dataclass(frozen=True)
class RootBlock:
    """[n] ROOT, whose numbers do not matter.

    lines: [n] LINE that led to the roots, if to any; it counts where the ROOT has its own index as `line`.
    """

    roots: np.ndarray
    lines: np.ndarray | None = None


@dataclass(frozen=True)
class Outcome:
    """What was found about a root.

    material: as `model_material` counts it. lines: [.] FOUND_LINE, best first; without a move if there is none.
    """

    number: int
    nodes: int
    material: int
    lines: np.ndarray


@dataclass(frozen=True)
class AnalysisLine:
    """One of the best lines of a position. `pv` is in UCI text; bound as in `Report`."""

    depth: int
    selective_depth: int
    score: Score
    bound: str
    pv: tuple[str, ...]


@dataclass(frozen=True)
class PositionAnalysis:
    """What a search has found about one of many positions. best_move: None if there is no legal move."""

    best_move: str | None
    nodes: int
    lines: tuple[AnalysisLine, ...]


def packed_block(packed: np.ndarray) -> RootBlock:
    """Roots to which no moves led, from [n] PACKED."""
    roots = np.zeros(len(packed), ROOT)
    roots["packed"] = packed
    roots["counters"]["rule60"] = packed["rule60"]
    roots["line"] = NO_LINE
    return RootBlock(roots)


def game_block(games: list[Game]) -> RootBlock:
    """Roots with the moves that led to them."""
    roots = np.zeros(len(games), ROOT)
    lines = np.zeros(len(games), LINE)
    for number, game in enumerate(games):
        roots[number]["packed"] = pack_position(game.position, game.rule60)[0]
        roots[number]["counters"] = game.counters[0]
        roots[number]["line"] = number
        roots[number]["last"] = game.last
        lines[number] = game.line[0]
    return RootBlock(roots, lines)


def position_blocks(positions: Iterable[str | Game]) -> Iterator[RootBlock]:
    """Blocks of FENs and Games; PositionError, which names its number, for a FEN that is refused."""
    games: list[Game] = []
    for number, position in enumerate(positions):
        try:
            games.append(position if isinstance(position, Game) else Game(position))
        except PositionError as error:
            yield game_block(games)
            raise PositionError(f"Position {number}, '{position}': {error}") from error
        if len(games) == BLOCK_POSITIONS:
            yield game_block(games)
            games = []
    yield game_block(games)


def position_analysis(outcome: Outcome, model: WinRateModel) -> PositionAnalysis:
    """What callers read of an outcome."""
    win_rate = model.at(outcome.material)
    lines = tuple(
        AnalysisLine(
            depth=int(line["depth"]),
            selective_depth=int(line["selective_depth"]),
            score=Score(int(line["score"]), win_rate),
            bound=BOUND_NAMES.get(int(line["bound"]), ""),
            pv=tuple(map(move_text, line["pv"][: line["pv_length"]].tolist())),
        )
        for line in outcome.lines
    )
    best_move = int(outcome.lines[0]["move"])
    return PositionAnalysis(None if best_move == NO_MOVE else move_text(best_move), outcome.nodes, lines)
