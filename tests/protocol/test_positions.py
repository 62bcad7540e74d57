"""`position`, `d` and `flip`: which game the engine has in mind, and how it shows it."""

import pytest

from games.xiangqi import START_FEN, Game
from tests.support import scenes
from tests.support.golden import rows

VALIDATION = rows("fen_validation")
SURVIVE = "setoption name Survive Errors value true"


def fen(engine) -> str:
    """The position as `d` tells it."""
    return shown(engine, "Fen: ")


def shown(engine, label: str) -> str:
    (line,) = [line for line in engine.ask("d") if line.startswith(label)]
    return line.removeprefix(label)


def test_the_start_position_is_set_before_the_first(own_engine):
    assert fen(own_engine) == START_FEN
    assert own_engine.search("go depth 2").best_move in Game().legal_move_texts()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("position startpos", Game()),
        ("position startpos moves", Game()),
        ("position startpos moves h2e2 h9g7", Game(moves=["h2e2", "h9g7"])),
        ("position  fen\t" + scenes.MIDDLEGAME + "   moves  a9a8 ", Game(scenes.MIDDLEGAME, ["a9a8"])),
        (f"position fen {START_FEN}", Game()),
        (f"position fen {START_FEN} moves h2e2", Game(moves=["h2e2"])),
        (f"position fen {START_FEN.split()[0]} w", Game()),
        (f"position fen {START_FEN.split()[0]} b - - 7 9", Game(f"{START_FEN.split()[0]} b - - 7 9")),
    ],
)
def test_a_position_is_set(engine, command, expected):
    assert engine.ask(command) == []
    assert fen(engine) == expected.fen()


@pytest.mark.parametrize("row", [row for row in VALIDATION if row["fen_after"]], ids=lambda row: row["name"])
def test_what_the_reference_accepts(engine, row):
    assert engine.ask(row["command"]) == []
    assert fen(engine) == row["fen_after"]


def test_what_the_reference_refuses_leaves_the_position(engine):
    engine.send(SURVIVE, "position startpos moves h2e2")
    before = fen(engine)
    for row in VALIDATION:
        if row["fen_after"] is None:
            lines = engine.ask(row["command"])
            assert len(lines) == 2, row["name"]
            assert lines[0].startswith(
                f"info string CRITICAL ERROR: Command `{row['command'].strip()}` failed. Reason: "
            )
            assert lines[1] == ""
            assert fen(engine) == before, row["name"]


@pytest.mark.parametrize(
    "move", ["H2E2", "h2-e2", "C2=5", "h2", "h2e2q", "0000", "h3e3", "b9a7", "e0e9", "a10a9", "h2e2,"]
)
def test_moves_are_legal_and_written_in_small_letters(engine, move):
    """And ranks run from 0 to 9: `h3e3`, the cannon's move in ranks from 1 to 10, moves nothing here."""
    engine.send(SURVIVE)
    (message, blank) = engine.ask(f"position startpos moves {move} h9g7")
    assert f"'{move}'" in message
    assert blank == ""
    assert fen(engine) == START_FEN


def test_a_later_position_replaces_all(engine):
    engine.send("position startpos moves h2e2 h9g7", f"position fen {scenes.ENDGAME}")
    assert fen(engine) == scenes.ENDGAME
    engine.send("position startpos moves b0c2")
    assert fen(engine) == Game(moves=["b0c2"]).fen()


def test_ucinewgame_keeps_the_board(engine):
    engine.send("position startpos moves h2e2")
    assert engine.ask("ucinewgame") == []
    assert fen(engine) == Game(moves=["h2e2"]).fen()


def test_go_searches_the_same_position_again(engine):
    engine.send("position startpos moves h2e2")
    legal = Game(moves=["h2e2"]).legal_move_texts()
    for _ in range(3):
        assert engine.search("go depth 2").best_move in legal
    assert fen(engine) == Game(moves=["h2e2"]).fen()


def test_a_game_goes_on_past_repetitions_and_the_60_move_rule(engine):
    """The host is the arbiter."""
    moves = [*scenes.SHUFFLE * 45]
    assert engine.ask(f"position startpos moves {' '.join(moves)}") == []
    assert fen(engine) == Game(moves=moves).fen()
    assert fen(engine).split()[4] == "180"
    assert engine.search("go depth 3").best_move in Game().legal_move_texts()


def test_the_history_counts_for_repetitions(engine):
    start, moves = scenes.PERPETUAL_CHECK
    engine.send(f"position fen {start} moves {' '.join(moves)}")
    assert shown(engine, "Verdict: ") == "loss (perpetual-check)"
    assert shown(engine, "Rule 60: ") == "8, checks by White 4, by Black 0"
    engine.send(f"position fen {start} moves {' '.join(moves[:-1])}")
    assert not [line for line in engine.ask("d") if line.startswith("Verdict")]
    best = engine.search("go depth 6")
    assert best.best_move == moves[-1]
    assert best.infos[-1].mate == 1
    engine.send(f"position fen {Game(start, moves[:-1]).fen()}")  # the same position without its past
    assert engine.search("go depth 6").infos[-1].mate != 1


def test_d_shows_the_board(engine):
    lines = engine.ask("position startpos moves h2h9 i9h9", "d")
    assert lines[0] == ""
    assert lines[1] == " " + "+---" * 9 + "+"
    assert lines[2] == " | r | n | b | a | k | a | b | r |   | 9"
    assert lines[20] == " | R | N | B | A | K | A | B | N | R | 0"
    assert lines[21] == lines[1]
    assert lines[22].split() == list("abcdefghi")
    assert lines[23] == ""
    assert lines[24] == f"Fen: {Game(moves=['h2h9', 'i9h9']).fen()}"
    assert lines[25].startswith("Key: ")
    assert lines[26] == "Checkers: "


def test_d_names_the_checking_pieces_and_the_key(engine):
    engine.send("position fen 3k5/9/9/9/3R5/9/9/9/9/4K4 b - - 0 1")
    assert shown(engine, "Checkers: ") == "d5 "
    engine.send("position startpos")
    key = shown(engine, "Key: ")
    engine.send("position startpos moves h2e2")
    assert shown(engine, "Key: ") != key
    engine.send(f"position startpos moves {' '.join(scenes.SHUFFLE)}")
    assert shown(engine, "Key: ") == key


def test_flip_changes_colours_and_keeps_counters(engine):
    engine.send(f"position fen {START_FEN.split()[0]} w - - 7 9 moves h2e2")
    assert engine.ask("flip") == []
    assert fen(engine) == "rnbakabnr/9/1c2c4/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w - - 8 9"
    engine.send("flip")
    assert fen(engine) == "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C2C4/9/RNBAKABNR b - - 8 9"


def test_flip_forgets_the_history(engine):
    start, moves = scenes.PERPETUAL_CHECK
    engine.send(f"position fen {start} moves {' '.join(moves)}", "flip")
    assert not [line for line in engine.ask("d") if line.startswith("Verdict")]
