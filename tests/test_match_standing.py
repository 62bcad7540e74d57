"""What a match says of itself while it runs and afterwards."""

import io
import re

import pytest

from experiments.live_table import LiveTable, duration_text, table_lines
from experiments.play import ENGINE_FAILURE, ILLEGAL_MOVE, TIME_FORFEIT
from experiments.sprt import Hypothesis, Sprt
from experiments.standing import Standing
from tests.support.match_records import NAMES, game_record

RECORDS = [
    game_record(0, "1-0"),
    game_record(2, "1/2-1/2", "repetition", plies=60),
    game_record(1, "0-1", TIME_FORFEIT, detail="old took 300.0 ms."),
    game_record(3, "1-0", ILLEGAL_MOVE),  # by new, which has Black
    game_record(4, "0-1", ENGINE_FAILURE),  # of new
    game_record(6, "1-0", ENGINE_FAILURE),  # of old
]
LOPSIDED = [game_record(game, "1-0" if game % 2 == 0 else "0-1") for game in range(200)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def standing() -> Standing:
    return Standing.of(RECORDS, NAMES)


def test_games_are_counted_for_each_engine(standing):
    new, old = (standing.tallies[name] for name in NAMES)
    assert (standing.games, standing.mean_plies) == (6, 70 / 6)
    assert (new.wins, new.draws, new.losses, new.forfeits, new.failures, new.slowest_ms) == (3, 1, 2, 1, 1, 16)
    assert (old.wins, old.draws, old.losses, old.forfeits, old.failures, old.slowest_ms) == (2, 1, 3, 1, 1, 5)


def test_only_complete_pairs_count_for_elo(standing):
    assert standing.statistics.counts == (0, 1, 0, 0, 1)


def test_the_test_ends_at_the_first_bound_and_stays_ended():
    standing = Standing(NAMES, Sprt(0, 50))
    for record in LOPSIDED:
        standing.add(record)
        if standing.accepted:
            break
    assert standing.accepted == Hypothesis.H1
    assert standing.llr >= standing.sprt.upper
    assert standing.games % 2 == 0 and standing.games < 100
    for game in range(200, 400):
        standing.add(game_record(game, "0-1" if game % 2 == 0 else "1-0"))
    assert standing.accepted == Hypothesis.H1
    assert "SPRT accepted H1: Elo +50 rather than +0" in standing.summary_lines()


def test_a_summary_has_all_of_it(standing):
    text = "\n".join(standing.summary_lines())
    assert "6 games  new vs old  +3 =1 -2  58.3 %  Elo +88.7" in text
    assert "2 engine failure" in text
    assert "old: 1 forfeits, 1 failures, slowest move 5.0 ms" in text
    assert "LLR" not in text
    assert "SPRT undecided" in Standing(NAMES, Sprt(0, 5)).summary_lines()


def test_the_table_fits_a_terminal():
    standing = Standing.of(RECORDS, NAMES, Sprt(0, 5))
    lines = table_lines(standing, RECORDS[-1], 200, left_s=3725)
    assert max(map(len, lines[:-2])) < 80  # how games ended may be cut
    assert lines[0] == "game 6 of 200, 1:02:05 left at most"
    assert lines[2].split() == ["new", "6", "3", "1", "2", "58.3", "%", "1", "1", "16.0"]
    assert any(line.startswith("LLR ") for line in lines)


def test_a_terminal_shows_one_table_redrawn(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream, standing, now_s = Terminal(), Standing(NAMES), iter([100.0, 110.0, 120.0])
    table = LiveTable(standing, 6, stream, lambda: next(now_s))
    for record in RECORDS[:2]:
        standing.add(record)
        table.show(record)
    first, second = re.split(r"\x1b\[\d+F", stream.getvalue())
    assert f"\x1b[{first.count(chr(10))}F\x1b[J" in stream.getvalue()
    assert "game 1 of 6, 0:00:50 left" in first
    assert "game 2 of 6, 0:00:40 left" in second


def test_lines_too_wide_for_the_terminal_are_cut(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "30")
    stream, standing = Terminal(), Standing.of(RECORDS, NAMES)
    table = LiveTable(standing, 8, stream)
    record = game_record(5, "1-0")
    standing.add(record)
    table.show(record)
    assert max(map(len, stream.getvalue().removeprefix("\x1b[J").splitlines())) == 29


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_file_or_a_dumb_terminal_gets_a_line_a_game(stream, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    output, standing = stream(), Standing(NAMES, Sprt(0, 5))
    table = LiveTable(standing, 6, output)
    for record in RECORDS:
        standing.add(record)
        table.show(record)
    lines = output.getvalue().splitlines()
    assert len(lines) == len(RECORDS)
    assert "\x1b" not in output.getvalue()
    assert lines[2].startswith("3/6  new vs old  +2 =1 -0  83.3 %  Elo")
    assert lines[2].endswith("LLR +0.03  [game 1: old - new 0-1, time forfeit, 2 plies]")


def test_durations_are_in_hours_minutes_and_seconds():
    assert [duration_text(duration_s) for duration_s in (0, 59.6, 3600 * 30)] == ["0:00:00", "0:01:00", "30:00:00"]
