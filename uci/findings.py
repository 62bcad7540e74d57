"""What a search has found about a run of positions: as arrays, as bytes for the journal, and as rows of a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, islice, pairwise

import numpy as np

from games.xiangqi.geometry import move_text
from nnue_jax.value import MAX_PLY
from nnue_jax.win_rate import WinRateModel
from search.limits import BOUND_NAMES, Score
from search.root_blocks import Outcome
from uci.result_files import ERROR, FEN, INT64, TEXT, Column

POSITION = np.dtype([("nodes", "<i8"), ("material", "<i4"), ("lines", "<i4")])
LINE = np.dtype(
    [("score", "<i4"), ("bound", "<i4"), ("depth", "<i4"), ("selective_depth", "<i4"), ("pv_length", "<i4")]
)
MOVE = np.dtype("<u2")

MULTI_PV = Column("multipv")
LINE_COLUMNS = (
    Column("best_move", TEXT),
    *map(Column, ("cp", "mate", "win", "draw", "loss", "depth", "selective_depth")),
    Column("nodes", INT64),
    Column("pv", TEXT),
    Column("bound", TEXT),
)

_move_text = cache(move_text)


def columns(multi_pv: int, has_errors: bool) -> tuple[Column, ...]:
    """Those of the table: with several lines a position their number is one, too."""
    return (FEN, *([MULTI_PV] if multi_pv > 1 else []), *LINE_COLUMNS, *([ERROR] if has_errors else []))


@dataclass(frozen=True)
class Findings:
    """About n positions with l lines together.

    positions   [n] POSITION; `lines` is their number, `material` as the win-rate model counts it
    lines       [l] LINE, those of a position from the best on
    moves       [.] MOVE, all principal variations one behind the other; empty for a position without a legal move
    """

    positions: np.ndarray
    lines: np.ndarray
    moves: np.ndarray

    @staticmethod
    def of(outcomes: Sequence[Outcome]) -> "Findings":
        facts = [(outcome.nodes, outcome.material, len(outcome.lines)) for outcome in outcomes]
        found = np.concatenate([outcome.lines for outcome in outcomes])
        lines = np.zeros(len(found), LINE)
        for name in LINE.names:
            lines[name] = found[name]
        in_pv = np.arange(MAX_PLY) < found["pv_length"][:, None]
        return Findings(np.array(facts, POSITION), lines, found["pv"][in_pv].astype(MOVE))

    @staticmethod
    def from_records(records: Sequence[tuple[int, bytes]]) -> "Findings":
        """From (number of positions, what `to_bytes` made of them), at least one of these."""
        parts = [Findings._from_bytes(positions, data) for positions, data in records]
        names = ("positions", "lines", "moves")
        return Findings(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @staticmethod
    def _from_bytes(count: int, data: bytes) -> "Findings":
        positions = np.frombuffer(data, POSITION, count)
        lines = np.frombuffer(data, LINE, positions["lines"].sum(), positions.nbytes)
        moves = np.frombuffer(data, MOVE, lines["pv_length"].sum(), positions.nbytes + lines.nbytes)
        return Findings(positions, lines, moves)

    def to_bytes(self) -> bytes:
        return self.positions.tobytes() + self.lines.tobytes() + self.moves.tobytes()

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def nodes(self) -> int:
        return int(self.positions["nodes"].sum())

    def rows(self, model: WinRateModel) -> Iterator[list[tuple]]:
        """For each position its lines' cells of LINE_COLUMNS, None for a cell that holds nothing."""
        rate_at = cache(model.at)
        moves = [_move_text(move) for move in self.moves.tolist()]
        ends = accumulate(self.lines["pv_length"].tolist(), initial=0)
        lines = zip(self.lines.tolist(), pairwise(ends), strict=True)
        for nodes, material, count in self.positions.tolist():
            rate = rate_at(material)
            yield [
                _cells(line, Score(line[0], rate), nodes, moves[start:end])
                for line, (start, end) in islice(lines, count)
            ]


def _cells(line: tuple, score: Score, nodes: int, pv: list[str]) -> tuple:
    _, bound, depth, selective_depth, _ = line
    is_mate = score.is_mate
    return (
        pv[0] if pv else None,
        None if is_mate else score.score_cp,
        score.mate_moves if is_mate else None,
        *score.win_draw_loss,
        depth,
        selective_depth,
        nodes,
        " ".join(pv) if pv else None,
        BOUND_NAMES.get(bound),
    )
