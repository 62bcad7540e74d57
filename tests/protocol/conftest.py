"""Engine processes for the tests of this folder."""

import pytest

from tests.support.engine_process import Engine
from tests.support.uci_grammar import COMBO, PLAIN_OPTION, SPIN

RESET_TIMEOUT_S = 30


class SharedEngine:
    """One process that serves the tests of a module, put back to its defaults after each."""

    def __init__(self):
        self._engine: Engine | None = None
        self._defaults: dict[str, str] = {}

    def take(self) -> Engine:
        if self._engine is None:
            self._engine = Engine()
            self._defaults = default_values(self._engine)
            self._engine.ask()
            self._engine.forget()
        return self._engine

    def give_back(self) -> None:
        """Keep the process if it is still of use."""
        engine = self._engine
        if not engine.is_running:
            self.close()
            return
        try:
            engine.ask("stop", *self._resetting(engine), "position startpos", "ucinewgame", timeout_s=RESET_TIMEOUT_S)
            engine.forget()
        except BaseException:
            self._engine = None
            engine.kill()
            raise

    def _resetting(self, engine: Engine) -> list[str]:
        """Commands that give every option that may have been set its default."""
        text = "\n".join(engine.sent).lower()
        names = {name for name in self._defaults if name.lower() in text}
        if "bench" in text or "speedtest" in text:
            names |= {"Threads", "Hash"}
        return [f"setoption name {name} value {value}" for name, value in self._defaults.items() if name in names]

    def close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()


def default_values(engine: Engine) -> dict[str, str]:
    """The defaults of all options but buttons, as the engine declares them."""
    engine.send("uci")
    values = {}
    for line in engine.until("uciok"):
        for pattern in (SPIN, COMBO, PLAIN_OPTION):
            match = pattern.fullmatch(line)
            if match and " default " in line:
                name = line.removeprefix("option name ").split(" type ")[0]
                values[name] = line.split(" default ")[1].split(" min ")[0].split(" var ")[0]
    return values


@pytest.fixture(scope="session", autouse=True)
def _warm(jaxfish):
    """What is tested here is not a first start, but where a test says so."""


@pytest.fixture(scope="module")
def _shared():
    shared = SharedEngine()
    yield shared
    shared.close()


@pytest.fixture
def engine(_shared):
    """An idle engine at the start position with default options."""
    yield _shared.take()
    _shared.give_back()


@pytest.fixture
def own_engine():
    """An engine that has just been started, and that may be ended."""
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture
def start_engine():
    """Start engines with arguments, a folder and an environment; they are closed after the test."""
    engines: list[Engine] = []

    def start(*arguments: str, **options) -> Engine:
        engines.append(Engine(*arguments, **options))
        return engines[-1]

    yield start
    for engine in engines:
        engine.close()
