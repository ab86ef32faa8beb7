"""The cache: what it keeps, what it drops and how it counts."""

from hotlap.byte_limited_cache import ByteLimitedCache


def test_the_value_used_longest_ago_is_dropped_first():
    cache: ByteLimitedCache[str, int] = ByteLimitedCache(100)
    for number, key in enumerate("abc"):
        cache.put(key, number, 30)
    assert cache.get("a") == 0
    cache.put("d", 3, 30)
    assert [cache.get(key) for key in "abcd"] == [0, None, 2, 3]
    assert (len(cache), cache.num_bytes) == (3, 90)
    cache.put("e", 4, 95)
    assert [cache.get(key) for key in "abcde"] == [None, None, None, None, 4]
    assert cache.num_bytes == 95


def test_a_value_put_again_is_counted_once_and_one_over_the_limit_is_not_kept():
    cache: ByteLimitedCache[str, int] = ByteLimitedCache(100)
    cache.put("a", 1, 60)
    cache.put("a", 2, 70)
    assert (cache.get("a"), len(cache), cache.num_bytes) == (2, 1, 70)
    cache.put("b", 3, 101)
    assert (cache.get("b"), cache.get("a")) == (None, 2)
    cache.put("a", 4, 101)
    assert (cache.get("a"), len(cache), cache.num_bytes) == (None, 0, 0)
