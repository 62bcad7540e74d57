"""The win-rate model that a network carries: read, refused, and used by everything that shows a score."""

import json
from dataclasses import replace

import pytest

from games.xiangqi import Game
from nnue_jax.evaluator import Evaluator
from nnue_jax.network_file import NetworkError, read_network, write_network
from nnue_jax.win_rate import MOST_MATERIAL, PIKAFISH_MODEL, WinRateError, WinRateModel, model_of
from search.limits import Limits
from tests.support.golden import DATA
from uci.evaluation_table import evaluation_lines

FLAT = {"a": [0, 0, 0, 200], "b": [0, 0, 0, 50]}


def described(facts) -> bytes:
    return json.dumps(facts).encode()


@pytest.mark.parametrize("description", [b"", b"plain words", b"\xff\xfe", b"[1]", b"{}", b'"win_rate"'])
def test_a_network_that_says_nothing_has_the_reference_model(description):
    assert model_of(description) == PIKAFISH_MODEL


def test_a_model_is_read_from_the_description():
    model = model_of(described({"win_rate": FLAT, "name": "net"}))
    assert model == WinRateModel((0, 0, 0, 200), (0, 0, 0, 50))
    assert model.at(60).centipawns(200) == 100
    assert model.at(60).win_draw_loss(200)[0] == 500


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, ["'a'", "4 numbers"]),
        ([], ["'a'"]),
        ({"a": [1, 2, 3], "b": [1, 2, 3, 4]}, ["'a'", "[1, 2, 3]"]),
        ({"a": [0, 0, 0, 100], "b": [0, 0, 0, "x"]}, ["'b'"]),
        ({"a": [0, 0, 0, True], "b": [0, 0, 0, 1]}, ["'a'"]),
        ({"a": [0, 0, 0, 100], "b": [0, 0, 0, -1]}, ["b = -1", "above zero"]),
        ({"a": [0, 0, -100, 100], "b": [0, 0, 0, 1]}, ["a = ", "above zero"]),
    ],
)
def test_a_broken_model_is_refused(parameters, words):
    with pytest.raises(WinRateError) as refusal:
        model_of(described({"win_rate": parameters}))
    assert all(word in str(refusal.value) for word in words)


def test_tables_hold_every_material():
    a, b = PIKAFISH_MODEL.tables()
    for material in range(MOST_MATERIAL + 1):
        rate = PIKAFISH_MODEL.at(material)
        assert (rate.a, rate.b) == (a[material], b[material])


@pytest.fixture
def flat_network():
    return replace(read_network(DATA / "random128.nnue"), description=described({"win_rate": FLAT}))


def test_a_file_with_a_broken_model_is_no_network(flat_network, tmp_path):
    path = tmp_path / "broken.nnue"
    write_network(replace(flat_network, description=described({"win_rate": {"a": []}})), path)
    with pytest.raises(NetworkError, match=r"broken.nnue' is not a usable network: its win-rate model"):
        read_network(path)


def test_every_score_goes_by_the_networks_model(flat_network, engine, tmp_path):
    path = tmp_path / "flat.nnue"
    write_network(flat_network, path)
    game = Game(moves=["h2e2"])
    evaluations = Evaluator.load(path, "numba").evaluate([game.fen()])
    assert evaluations.cp[0] == round(evaluations.value[0] / 2)
    assert evaluation_lines(read_network(path), game)[-1].split()[2] == f"{-evaluations.cp[0] / 100:+.2f}"
    used = engine.network
    engine.set_network(read_network(path))
    engine.set_position(game)
    score = engine.go(Limits(depth=2)).wait().report.score
    engine.set_network(used)
    assert abs(score.score_cp - score.value / 2) <= 0.5
