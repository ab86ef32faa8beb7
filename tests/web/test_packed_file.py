"""Packed data files: the page reads the same bytes, and they are small."""

import zlib

import numpy as np
import pytest

from hotlap.web.packed_file import pack_file
from hotlap.web.page_data import page_file
from hotlap.web.road_files import road_files

UNPACK = """(async (names) => {
  const { fetchBytes } = await import('./js/server.js');
  const { crc32 } = await import('./js/digests.js');
  const sum = async (name) => crc32(new Uint8Array(await fetchBytes(`data/${name}`)));
  return Promise.all(names.map(sum));
})"""


def test_words_are_stored_as_the_page_describes():
    words = np.array([0x80000001, 0x00000003, 0x3F800000], "<u4").tobytes()
    head, body = (packed := pack_file("x.policy", words + b"rest!"))[:12], packed[12:]
    assert head == b"HLZ1\x04\x00\x00\x00\x11\x00\x00\x00"
    # The sign last: 3, 6, 0x7f000000, and a whole word of the rest; column by column, and one byte that is left.
    rest = int.from_bytes(b"rest", "little")
    rows = np.array([3, 6, 0x7F000000, rest << 1 & 0xFFFFFFFF | rest >> 31], "<u4").view(np.uint8).reshape(4, 4)
    assert zlib.decompress(body, -15) == rows.T.tobytes() + b"!"


def test_second_differences_of_nodes_are_small_numbers():
    nodes = np.arange(480, dtype="<u4").reshape(40, 12) * 7 - 90  # every column rises by the same step
    content = zlib.decompress(pack_file("x.track", nodes.tobytes())[12:], -15)
    columns = np.frombuffer(content, np.uint8).reshape(48, 40)
    assert not columns[:, 2:].any()
    assert columns[:, :2].any()


def test_other_files_stay_as_they_are():
    assert pack_file("tracks.json", b"[]") == b"[]"
    assert pack_file("track-01.casual.replay", b"HLR1") == b"HLR1"


@pytest.mark.timeout(120)
def test_the_page_unpacks_every_kind_to_the_bit(used_page):
    roads = road_files()
    names = [
        *(f"track-0{k}.track" for k in (1, 2, 3)),
        "track-01.champion.policy",
        "recorded-best.policy",
        "test-003.road",
    ]
    wanted = [zlib.crc32(roads[name] if name in roads else page_file(name)[0]) for name in names]
    assert used_page.evaluate(f"{UNPACK}({names})") == wanted
    sizes = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/data/track-02.track'))"
    assert used_page.evaluate(f"{sizes}.at(-1).encodedBodySize") < 0.4 * len(page_file("track-02.track")[0])
