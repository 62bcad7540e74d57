"""Loading quickly leaves the process as it should be."""

import gc
import os

import pytest

from uci.startup import quick_loading


@pytest.fixture(autouse=True)
def unfreeze():
    yield
    gc.unfreeze()
    gc.enable()


def test_garbage_is_collected_afterwards_but_not_meanwhile(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "")  # so that it is put back
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    with quick_loading():
        assert not gc.isenabled()
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0


def test_an_error_while_loading_does_not_stop_the_collector():
    with pytest.raises(ZeroDivisionError), quick_loading():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_the_environment_has_the_last_word(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    with quick_loading():
        pass
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"
