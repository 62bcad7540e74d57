"""Pad a network of ours to the official architecture, so that the reference engine takes it.

    python -m experiments.pad_network nets/gen1.nnue padded.nnue

The official networks have width 1024 and threat features. Padding adds what is missing as zeros, so psqt and positional
are the same for every position. The accumulator is multiplied half by half: unit j of its second half, W / 2 + j,
becomes unit 512 + j, and so do the products of the opponent's perspective, which are the second half of what the first
layer reads.

The description stays, win-rate model included, and says that the network was padded.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from nnue_jax.architecture import LAYER_STACKS, THREAT_FEATURES, Architecture
from nnue_jax.network_file import Network, NetworkError, read_network, write_network

OFFICIAL = Architecture(1024, threats=True)
PADDED_KEY = "padded"


class PaddingError(ValueError):
    """A network that cannot be padded; the message says what it is."""


def padded(network: Network) -> Network:
    """The same function as a network of the official architecture; PaddingError if it cannot be padded to that."""
    architecture = network.architecture
    if architecture.threats:
        raise PaddingError("it has threat features already; expected one without.")
    if architecture.width >= OFFICIAL.width:
        raise PaddingError(f"it has width {architecture.width}; expected less than {OFFICIAL.width}.")
    return Network(
        architecture=OFFICIAL,
        description=padded_description(network.description, architecture.width),
        transformer_bias=_widened(network.transformer_bias),
        threat_weight=np.zeros((THREAT_FEATURES, OFFICIAL.width), "i1"),
        threat_psqt=np.zeros((THREAT_FEATURES, LAYER_STACKS), "<i4"),
        piece_square_weight=_widened(network.piece_square_weight),
        piece_square_psqt=network.piece_square_psqt,
        stacks=tuple(replace(stack, fc0_weight=_widened(stack.fc0_weight)) for stack in network.stacks),
    )


def _widened(array: np.ndarray) -> np.ndarray:
    """[..., W] -> [..., official W]: zeros behind each half."""
    *shape, width = array.shape
    wide = np.zeros((*shape, 2, OFFICIAL.width // 2), array.dtype)
    wide[..., : width // 2] = array.reshape(*shape, 2, width // 2)
    return wide.reshape(*shape, OFFICIAL.width)


def padded_description(description: bytes, width: int) -> bytes:
    """The description of a network of this width once it is padded; a JSON object stays one."""
    note = f"from width {width} to {OFFICIAL.width}, threat weights zero"
    try:
        facts = json.loads(description)
    except ValueError:
        facts = None
    if isinstance(facts, dict):
        return json.dumps({**facts, PADDED_KEY: note}).encode()
    return description + f"; {PADDED_KEY} {note}".encode()


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, metavar="IN.nnue")
    parser.add_argument("output", type=Path, metavar="OUT.nnue")
    arguments = parser.parse_args(words)
    try:
        network = read_network(arguments.input)
        write_network(padded(network), arguments.output)
    except NetworkError as error:
        print(error, file=sys.stderr)
        return 1
    except PaddingError as error:
        print(f"'{arguments.input}' cannot be padded: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.output}: {network.architecture} padded to {OFFICIAL}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
