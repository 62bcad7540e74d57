"""The JAX evaluator against the reference: every formulation, every batch size, one device and several."""

import os
import subprocess
import sys
import threading
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from games.jit import cache_root
from games.xiangqi.fen import parse_fen
from games.xiangqi.geometry import BLACK, WHITE
from games.xiangqi.packed import PACKED, pack_fens, position_of
from nnue_jax import jax_devices, reference
from nnue_jax.features import E_FILE
from nnue_jax.jax_devices import keep_compiled_programs, run_on_calling_threads
from nnue_jax.jax_evaluator import FIRST_LAYERS, LAYER_STACKS, JaxEvaluator
from nnue_jax.jax_features import NO_PIECE_SQUARE, layer_stacks, piece_square_features, seen_from_side_to_move
from nnue_jax.jax_layers import EXACT_INPUTS, scaled
from nnue_jax.jax_threats import threat_features
from nnue_jax.network_file import read_network
from nnue_jax.reference_backend import ReferenceEvaluator
from nnue_jax.threats import NO_FEATURE, threat_table
from tests.support.games import random_walk
from tests.support.golden import DATA, rows
from tests.support.networks import random_network

BATCH = 256

NETWORKS = {
    "width 32": lambda: random_network(32),
    "width 128": lambda: random_network(128),
    "width 256": lambda: random_network(256),
    # Accumulators and PSQT sums wrap around, and every clipping meets both of its ends.
    "extreme": lambda: random_network(64, extreme=True),
    "threats": lambda: random_network(32, threats=True),
    "extreme, threats": lambda: random_network(64, extreme=True, threats=True),
    "wider than float32 sums in one go": lambda: random_network(EXACT_INPUTS + 32, extreme=True),
}


@pytest.fixture(scope="module")
def packed() -> np.ndarray:
    """[BATCH] PACKED."""
    return pack_fens(game.fen() for game in random_walk(seed=61, count=BATCH))


@pytest.fixture(scope="module")
def records(packed) -> np.ndarray:
    return packed.view(np.uint8).reshape(-1, PACKED.itemsize)


def assert_same(found, expected) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == np.int32
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("name", NETWORKS)
def test_equals_the_reference(name, packed):
    network = NETWORKS[name]()
    found = JaxEvaluator(network, batch_sizes=(BATCH,)).outputs(packed)
    assert_same(found, ReferenceEvaluator(network).outputs(packed))
    assert len(set(found[1].tolist())) > BATCH / 4, "the network hardly tells positions apart"


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_equals_the_reference_for_long(name):
    network = NETWORKS[name]()
    many = pack_fens(game.fen() for game in random_walk(seed=62, count=5000))
    assert_same(JaxEvaluator(network).outputs(many), ReferenceEvaluator(network).outputs(many))


@pytest.mark.parametrize("layer_stacks", LAYER_STACKS)
@pytest.mark.parametrize("first_layer", FIRST_LAYERS)
def test_formulations_agree(first_layer, layer_stacks, packed):
    network = random_network(64, extreme=True, threats=True)
    evaluator = JaxEvaluator(network, first_layer=first_layer, layer_stacks=layer_stacks, batch_sizes=(BATCH,))
    assert_same(evaluator.outputs(packed), ReferenceEvaluator(network).outputs(packed))


def test_products_of_features_in_parts(packed):
    """More positions than are spread out at once."""
    network = random_network(32)
    many = np.tile(packed, 8)
    found = JaxEvaluator(network, first_layer="matmul", batch_sizes=(len(many),)).outputs(many)
    assert_same(found, JaxEvaluator(network, batch_sizes=(BATCH,)).outputs(many))


@pytest.mark.parametrize("name", ["eval_random128", "eval_games_random128"])
def test_recorded_outputs(name):
    """Recorded from Pikafish, threats included."""
    recorded = rows(name)
    packed = pack_fens(row["fen"] for row in recorded)
    psqt, positional = JaxEvaluator(read_network(DATA / "random128.nnue"), batch_sizes=(BATCH,)).outputs(packed)
    assert psqt.tolist() == [row["psqt"] for row in recorded]
    assert positional.tolist() == [row["positional"] for row in recorded]


def test_features_and_stacks(packed, records):
    pieces = seen_from_side_to_move(jnp.asarray(records))
    found = piece_square_features(pieces)
    threats = np.asarray(threat_features(pieces, found.mirrored, jnp.asarray(threat_table().ravel())))
    features, mirrored = np.asarray(found.features), np.asarray(found.mirrored)
    stacks = np.asarray(layer_stacks(pieces))
    network = random_network(32)
    for number, record in enumerate(packed):
        position = position_of(record)[0]
        assert stacks[number] == reference.evaluate(network, position).layer_stack
        for place, perspective in enumerate((record["side"], 1 - record["side"])):
            assert mirrored[number, place] == reference.is_mirrored(position, perspective)
            active = features[number, place]
            expected = reference.piece_square_features(position, perspective)
            assert sorted(active[active != NO_PIECE_SQUARE].tolist()) == expected
            active = threats[number, place]
            assert sorted(active[active != NO_FEATURE].tolist()) == reference.threat_features(position, perspective)


def test_positions_are_of_all_kinds(packed):
    """Equality would say little without Black to move, captured pieces and every way to mirror."""
    assert set(packed["side"].tolist()) == {WHITE, BLACK}
    assert (packed["square_of"] == 255).any()
    both_on_e_file = [
        reference.leans_right(position, perspective)
        for position in (position_of(record)[0] for record in packed)
        if all(reference.king_square(position, side) % 9 == E_FILE for side in (WHITE, BLACK))
        for perspective in (WHITE, BLACK)
    ]
    assert set(both_on_e_file) == {False, True}
    assert len({reference.king_square(position_of(record)[0], WHITE) % 9 for record in packed}) == 3


SYMMETRIC = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR {side} - - 0 1"


@pytest.mark.parametrize("side", "wb")
@pytest.mark.parametrize(
    ("white", "black"),
    [("1C5C1", "1c5c1"), ("2C4C1", "1c5c1"), ("1C4C2", "1c5c1"), ("1C5C1", "1c4c2"), ("1C5C1", "2c4c1")],
)
def test_mid_mirror_ties(side, white, black):
    """One side may be symmetric, or both; then the other side's pieces decide."""
    fen = SYMMETRIC.format(side=side).replace("1C5C1", white).replace("1c5c1", black)
    position = parse_fen(fen).position[0]
    pieces = seen_from_side_to_move(jnp.asarray(pack_fens([fen]).view(np.uint8).reshape(1, -1)))
    us = int(position["side"])
    expected = [reference.is_mirrored(position, perspective) for perspective in (us, 1 - us)]
    assert np.asarray(piece_square_features(pieces).mirrored)[0].tolist() == expected


def test_scaled_is_exact():
    """For all operands, the ends of int32 among them, although their sums need more bits."""
    ends = [-(1 << 31), (1 << 31) - 1, -1, 0, 1]
    rng = np.random.default_rng(5)
    operands = np.concatenate(
        [
            np.array(np.meshgrid(ends, ends, ends)).reshape(3, -1),
            rng.integers(-(1 << 31), 1 << 31, (3, 500)),
            rng.integers(-5000, 5000, (3, 500)),
        ],
        axis=1,
    ).astype(np.int32)
    a, b, c = map(jnp.asarray, operands)
    for scale in (Fraction(75, 2048), Fraction(1, 32)):
        exact = [int(x) + int(y) - int(z) for x, y, z in operands.T]
        assert np.asarray(scaled(scale, [a, b], [c])).tolist() == [int(scale * value) for value in exact]


@pytest.fixture(scope="module")
def compilations() -> list[str]:
    """Grows by one whenever JAX compiles a program or loads it from its cache."""
    events: list[str] = []

    def listen(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return events


def test_batches_of_every_size(packed, compilations):
    """They need a program for each of the fixed sizes and no more, and neighbours in a batch do not matter."""
    many = np.resize(packed, 700)
    sizes = (1, 8, 64, 256)
    evaluator = JaxEvaluator(random_network(32), batch_sizes=sizes)
    expected = ReferenceEvaluator(random_network(32)).outputs(packed)
    expected = [np.resize(one, len(many)) for one in expected]
    before = len(compilations)
    rng = np.random.default_rng(3)
    for size in rng.permutation(np.arange(1, 601)):
        start = int(rng.integers(0, len(many) - size))
        part = slice(start, start + size)
        assert_same(evaluator.outputs(many[part]), [one[part] for one in expected])
    assert evaluator.compiled_programs == len(compilations) - before == len(sizes)


def test_warm_up_compiles_all(packed, compilations):
    evaluator = JaxEvaluator(random_network(32), batch_sizes=(4, 16))
    assert evaluator.compiled_programs == 0
    evaluator.warm_up()
    before = len(compilations)
    evaluator.outputs(packed[:20])
    assert evaluator.compiled_programs == 2
    assert len(compilations) == before


def test_no_positions():
    for outputs in JaxEvaluator(random_network(32), batch_sizes=(4,)).outputs(np.zeros(0, PACKED)):
        assert outputs.shape == (0,)
        assert outputs.dtype == np.int32


def test_any_memory_layout(packed):
    evaluator = JaxEvaluator(random_network(32), batch_sizes=(64,))
    assert_same(evaluator.outputs(packed[::-3]), evaluator.outputs(packed[::-3].copy()))


def test_two_threads(packed):
    evaluator = JaxEvaluator(random_network(32), batch_sizes=(8, 64))
    expected = ReferenceEvaluator(random_network(32)).outputs(packed)
    failures = []

    def evaluate(seed):
        rng = np.random.default_rng(seed)
        for _ in range(100):
            chosen = rng.integers(0, len(packed), rng.integers(1, 150))
            found = evaluator.outputs(packed[chosen])
            if any((one != other[chosen]).any() for one, other in zip(found, expected, strict=True)):
                failures.append(seed)

    threads = [threading.Thread(target=evaluate, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert evaluator.compiled_programs == 2


def test_limits_and_names():
    evaluator = JaxEvaluator(random_network(32), jax.devices("cpu")[:1], batch_sizes=(16, 4))
    assert evaluator.batch_sizes == (4, 16)
    assert evaluator.preferred_batch == evaluator.maximum_batch == 16
    assert evaluator.name == "jax:cpu"
    assert evaluator.device == "cpu"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first_layer": "sum"}, "'sum' is no first layer; expected one of loop, gather, matmul."),
        ({"layer_stacks": "one"}, "'one' is no form of layer stacks; expected one of tiles, all."),
        ({"batch_sizes": (4, 0)}, "The batch size 0 is not positive."),
    ],
)
def test_refuses_options(options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        JaxEvaluator(random_network(32), **options)


SEVERAL_DEVICES = """
import jax, numpy as np
from nnue_jax.backends import create
from nnue_jax.reference_backend import ReferenceEvaluator
from tests.support.games import random_walk
from tests.support.networks import random_network
from games.xiangqi.packed import pack_fens

network = random_network(32, threats=True)
packed = pack_fens(game.fen() for game in random_walk(seed=63, count=150))
expected = ReferenceEvaluator(network).outputs(packed)
for form in ("tiles", "all"):
    evaluator = create(network, "jax:cpu", batch_sizes=(1, 60), layer_stacks=form)
    assert evaluator.device == "8 x cpu"
    assert evaluator.batch_sizes == (8, 64)
    for count in (0, 1, 8, 9, 150):
        for found, wanted in zip(evaluator.outputs(packed[:count]), expected):
            assert found.tolist() == wanted[:count].tolist(), (form, count)
    assert evaluator.compiled_programs == 2
one = create(network, "jax:cpu:5", batch_sizes=(64,))
assert one.device == "cpu" and one._parameters["transformer_bias"].devices() == {jax.devices()[5]}
assert one.outputs(packed)[1].tolist() == expected[1].tolist()
"""


def test_several_devices():
    """A batch is divided among eight devices."""
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", SEVERAL_DEVICES], check=True, env=environment)


def test_programs_are_kept():
    """In our cache folder, unless the process has chosen another."""
    settings = [
        name for name in jax.config.values if name.startswith(("jax_compilation_cache", "jax_persistent_cache"))
    ]
    previous = {name: jax.config.values[name] for name in settings}
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        keep_compiled_programs()
        assert jax.config.jax_compilation_cache_dir == str(cache_root() / "jax")
        jax.config.update("jax_compilation_cache_dir", "elsewhere")
        keep_compiled_programs()
        assert jax.config.jax_compilation_cache_dir == "elsewhere"
    finally:
        for name, value in previous.items():
            jax.config.update(name, value)


@pytest.mark.parametrize(("own_choice", "at_start", "afterwards"), [(None, "1", None), ("3", "3", "3")])
def test_programs_run_on_the_threads_that_call_them(own_choice, at_start, afterwards, monkeypatch):
    """JAX reads the variable when it looks for devices, and our child processes are not to inherit it."""
    if own_choice is None:
        monkeypatch.delenv("PJRT_NPROC", raising=False)
    else:
        monkeypatch.setenv("PJRT_NPROC", own_choice)
    seen, settings = [], []
    monkeypatch.setattr(jax_devices, "devices", lambda: seen.append(os.environ["PJRT_NPROC"]))
    monkeypatch.setattr(jax.config, "update", lambda *setting: settings.append(setting))
    run_on_calling_threads()
    assert seen == [at_start]
    assert os.environ.get("PJRT_NPROC") == afterwards
    assert settings == [("jax_cpu_enable_async_dispatch", False)]
