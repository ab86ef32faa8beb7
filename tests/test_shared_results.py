"""A result that several processes need is computed by one of them."""

import os
import threading
from uuid import uuid4

import pytest

from shared_results import RUN, made_once


def test_it_is_made_once_in_a_run_and_again_in_the_next(tmp_path_factory, monkeypatch):
    if os.name != "posix":
        pytest.skip("each process makes its own")
    made = []

    def make():
        made.append(len(made))
        return [made[-1]]

    monkeypatch.setenv(RUN, uuid4().hex)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(made_once(tmp_path_factory, "numbers", make))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found, made) == ([[0]] * 4, [0])
    assert made_once(tmp_path_factory, "others", make) == [1]
    monkeypatch.setenv(RUN, uuid4().hex)
    assert made_once(tmp_path_factory, "numbers", make) == [2]
    monkeypatch.delenv(RUN)
    assert [made_once(tmp_path_factory, "numbers", make) for _ in range(2)] == [[3], [4]]


def test_one_that_failed_is_made_again(tmp_path_factory, monkeypatch):
    monkeypatch.setenv(RUN, uuid4().hex)
    with pytest.raises(ZeroDivisionError):
        made_once(tmp_path_factory, "failed", lambda: 1 / 0)
    assert made_once(tmp_path_factory, "failed", lambda: 1) == 1
