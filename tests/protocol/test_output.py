"""What a search prints: fields and their order, scores, lines, the move and the reply to it."""

import itertools
import re

import pyffish
import pytest

from games.xiangqi import Game
from tests.support import scenes
from tests.support.golden import rows
from tests.support.uci_grammar import CURRENT_MOVE, Info

SOME_FENS = [row["fen"] for row in rows("legal_moves")[::25] if row["moves"]]
FIELDS = "depth seldepth multipv score nodes nps hashfull tbhits time pv".split()
MANY_NODES = 10_000_000  # from here on bounds and the move under way are shown


def assert_playable(fen: str, pv: tuple[str, ...]) -> None:
    """Every move of a variation is legal for an engine that is not ours, whose ranks run from 1 to 10."""
    moves: list[str] = []
    for move in pv:
        text = "".join(letter if letter.isalpha() else str(int(letter) + 1) for letter in move)
        assert text in pyffish.legal_moves("xiangqi", fen, moves), (fen, pv, move)
        moves.append(text)


def test_a_search_begins_with_what_it_runs_on(engine):
    processors, threads, network = engine.search("go depth 1").strings[:3]
    assert re.fullmatch(r"Available processors: \d+(?:[-,:]\d+)*", processors)
    assert re.fullmatch(r"Using 1 thread(?: with NUMA node thread binding: \d+/\d+)?", threads)
    assert re.fullmatch(r"NNUE evaluation using \S.* \(\d+MiB, \(\d+, \d+, \d+, \d+, 1\)\)", network)
    engine.ask("setoption name Threads value 2")
    assert engine.search("go depth 1").strings[1].startswith("Using 2 threads")


def test_fields_come_in_order(engine):
    lines = engine.search("go depth 6").lines
    searched = [line for line in lines if line.startswith("info depth")]
    for line in searched:
        assert [word for word in line.split() if word in FIELDS] == FIELDS
    strings = [number for number, line in enumerate(lines) if line.startswith("info string")]
    assert strings == [0, 1, 2]


def test_numbers_are_sound(engine):
    engine.send(f"position fen {scenes.MIDDLEGAME}")
    infos = engine.search("go depth 11").infos
    assert [info.depth for info in infos] == sorted(info.depth for info in infos)
    for before, info in itertools.pairwise(infos):
        assert info.nodes >= before.nodes
        assert info.time_ms >= before.time_ms >= 1
    for info in infos:
        assert info.nps == 1000 * info.nodes // info.time_ms
        assert info.selective_depth >= 1
        assert info.bound == ""
        assert 0 <= info.hashfull <= 1000
    assert infos[-1].selective_depth >= len(infos[-1].pv) - 1
    assert infos[-1].hashfull > 0


def test_hashfull_is_of_this_search(engine):
    engine.send("setoption name Hash value 1")
    full = engine.search("go nodes 400000").infos[-1].hashfull
    assert full > 200
    engine.send("position startpos moves h2e2")
    assert engine.search("go depth 1").infos[-1].hashfull < full / 2


def test_all_lines_of_a_depth_come_together_and_best_first(engine):
    engine.send("setoption name MultiPV value 4")
    searched = engine.search("go depth 6")
    infos = searched.infos
    assert [info.line for info in infos] == [1, 2, 3, 4] * 6
    assert [info.depth for info in infos] == [depth for depth in range(1, 7) for _ in range(4)]
    for at in range(0, len(infos), 4):
        group = infos[at : at + 4]
        assert [info.cp for info in group] == sorted((info.cp for info in group), reverse=True)
        assert len({info.pv[0] for info in group}) == 4
    assert searched.best_move == infos[-4].pv[0]


def test_there_are_no_more_lines_than_moves(engine):
    for fen, count in ((scenes.TWO_MOVES, 2), (scenes.ONE_MOVE, 1)):
        engine.send("setoption name MultiPV value 5", f"position fen {fen}")
        assert {info.line for info in engine.search("go depth 4").infos} == set(range(1, count + 1))
    engine.send("setoption name MultiPV value 128", "position startpos")
    assert len(engine.search("go depth 2").last_lines()) == 44


@pytest.mark.parametrize("fen", SOME_FENS)
def test_variations_moves_and_replies_are_legal(engine, fen):
    engine.send("setoption name MultiPV value 3", f"position fen {fen}")
    searched = engine.search("go depth 6")
    for info in searched.infos:
        assert_playable(fen, info.pv)
    assert searched.best_move == searched.last_lines()[0].pv[0]
    if searched.ponder_move is not None:
        assert_playable(fen, (searched.best_move, searched.ponder_move))


def test_the_reply_is_told_whether_the_host_ponders_or_not(engine):
    for value in ("false", "true"):
        engine.send(f"setoption name Ponder value {value}")
        searched = engine.search("go depth 8")
        assert searched.ponder_move == searched.infos[-1].pv[1]


def test_a_mating_move_has_no_reply(engine):
    engine.send(f"position fen {scenes.MATE_IN_ONE}")
    assert engine.search("go depth 5").ponder_move is None


@pytest.mark.parametrize("threads", [1, 2])
def test_the_last_line_is_of_the_move_that_is_played(engine, threads):
    engine.send(f"setoption name Threads value {threads}")
    for go in ("go nodes 50000", "go movetime 50", "go depth 7", "go movetime 150"):
        searched = engine.search(go)
        assert searched.infos[-1].pv[0] == searched.best_move


@pytest.mark.parametrize("row", rows("mates")[:3], ids=lambda row: str(row["win_in_plies"]))
def test_mates_are_counted_in_moves(engine, row):
    moves = (row["win_in_plies"] + 1) // 2
    engine.send(f"position fen {row['fen']}")
    searched = engine.search(f"go mate {moves}")
    assert searched.infos[-1].mate == moves
    engine.send("ucinewgame", f"position fen {Game(row['fen'], [searched.best_move]).fen()}")
    assert engine.search(f"go mate {moves}").infos[-1].mate == -(moves - 1)


@pytest.mark.parametrize("fen", [scenes.MATED, scenes.STALEMATED])
@pytest.mark.parametrize(
    "go", ["go", "go infinite", "go movetime 100", "go depth 3", "go wtime 1000 btime 1000", "go mate 1"]
)
def test_a_lost_root_has_no_move(engine, fen, go):
    engine.send(f"position fen {fen}")
    assert engine.search(go).lines[-2:] == ["info depth 0 score mate 0", "bestmove (none)"]


def test_scores_are_the_side_to_moves(engine):
    """A rook ahead: good for the one, bad for the other."""
    placement = scenes.START.split()[0].replace("/RNBAKABNR", "/1NBAKABNR")
    for side, is_good in (("w", False), ("b", True)):
        engine.send(f"position fen {placement} {side} - - 0 1")
        assert (engine.search("go depth 6").infos[-1].cp > 0) == is_good


def assert_sound_odds(info: Info) -> None:
    """A hundred centipawns are where half of all games are won; a line of mate is won or lost."""
    win, draw, loss = info.wdl
    assert min(win, draw, loss) >= 0
    if info.cp is not None and abs(abs(info.cp) - 100) > 2:
        assert (win >= 500) == (info.cp > 100)
        assert (loss >= 500) == (info.cp < -100)
    if info.mate is not None:
        assert (win if info.mate > 0 else loss) > 950


def test_odds_are_shown_when_asked_for(engine):
    assert all(info.wdl is None for info in engine.search("go depth 4").infos)
    engine.send("setoption name UCI_ShowWDL value true", "setoption name MultiPV value 3")
    for fen in [*SOME_FENS[:5], scenes.MATE_IN_ONE]:
        engine.send(f"position fen {fen}")
        for info in engine.search("go depth 5").infos:
            assert_sound_odds(info)


def test_nothing_comes_after_the_move(engine):
    engine.search("go depth 6")
    assert engine.listen(0.3) == []


def test_short_searches_show_no_bounds_and_no_moves_under_way(engine):
    lines = engine.search("go movetime 800").lines
    assert not [line for line in lines if "currmove" in line or "bound" in line]


@pytest.mark.slow
def test_long_searches_show_the_move_under_way_and_bounds(engine):
    engine.send(f"position fen {scenes.MIDDLEGAME}")
    engine.send("go infinite")
    lines: list[str] = []
    while not any(line.endswith("bound") or "bound " in line for line in lines):
        lines += engine.until("info depth")
    while not any("currmove" in line for line in lines):
        lines += engine.until("info depth")
    engine.send("stop")
    engine.searched()
    legal = Game(scenes.MIDDLEGAME).legal_move_texts()
    nodes = 0
    for line in engine.lines:
        if CURRENT_MOVE.fullmatch(line):
            words = line.split()
            assert words[4] in legal
            assert 1 <= int(words[6]) <= len(legal)
        elif " bound" not in line and (match := re.search(r" nodes (\d+) ", line)):
            nodes = int(match[1])
            assert "bound" not in line or nodes >= MANY_NODES
    assert nodes >= MANY_NODES


@pytest.mark.slow
def test_bounds_are_not_shown_beside_other_lines(engine):
    engine.send("setoption name MultiPV value 2", f"position fen {scenes.MIDDLEGAME}")
    lines = engine.search(f"go nodes {4 * MANY_NODES}").lines
    assert not [line for line in lines if "bound" in line]
