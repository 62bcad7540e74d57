"""Positions in bulk: from FENs and piece lists to PACKED records and back."""

import numpy as np
import pytest

from games.xiangqi import START_FEN
from games.xiangqi.fen import PositionError, format_fen, parse_fen
from games.xiangqi.geometry import NO_SQUARE, PIECES, PIECES_PER_SIDE, SQUARES
from games.xiangqi.movegen import in_check_kernel
from games.xiangqi.packed import PACKED, pack, pack_fens, pack_piece_lists, position_of
from games.xiangqi.position import POSITION
from tests.support.games import random_walk

IN_CHECK = "3k5/9/9/3R5/9/9/9/9/9/4K4 b - - 3 1"


@pytest.fixture(scope="module")
def fens() -> list[str]:
    return [game.fen() for game in random_walk(seed=4, count=300)] + [IN_CHECK]


def test_a_record_takes_36_bytes():
    assert PACKED.itemsize == 36
    assert pack_fens([]).shape == pack([]).shape == (0,)


def test_fens_come_back(fens):
    for fen, record in zip(fens, pack_fens(fens), strict=True):
        parsed = parse_fen(fen)
        assert format_fen(position_of(record), int(record["rule60"]), parsed.game_ply) == fen
        assert bool(record["in_check"]) == bool(in_check_kernel(parsed.position[0]))
        assert record["side"] == parsed.position["side"][0]


def test_positions_come_back_whole(fens):
    """All of a POSITION but its key."""
    for fen, record in zip(fens, pack_fens(fens), strict=True):
        expected = parse_fen(fen).position
        expected["key"] = 0
        found = position_of(record)
        for name in POSITION.names:
            assert np.array_equal(found[name], expected[name]), name


def test_parsed_fens_pack_alike(fens):
    assert np.array_equal(pack(map(parse_fen, fens)), pack_fens(fens))


def test_piece_lists_pack_alike(fens):
    expected = pack_fens(fens)
    found = pack_piece_lists(expected["square_of"], expected["side"], expected["rule60"])
    assert np.array_equal(found, expected)
    assert 0 < found["in_check"].sum() < len(found)
    without_counters = pack_piece_lists(expected["square_of"].astype(np.int64), expected["side"].tolist())
    assert (without_counters["rule60"] == 0).all()
    assert np.array_equal(without_counters["square_of"], expected["square_of"])
    assert len(pack_piece_lists(np.zeros((0, PIECES), np.uint8), [])) == 0


def test_a_bad_fen_is_numbered():
    with pytest.raises(PositionError, match=r"^Position 2, '9/9 w': .*expected"):
        pack_fens([START_FEN, IN_CHECK, "9/9 w", "nonsense"])


def changed(identity: int, square: int) -> np.ndarray:
    lists = pack_fens([START_FEN, START_FEN])["square_of"].copy()
    lists[1, identity] = square
    return lists


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        (np.zeros(PIECES, np.uint8), "shape (32,); expected [n, 32]"),
        (np.zeros((3, 31), np.uint8), "shape (3, 31); expected [n, 32]"),
        (changed(5, SQUARES), f"above {SQUARES - 1}"),
        (changed(0, NO_SQUARE), "no king"),
        (changed(PIECES_PER_SIDE, NO_SQUARE), "no king"),
    ],
)
def test_bad_piece_lists_are_refused(lists, words):
    with pytest.raises(PositionError) as error:
        pack_piece_lists(lists, np.zeros(len(lists), np.uint8))
    assert words in str(error.value)
