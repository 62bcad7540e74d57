"""What a running match shows: on a terminal a table that is redrawn in place, elsewhere a line a game."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from typing import TextIO

from experiments.game_record import GameRecord
from experiments.standing import Standing

COLUMN_WIDTHS = {"games": 7, "W": 6, "D": 6, "L": 6, "score": 9, "forfeits": 10, "failures": 10, "slowest ms": 12}
CLEAR_BELOW = "\x1b[J"


class LiveTable:
    """Shows the standing of a match of `games` games after each game. now_s: a clock in seconds."""

    def __init__(
        self,
        standing: Standing,
        games: int,
        stream: TextIO | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ):
        self._standing = standing
        self._games = games
        self._stream = stream or sys.stdout
        self._redraws = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._now_s = now_s
        self._start_s = now_s()
        self._games_before = standing.games
        self._height = 0

    def show(self, last: GameRecord) -> None:
        """Show the standing, of which `last` is the latest game."""
        if self._redraws:
            self._redraw(table_lines(self._standing, last, self._games, self._left_s()))
        else:
            self._stream.write(f"{progress_line(self._standing, last, self._games)}\n")
        self._stream.flush()

    def _left_s(self) -> float:
        """Time until the last game ends, if games go on as in this run."""
        standing = self._standing
        return (self._now_s() - self._start_s) / (standing.games - self._games_before) * (self._games - standing.games)

    def _redraw(self, lines: list[str]) -> None:
        """A line that is wider than the terminal is cut, as it would take two rows, and we count rows to go back."""
        width = shutil.get_terminal_size().columns - 1
        to_top = f"\x1b[{self._height}F" if self._height else ""
        self._stream.write(to_top + CLEAR_BELOW + "".join(f"{line[:width]}\n" for line in lines))
        self._height = len(lines)


def progress_line(standing: Standing, last: GameRecord, games: int) -> str:
    return f"{standing.games}/{games}  {standing.line()}  [{_game_text(last)}]"


def table_lines(standing: Standing, last: GameRecord, games: int, left_s: float) -> list[str]:
    """left_s: time until the last game ends."""
    at_most = "" if standing.sprt is None else " at most"
    width = max(map(len, standing.names))
    return [
        f"game {standing.games} of {games}, {duration_text(left_s)} left{at_most}",
        f"{'':{width}}{_row(COLUMN_WIDTHS)}",
        *(f"{name:{width}}{_row(_cells(standing, name))}" for name in standing.names),
        standing.statistics.text(),
        standing.statistics.counts_text(),
        *standing.sprt_lines(),
        f"mean length {standing.mean_plies:.1f} plies",
        f"endings: {standing.endings()}",
        f"last: {_game_text(last)}",
    ]


def _cells(standing: Standing, name: str) -> tuple[str, ...]:
    """The row of an engine, a cell for each of COLUMN_WIDTHS."""
    tally = standing.tallies[name]
    counts = standing.games, tally.wins, tally.draws, tally.losses
    score = f"{standing.score_percent(name):.1f} %"
    return (*map(str, counts), score, str(tally.forfeits), str(tally.failures), f"{tally.slowest_ms:.1f}")


def _row(cells: Iterable[str]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, COLUMN_WIDTHS.values(), strict=True))


def _game_text(record: GameRecord) -> str:
    return f"game {record.game}: {record.white} - {record.black} {record.result}, {record.reason}, {record.plies} plies"


def duration_text(duration_s: float) -> str:
    """Hours, minutes and seconds."""
    minutes, seconds = divmod(round(duration_s), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
