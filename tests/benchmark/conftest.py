"""A small entry, written once for all tests of a process."""

import pytest

from benchmark.small_entries import small_protocol, write_small_entry


@pytest.fixture(scope="session")
def protocol():
    return small_protocol()


@pytest.fixture(scope="session")
def entry(tmp_path_factory, protocol):
    return write_small_entry(tmp_path_factory.mktemp("entry") / "entry.zip", protocol)
