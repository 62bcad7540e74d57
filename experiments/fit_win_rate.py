"""Fit a network's win-rate model to games that the engine played with it, and see whether it comes true.

    python -m experiments.fit_win_rate data/gen1 --network gen1.nnue --output out.nnue

The model's a and b, cubic polynomials of the material, are those that fit the results of the games best;
`win_rate_model_fit.py` says how. The last games of every folder, one in five, are held out; with --folds all games are,
in turn. The scores are those of the searches that chose the moves, so the model is one of such searches: it knows how
often they err, and how seldom a game is won in the plies that its limit leaves.

The deciles are those of the expected score that `wdl` shows, on the games held out, from the view of the side to move
and from White's. They differ because a short search overrates the side that it chooses a move for, by the difference
in the line `all`. The model promises both sides the same at the same score, so it cannot make up for that; from
White's view it cancels out, but White's luck in the games held out does not. --view says which of both the tolerance
is for.

OUT.nnue is the network with its model; OUT.nnue.png is a plot. The status is 1 if a decile is off by more than the
tolerance.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from experiments.calibration import (
    DECILES,
    Predictions,
    deciles,
    joined,
    largest_difference,
    material_thirds,
    plot,
    summary,
    table,
)
from experiments.win_rate_model_fit import (
    FitError,
    count_results,
    fit,
    fit_constant,
    is_counted,
    material_of,
    no_results,
)
from games.xiangqi.geometry import BLACK
from nnue_jax.network_file import Network, NetworkError, read_network, write_network
from nnue_jax.training.dataset import Part, split_folder
from nnue_jax.training.records import RECORD, RecordsError, game_lengths_of
from nnue_jax.win_rate import KEY, WinRateError, WinRateModel

WORDS_KEY = "description"  # for a description that was no JSON object
MOVER, WHITE = "mover", "white"
SHOWN_MATERIALS = (17, 40, 65, 90, 110)


def predict(model: WinRateModel, records: np.ndarray) -> Predictions:
    """Expected scores of [n] RECORD of whole games, by what `wdl` would show."""
    lengths = game_lengths_of(records)
    material = material_of(records["packed"])
    pairs, index = np.unique(material << 16 | records["score"].astype(np.int64) + (1 << 15), return_inverse=True)
    expected = np.empty(len(pairs))
    for i, pair in enumerate(pairs.tolist()):
        win, draw, _ = model.at(pair >> 16).win_draw_loss((pair & 0xFFFF) - (1 << 15))
        expected[i] = (win + draw / 2) / 1000
    return Predictions(
        expected=expected[index],
        points=(records["result"] + 1) / 2,
        material=material,
        game=np.repeat(np.arange(len(lengths)), lengths),
    )


def with_model(network: Network, model: WinRateModel) -> Network:
    """The network with this model in its description, which keeps what it said."""
    try:
        facts = json.loads(network.description)
    except ValueError:
        facts = network.description.decode("utf-8", "backslashreplace")
    if not isinstance(facts, dict):
        facts = {WORDS_KEY: facts} if facts else {}
    facts[KEY] = {"a": list(model.a), "b": list(model.b)}
    return replace(network, description=json.dumps(facts).encode())


@dataclass(frozen=True)
class Fitted:
    """positions: how many the models were fitted to. views: of the games held out, by MOVER and WHITE."""

    model: WinRateModel
    constant: WinRateModel
    positions: int
    views: dict[str, Predictions]

    @property
    def held_out_games(self) -> int:
        return len(np.unique(self.views[MOVER].game))


@dataclass(frozen=True)
class Split:
    """What a model is fitted to, and what it is checked on: parts of shards, between games."""

    training: list[Part]
    held_out: list[Part]


def last_games(folders: Sequence[Path], share: float) -> Split:
    """Hold out the last games of each folder."""
    if not 0 < share < 1:
        raise RecordsError(f"The share of games held out is {share}; expected more than 0 and less than 1.")
    splits = [split_folder(folder, share) for folder in folders]
    return Split(*([part for split in splits for part in split[i]] for i in (0, 1)))


def in_folds(folders: Sequence[Path], folds: int) -> list[Split]:
    """Hold out every shard once, along with every `folds`-th after it."""
    parts = [part for folder in folders for part in split_folder(folder, 0.0)[0]]
    if not 2 <= folds <= len(parts):
        raise RecordsError(f"{folds} folds cannot be made of {len(parts)} shards; expected 2 to {len(parts)}.")
    return [
        Split([part for i, part in enumerate(parts) if i % folds != fold], parts[fold::folds]) for fold in range(folds)
    ]


def counts_of(parts: Sequence[Part]) -> np.ndarray:
    return sum((count_results(part.read()) for part in parts), no_results())


def check(model: WinRateModel, split: Split) -> dict[str, Predictions]:
    """Predictions, by view, for the games held out."""
    records = np.concatenate([np.zeros(0, RECORD), *(part.read() for part in split.held_out)])
    counted = np.flatnonzero(is_counted(records))
    if len(counted) < DECILES:
        raise FitError(f"The games held out have {len(counted)} positions; expected {DECILES} or more.")
    mover = predict(model, records).take(counted)
    return {MOVER: mover, WHITE: mover.seen_by_white(records["packed"]["side"][counted] == BLACK)}


def fit_split(split: Split) -> Fitted:
    """Fit to one part and check on the other; FitError, RecordsError or WinRateError if that is impossible."""
    counts = counts_of(split.training)
    constant = fit_constant(counts)
    model = fit(counts, constant)
    return Fitted(model, constant, int(counts.sum()), check(model, split))


def fit_all(splits: Sequence[Split]) -> Fitted:
    """Fit to everything; every fold is checked with a model that was fitted to the others."""
    views = [fit_split(split).views for split in splits]
    counts = counts_of([part for split in splits for part in split.held_out])
    constant = fit_constant(counts)
    together = {view: joined([fold[view] for fold in views]) for view in (MOVER, WHITE)}
    return Fitted(fit(counts, constant), constant, int(counts.sum()), together)


def report(fitted: Fitted) -> list[str]:
    """The model, and the tables of both views."""
    model, constant = fitted.model, fitted.constant
    held_out = fitted.views[MOVER]
    lines = [
        f"fitted to {fitted.positions:,} positions; {len(held_out):,} of {fitted.held_out_games:,} games are held out",
        f"a  {list(model.a)}, or {constant.a[-1]:.0f} for all material",
        f"b  {list(model.b)}, or {constant.b[-1]:.0f} for all material",
        f"{'material':<10}" + "".join(f"{material:>8}" for material in SHOWN_MATERIALS),
    ]
    for name in ("a", "b"):
        values = (getattr(model.at(material), name) for material in SHOWN_MATERIALS)
        lines.append(f"{name:<10}" + "".join(f"{value:>8.0f}" for value in values))
    for title, view in (("the side to move", MOVER), ("White", WHITE)):
        predictions = fitted.views[view]
        lines += ["", f"Expected score of {title}, by deciles", *table(predictions), ""]
        lines.append(f"{'decile':<20}" + "".join(f"{i + 1:>8}" for i in range(DECILES)))
        lines += [summary(name, third) for name, third in [("all", predictions), *material_thirds(predictions)]]
    return lines


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+", metavar="DATA", help="folders of shards")
    parser.add_argument("--network", type=Path, required=True, metavar="IN", help="the network that played the games")
    parser.add_argument("--output", type=Path, metavar="OUT", help="the .nnue file to write (default: only report)")
    parser.add_argument(
        "--held-out", type=float, default=0.2, metavar="SHARE", help="of the games of each folder (default %(default)s)"
    )
    parser.add_argument(
        "--folds", type=int, metavar="N",
        help="fit to all games, and hold out each in one of N further fits (default: fit once, as --held-out says)",
    )  # fmt: skip
    parser.add_argument(
        "--tolerance", type=float, default=0.02, help="largest difference that a decile may have (default %(default)s)"
    )
    parser.add_argument(
        "--view", choices=(MOVER, WHITE), default=MOVER, help="which deciles the tolerance is for (default %(default)s)"
    )
    return parser.parse_args(words)


def write(network: Network, fitted: Fitted, output: Path) -> None:
    """Write network and plot."""
    write_network(with_model(network, fitted.model), output)
    try:
        plot(output.with_name(output.name + ".png"), fitted.views, fitted.model, fitted.constant)
    except ImportError as error:
        print(f"No plot was drawn: {error}. The extra 'experiments' brings matplotlib.", file=sys.stderr)


def main(words: list[str] | None = None) -> int:
    arguments = parse_arguments(words)
    try:
        network = read_network(arguments.network)
        if arguments.folds is None:
            fitted = fit_split(last_games(arguments.data, arguments.held_out))
        else:
            fitted = fit_all(in_folds(arguments.data, arguments.folds))
        print("\n".join(report(fitted)))
        if arguments.output is not None:
            write(network, fitted, arguments.output)
    except (OSError, FitError, NetworkError, RecordsError, WinRateError) as error:
        print(error, file=sys.stderr)
        return 1
    worst = largest_difference(deciles(fitted.views[arguments.view]))
    if abs(worst.difference) > arguments.tolerance:
        print(
            f"The decile with a predicted score of {worst.predicted:.4f} has an observed one of {worst.observed:.4f}; "
            f"expected them to differ by {arguments.tolerance:g} at most.",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
