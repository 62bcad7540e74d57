"""One generation of networks, stage by stage: games, training, win-rate model, match, record.

In the folder of generation n, each under its final name only when it is complete:

    games/              self-play of generation n - 1, a folder of shards
    training/           checkpoint, losses and plot of the training
    net.trained.nnue    the network as it was trained
    win_rate/           plot of the win-rate model
    net.nnue            the network of this generation, with a win-rate model fitted to the games in its description
    match.jsonl         games against generation n - 1, if any are wanted
    record.json         how all of it was made, and what came out

A stage is a command of this folder, called in this process: so it is never left behind when the process is killed.
Every such command goes on where it was interrupted.
"""

import importlib
import json
import math
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments import match_log, training_log
from experiments.elo import PairStatistics
from experiments.selfplay_folder import network_identity
from experiments.standing import Standing
from nnue_jax.network_file import read_network
from nnue_jax.training.records import MANIFEST_NAME, write_whole
from nnue_jax.win_rate import KEY as WIN_RATE_KEY

ROOT = Path(__file__).resolve().parent.parent
INTERRUPTED = 130  # exit status of a command that somebody asked to end

GAMES_PER_SHARD, SHARDS = 100, 64  # so many games at most, and about so many shards where there are few games
# Where positions are few, batches shrink until an epoch has so many steps; a tenth of all steps warms up.
STEPS_PER_EPOCH, SMALLEST_BATCH, LARGEST_BATCH = 128, 64, 16384
WARMUP_SHARE, MOST_WARMUP_STEPS = 0.1, 200
MATCH_MARGIN_MS = 1000  # networks are compared, not how a busy machine keeps the time
ANY_DEVIATION = 1.0  # of the win-rate model: with few games it fits as well as it can


class StageError(RuntimeError):
    """A stage that failed; the message is a sentence."""


class StageInterrupted(Exception):
    """Somebody asked the stage to end."""


@dataclass(frozen=True)
class Settings:
    """What every generation depends on. batch: None for what suits the number of positions. match_time: as
    `time_control` spells it."""

    games: int
    nodes: int
    seed: int
    width: int
    epochs: int
    batch: int | None
    learning_rate: float
    score_share: float
    keep: int
    match_games: int
    match_time: str


@dataclass(frozen=True)
class Stage:
    """A piece of work that is done or not, and can be taken up. run: returns an exit status."""

    name: str
    is_done: Callable[[], bool]
    run: Callable[[], int]


def run_command(name: str, words: list[str]) -> int:
    """Exit status of a command of this folder, imported only when its turn has come: JAX takes seconds."""
    print(f"$ python -m experiments.{name} {shlex.join(words)}", file=sys.stderr, flush=True)
    return importlib.import_module(f"experiments.{name}").main(words)


def run_stages(stages: list[Stage], generation: int) -> None:
    """Do what is not done yet; StageError or StageInterrupted where that ends."""
    for number, stage in enumerate(stages, 1):
        if stage.is_done():
            continue
        title = f"generation {generation}, stage {number} of {len(stages)}: {stage.name}"
        print(f"\n{title}", file=sys.stderr, flush=True)
        status = stage.run()
        if status == INTERRUPTED:
            raise StageInterrupted
        if status != 0:
            raise StageError(f"The pipeline ends in {title}, which failed with status {status}.")
        if not stage.is_done():
            raise StageError(f"The pipeline ends in {title}, which left no output.")


@dataclass(frozen=True)
class Generation:
    """Generation `number` in the folder of a pipeline; number 0 has nothing but the network to begin with."""

    work: Path
    number: int
    settings: Settings
    processes: int

    @property
    def folder(self) -> Path:
        return self.work / self.name

    @property
    def name(self) -> str:
        return f"gen{self.number}"

    @property
    def network(self) -> Path:
        return self.folder / "net.nnue"

    @property
    def record(self) -> Path:
        return self.folder / "record.json"

    @property
    def previous(self) -> "Generation":
        return self._numbered(self.number - 1)

    def stages(self) -> list[Stage]:
        """All of its work, in order."""
        stages = [
            Stage("self-play", self._has_games, self._play),
            Stage("training", self._trained.exists, self._train),
            Stage("win-rate model", self.network.exists, self._fit),
            Stage("match", self._has_match, self._hold_match),
            Stage("record", self.record.exists, self._write_record),
        ]
        return [stage for stage in stages if stage.name != "match" or self.settings.match_games]

    def _numbered(self, number: int) -> "Generation":
        return Generation(self.work, number, self.settings, self.processes)

    @property
    def _games(self) -> Path:
        return self.folder / "games"

    @property
    def _trained(self) -> Path:
        return self.folder / "net.trained.nnue"

    @property
    def _training_output(self) -> Path:
        """Written after every epoch, so it is complete only when the command has ended."""
        return self.folder / "training" / "net.nnue"

    @property
    def _fit_output(self) -> Path:
        """Written before its plot."""
        return self.folder / "win_rate" / "net.nnue"

    @property
    def _match_log(self) -> Path:
        return self.folder / "match.jsonl"

    @property
    def _seed(self) -> int:
        """Of the games, which are not to begin like those of other generations."""
        return self.settings.seed + self.number - 1

    def _manifest(self) -> dict:
        return json.loads((self._games / MANIFEST_NAME).read_text())

    def _numbers(self) -> dict:
        return self._manifest()["numbers"]

    def _has_games(self) -> bool:
        """Whether self-play has ended, and not before its last game."""
        if not (self._games / MANIFEST_NAME).exists():
            return False
        return self._manifest().get("numbers", {}).get("games", 0) >= self.settings.games

    def _play(self) -> int:
        settings = self.settings
        shard = min(GAMES_PER_SHARD, max(1, settings.games // SHARDS))
        words = [str(self._games), "--network", str(self.previous.network)]
        words += _options(games=settings.games, nodes=settings.nodes, seed=self._seed)
        return run_command("selfplay", words + _options(games_per_shard=shard, processes=self.processes))

    def _data(self) -> list["Generation"]:
        """Whose games are learnt from, oldest first."""
        oldest = max(1, self.number - self.settings.keep + 1)
        return [self._numbered(number) for number in range(oldest, self.number + 1)]

    def _positions(self) -> int:
        return sum(generation._numbers()["positions"] for generation in self._data())

    def _train(self) -> int:
        settings, positions = self.settings, self._positions()
        batch = settings.batch or suitable_batch(positions)
        self._training_output.parent.mkdir(exist_ok=True)
        words = [str(generation._games) for generation in self._data()]
        words += ["--output", str(self._training_output), "--resume", "--lambda", str(settings.score_share)]
        words += _options(width=settings.width, epochs=settings.epochs, batch=batch, lr=settings.learning_rate)
        words += _options(warmup=suitable_warmup(positions // batch * settings.epochs), seed=settings.seed)
        status = run_command("train", words + _options(threads=self.processes))
        if status == 0:
            self._training_output.replace(self._trained)
        return status

    def _fit(self) -> int:
        self._fit_output.parent.mkdir(exist_ok=True)
        words = [str(self._games), "--network", str(self._trained), "--output", str(self._fit_output)]
        status = run_command("fit_win_rate", words + _options(tolerance=ANY_DEVIATION))
        if status == 0:
            self._fit_output.replace(self.network)
        return status

    def _has_match(self) -> bool:
        if not self._match_log.exists():
            return False
        return len(match_log.read_log(self._match_log)[1]) >= self.settings.match_games

    def _hold_match(self) -> int:
        settings = self.settings
        words = ["--engine", self._engine(), "--engine", self.previous._engine(), "--output", str(self._match_log)]
        words += _options(games=settings.match_games, time=settings.match_time, seed=settings.seed)
        return run_command("match", words + _options(margin=MATCH_MARGIN_MS, concurrency=self.processes))

    def _engine(self) -> str:
        """The engine with this network, as `engine_spec` reads it."""
        command = shlex.join([sys.executable, "-m", "uci.main"])
        fields = {"name": self.name, "cmd": command, "dir": ROOT, "option.EvalFile": self.network.resolve()}
        return ",".join(f"{key}={shlex.quote(str(value))}" for key, value in fields.items())

    def _write_record(self) -> int:
        facts = {
            "generation": self.number,
            "settings": asdict(self.settings),
            "seeds": {"games": self._seed, "training": self.settings.seed, "openings": self.settings.seed},
            "previous": network_identity(self.previous.network),
            "network": network_identity(self.network),
            "engines": self._manifest()["engines"],
            "games": self._numbers(),
            "training": self._training_facts(),
            "win_rate": json.loads(read_network(self.network).description)[WIN_RATE_KEY],
            "match": match_facts(self._match_log) if self.settings.match_games else None,
        }
        write_whole(self.record, json.dumps(facts, indent=2).encode())
        return 0

    def _training_facts(self) -> dict:
        """What was learnt from, with what, and how well."""
        description = json.loads(read_network(self._trained).description)
        return {
            "data": [generation.name for generation in self._data()],
            "positions": self._positions(),
            "settings": description["training"]["settings"],
            "steps": description["steps"],
            "losses": last_losses(self._training_output.with_name(self._training_output.name + ".csv")),
        }


def _options(**values) -> list[str]:
    """{"games_per_shard": 10} -> ["--games-per-shard", "10"]"""
    words = []
    for name, value in values.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def suitable_batch(positions: int) -> int:
    """A power of two that gives an epoch of so many positions enough steps, if they are not too few for that."""
    batch = LARGEST_BATCH
    while batch > SMALLEST_BATCH and batch * STEPS_PER_EPOCH > positions:
        batch //= 2
    return batch


def suitable_warmup(steps: int) -> int:
    """Steps, of so many in all."""
    return min(MOST_WARMUP_STEPS, int(WARMUP_SHARE * steps))


def last_losses(path: Path) -> dict[str, float]:
    """The last training loss of a log of training, and the last losses on what was held out."""
    losses = {}
    for row in training_log.read_log(path):
        names = [name for name in row if name.startswith(("train_", "validation_"))]
        losses |= {name: float(row[name]) for name in names if row[name]}
    return losses


def match_facts(path: Path) -> dict:
    """The result of a match from its log, for the first engine."""
    settings, records = match_log.read_log(path)
    names = match_log.engine_names(settings)
    standing = Standing.of(records, names)
    tally = standing.tallies[names[0]]
    return {
        "engines": list(names),
        "time": settings["time"],
        "games": standing.games,
        "wins": tally.wins,
        "draws": tally.draws,
        "losses": tally.losses,
        "forfeits": {name: standing.tallies[name].forfeits + standing.tallies[name].failures for name in names},
        **elo_facts(standing.statistics),
    }


def elo_facts(statistics: PairStatistics) -> dict:
    """Elo with the ends of its 95 % interval, None where it is infinite: JSON has no such number."""
    elo, low, high = (
        round(value, 1) if math.isfinite(value) else None for value in (statistics.elo, *statistics.elo_interval)
    )
    los = round(statistics.los, 4)
    return {"elo": elo, "elo_interval": [low, high], "likelihood_of_superiority": los, "pairs": list(statistics.counts)}
