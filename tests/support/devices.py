"""Simulated devices that go wrong."""

import threading

from nnue_jax.simulated_device import SimulatedDevice


class GatedDevice(SimulatedDevice):
    """A device that answers `answers` batches, and then no more until `gate` is open."""

    answers = 100

    def __init__(self, network):
        super().__init__(network, latency_us=0)
        self.gate = threading.Event()
        self.is_reached = threading.Event()
        self._left = self.answers

    def finish(self, begun):
        self._left -= 1
        if self._left < 0:
            self.is_reached.set()
            self.gate.wait()
        return super().finish(begun)


class FailingDevice(SimulatedDevice):
    """A device that answers `answers` batches, and then fails."""

    answers = 20

    def __init__(self, network):
        super().__init__(network, latency_us=0)
        self._left = self.answers

    def finish(self, begun):
        self._left -= 1
        if self._left < 0:
            raise RuntimeError("it has fallen off the bus")
        return super().finish(begun)
