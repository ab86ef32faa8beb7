"""The watch of one process over another: what it takes for lost. Both are threads here, over one store."""

import threading
import time

import pytest
from torch.distributed import TCPStore

from hotlap.learning.distributed import process_watch
from hotlap.learning.distributed.process_watch import ProcessWatch


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    for name, seconds in (("BEAT_S", 0.05), ("SILENT_S", 2.0), ("NOTICE_S", 0.2)):
        monkeypatch.setattr(process_watch, name, seconds)


@pytest.fixture
def store():
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def watch(store, rank):
    is_lost = threading.Event()
    return ProcessWatch(store, rank, 2, is_lost.set), is_lost


def test_processes_that_beat_or_left_in_order_are_not_lost(store):
    (one, one_lost), (other, other_lost) = watch(store, 0), watch(store, 1)
    time.sleep(3.0)
    assert not one_lost.is_set()
    assert not other_lost.is_set()
    other.stop(in_order=True)
    assert not one_lost.wait(3.0)
    one.stop(in_order=True)


def test_a_silent_process_is_lost(store):
    watcher, is_lost = watch(store, 0)
    assert not is_lost.wait(1.0)
    assert is_lost.wait(20.0)
    watcher.stop(in_order=False)


@pytest.mark.parametrize(("notice_s", "is_stuck"), [(0.2, True), (60.0, False)])
def test_when_another_has_failed_a_process_is_stuck_unless_it_ends_by_itself(store, monkeypatch, notice_s, is_stuck):
    monkeypatch.setattr(process_watch, "SILENT_S", 1000.0)
    monkeypatch.setattr(process_watch, "NOTICE_S", notice_s)
    (one, one_lost), (other, _) = watch(store, 0), watch(store, 1)
    other.stop(in_order=False)
    assert one_lost.wait(20.0 if is_stuck else 1.0) == is_stuck
    one.stop(in_order=False)
    assert one_lost.wait(1.0) == is_stuck
