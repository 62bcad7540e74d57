"""Look at training data, and convert them to text and back.

    python -m experiments.training_data stats data/gen0 data/gen1
    python -m experiments.training_data to-text data/gen0 --output gen0.txt
    python -m experiments.training_data from-text gen0.txt data/copy

The lines are `FEN | score | result`; `nnue_jax.training.text_lines` says in which units. Without --output they go to
the standard output, and `-` instead of a file reads the standard input.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import numpy as np

from nnue_jax.training.records import (
    MANIFEST_NAME,
    RecordsError,
    game_lengths_of,
    read_games,
    read_shard,
    shard_path,
    shard_paths,
    write_shard,
    write_whole,
)
from nnue_jax.training.statistics import collect
from nnue_jax.training.text_lines import format_lines, parse_lines

POSITIONS_PER_SHARD = 10_000


def all_shards(folders: list[Path]) -> list[Path]:
    """Those of all folders, in order; RecordsError for a folder without any."""
    paths = []
    for folder in folders:
        found = shard_paths(folder)
        if not found:
            raise RecordsError(f"'{folder}' has no shards of training data.")
        paths += found
    return paths


def show_statistics(arguments: argparse.Namespace) -> None:
    print("\n".join(collect(map(read_games, all_shards(arguments.folders))).lines()))


def to_text(arguments: argparse.Namespace) -> None:
    paths = all_shards(arguments.folders)
    if arguments.output is None:
        target = nullcontext(sys.stdout)
    else:
        target = arguments.output.open("w", encoding="ascii", newline="\n")
    with target as file:
        for path in paths:
            file.writelines(f"{line}\n" for line in format_lines(read_shard(path)))


def from_text(arguments: argparse.Namespace) -> None:
    folder = arguments.folder
    if folder.exists() and any(folder.iterdir()):
        raise RecordsError(f"'{folder}' is not empty; choose another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    is_standard = str(arguments.file) == "-"
    games = positions = shards = 0
    with nullcontext(sys.stdin) if is_standard else arguments.file.open(encoding="utf-8") as file:
        for records in _whole_games(file, arguments.positions_per_shard):
            lengths = game_lengths_of(records)
            write_shard(shard_path(folder, shards), records, lengths)
            shards, games, positions = shards + 1, games + len(lengths), positions + len(records)
    manifest = {"source": "text", "numbers": {"games": games, "positions": positions}}
    write_whole(folder / MANIFEST_NAME, json.dumps(manifest, indent=2).encode())
    print(f"{folder} holds {positions:,} positions of {games:,} games.", file=sys.stderr)


def _whole_games(lines: Iterator[str], positions: int) -> Iterator[np.ndarray]:
    """About `positions` RECORDs at a time, but no game in two pieces."""
    number = 1
    rest = parse_lines([])
    while True:
        chunk = list(islice(lines, positions))
        if not chunk:
            break
        records = np.concatenate([rest, parse_lines(chunk, number)])
        number += len(chunk)
        last = game_lengths_of(records)[-1]
        if last < len(records):
            yield records[:-last]
        rest = records[-last:] if last < len(records) else records
    if len(rest):
        yield rest


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="stats|to-text|from-text")
    stats = commands.add_parser("stats", help="print a table of what the data look like")
    stats.set_defaults(run=show_statistics)
    stats.add_argument("folders", type=Path, nargs="+")
    text = commands.add_parser("to-text", help="write a line for each position")
    text.set_defaults(run=to_text)
    text.add_argument("folders", type=Path, nargs="+")
    text.add_argument("--output", type=Path, help="default: standard output")
    data = commands.add_parser("from-text", help="make a folder of shards from lines")
    data.set_defaults(run=from_text)
    data.add_argument("file", type=Path, help="- for the standard input")
    data.add_argument("folder", type=Path, help="new or empty")
    data.add_argument("--positions-per-shard", type=int, default=POSITIONS_PER_SHARD, help="default %(default)s")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    try:
        arguments.run(arguments)
    except (OSError, RecordsError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
