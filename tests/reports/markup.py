"""Parses a page as a browser would, and fails if its tags are not balanced."""

import re
from html.parser import HTMLParser

VOID = {"meta", "img"}


class TagCollector(HTMLParser):
    """Fails on a tag closed out of order; collects tags and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def assert_complete(page: str, num_pictures: int) -> None:
    """Every tag is closed, the page embeds `num_pictures` pictures, and it loads nothing from the network."""
    reader = TagCollector()
    reader.feed(page)
    assert reader.open == []
    sources = [attributes["src"] or "" for tag, attributes in reader.seen if tag == "img"]
    assert len(sources) == num_pictures
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not {"script", "link", "iframe"} & {tag for tag, _ in reader.seen}
    assert not re.search(r"https?:|url\(|@import|//", re.sub(r"base64,[^\"]*", "", page))


def text_of(page: str) -> str:
    """The visible text, on one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)).split())
