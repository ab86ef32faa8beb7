import pytest

from hotlap.learning.thread_choice import ThreadChoice


@pytest.mark.parametrize(("threaded_s", "is_better"), [(0.8, True), (1.2, False)])
def test_a_second_thread_is_used_where_it_is_faster(threaded_s, is_better):
    choice = ThreadChoice(num_trials=3)
    tried = []
    for _ in range(6):
        tried.append(choice.should_use())
        choice.note(tried[-1], threaded_s if tried[-1] else 1.0)
    assert tried == [True, False] * 3
    assert [choice.should_use() for _ in range(3)] == [is_better] * 3


def test_no_thread_is_tried_where_there_cannot_be_one():
    choice = ThreadChoice(is_possible=False, num_trials=1)
    choice.note(False, 1.0)
    assert not choice.should_use()
