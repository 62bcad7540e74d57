"""Positions and games: making and taking back moves, what is kept incrementally, and the history of a game."""

import random

import numpy as np
import pytest

from games.xiangqi import START_FEN, Game, PositionError
from games.xiangqi.fen import parse_fen, piece_letter
from games.xiangqi.geometry import (
    ADVISOR,
    EMPTY,
    FIRST_OF_KIND,
    KIND_OF,
    NO_MOVE,
    NO_SQUARE,
    PIECES,
    PIECES_PER_SIDE,
    SQUARES,
    move_text,
    parse_move,
    parse_square,
    square_name,
    standing_squares,
)
from games.xiangqi.movegen import ALL, make_move_kernel
from games.xiangqi.position import POSITION, set_up
from tests.reference import rules
from tests.support.games import play_random_moves, random_positions, random_walk
from tests.support.golden import all_fens
from tests.support.kernels import generated, pass_move_kernel, unmake_move_kernel

DERIVED_FIELDS = ("ranks", "files", "side", "key", "material")


def fields_of(position: np.ndarray) -> dict[str, list]:
    """All fields, apart from the scratch entry of square_of."""
    fields = {name: position[name][0].tolist() for name in POSITION.names}
    fields["square_of"] = fields["square_of"][:PIECES]
    return fields


def letters_of(position: np.ndarray) -> str:
    return "".join("." if piece == EMPTY else piece_letter(piece) for piece in position["board"][0].tolist())


def test_taking_back_restores_every_field():
    """For every pseudo-legal move, even one that leaves the king in check, or takes a king after a pass."""
    for position in random_positions(seed=11, count=200):
        for _ in range(2):
            pass_move_kernel(position[0])
            before = fields_of(position)
            for move in generated(position, ALL):
                captured = make_move_kernel(position[0], move)
                assert fields_of(position) != before
                unmake_move_kernel(position[0], move, captured)
                assert fields_of(position) == before, move_text(move)


def test_whole_games_can_be_taken_back():
    rng = random.Random(12)
    for fen in [START_FEN, *rng.sample(all_fens(), 10)]:
        game = Game(fen)
        position = game.position.copy()
        history = []
        for moment in play_random_moves(game, rng, 150):
            if moment.moves:
                before = fields_of(position)
                captured = make_move_kernel(position[0], moment.moves[-1])
                history.append((before, moment.moves[-1], captured))
            assert fields_of(position) == fields_of(game.position)
        for before, move, captured in reversed(history):
            unmake_move_kernel(position[0], move, captured)
            assert fields_of(position) == before


def test_a_pass_is_its_own_inverse():
    for position in random_positions(seed=13, count=200):
        before = fields_of(position)
        pass_move_kernel(position[0])
        passed = fields_of(position)
        assert passed["side"] == 1 - before["side"]
        assert passed["key"] != before["key"]
        unchanged = set(POSITION.names) - {"side", "key"}
        assert all(passed[name] == before[name] for name in unchanged)
        pass_move_kernel(position[0])
        assert fields_of(position) == before


def test_incremental_fields_are_those_of_a_fresh_position():
    for game in random_walk(seed=14, count=2000):
        position, fresh = game.position, parse_fen(game.fen()).position
        assert letters_of(position) == letters_of(fresh)
        for name in DERIVED_FIELDS:
            assert np.array_equal(position[name], fresh[name]), (name, game.fen())


def test_board_and_squares_tell_the_same():
    for position in random_positions(seed=15, count=500):
        board, square_of = position["board"][0].tolist(), position["square_of"][0].tolist()
        standing = {piece: square for square, piece in enumerate(board) if piece != EMPTY}
        assert standing == {piece: square for piece, square in enumerate(square_of[:PIECES]) if square != NO_SQUARE}


def test_identities_survive_their_moves():
    """A piece keeps its identity; only a captured one leaves the list."""
    game = Game()
    rook = game.position["board"][0, parse_square("a0")]
    for move in ("a0a1", "a9a8", "a1d1", "a8a9", "d1d9"):
        game.play(move)
    assert game.position["board"][0, parse_square("d9")] == rook
    captured = game.position["square_of"][0] == NO_SQUARE
    assert [int(KIND_OF[piece]) for piece in np.flatnonzero(captured[:PIECES])] == [ADVISOR]


def test_keys_tell_positions_apart():
    """One key a position, one position a key, over some thousand positions and a pass in each."""
    seen = {}
    for position in random_positions(seed=16, count=3000):
        for _ in range(2):
            pass_move_kernel(position[0])
            placement = letters_of(position), int(position["side"][0])
            assert seen.setdefault(int(position["key"][0]), placement) == placement
    assert len(set(seen.values())) == len(seen) > 4000


def test_every_piece_on_every_square_has_a_key():
    """A lone piece of each side and kind, on each square, with either side to move; also where it cannot stand."""
    first_of_each_kind = [side * PIECES_PER_SIDE + first for side in (0, 1) for first in FIRST_OF_KIND[:-1]]
    keys = {
        int(set_up({piece: square}, side)["key"][0])
        for piece in first_of_each_kind
        for square in range(SQUARES)
        for side in (0, 1)
    }
    assert len(keys) == 2 * len(first_of_each_kind) * SQUARES


@pytest.mark.parametrize(
    ("one_way", "other_way"),
    [
        ("h2e2 h9g7 h0i2", "h0i2 h9g7 h2e2"),
        ("a0a1 a9a8 a1a0 a8a9", ""),
        ("b0c2 b9c7 h0g2 h9g7", "h0g2 h9g7 b0c2 b9c7"),
    ],
)
def test_transpositions_have_one_key(one_way, other_way):
    assert Game(moves=one_way.split()).key == Game(moves=other_way.split()).key


def test_equal_pieces_may_change_places():
    """Rooks that swap squares give a position that is the same by key, though not by identity."""
    fen = "3k5/9/9/9/9/9/9/9/R8/1R3K3 w - - 0 1"
    tour = "a1a5 d9d8 b0b1 d8d9 a5b5 d9d8 b1a1 d8d9 b5b0 d9d8"
    game = Game(fen, tour.split())
    assert game.fen().split()[0] == "9/3k5/9/9/9/9/9/9/R8/1R3K3"
    fresh = Game(game.fen())
    assert game.key == fresh.key
    assert game.position["board"][0].tolist() != fresh.position["board"][0].tolist()


def test_game_history():
    game = Game()
    keys = []
    for move in ("h2e2", "h9g7", "e2e6", "i9i8"):
        keys.append(game.key)
        game.play(move)
    assert game.past_keys == keys
    assert game.moves == [parse_move(move) for move in ("h2e2", "h9g7", "e2e6", "i9i8")]
    assert game.rule60 == 1  # one ply since e2e6 captured
    assert game.game_ply == 4
    assert game.fen() == "rnbakab2/8r/1c4nc1/p1p1C1p1p/9/9/P1P1P1P1P/1C7/9/RNBAKABNR w - - 1 3"


def test_counters_over_random_games():
    for fen in ["4k4/9/9/9/9/9/9/9/3R5/5K3 b - - 7 31", START_FEN]:
        game = Game(fen)
        first_ply = game.game_ply
        rng = random.Random(17)
        rule60 = game.rule60
        pieces = len(rules.parse(fen)[0])
        for moment in play_random_moves(game, rng, 120):
            board, white = rules.parse(moment.fen())
            if moment.moves:
                rule60 = rule60 + 1 if len(board) == pieces else 0
            pieces = len(board)
            assert moment.rule60 == rule60
            assert moment.game_ply == first_ply + len(moment.moves) == first_ply + len(moment.past_keys)
            assert white == (moment.game_ply % 2 == 0) == (moment.side == 0)
            assert moment.fen().endswith(f" - - {rule60} {moment.game_ply // 2 + 1}")


@pytest.mark.parametrize(
    ("text", "named"),
    [(text, text) for text in ("a0a5", "a0b0", "a9a8", "e4e5", "h2h2", "a0a0", "", "h2", "h2e2q")]
    + [(text, text) for text in ("j0j1", "a0aA", "H2E2", "0000", "h2é2", "h2e²")],
)
def test_illegal_moves_change_nothing(text, named):
    game = Game(moves=["b2e2", "b9c7"])
    before = fields_of(game.position), game.fen(), list(game.moves), list(game.past_keys)
    with pytest.raises(PositionError) as error:
        game.play(text)
    assert str(error.value).startswith("Illegal move: ")
    assert f"'{named}'" in str(error.value)
    assert (fields_of(game.position), game.fen(), game.moves, game.past_keys) == before


def test_moving_into_check_is_illegal():
    with pytest.raises(PositionError, match="'e2d4' is not legal"):
        Game("3k5/9/9/9/9/4r4/9/4N4/9/4K4 w - - 0 1", ["e2d4"])


def test_games_do_not_share_positions():
    first, second = Game(), Game()
    first.play("h2e2")
    assert second.fen() == START_FEN


def test_squares_and_moves_as_text():
    names = [square_name(square) for square in range(SQUARES)]
    assert names == [f"{file}{rank}" for rank in range(10) for file in "abcdefghi"]
    assert list(map(parse_square, names)) == list(range(SQUARES))
    assert move_text(parse_move("h2e2")) == "h2e2"
    assert move_text(NO_MOVE) == "(none)"


@pytest.mark.parametrize(("kind", "count"), [*enumerate((9, 5, 7, 90, 90, 90, 55))])
def test_number_of_squares_of_each_kind(kind, count):
    squares = standing_squares(kind)
    assert len(squares) == count
    assert squares == sorted(set(squares))
