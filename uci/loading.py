"""Loading the engine in the background, so that the handshake need not wait for it."""

import threading
import time

from uci.startup import quick_loading

READY_PERIOD_S = 0.5  # between two signs of life while somebody waits; a host gives up after a second without


class EngineLoader:
    """Imports, compiles and warms the engine on a thread of its own, from construction on.

    network_file: None for the network that comes with the engine.
    """

    def __init__(self, network_file: str | None = None):
        self._network_files = () if network_file is None else (network_file,)
        self._started = time.perf_counter()
        self._loaded = threading.Event()
        self._engine = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._load, name="loader", daemon=True)
        self._thread.start()

    def _load(self) -> None:
        try:
            with quick_loading():
                from uci.engine import create_engine

                self._engine = create_engine(*self._network_files)
        except BaseException as error:
            self._failure = error
        finally:
            self._loaded.set()

    @property
    def is_loading(self) -> bool:
        return not self._loaded.is_set()

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    def wait(self, on_wait=None):
        """The engine, once it is there; meanwhile `on_wait` is called twice a second with the seconds passed.

        Raises what kept the engine from loading.
        """
        while not self._loaded.wait(READY_PERIOD_S):
            if on_wait is not None:
                on_wait(time.perf_counter() - self._started)
        if self._failure is not None:
            raise self._failure
        return self._engine
