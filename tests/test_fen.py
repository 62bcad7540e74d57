"""Reading and writing FEN: recorded verdicts, round trips, and mutated FENs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.xiangqi import START_FEN, Game, PositionError
from games.xiangqi.fen import format_fen, parse_fen
from tests.reference import rules
from tests.support.golden import all_fens, rows

VALIDATION = rows("fen_validation")
ACCEPTED = [row for row in VALIDATION if row["fen_after"] is not None]
REFUSED = [row for row in VALIDATION if row["fen_after"] is None]

# What the sentence must say for each refused row.
REASONS = {
    "no side": "ends after the placement",
    "bad side": "'x'",
    "9 ranks": "9 ranks",
    "11 ranks": "11 ranks",
    "rank too long": "'rnbakabnr1' describes 10 squares",
    "rank too short": "'rnbakabn' describes 8 squares",
    "zero digit": "'0' in rank '09'",
    "unknown piece h": "'h' in rank 'rhbakabhr'",
    "three rooks": "Black has 3 rooks",
    "six pawns": "Black has 7 pawns",
    "no black king": "no black king",
    "no kings": "no white king",
    "two kings": "Black has 2 kings",
    "pawn behind river bad file": "white pawn cannot stand on b3",
    "pawn rank 2": "white pawn cannot stand on a2",
    "advisor outside": "white advisor cannot stand on a0",
    "bishop over river": "white bishop cannot stand on e6",
    "king outside palace": "white king cannot stand on e3",
    "opponent in check": "Black's king can be captured",
    "kings facing": "Black's king can be captured",
    "rule60 120": "is 120",
    "rule60 -1": "is -1",
    "ply 100001": "is 100001",
    "illegal move": "'a0a5' is not legal",
    "empty": "FEN is empty",
}


def game_of(command: str) -> Game:
    """The game that a UCI `position` command describes."""
    setup, _, moves = command.removeprefix("position ").partition("moves ")
    fen = START_FEN if setup.startswith("startpos") else setup.removeprefix("fen ")
    return Game(fen, moves.split())


def refusal(fen: str) -> str:
    with pytest.raises(PositionError) as error:
        parse_fen(fen)
    return str(error.value)


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row["name"])
def test_accepts(row):
    assert game_of(row["command"]).fen() == row["fen_after"]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row["name"])
def test_refuses_with_a_sentence(row):
    with pytest.raises(PositionError) as error:
        game_of(row["command"])
    sentence = str(error.value)
    assert REASONS[row["name"]] in sentence
    assert sentence.endswith(".")


@pytest.mark.parametrize("fen", all_fens())
def test_round_trip(fen):
    assert Game(fen).fen() == fen


@pytest.mark.parametrize(
    ("placement", "side", "missing"),
    [
        ("3k5/9/9/9/9/9/9/9/9/9", "w", "no white king"),
        ("3k5/9/9/9/9/9/9/9/9/9", "b", "no white king"),
        ("9/9/9/9/9/9/9/9/9/4K4", "w", "no black king"),
        ("9/9/9/9/9/9/9/9/9/4K4", "b", "no black king"),
    ],
)
def test_missing_king(placement, side, missing):
    assert missing in refusal(f"{placement} {side} - - 0 1")


def test_more_pieces_than_identities():
    crowded = "rnbakabnr/p8/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w - - 0 1"
    assert "33 pieces" in refusal(crowded)


@pytest.mark.parametrize(
    ("fields", "rule60", "game_ply"),
    [
        ("w", 0, 0),
        ("b", 0, 1),
        ("w - - 7", 7, 0),
        ("b - - 7 9", 7, 17),
        ("b 7 9", 0, 1),  # the third and fourth fields are ignored whatever they are
        ("w - - x 9", 0, 0),
        ("w - - 3 9 and more", 3, 16),
        ("b - - 119 100000", 119, 199_999),
    ],
)
def test_counters(fields, rule60, game_ply):
    parsed = parse_fen(f"{START_FEN.split()[0]} {fields}")
    assert (parsed.rule60, parsed.game_ply) == (rule60, game_ply)


def test_neighbouring_digits_add_up():
    assert Game("3k5/54/9/9/9/9/9/9/111111111/4K4 w").fen() == "3k5/9/9/9/9/9/9/9/9/4K4 w - - 0 1"


EDIT = st.tuples(
    st.integers(0, 70),
    st.sampled_from(["insert", "delete", "replace"]),
    st.one_of(st.sampled_from("kabnrcpKABNRCP123456789/ wb-0"), st.characters(codec="utf-8")),
)


def edited(text: str, position: int, action: str, letter: str) -> str:
    position %= len(text) + 1
    before, after = text[:position], text[position:]
    if action != "insert":
        after = after[1:]
    return before + ("" if action == "delete" else letter) + after


@settings(max_examples=2000)
@given(st.sampled_from(all_fens()), st.lists(EDIT, min_size=1, max_size=3))
def test_mutated_fens_are_read_or_refused(fen, edits):
    """What is accepted is a position as the rules know it: it prints as it was read, and its moves are right."""
    for edit in edits:
        fen = edited(fen, *edit)
    try:
        parsed = parse_fen(fen)
    except PositionError as error:
        assert str(error).endswith(".")
        return
    printed = format_fen(parsed.position, parsed.rule60, parsed.game_ply)
    assert Game(printed).fen() == printed
    assert rules.parse(printed) == rules.parse(fen)
    board, white = rules.parse(fen)
    assert Game(printed).legal_move_texts() == rules.legal_moves(board, white)
    assert not rules.attacked(board, not white)


@given(st.text())
def test_any_text_is_refused(text):
    with pytest.raises(PositionError):
        parse_fen(text)
