"""A folder of self-play: its manifest, and which of its shards are still to be made.

manifest.json is written before any game is played:

    seed, games_per_shard, settings, network    what the games depend on; a run with others is refused
    engines     version, commit and hash of the sources of every engine that has played here
    games       asked for by the last run
    numbers     sums over all shards, once that run has ended: games, positions, searches, nodes, ... and ends by kind
"""

import hashlib
import json
import subprocess
from collections import Counter
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from experiments.selfplay_game import GameSettings
from games.jit import source_hash
from nnue_jax.training.records import MANIFEST_NAME, RecordsError, read_header, shard_path, shard_paths, write_whole

_IDENTITY = ("seed", "games_per_shard", "settings", "network")


def network_identity(path: Path) -> dict:
    """A network file by name and content."""
    return {"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


@dataclass(frozen=True)
class RunSettings:
    """Everything that the games of a run depend on."""

    seed: int
    games_per_shard: int
    game: GameSettings
    network: Path

    def __post_init__(self):
        if self.seed < 0:
            raise ValueError(f"The seed is {self.seed}; expected 0 or more.")
        if self.games_per_shard < 1:
            raise ValueError(f"A shard of {self.games_per_shard} games is empty; expected 1 or more.")

    def identity(self) -> dict:
        """As JSON knows it; the network by its content."""
        return {
            "seed": self.seed,
            "games_per_shard": self.games_per_shard,
            "settings": asdict(self.game),
            "network": network_identity(self.network),
        }


@dataclass(frozen=True)
class Task:
    """A shard to be made: game number `first_game` and those after it."""

    number: int
    first_game: int
    games: int


class SelfPlayFolder:
    """The folder at `path`, made if it is not there; RecordsError if it holds something else."""

    def __init__(self, path: Path, settings: RunSettings):
        self.path = path
        self._settings = settings
        self._manifest = self._take_up(settings.identity())

    def missing(self, games: int) -> list[Task]:
        """What has to be made until the folder holds this many games."""
        size = self._settings.games_per_shard
        tasks = []
        for number in range(-(-games // size)):
            task = Task(number, number * size, min(size, games - number * size))
            path = shard_path(self.path, number)
            if not path.exists() or read_header(path).games < task.games:
                tasks.append(task)
        return tasks

    def begin(self, games: int) -> None:
        """Write the manifest of a run up to this many games."""
        engine = {"version": version("jaxfish"), "commit": _commit(), "sources": source_hash()}
        if engine not in self._manifest["engines"]:
            self._manifest["engines"].append(engine)
        self._manifest["games"] = games
        self._manifest.pop("numbers", None)
        self._write()

    def end(self) -> dict:
        """Write the sums over all shards to the manifest; returns them."""
        self._manifest["numbers"] = self.numbers()
        self._write()
        return self._manifest["numbers"]

    def numbers(self) -> dict:
        """Sums over all shards."""
        total: Counter[str] = Counter()
        for path in shard_paths(self.path):
            header = read_header(path)
            total.update({"games": header.games, "positions": header.positions, **header.numbers})
        return dict(total)

    def _take_up(self, identity: dict) -> dict:
        path = self.path / MANIFEST_NAME
        if not path.exists():
            if self.path.exists() and any(entry.suffix != ".part" for entry in self.path.iterdir()):
                raise RecordsError(f"'{self.path}' is not empty, but has no {MANIFEST_NAME}; choose another folder.")
            self.path.mkdir(parents=True, exist_ok=True)
            return {**identity, "engines": []}
        try:
            manifest = json.loads(path.read_text())
            found = {key: manifest[key] for key in _IDENTITY}
            manifest["engines"] = list(manifest["engines"])
        except (ValueError, KeyError, TypeError) as error:
            raise RecordsError(f"'{path}' is no manifest of self-play ({error}).") from error
        others = differences(found, identity)
        if others:
            raise RecordsError(f"'{self.path}' holds games made with other settings: {others}. Choose another folder.")
        for unfinished in self.path.glob("*.part"):
            unfinished.unlink(missing_ok=True)
        return manifest

    def _write(self) -> None:
        write_whole(self.path / MANIFEST_NAME, json.dumps(self._manifest, indent=2).encode())


def _flat(tree: dict, prefix: str = "") -> dict:
    """{"a": {"b": 1}} -> {"a.b": 1}"""
    flat = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def differences(found: dict, present: dict) -> str:
    """What differs between settings as `identity` gives them, in words; empty if nothing that matters does."""
    old, new = _flat(found), _flat(present)
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key) and key != "network.name"]
    return ", ".join(f"{key} was {old.get(key)} and is {new.get(key)}" for key in keys)


def _commit() -> str:
    """Commit of the sources, with a + if they have been edited; "unknown" for an installed package."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return "unknown"

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=True).stdout.strip()

    return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
