"""What each option does. Values have been checked by `options`; what cannot be had leaves the old in place."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from uci import output
from uci.options import LOG_OPTION, Option, OptionError, find_option


@dataclass(frozen=True)
class BackendChoice:
    """The options of this name, BatchSize and Searchers."""

    backend: str = find_option("Backend").default
    batch_size: int = 0
    searchers: int = 0


class Settings:
    """The values of the options that the session itself looks at, and how the others get into the engine.

    get_engine: waits until the engine is loaded, and returns it.
    """

    def __init__(self, get_engine: Callable, network_name: str = ""):
        self.shows_wdl = False
        self.survives_errors = False
        self.network_name = network_name  # as EvalFile has it
        self._backend = BackendChoice()
        self._get_engine = get_engine
        self._setters: dict[str, Callable] = {
            LOG_OPTION: self._set_log,
            "NumaPolicy": self._set_numa_policy,
            "Threads": self._set_threads,
            "Hash": self._set_hash,
            "Clear Hash": lambda _: self._get_engine().new_game(),
            "Ponder": lambda value: self._set_clock(ponders=value),
            "MultiPV": self._set_multi_pv,
            "Move Overhead": lambda value: self._set_clock(overhead_ms=value),
            "nodestime": lambda value: self._set_clock(nodes_per_ms=value),
            "UCI_ShowWDL": self._set_wdl,
            "Backend": lambda name: self._set_backend(backend=name),
            "BatchSize": lambda size: self._set_backend(batch_size=size),
            "Searchers": lambda number: self._set_backend(searchers=number),
            "EvalFile": self._set_network,
            "Survive Errors": self._set_survival,
        }

    def apply(self, option: Option, text: str) -> None:
        """Give an option the value that `text` spells; OptionError if it cannot have it.

        The options that are not in the table have one value, or none that matters.
        """
        value = option.parse(text)
        if (setter := self._setters.get(option.name)) is not None:
            setter(value)

    def _set_backend(self, **changes) -> None:
        from nnue_jax.backends import BackendError
        from uci.backend_names import make_evaluator
        from uci.engine import warm_up

        wanted = replace(self._backend, **changes)
        if wanted == self._backend:
            return  # some hosts set every option to its default
        engine = self._get_engine()
        try:
            maker, choice = make_evaluator(wanted.backend, one_root=True)
            if maker is not None or engine.evaluator is not None:
                engine.set_backend(maker, wanted.batch_size, wanted.searchers)
                warm_up(engine)
        except BackendError as error:
            raise OptionError(f"Backend keeps its value: {error}") from error
        self._backend = wanted
        output.info(choice)
        if engine.batching is not None:
            output.info(batching_line(engine))

    def _set_log(self, path: str) -> None:
        try:
            output.set_log(path)
        except output.LogError as error:
            raise OptionError(str(error)) from error

    def _set_numa_policy(self, text: str) -> None:
        from search.processors import PolicyError, parse_policy

        engine = self._get_engine()
        try:
            engine.set_numa_policy(parse_policy(text))
        except PolicyError as error:
            raise OptionError(f"NumaPolicy keeps its value: {error}") from error
        output.info(processors_line(engine))
        output.info(threads_line(engine))

    def _set_threads(self, threads: int) -> None:
        engine = self._get_engine()
        engine.set_threads(threads)
        output.info(threads_line(engine))

    def _set_hash(self, hash_mib: int) -> None:
        from search.transposition import HashTableError

        try:
            self._get_engine().set_hash(hash_mib)
        except HashTableError as error:
            raise OptionError(str(error)) from error

    def _set_clock(self, **changes) -> None:
        engine = self._get_engine()
        engine.clock_settings = replace(engine.clock_settings, **changes)

    def _set_multi_pv(self, lines: int) -> None:
        self._get_engine().multi_pv = lines

    def _set_wdl(self, value: bool) -> None:
        self.shows_wdl = value

    def _set_survival(self, value: bool) -> None:
        self.survives_errors = value

    def _set_network(self, name: str) -> None:
        engine = self._get_engine()
        if name == self.network_name == "":
            return  # some hosts set every option to its default
        from nnue_jax.network_file import NetworkError, read_network
        from uci.engine import find_network

        try:
            engine.set_network(read_network(find_network(name)))
        except NetworkError as error:
            raise OptionError(str(error)) from error
        self.network_name = name
        output.info(self.network_line())

    def network_line(self) -> str:
        """Which network the engine evaluates with."""
        engine = self._get_engine()
        from nets import DEFAULT_NETWORK

        network = engine.network
        name = self.network_name or DEFAULT_NETWORK.name
        return f"NNUE evaluation using {name} ({network.size_bytes >> 20}MiB, {network.architecture})"


def processors_line(engine) -> str:
    """The processors that search threads may run on."""
    return f"Available processors: {engine.numa_policy.processors_text()}"


def threads_line(engine) -> str:
    """The number of search threads, and where they are bound."""
    line = f"Using {engine.threads} thread{'s' if engine.threads > 1 else ''}"
    binding = engine.numa_policy.binding_text(engine.threads)
    return line if binding == "none" else f"{line} with NUMA node thread binding: {binding}"


def batching_line(engine) -> str:
    """How many trees are searched at once, and on what."""
    batching, evaluator = engine.batching, engine.evaluator
    trees = f"{batching.searchers} searcher{'s' if batching.searchers > 1 else ''}"
    return (
        f"Using {trees} and batches of up to {batching.batch_size} positions on {evaluator.name} ({evaluator.device})"
    )
