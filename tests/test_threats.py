"""Threat features: recorded ones, what exists, and the attacks behind them against a plain twin."""

import itertools

import numpy as np
import pytest

from games.xiangqi.fen import parse_fen
from games.xiangqi.geometry import (
    BLACK,
    CANNON,
    EMPTY,
    KIND_OF,
    KINDS,
    KING,
    KNIGHT,
    PIECES_PER_SIDE,
    ROOK,
    WHITE,
    parse_square,
    square_name,
)
from nnue_jax import reference
from nnue_jax.architecture import THREAT_FEATURES
from nnue_jax.features import feature_squares
from nnue_jax.network_file import read_network
from nnue_jax.threats import NO_FEATURE, PIECE_CODES, oriented_code, reach, threat_indices, threat_table
from tests.reference import rules
from tests.support.games import random_walk
from tests.support.golden import DATA, rows

PERSPECTIVES = {"white": WHITE, "black": BLACK}
OWN_KING, OTHER_KING = oriented_code(True, KING), oriented_code(False, KING)


@pytest.fixture(scope="module")
def recorded_network():
    return read_network(DATA / "random128.nnue")


def test_recorded_features_and_outputs(recorded_network):
    for row in rows("eval_random128"):
        position = parse_fen(row["fen"]).position[0]
        for name, perspective in PERSPECTIVES.items():
            assert reference.piece_square_features(position, perspective) == row[name]["psq"], row["fen"]
            assert reference.threat_features(position, perspective) == row[name]["threats"], row["fen"]
            _, psqt = reference.accumulate(recorded_network, position, perspective)
            assert psqt.tolist() == row[name]["psqt_acc"]
        found = reference.evaluate(recorded_network, position)
        assert found.layer_stack == row["layer_bucket"]
        assert found.fc0_out.tolist() == row["fc0_out"]
        assert (found.psqt_raw, found.positional_raw) == (row["psqt_raw"], row["positional_raw"])
        assert (found.psqt, found.positional) == (row["psqt"], row["positional"])


def test_recorded_games(recorded_network):
    for row in rows("eval_games_random128"):
        position = parse_fen(row["fen"]).position[0]
        found = reference.evaluate(recorded_network, position)
        assert found.layer_stack == row["layer_bucket"]
        assert (found.psqt, found.positional) == (row["psqt"], row["positional"])
        assert [len(reference.threat_features(position, side)) for side in (WHITE, BLACK)] == row["n_threats"]


def test_attacked_pieces_equal_the_plain_twin():
    for game in random_walk(seed=41, count=800):
        board, _ = rules.parse(game.fen())
        squares = game.position["board"][0]
        for square, letter in board.items():
            expected = sorted(rules.name(target) for target in rules.reachable(board, square) if target in board)
            origin = parse_square(rules.name(square))
            piece = int(squares[origin])
            found = reference.attacked_pieces(squares, piece // PIECES_PER_SIDE, int(KIND_OF[piece]), origin)
            assert sorted(map(square_name, found)) == expected, (game.fen(), letter)


def test_indices_are_numbered_without_gaps():
    indices = threat_indices()
    assert sorted(indices.values()) == list(range(THREAT_FEATURES))
    table = threat_table()
    assert table.shape == (PIECE_CODES, 90, 90, PIECE_CODES)
    assert np.count_nonzero(table != NO_FEATURE) == THREAT_FEATURES
    key, index = next(itertools.islice(indices.items(), 20_000, None))
    assert table[key] == index


def test_what_exists():
    """No attack by the own king or on the king of the other side; of twins exactly one, of knights both."""
    indices = threat_indices()
    assert not any(attacker == OWN_KING for attacker, *_ in indices)
    kings = {(attacker < KINDS, victim) for attacker, _, _, victim in indices if victim in (OWN_KING, OTHER_KING)}
    assert kings == {(True, OWN_KING), (False, OTHER_KING)}
    for kind, twice in ((ROOK, False), (CANNON, False), (KNIGHT, True)):
        for attacker, victim in itertools.product((kind, KINDS + kind), repeat=2):
            for origin in feature_squares(True, kind):
                for target in reach(attacker, origin):
                    there = (attacker, origin, target, victim) in indices
                    back = (victim, target, origin, attacker) in indices
                    # Two different pieces of one kind: the pair of squares names either threat.
                    assert (there and back) if twice else (there or back), (attacker, origin, target)
                    assert twice or there == (origin > target)


def test_an_empty_board_has_no_threats():
    position = parse_fen("3k5/9/9/9/9/9/9/9/9/4K4 w - - 0 1").position[0]
    assert (position["board"] != EMPTY).sum() == 2
    assert reference.threat_features(position, WHITE) == reference.threat_features(position, BLACK) == []
