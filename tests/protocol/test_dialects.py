"""UCCI and UCI-Cyclone spellings that hosts still send."""

import pytest

from games.xiangqi import START_FEN, Game
from tests.support import scenes

AFTER = Game(moves=["h2e2"])


def fen(engine) -> str:
    (line,) = [line for line in engine.ask("d") if line.startswith("Fen: ")]
    return line.removeprefix("Fen: ")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("startpos", Game()),
        ("startpos moves h2e2", AFTER),
        (f"fen {START_FEN}", Game()),
        (f"fen {START_FEN} moves h2e2", AFTER),
        (f"fen {scenes.ENDGAME}", Game(scenes.ENDGAME)),
    ],
)
def test_positions_without_the_word(engine, line, expected):
    engine.send(f"position fen {scenes.MIDDLEGAME}")
    assert engine.ask(line) == []
    assert fen(engine) == expected.fen()
    assert engine.search("go depth 2").best_move in expected.legal_move_texts()


def test_a_position_that_is_sent_in_both_spellings(engine):
    """Sylvan does."""
    assert engine.ask(f"position fen {START_FEN} moves h2e2", f"fen {START_FEN} moves h2e2") == []
    assert fen(engine) == AFTER.fen()


def test_a_bad_position_without_the_word(engine):
    message, blank = engine.ask("setoption name Survive Errors value true", "fen foobar")
    assert "`fen foobar`" in message
    assert "foobar" in message.partition("Reason")[2]
    assert blank == ""


def test_ucci_is_answered_like_uci(engine):
    engine.send("uci")
    lines = engine.until("uciok")
    engine.send("ucci")
    assert engine.until("ucciok") == [*lines[:-1], "ucciok"]


@pytest.mark.parametrize(
    ("line", "count"), [("setoption MultiPV 3", 3), ("setoption multipv 2", 2), ("setoption MultiPV value 4", 4)]
)
def test_options_without_words(engine, line, count):
    assert engine.ask(line) == []
    assert len(engine.search("go depth 2").last_lines()) == count


def test_options_of_several_words_without_words(engine):
    assert engine.ask("setoption Move Overhead 50", "setoption Clear Hash", "setoption Survive Errors true") == []
    assert len(engine.ask("position fen foo")) == 2  # and the engine goes on


@pytest.mark.parametrize("line", ["setoption MultiPV 500", "setoption MultiPV", "setoption Flavour sweet"])
def test_a_refusal_without_words(engine, line):
    (message,) = engine.ask(line)
    assert message.startswith("info string ")
    assert line.split()[1] in message
    assert len(engine.search("go depth 2").last_lines()) == 1


@pytest.mark.parametrize(
    "line",
    [
        "usemillisec true",
        "usemillisec",
        "setoption usemillisec true",
        "setoption usemillisec",
        "uccinewgame",
        "newgame",
    ],
)
def test_words_without_effect_on_the_board(engine, line):
    engine.send("position startpos moves h2e2")
    assert engine.ask(line) == []
    assert fen(engine) == AFTER.fen()


@pytest.mark.parametrize("line", ["uccinewgame", "newgame"])
def test_a_new_game_forgets(engine, line):
    def nodes() -> int:
        engine.send(line)
        return engine.search("go depth 6").infos[-1].nodes

    assert nodes() == nodes()
    engine.search("go depth 8")
    assert nodes() == nodes()


def test_a_clock_from_the_side_to_moves_view(engine):
    """`time` is ours and `opptime` the other's, whoever moves."""
    for moves in ("", " moves h2e2"):
        engine.send(f"position startpos{moves}")
        searched = engine.search("go time 100 increment 0 opptime 600000 opincrement 0", timeout_s=5)
        assert searched.best_move in Game(moves=moves.split()[1:]).legal_move_texts()
        engine.send("go opptime 100 opincrement 0")
        assert not [line for line in engine.listen(0.5) if line.startswith("bestmove")]
        engine.send("stop")
        engine.searched(timeout_s=5)


def test_an_increment_from_the_side_to_moves_view(engine):
    engine.send("setoption name nodestime value 20")

    def nodes(go: str) -> int:
        engine.send("ucinewgame", "position startpos moves h2e2")
        return engine.search(go).infos[-1].nodes

    assert nodes("go time 3000 increment 500 opptime 1 opincrement 7") == nodes("go btime 3000 binc 500 wtime 1 winc 7")


def test_a_dialogue_in_ucci(own_engine):
    own_engine.send("ucci")
    assert own_engine.until("ucciok")[-1] == "ucciok"
    own_engine.send("setoption usemillisec true", f"position fen {START_FEN} moves h2e2")
    own_engine.send("go time 1000 increment 0 opptime 1000 opincrement 0")
    assert own_engine.searched(timeout_s=60).best_move in AFTER.legal_move_texts()
    own_engine.send("quit")
    assert own_engine.wait_for_end()[1] == 0


def test_ranks_from_one_to_ten_are_not_guessed(engine):
    engine.send("setoption name Survive Errors value true")
    assert len(engine.ask("position startpos moves h3e3")) == 2
    assert len(engine.ask("position startpos moves h10g8")) == 2
    assert fen(engine) == START_FEN
