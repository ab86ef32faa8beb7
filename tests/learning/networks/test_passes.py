from hotlap.learning.networks import passes
from hotlap.learning.networks.passes import compiled


def test_where_torchscript_does_not_work_the_function_stays_as_it_is(monkeypatch):
    def refuse(_):
        raise RuntimeError("not supported in Python 3.14+")

    monkeypatch.setattr(passes.torch.jit, "script", refuse)

    def function():
        return 7

    assert compiled(function) is function
