"""Networks padded to the official architecture: the same outputs, and files that are official ones."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest

from experiments import pad_network
from experiments.pad_network import padded, padded_description
from nets import DEFAULT_NETWORK
from nnue_jax import reference
from nnue_jax.architecture import Architecture
from nnue_jax.network_file import (
    QUICK_LEVEL,
    Network,
    parse_network,
    read_network,
    serialize_network,
    write_network,
)
from nnue_jax.numba_evaluator import NumbaEvaluator
from tests.support.games import random_positions
from tests.support.networks import bootstrap_network, random_network

# Of the official networks, as published; `Architecture` computes them.
NETWORK_HASH, TRANSFORMER_HASH, STACK_HASH = 0x40C70FA6, 0x23F47EB0, 0x63337116
MODEL = {"a": [1.0, 2.0, 3.0, 400.0], "b": [0.5, 0.25, 1.0, 100.0]}
NETWORKS = {
    "bootstrap": bootstrap_network,
    "default": lambda: read_network(DEFAULT_NETWORK),
    "random": lambda: random_network(128),
    "random, as wide as may be": lambda: random_network(992),
    # Accumulators wrap around, and every clipping meets both of its ends.
    "extreme": lambda: random_network(64, extreme=True),
}


@pytest.fixture(scope="module", params=NETWORKS)
def both(request) -> tuple[Network, Network]:
    """A network, and the same padded."""
    network = NETWORKS[request.param]()
    return network, padded(network)


def test_the_reference_evaluates_alike(both):
    for position in random_positions(seed=51, count=150):
        first, second = (reference.evaluate(network, position[0]) for network in both)
        assert (second.layer_stack, second.psqt_raw, second.positional_raw) == (
            first.layer_stack,
            first.psqt_raw,
            first.positional_raw,
        )
        assert np.array_equal(second.fc0_out, first.fc0_out)


def test_the_cpu_evaluator_evaluates_alike(both):
    first, second = map(NumbaEvaluator, both)
    outputs = [(first.evaluate(position), second.evaluate(position)) for position in random_positions(52, 500)]
    assert all(one == other for one, other in outputs)
    assert len(set(outputs)) > 100, "the network hardly tells positions apart"


def test_files_are_official_ones():
    """Hashes where the format has them, and a stream of the official length behind the description."""
    wide = padded(random_network(32))
    data = serialize_network(wide)
    assert wide.architecture == Architecture(1024, threats=True)
    assert struct.unpack_from("<II", data) == (0x6A448AFA, NETWORK_HASH)
    assert data[12 : 12 + len(wide.description)] == wide.description
    assert struct.unpack_from("<I", data, 12 + len(wide.description)) == (TRANSFORMER_HASH,)
    stack_bytes = 4 + 32 * 4 + 32 * 1024 + 32 * 4 + 32 * 64 + 4 + 128
    stacks = len(data) - 16 * stack_bytes
    hashes = {struct.unpack_from("<I", data, stacks + number * stack_bytes)[0] for number in range(16)}
    assert hashes == {STACK_HASH}


def test_written_and_read_back(tmp_path):
    network = padded(random_network(96))
    write_network(network, tmp_path / "wide.nnue", QUICK_LEVEL)
    assert serialize_network(read_network(tmp_path / "wide.nnue")) == serialize_network(network)


def test_what_was_there_is_found_again():
    """The half of either perspective where it belongs, and zeros elsewhere."""
    network = random_network(96)
    wide = padded(network)
    used = np.r_[0:48, 512:560]
    for narrow_array, wide_array in (
        (network.transformer_bias, wide.transformer_bias),
        (network.piece_square_weight, wide.piece_square_weight),
        (network.stacks[3].fc0_weight, wide.stacks[3].fc0_weight),
    ):
        assert wide_array.dtype == narrow_array.dtype
        assert np.array_equal(wide_array[..., used], narrow_array)
        assert np.count_nonzero(wide_array) == np.count_nonzero(narrow_array)
    assert not wide.threat_weight.any() and not wide.threat_psqt.any()


def test_the_description_keeps_the_win_rate_model():
    facts = {"win_rate": MODEL, "steps": 7}
    network = replace(random_network(32), description=json.dumps(facts).encode())
    wide = padded(network)
    assert wide.win_rate_model == network.win_rate_model
    assert json.loads(wide.description) == {**facts, "padded": "from width 32 to 1024, threat weights zero"}
    assert padded_description(b"plain words", 64) == b"plain words; padded from width 64 to 1024, threat weights zero"
    assert padded_description(b"[1]", 64).startswith(b"[1]; padded")


def test_the_command(tmp_path, capsys):
    network = random_network(32)
    write_network(network, tmp_path / "in.nnue", QUICK_LEVEL)
    output = tmp_path / "out.nnue"
    assert pad_network.main([str(tmp_path / "in.nnue"), str(output)]) == 0
    assert "(16536, 32, 32, 32, 1) padded to (62083, 1024, 32, 32, 1)" in capsys.readouterr().out
    assert serialize_network(read_network(output)) == serialize_network(padded(network))


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (lambda: random_network(32, threats=True), "in.nnue' cannot be padded: it has threat features already"),
        (lambda: random_network(1024), "in.nnue' cannot be padded: it has width 1024; expected less than 1024."),
        (None, "in.nnue' cannot be read"),
    ],
)
def test_what_cannot_be_padded_is_said(network, words, tmp_path, capsys):
    if network is not None:
        write_network(network(), tmp_path / "in.nnue", QUICK_LEVEL)
    assert pad_network.main([str(tmp_path / "in.nnue"), str(tmp_path / "out.nnue")]) == 1
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
    assert not (tmp_path / "out.nnue").exists()


def test_padding_twice_is_refused():
    wide = serialize_network(padded(random_network(32)))
    with pytest.raises(pad_network.PaddingError, match="threat features"):
        padded(parse_network(wide))
