"""`--allow-import`: what is imported is said, and nothing else is imported."""

import sys

import pytest

from hotlap.cli.allowed_imports import import_and_say
from hotlap.errors import HotlapError


def test_a_named_module_is_imported_and_said(tmp_path, monkeypatch, capsys):
    (tmp_path / "trusted_module.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert import_and_say(["trusted_module"]) == ["trusted_module"]
    assert "trusted_module" in sys.modules
    assert capsys.readouterr().err == "hotlap: imported trusted_module, as --allow-import says.\n"


@pytest.mark.parametrize("modules", [None, []])
def test_without_names_nothing_is_imported_or_said(modules, capsys):
    assert import_and_say(modules) == []
    assert capsys.readouterr().err == ""


def test_what_was_imported_before_a_missing_module_is_said(capsys):
    with pytest.raises(HotlapError, match="no_such_module"):
        import_and_say(["json", "no_such_module"])
    assert capsys.readouterr().err == "hotlap: imported json, as --allow-import says.\n"
