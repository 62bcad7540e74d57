"""The win-rate model: fitted to results that a known one has drawn, checked on others, and put into a network."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import fit_win_rate, win_rate_model_fit
from experiments.calibration import deciles, largest_difference, material_thirds, row_of
from experiments.fit_win_rate import (
    MOVER,
    WHITE,
    Fitted,
    fit_all,
    fit_split,
    in_folds,
    last_games,
    main,
    predict,
    with_model,
)
from experiments.win_rate_model_fit import FitError, count_results, fit, fit_constant, material_of
from games.xiangqi import Game
from games.xiangqi.fen import parse_fen
from games.xiangqi.geometry import NO_SQUARE, PIECES, PIECES_PER_SIDE
from games.xiangqi.packed import pack
from nnue_jax.evaluator import Evaluator
from nnue_jax.network_file import read_network, write_network
from nnue_jax.training.records import RECORD, write_shard
from nnue_jax.win_rate import (
    LEAST_MATERIAL,
    MATERIAL_UNIT,
    MOST_MATERIAL,
    PIKAFISH_MODEL,
    WinRateModel,
    model_material,
)
from search.limits import Limits
from tests.support.games import random_walk
from tests.support.golden import DATA
from uci.text import report_line

TRUTH = WinRateModel(a=(-100, 500, -900, 800), b=(20, -30, 200, 100))
MATERIALS = range(LEAST_MATERIAL, MOST_MATERIAL + 1)
GAME_LENGTH = 100
NETWORK = DATA / "random128.nnue"


def drawn_records(count: int, seed: int, least_share: float = 0.0, overrated: float = 0.0) -> np.ndarray:
    """[count] RECORD whose results are drawn by TRUTH, each for itself; in games of GAME_LENGTH.

    least_share: of the pieces, are on the board. overrated: how much the scores are above those that TRUTH goes by.
    """
    rng = np.random.default_rng(seed)
    records = np.zeros(count, RECORD)
    is_there = rng.random((count, PIECES)) < rng.uniform(least_share, 1, (count, 1))
    is_there[:, ::PIECES_PER_SIDE] = True  # kings
    records["packed"]["square_of"] = np.where(is_there, np.arange(PIECES), NO_SQUARE)
    records["packed"]["side"] = np.arange(count) % 2
    records["ply"] = np.arange(count) % GAME_LENGTH
    score = rng.normal(0, 600, count).clip(-2800, 2800)
    records["score"] = (score + overrated).round()
    m = material_of(records["packed"]).clip(LEAST_MATERIAL, MOST_MATERIAL) / MATERIAL_UNIT
    a, b = np.polyval(TRUTH.a, m), np.polyval(TRUTH.b, m)
    win, loss = (1 / (1 + np.exp((a - sign * score) / b)) for sign in (1, -1))
    chance = rng.random(count)
    records["result"] = np.where(chance < win, 1, np.where(chance < win + loss, -1, 0))
    return records


def folder_of(path: Path, records: np.ndarray, shards: int = 4) -> Path:
    path.mkdir()
    for number, part in enumerate(np.array_split(records, shards)):
        write_shard(path / f"shard-{number:06}.zst", part)
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return folder_of(tmp_path_factory.mktemp("data") / "games", drawn_records(200_000, seed=1))


@pytest.fixture(scope="module")
def fitted(data) -> Fitted:
    return fit_split(last_games([data], 0.2))


def test_material_is_counted_as_for_one_position():
    fens = [game.fen() for game in random_walk(seed=5, count=200)]
    parsed = [parse_fen(fen) for fen in fens]
    assert material_of(pack(parsed)).tolist() == [model_material(one.position[0]) for one in parsed]


def test_the_model_that_drew_the_results_is_found(fitted):
    for material in MATERIALS:
        found, true = fitted.model.at(material), TRUTH.at(material)
        tolerance = 0.04 if 30 <= material <= 100 else 0.10
        assert found.a == pytest.approx(true.a, rel=tolerance), material
        assert found.b == pytest.approx(true.b, rel=tolerance), material


@pytest.mark.parametrize("step", [-0.01, 0.01])
def test_no_other_model_fits_better(monkeypatch, step):
    monkeypatch.setattr(win_rate_model_fit, "IMAGINARY_POSITIONS", 0)
    counts = count_results(drawn_records(50_000, seed=2))
    model = fit(counts, fit_constant(counts))
    aim = win_rate_model_fit._Aim(counts)
    least = aim.cost(*parameters(model))
    for name in ("a", "b"):
        for power in range(4):
            coefficients = list(getattr(model, name))
            coefficients[power] += step * sum(map(abs, coefficients))
            assert aim.cost(*parameters(replace(model, **{name: tuple(coefficients)}))) > least


@pytest.mark.parametrize("index", [0, 40, 90])
@pytest.mark.parametrize("direction", [(1, 0), (0, 1)])
def test_the_slope_is_that_of_the_cost(index, direction):
    aim = win_rate_model_fit._Aim(count_results(drawn_records(20_000, seed=15)))
    a, b = parameters(TRUTH)
    step = np.zeros((2, len(a)))
    step[:, index] = 1e-2 * np.array(direction)
    difference = aim.cost(a + step[0], b + step[1]) - aim.cost(a - step[0], b - step[1])
    assert aim.slopes(a, b)[0][index] @ direction == pytest.approx(difference / 2e-2, rel=1e-3)


def parameters(model: WinRateModel) -> tuple[np.ndarray, np.ndarray]:
    """a and b for every material."""
    return tuple(np.array([getattr(model.at(material), name) for material in MATERIALS]) for name in ("a", "b"))


def test_squared_errors_of_the_expected_score_count(monkeypatch):
    records = drawn_records(50_000, seed=14)
    records["score"][::2] //= 3  # so no model is the right one
    counts = count_results(records)
    errors = []
    for weight in (win_rate_model_fit.SQUARES_WEIGHT, 0):
        monkeypatch.setattr(win_rate_model_fit, "SQUARES_WEIGHT", weight)
        predictions = predict(fit(counts, fit_constant(counts)), records)
        errors.append(np.square(predictions.points - predictions.expected).mean())
    assert errors[0] < errors[1] - 1e-4


def test_in_folds_every_game_is_held_out_once(data, fitted):
    everything = fit_all(in_folds([data], 4))
    assert (everything.positions, everything.held_out_games) == (200_000, 2000)
    assert len(everything.views[MOVER]) == len(everything.views[WHITE]) == 200_000
    records = drawn_records(200_000, seed=1)
    assert np.array_equal(everything.views[MOVER].points, (records["result"] + 1) / 2)
    # Each fold is checked with a model of its own, that has not seen it.
    last = in_folds([data], 4)[-1]
    assert np.array_equal(everything.views[MOVER].expected[-50_000:], fit_split(last).views[MOVER].expected)
    assert abs(largest_difference(deciles(everything.views[MOVER])).difference) < 0.01
    assert everything.model.a != fitted.model.a


@pytest.mark.parametrize("folds", [1, 5])
def test_more_folds_than_shards_are_refused(data, folds, capsys):
    assert main([str(data), "--network", str(NETWORK), "--folds", str(folds)]) == 1
    assert f"{folds} folds cannot be made of 4 shards; expected 2 to 4." in capsys.readouterr().err


def test_last_games_are_held_out(data, fitted):
    assert (fitted.positions, len(fitted.views[MOVER]), fitted.held_out_games) == (160_000, 40_000, 400)
    held_out = drawn_records(200_000, seed=1)[-40_000:]
    assert np.array_equal(fitted.views[MOVER].points, (held_out["result"] + 1) / 2)


@pytest.mark.parametrize("view", [MOVER, WHITE])
def test_predictions_come_true_in_every_decile(fitted, view):
    predictions = fitted.views[view]
    assert abs(largest_difference(deciles(predictions)).difference) < 0.02
    thirds = material_thirds(predictions)
    assert len(thirds) == 3 and sum(len(third) for _, third in thirds) == len(predictions)
    for _, third in thirds:
        assert abs(largest_difference(deciles(third)).difference) < 0.03


def test_predictions_are_what_wdl_shows():
    records = drawn_records(100, seed=3)
    predictions = predict(TRUTH, records)
    for i, record in enumerate(records):
        win, draw, _ = TRUTH.at(int(material_of(record["packed"][None])[0])).win_draw_loss(int(record["score"]))
        assert predictions.expected[i] == (win + draw / 2) / 1000


def test_overrated_positions_cancel_out_only_in_whites_view(tmp_path):
    data = folder_of(tmp_path / "games", drawn_records(100_000, seed=4, overrated=150))
    views = fit_split(last_games([data], 0.2)).views
    assert row_of(views[MOVER]).difference < -0.04
    assert abs(row_of(views[WHITE]).difference) < 0.01


def test_a_standard_error_is_one_of_whole_games():
    records = drawn_records(10_000, seed=6)
    records["score"] = 0
    records["result"] = np.repeat(np.random.default_rng(0).choice([-1, 1], 100), GAME_LENGTH)
    assert row_of(predict(TRUTH, records)).standard_error == pytest.approx(0.5 / 10, rel=0.05)


def test_material_that_never_occurs_gets_a_sober_model():
    counts = count_results(drawn_records(20_000, seed=7, least_share=0.75))
    constant = fit_constant(counts)
    model = fit(counts, constant)
    least = min(material for material in MATERIALS if counts[material - LEAST_MATERIAL].any())
    assert least > 40
    for material in MATERIALS:
        rate, mean = model.at(material), constant.at(material)
        assert 0.5 < rate.a / mean.a < 2, material
        assert 0.5 < rate.b / mean.b < 2, material


def test_few_positions_are_enough():
    counts = count_results(drawn_records(60, seed=8))
    fit(counts, fit_constant(counts)).check()


@pytest.mark.parametrize("result", [-1, 0, 1])
def test_games_that_lack_a_result_are_refused(result):
    records = drawn_records(1000, seed=9)
    records = records[records["result"] != result]
    with pytest.raises(FitError, match=r"There are .* won, .* drawn games and .* lost ones; expected some of each\."):
        fit_constant(count_results(records))


def test_scores_that_tell_the_result_are_refused():
    records = drawn_records(1000, seed=10)
    records["result"] = np.sign(records["score"]) * (np.abs(records["score"]) > 400)
    with pytest.raises(FitError, match=r"The scores tell nearly all results, as b = 0\.\d+ for all material"):
        fit_constant(count_results(records))


def test_too_few_steps_are_no_result(monkeypatch):
    monkeypatch.setattr(win_rate_model_fit, "MAX_STEPS", 1)
    with pytest.raises(FitError, match="was not found in 1 steps"):
        fit_constant(count_results(drawn_records(1000, seed=13)))


def test_decided_positions_are_left_out():
    records = drawn_records(1000, seed=11)
    records["score"][:10] = [3001, -3001, 32767, -32768, 3000, -3000, 0, 7, 8, -8]
    assert count_results(records).sum() == 996


@pytest.mark.parametrize(
    ("description", "kept"),
    [
        (b"", {}),
        (b"plain words", {"description": "plain words"}),
        (b"\xff", {"description": "\\xff"}),
        (b"[1]", {"description": [1]}),
        (
            b'{"training": {"width": 128}, "win_rate": {"a": [0, 0, 0, 1], "b": [0, 0, 0, 1]}}',
            {"training": {"width": 128}},
        ),
    ],
)
def test_a_network_keeps_what_its_description_said(description, kept, tmp_path):
    network = replace(read_network(NETWORK), description=description)
    write_network(with_model(network, TRUTH), tmp_path / "net.nnue", level=1)
    written = read_network(tmp_path / "net.nnue")
    facts = json.loads(written.description)
    assert facts.pop("win_rate") == {"a": list(TRUTH.a), "b": list(TRUTH.b)}
    assert facts == kept
    assert written.win_rate_model == TRUTH
    assert np.array_equal(written.piece_square_weight, network.piece_square_weight)


def test_everything_that_shows_a_score_goes_by_the_fitted_model(fitted, engine, tmp_path):
    path = tmp_path / "net.nnue"
    write_network(with_model(read_network(NETWORK), fitted.model), path, level=1)
    game = Game(moves=["h2e2"])
    rate, other = (model.at(model_material(game.position[0])) for model in (fitted.model, PIKAFISH_MODEL))
    used = engine.network
    engine.set_network(read_network(path))
    engine.set_position(game)
    report = engine.go(Limits(depth=2)).wait().report
    engine.set_network(used)
    value = report.score.value
    shown = "score cp {} wdl {} {} {} ".format(rate.centipawns(value), *rate.win_draw_loss(value))
    assert shown in report_line(report, shows_wdl=True)
    assert rate.centipawns(value) != other.centipawns(value) and rate.win_draw_loss(value) != other.win_draw_loss(value)
    found = Evaluator.load(path, "numba").evaluate([game.fen()])
    value = int(found.value[0])
    assert (found.cp[0], found.win[0], found.draw[0], found.loss[0]) == (
        rate.centipawns(value),
        *rate.win_draw_loss(value),
    )


def test_the_command_writes_network_and_plot(data, fitted, tmp_path, capsys):
    output = tmp_path / "out.nnue"
    assert main([str(data), "--network", str(NETWORK), "--output", str(output)]) == 0
    assert read_network(output).win_rate_model == fitted.model
    assert (tmp_path / "out.nnue.png").read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr().out
    assert shown.count("by deciles") == 2 and str(list(fitted.model.a)) in shown
    assert "fitted to 160,000 positions; 40,000 of 400 games are held out" in shown


def test_the_command_says_when_predictions_did_not_come_true(data, tmp_path, capsys):
    output = tmp_path / "out.nnue"
    assert main([str(data), "--network", str(NETWORK), "--output", str(output), "--tolerance", "0.0001"]) == 1
    assert output.exists() and (tmp_path / "out.nnue.png").exists()
    assert "expected them to differ by 0.0001 at most." in capsys.readouterr().err


def test_the_tolerance_is_for_the_view_that_was_asked_for(tmp_path, capsys):
    data = str(folder_of(tmp_path / "games", drawn_records(100_000, seed=4, overrated=150)))
    assert main([data, "--network", str(NETWORK)]) == 1
    assert main([data, "--network", str(NETWORK), "--view", "white"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere", "--network", str(NETWORK)], "'nowhere' is no folder; expected one with training data."),
        (["{empty}", "--network", str(NETWORK)], "has no shards of training data."),
        (["{few}", "--network", str(NETWORK)], "The games held out have 3 positions; expected 10 or more."),
        (["{few}", "--network", "nowhere.nnue"], "The network file 'nowhere.nnue' cannot be read"),
        (["{few}", "--network", str(NETWORK), "--held-out", "1"], "The share of games held out is 1.0; expected more"),
        (["{few}", "--network", str(NETWORK), "--held-out", "0"], "The share of games held out is 0.0; expected more"),
    ],
)
def test_errors_are_sentences(words, sentence, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    records = drawn_records(303, seed=12)
    folder_of(tmp_path / "few", records, shards=1)
    words = [word.format(empty=tmp_path / "empty", few=tmp_path / "few") for word in words]
    assert main(words) == 1
    shown = capsys.readouterr()
    assert sentence in shown.err and shown.out == ""


def test_without_matplotlib_the_network_is_written_all_the_same(data, tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise ImportError("No module named 'matplotlib'")

    monkeypatch.setattr(fit_win_rate, "plot", fail)
    output = tmp_path / "out.nnue"
    assert main([str(data), "--network", str(NETWORK), "--output", str(output)]) == 0
    assert output.exists() and "No plot was drawn" in capsys.readouterr().err
