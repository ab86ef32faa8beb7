"""`hotlap site`: output and exit codes."""


def test_it_writes_the_page_and_says_how_to_try_it(hotlap, tmp_path):
    answer = hotlap("site", tmp_path / "public", "--json")
    assert answer.code == 0
    written = sum(path.stat().st_size for path in (tmp_path / "public").rglob("*") if path.is_file())
    assert answer.figures == {"folder": str(tmp_path / "public"), "bytes": written}
    assert "python -m http.server" in hotlap("site", tmp_path / "public").out


def test_a_folder_with_other_files_is_refused_in_one_line(hotlap, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    answer = hotlap("site", tmp_path)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "is not empty" in answer.err
