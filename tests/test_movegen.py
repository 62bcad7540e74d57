"""Move generation: recorded counts and lists, a plain twin, another engine, and its own parts against each other."""

import numpy as np
import pyffish
import pytest

from games.xiangqi import Game, perft
from games.xiangqi.divide import divide
from games.xiangqi.fen import parse_fen
from games.xiangqi.geometry import EMPTY, NO_MOVE, move_text, parse_move, square_name
from games.xiangqi.movegen import ALL, CAPTURES, MAX_PERFT_DEPTH, QUIETS, checkers, make_move_kernel
from tests.reference import rules
from tests.support.games import random_positions, random_walk
from tests.support.golden import rows
from tests.support.kernels import EVASIONS, can_move, generated, judged_moves, pseudo_legal_words, target_of

DEEP_NODES = 5_000_000
PERFT = [(row["fen"], int(depth), nodes) for row in rows("perft") for depth, nodes in row["perft"].items()]


def perft_cases(deep: bool):
    return [(fen, depth, nodes) for fen, depth, nodes in PERFT if (nodes > DEEP_NODES) == deep]


@pytest.mark.parametrize(("fen", "depth", "nodes"), perft_cases(deep=False))
def test_perft(fen, depth, nodes):
    assert perft(parse_fen(fen).position, depth) == nodes


@pytest.mark.slow
@pytest.mark.parametrize(("fen", "depth", "nodes"), perft_cases(deep=True))
def test_deep_perft(fen, depth, nodes):
    assert perft(parse_fen(fen).position, depth) == nodes


def test_perft_leaves_the_position_alone():
    game = Game()
    before = game.fen(), game.key
    assert perft(game.position, 0) == 1
    perft(game.position, 3)
    assert (game.fen(), game.key) == before


@pytest.mark.parametrize("depth", [-1, MAX_PERFT_DEPTH + 1])
def test_perft_refuses_a_depth(depth):
    with pytest.raises(ValueError, match=f"depth is {depth}"):
        perft(Game().position, depth)


def test_divide_adds_up_to_perft():
    game = Game()
    shares = dict(divide(game.position, 3))
    assert sorted(shares) == game.legal_move_texts()
    assert sum(shares.values()) == 79666
    after = Game(moves=["h2e2"])
    assert shares["h2e2"] == perft(after.position, 2)


@pytest.mark.parametrize("row", rows("legal_moves"), ids=lambda row: row["fen"])
def test_recorded_legal_moves(row):
    assert Game(row["fen"]).legal_move_texts() == row["moves"]


@pytest.mark.parametrize("row", rows("positions"), ids=lambda row: row["fen"])
def test_recorded_positions(row):
    game = Game(row["fen"])
    assert game.legal_move_texts() == row["legal"]
    assert game.in_check == row["in_check"]


def test_equals_the_plain_twin():
    """Moves, checks and checkers against a generator that shares nothing with ours."""
    positions_in_check = 0
    for game in random_walk(seed=1, count=1500):
        board, white = rules.parse(game.fen())
        checking = sorted(map(rules.name, rules.checkers(board, white)))
        assert game.legal_move_texts() == rules.legal_moves(board, white), game.fen()
        assert sorted(map(square_name, checkers(game.position))) == checking, game.fen()
        assert game.in_check == bool(checking), game.fen()
        positions_in_check += game.in_check
    assert positions_in_check > 20


def with_ranks_from_one(move: str) -> str:
    """`a0a9` as pyffish writes it: `a1a10`."""
    return f"{move[0]}{int(move[1]) + 1}{move[2]}{int(move[3]) + 1}"


def assert_equals_pyffish(seed: int, count: int) -> None:
    for game in random_walk(seed, count):
        fen = game.fen()
        expected = sorted(pyffish.legal_moves("xiangqi", fen, []))
        assert sorted(map(with_ranks_from_one, game.legal_move_texts())) == expected, fen
        assert game.in_check == pyffish.gives_check("xiangqi", fen, []), fen


def test_equals_pyffish():
    assert_equals_pyffish(seed=2, count=2000)


@pytest.mark.slow
def test_equals_pyffish_for_long():
    assert_equals_pyffish(seed=3, count=30_000)


def test_pseudo_legal_words_are_the_generated_moves():
    """All 2**14 words that two squares can spell, and some that they cannot."""
    strange = [-1, -(1 << 40), 1 << 14, 1 << 14 | parse_move("h2e2"), (1 << 62) + parse_move("h2e2"), NO_MOVE]
    words = np.concatenate([np.arange(1 << 14), strange])
    for position in random_positions(seed=4, count=300):
        moves = generated(position, ALL)
        assert sorted(pseudo_legal_words(position, words)) == sorted(moves)
        assert len(set(moves)) == len(moves)


def test_captures_and_quiets_are_all_moves():
    for position in random_positions(seed=5, count=1000):
        captures, quiets = generated(position, CAPTURES), generated(position, QUIETS)
        assert sorted(captures + quiets) == sorted(generated(position, ALL))
        board = position["board"][0]
        assert all(board[target_of(move)] != EMPTY for move in captures)
        assert all(board[target_of(move)] == EMPTY for move in quiets)


def test_evasions_are_the_legal_moves_and_few_others():
    """Every single check and many double ones; the test of legality has little left to refuse."""
    kept = legal = positions_in_check = 0
    for game in random_walk(seed=8, count=6000):
        if not game.in_check:
            continue
        positions_in_check += 1
        evasions = generated(game.position, EVASIONS)
        assert set(game.legal_moves()) <= set(evasions) <= set(generated(game.position, ALL)), game.fen()
        kept += len(evasions)
        legal += len(game.legal_moves())
    assert positions_in_check > 150
    assert kept < 2.5 * legal


# All moves of the rook, though those along the file leave the check: a piece that is a screen may go anywhere.
ROOK_E3 = "e3a3 e3b3 e3c3 e3d3 e3f3 e3g3 e3h3 e3i3 e3e1 e3e2 e3e4 e3e5 e3e6"


@pytest.mark.parametrize(
    ("fen", "evasions"),
    [
        ("3k5/9/9/9/4r4/9/9/8R/9/2B1K4 w - - 0 1", "c0e2 e0d0 e0e1 e0f0 i2e2"),  # a rook: step aside or between
        ("3k5/9/9/4c4/9/9/4R4/9/C8/4K4 w - - 0 1", "a1e1 e0d0 e0e1 e0f0 " + ROOK_E3),  # a cannon: unscreen
        ("3k5/9/9/9/9/9/9/3n5/C8/4K4 w - - 0 1", "a1d1 e0d0 e0e1 e0f0"),  # a knight: stand on its leg
        ("3k5/9/9/9/9/9/9/3n4R/8C/4K4 w - - 0 1", "e0d0 e0e1 e0f0 i1d1 i2d2"),  # take it, or stand on its leg
    ],
)
def test_evasions_by_hand(fen, evasions):
    moves = generated(parse_fen(fen).position, EVASIONS)
    assert sorted(map(move_text, moves)) == sorted(evasions.split())


def test_generators_append():
    position = Game().position
    for which in (ALL, CAPTURES, QUIETS):
        assert generated(position, which, first=5) == generated(position, which)


def test_a_position_with_very_many_moves():
    """Found by hill climbing; nothing may be written behind the buffer, which `generated` sees to."""
    fen = "R8/2P2P1P1/4k4/1R7/2N2P1P1/8C/6C2/2N1BA3/3K5/2B2A3 w - - 0 1"
    game = Game(fen)
    assert game.legal_move_texts() == rules.legal_moves(*rules.parse(fen))
    moves = generated(game.position, ALL)
    assert len(moves) > 100
    assert sorted(moves) == sorted(generated(game.position, CAPTURES) + generated(game.position, QUIETS))


def test_legal_moves_are_pseudo_legal_and_give_check_as_told():
    """Three ways to ask whether a move gives check, and the key it leads to, against making the move."""
    checks = illegal = 0
    for game in random_walk(seed=6, count=1500):
        judged = judged_moves(game.position)
        legal = [move for move, (is_legal, *_) in judged.items() if is_legal]
        assert sorted(legal) == sorted(game.legal_moves())
        assert can_move(game.position) == bool(legal)
        for move in legal:
            _, gives, gave, attacked, _ = judged[move]
            assert gives == gave == attacked, (game.fen(), move_text(move))
            checks += attacked
        illegal += len(judged) - len(legal)
    assert checks > 500
    assert illegal > 500


def test_the_key_after_a_move_is_foretold():
    for position in random_positions(seed=7, count=100):
        for move, (legal, _, _, _, key) in judged_moves(position).items():
            if legal:
                after = position.copy()
                make_move_kernel(after[0], move)
                assert after["key"][0] == key


@pytest.mark.parametrize(
    ("fen", "moves"),
    [
        ("3k5/9/9/9/9/9/9/9/9/R3K4 w - - 0 1", {"e0e1": True, "e0d0": False}),  # facing kings on the d-file
        ("3k5/9/9/9/9/4r4/9/4N4/9/4K4 w - - 0 1", {"e2d4": False, "e0f0": True}),  # a pinned knight
        ("3k5/9/9/9/9/4c4/4P4/9/4A4/4K4 w - - 0 1", {"e1d2": False, "e3e4": True}),  # both half pinned
        ("3k5/9/9/9/9/4c4/9/4C4/4A4/4K4 w - - 0 1", {"e2e3": True, "e2d2": False}),  # along the line it may
        ("3k5/9/9/9/9/4c4/9/R8/9/4K4 w - - 0 1", {"a2d2": True, "a2e2": False}),  # not as a screen
        ("5k3/9/9/9/9/9/9/3n5/3R5/4K4 w - - 0 1", {"d1d2": True, "d1a1": False}),  # on the leg of a knight
    ],
)
def test_pins_and_screens(fen, moves):
    legal = Game(fen).legal_move_texts()
    for move, expected in moves.items():
        assert (move in legal) == expected, move


@pytest.mark.parametrize(
    ("fen", "in_check"),
    [
        ("3k5/R8/4R4/9/9/9/9/9/9/4K4 b - - 0 1", False),  # stalemate
        ("R2k5/1R7/9/9/9/9/9/9/9/4K4 b - - 0 1", True),  # mate
    ],
)
def test_no_moves(fen, in_check):
    game = Game(fen)
    assert game.legal_moves() == []
    assert game.in_check == in_check
    assert not can_move(game.position)
    assert perft(game.position, 3) == 0
