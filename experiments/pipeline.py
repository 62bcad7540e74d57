"""Make networks from nothing but the rules and a network to begin with: generation after generation, in one command.

    python -m experiments.pipeline work --games 1000 --epochs 1
    python -m experiments.pipeline work --games 200000 --epochs 3 --generations 4 --match-games 200

Each generation plays games with the network before it, trains a network on them, fits the win-rate model to them, and
plays a match against the network before it. `generation` says what lies where in the folder; WORK/genN/net.nnue is the
network of generation N and WORK/genN/record.json tells how it was made and how strong it is.

A run that was interrupted, even by `kill -9`, goes on when the same command is given again, and makes the same
networks. More --generations prolong a finished run; other settings in the same folder are refused.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from experiments.generation import Generation, Settings, StageError, StageInterrupted, run_stages
from experiments.match_log import LogError
from experiments.selfplay_folder import differences, network_identity
from experiments.time_control import TimeControlError, parse_time_control
from games.processors import available_processors
from nets import DEFAULT_NETWORK
from nnue_jax.architecture import MAX_WIDTH, WIDTH_STEP
from nnue_jax.network_file import NetworkError, read_network
from nnue_jax.training.records import RecordsError, write_whole

SETTINGS_NAME = "pipeline.json"
DEFAULT_MATCH_GAMES = 40


class PipelineError(ValueError):
    """A folder or a setting that does not fit; the message is a sentence."""


def check(settings: Settings) -> None:
    """PipelineError for settings that only a later stage would refuse."""
    if settings.match_games < 0 or settings.match_games % 2:
        raise PipelineError(
            f"A match has {settings.match_games} games; expected an even number, as every opening is played twice."
        )
    if settings.width % WIDTH_STEP or not 0 < settings.width <= MAX_WIDTH:
        raise PipelineError(
            f"The width is {settings.width}; expected {WIDTH_STEP}, {2 * WIDTH_STEP}, ..., {MAX_WIDTH}."
        )
    if settings.seed < 0:
        raise PipelineError(f"The seed is {settings.seed}; expected 0 or more.")
    parse_time_control(settings.match_time)


def take_up(work: Path, settings: Settings, network: Path) -> None:
    """Make the folder, or see that it is one of these settings; then the first network lies in it."""
    read_network(network)
    identity = {"settings": asdict(settings), "network": network_identity(network)}
    path = work / SETTINGS_NAME
    if path.exists():
        others = differences(_settings_in(path), identity)
        if others:
            raise PipelineError(f"'{work}' holds a pipeline with other settings: {others}. Choose another folder.")
    elif work.exists() and any(entry.suffix != ".part" for entry in work.iterdir()):
        raise PipelineError(f"'{work}' is not empty, but has no {SETTINGS_NAME}; choose another folder.")
    else:
        work.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(identity, indent=2).encode())
    first = Generation(work, 0, settings, processes=1)
    if not first.network.exists():
        first.folder.mkdir(exist_ok=True)
        write_whole(first.network, network.read_bytes())


def _settings_in(path: Path) -> dict:
    try:
        facts = json.loads(path.read_text())
        return {"settings": dict(facts["settings"]), "network": dict(facts["network"])}
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"'{path}' does not hold the settings of a pipeline ({error}).") from error


def run(work: Path, settings: Settings, network: Path, generations: int, processes: int) -> None:
    """Make the generations that are missing."""
    check(settings)
    take_up(work, settings, network)
    for number in range(1, generations + 1):
        generation = Generation(work, number, settings, processes)
        run_stages(generation.stages(), number)
        print(summary(generation), flush=True)


def summary(generation: Generation) -> str:
    """A finished generation on one line."""
    facts = json.loads(generation.record.read_text())
    words = f"{generation.network}: {facts['games']['games']:,} games, {facts['training']['positions']:,} positions"
    losses = facts["training"]["losses"]
    if "validation_mixed" in losses:
        words += f", held-out loss {losses['validation_mixed']:.5f}"
    match = facts["match"]
    if match is None:
        return words
    elo, low, high = (
        infinite if elo is None else f"{elo:+.0f}"
        for elo, infinite in zip((match["elo"], *match["elo_interval"]), ("±∞", "-∞", "+∞"), strict=True)
    )
    score = f"+{match['wins']} ={match['draws']} -{match['losses']}"
    return f"{words}; {score} against {match['engines'][1]}, Elo {elo} (95 %: {low} to {high})"


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("work", type=Path, metavar="WORK", help="folder for all of it")
    parser.add_argument("--games", type=_positive, required=True, help="of self-play, each generation")
    parser.add_argument("--epochs", type=_positive, default=3, help="default %(default)s")
    parser.add_argument("--generations", type=_positive, default=1, help="in all (default %(default)s)")
    parser.add_argument("--network", type=Path, default=DEFAULT_NETWORK, help="to begin with (default: the engine's)")
    parser.add_argument("--nodes", type=_positive, default=2000, help="a move of self-play (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="default %(default)s")
    parser.add_argument("--keep", type=_positive, default=1, help="generations whose games are learnt from (default 1)")
    parser.add_argument("--width", type=int, default=256, help="of the networks made (default %(default)s)")
    parser.add_argument("--batch", type=_positive, help="positions a step (default: 16384, less where they are few)")
    parser.add_argument("--lr", type=float, default=1e-3, help="highest learning rate (default %(default)s)")
    parser.add_argument(
        "--lambda", dest="score_share", type=float, default=0.7, metavar="L",
        help="share of the score in the target, the rest is the result (default %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--match-games", type=int, default=DEFAULT_MATCH_GAMES,
        help="against the generation before; 0 for no match (default %(default)s)",
    )  # fmt: skip
    parser.add_argument("--match-time", default="100", help="as in experiments.match (default %(default)s)")
    parser.add_argument(
        "--processes", type=_positive, default=len(available_processors()),
        help="games at a time, and threads of the training (default %(default)s)",
    )  # fmt: skip
    return parser.parse_args(words)


def settings_of(arguments: argparse.Namespace) -> Settings:
    return Settings(
        games=arguments.games,
        nodes=arguments.nodes,
        seed=arguments.seed,
        width=arguments.width,
        epochs=arguments.epochs,
        batch=arguments.batch,
        learning_rate=arguments.lr,
        score_share=arguments.score_share,
        keep=arguments.keep,
        match_games=arguments.match_games,
        match_time=arguments.match_time,
    )


def main(words: list[str] | None = None) -> int:
    arguments = parse_arguments(words)
    try:
        run(arguments.work, settings_of(arguments), arguments.network, arguments.generations, arguments.processes)
    except (OSError, PipelineError, TimeControlError, NetworkError, RecordsError, LogError, StageError) as error:
        print(error, file=sys.stderr)
        return 1
    except (KeyboardInterrupt, StageInterrupted):
        print("The pipeline was interrupted; the same command goes on.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
