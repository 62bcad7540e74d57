"""The specification in NumPy against recorded features and outputs, and the values made from its outputs."""

import pytest

from games.integers import truncated_division
from games.jit import kernel
from games.xiangqi import Game
from games.xiangqi.fen import parse_fen
from games.xiangqi.geometry import BLACK, KINDS, KING, MAX_OF_KIND, WHITE, standing_squares
from nnue_jax import reference
from nnue_jax.architecture import FEATURE_BUCKETS, LAYER_STACKS, PIECE_SQUARE_FEATURES, PIECE_SQUARES, Architecture
from nnue_jax.features import KING_ON_E_FILE, MIRROR_BASE, layer_stack_of, layer_stack_table, local_indices, mirror_term
from nnue_jax.network_file import read_network
from nnue_jax.value import (
    MAX_STATIC_VALUE,
    attacking_material,
    blend,
    damp,
)
from nnue_jax.win_rate import PIKAFISH_MODEL, model_material
from tests.support.games import random_positions
from tests.support.golden import DATA, rows

PERSPECTIVES = {"white": WHITE, "black": BLACK}
VALUES = [*range(-MAX_STATIC_VALUE, MAX_STATIC_VALUE, 997), *range(-900, 901, 7), 0, MAX_STATIC_VALUE]
MATERIALS = [0, 17, 18, 30, 45, 64, 78, 100, 110, 130]


@kernel
def attacking_material_kernel(position):
    return attacking_material(position)


@kernel
def blend_kernel(psqt, positional, material):
    return blend(psqt, positional, material)


@kernel
def damp_kernel(value, rule60):
    return damp(value, rule60)


@kernel
def truncated_division_kernel(numerator, denominator):
    return truncated_division(numerator, denominator)


def final_value(fen: str, psqt: int, positional: int) -> int:
    """The value from which a search starts."""
    parsed = parse_fen(fen)
    material = attacking_material_kernel(parsed.position[0])
    return damp_kernel(blend_kernel(psqt, positional, material), parsed.rule60)


@pytest.fixture(scope="module")
def recorded_network():
    return read_network(DATA / "piece_square128.nnue")


@pytest.mark.parametrize("row", rows("features"), ids=lambda row: row["fen"])
def test_recorded_features(row):
    position = parse_fen(row["fen"]).position[0]
    for name, perspective in PERSPECTIVES.items():
        expected = row[name]
        assert reference.piece_square_features(position, perspective) == expected["psq"]
        assert reference.feature_bucket(position, perspective) == expected["feature_bucket"]
        assert reference.is_mirrored(position, perspective) == expected["mirror"]
        assert reference.mirror_code(position, perspective) == int(expected["mid_encoding"], 16)


def test_recorded_network(recorded_network):
    assert recorded_network.architecture == Architecture(128)


@pytest.mark.parametrize("row", rows("eval_piece_square128"), ids=lambda row: row["fen"])
def test_recorded_outputs(row, recorded_network):
    found = reference.evaluate(recorded_network, parse_fen(row["fen"]).position[0])
    assert found.layer_stack == row["layer_bucket"]
    assert (found.psqt_raw, found.positional_raw) == (row["psqt_raw"], row["positional_raw"])
    assert (found.psqt, found.positional) == (row["psqt"], row["positional"])
    assert final_value(row["fen"], found.psqt, found.positional) == row["final"]


def swapped(fen: str) -> str:
    """The position with colours swapped and ranks mirrored."""
    placement, side, *rest = fen.split()
    ranks = "/".join(reversed(placement.split("/"))).swapcase()
    return " ".join([ranks, "b" if side == "w" else "w", *rest])


def mirrored(fen: str) -> str:
    """The position with files mirrored."""
    placement, *rest = fen.split()
    return " ".join(["/".join(rank[::-1] for rank in placement.split("/")), *rest])


@pytest.mark.parametrize("row", rows("eval_piece_square128")[::10], ids=lambda row: row["fen"])
def test_symmetries(row, recorded_network):
    """Neither colour matters nor, unless both sides' pieces lean exactly alike, the wing."""

    def outputs(fen):
        found = reference.evaluate(recorded_network, parse_fen(fen).position[0])
        return found.psqt_raw, found.positional_raw

    assert outputs(swapped(row["fen"])) == outputs(row["fen"])
    position = parse_fen(row["fen"]).position[0]
    if any(reference.mirror_code(position, side) != MIRROR_BASE for side in PERSPECTIVES.values()):
        assert outputs(mirrored(row["fen"])) == outputs(row["fen"])


def test_features_are_in_their_bucket():
    for position in random_positions(seed=21, count=300):
        for perspective in (WHITE, BLACK):
            features = reference.piece_square_features(position[0], perspective)
            bucket = reference.feature_bucket(position[0], perspective)
            pieces = sum(len(reference.pieces_of(position[0], side)) for side in (WHITE, BLACK))
            assert len(set(features)) == len(features) == pieces
            assert {feature // PIECE_SQUARES for feature in features} == {bucket}
            assert 0 <= bucket < FEATURE_BUCKETS
            assert features[-1] < PIECE_SQUARE_FEATURES


def test_local_indices_are_numbered_without_gaps():
    assert sorted(local_indices().values()) == list(range(PIECE_SQUARES))


def test_mirror_code_keeps_the_kings_bit():
    """However the pieces stand, they neither borrow from bit 63 nor carry beyond it.

    So a code less MIRROR_BASE has the sign that the specification asks for, which is what the incremental
    evaluator relies on.
    """
    farthest = 0
    for kind in set(range(KINDS)) - {KING}:
        terms = sorted(mirror_term(WHITE, kind, square) for square in standing_squares(kind))
        farthest += sum(terms[-MAX_OF_KIND[kind] :])
        assert sum(terms[: MAX_OF_KIND[kind]]) == -sum(terms[-MAX_OF_KIND[kind] :])
    assert KING_ON_E_FILE <= MIRROR_BASE - farthest
    assert MIRROR_BASE + farthest < 2 * KING_ON_E_FILE


def test_layer_stacks():
    """Material of (us, them) to stack, and the table for kernels."""
    cases = {
        ((2, 2), (4, 4)): 11,
        ((2, 2), (4, 3)): 10,
        ((2, 2), (1, 2)): 8,
        ((1, 1), (2, 2)): 7,
        ((1, 1), (1, 1)): 5,
        ((0, 0), (0, 0)): 1,
        ((0, 0), (1, 0)): 0,
        ((2, 1), (0, 4)): 12,
        ((1, 2), (4, 0)): 13,
        ((2, 0), (1, 1)): 14,
        ((1, 0), (1, 1)): 14,
        ((0, 1), (1, 1)): 15,
        ((0, 2), (1, 1)): 15,
    }
    table = layer_stack_table()
    for (rooks, minors), stack in cases.items():
        assert layer_stack_of(rooks, minors) == stack
        assert table[(rooks[0] * 3 + rooks[1]) * 25 + minors[0] * 5 + minors[1]] == stack
    assert set(table.tolist()) == set(range(LAYER_STACKS))


@pytest.mark.parametrize(("numerator", "quotient"), [(7, 2), (-7, -2), (6, 2), (-6, -2), (2, 0), (-2, 0), (0, 0)])
def test_division_truncates(numerator, quotient):
    assert truncated_division_kernel(numerator, 3) == quotient


def test_blend_and_damp_by_hand():
    """With the opening's material; numbers worked out from the formulas."""
    assert attacking_material_kernel(Game().position[0]) == 4 * (1305 + 773 + 720)
    assert blend_kernel(0, 0, 11192) == 0
    # 300 - 300 * 100 / 11743 = 300 - 2; 298 * 28572 / 20582 = 413
    assert blend_kernel(200, 100, 11192) == 413
    assert blend_kernel(-200, -100, 11192) == -413
    assert damp_kernel(413, 0) == 413
    assert damp_kernel(413, 119) == 413 - 194
    assert damp_kernel(-413, 119) == -(413 - 194)
    assert damp_kernel(10**6, 0) == MAX_STATIC_VALUE
    assert damp_kernel(-(10**6), 50) == -MAX_STATIC_VALUE


def test_model_material():
    assert model_material(Game().position[0]) == 2 * (20 + 10 + 10 + 6 + 4 + 5)
    assert model_material(Game("3k5/9/9/9/9/9/P8/9/9/R3K4 w - - 0 1").position[0]) == 11


@pytest.mark.parametrize("material", MATERIALS)
def test_centipawns(material):
    ascending = sorted(VALUES)
    rate = PIKAFISH_MODEL.at(material)
    scores = [rate.centipawns(value) for value in ascending]
    assert scores == sorted(scores)
    assert [rate.centipawns(-value) for value in ascending] == [-score for score in scores]
    assert rate.centipawns(0) == 0
    assert rate.centipawns(round(rate.a)) == 100


@pytest.mark.parametrize("material", MATERIALS)
def test_win_draw_loss(material):
    ascending = sorted(VALUES)
    rate = PIKAFISH_MODEL.at(material)
    expected = [rate.win_draw_loss(value) for value in ascending]
    assert all(sum(triple) == 1000 and min(triple) >= 0 for triple in expected)
    wins, losses = [win for win, _, _ in expected], [loss for _, _, loss in expected]
    assert wins == sorted(wins)
    assert losses == sorted(losses, reverse=True)
    assert [rate.win_draw_loss(-value) for value in ascending] == [triple[::-1] for triple in expected]
    assert expected[0] == (0, 0, 1000)
    assert expected[-1] == (1000, 0, 0)
    half, _, _ = rate.win_draw_loss(round(rate.a))
    assert abs(half - 500) < 50
