"""Checks of a built site without a network: links between its pages, and what its pages load from other hosts."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

DEMO = "demo"  # its links are made by its own program, which has its own tests


class _Page(HTMLParser):
    """What a page links to and loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the links of one element."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag in ("a", "link") and "href" in found:
            (self.links if tag == "a" else self.loads).append(found["href"])
        if tag in ("img", "script", "iframe", "source") and "src" in found:
            self.loads.append(found["src"])


def _pages(site: Path) -> dict[Path, _Page]:
    paths = [path for path in site.rglob("*.html") if path.relative_to(site).parts[0] != DEMO]
    return {path.resolve(): _Page(path.read_text(encoding="utf-8")) for path in sorted(paths)}


def broken_links(site: Path) -> list[str]:
    """Links and loaded files of the site's pages that do not exist, and anchors that their page does not have."""
    pages = _pages(site)
    return [
        f"{path.relative_to(site.resolve())}: {link} leads nowhere"
        for path, page in pages.items()
        for link in dict.fromkeys([*page.links, *page.loads])
        if _is_broken(path, link, pages)
    ]


def _is_broken(path: Path, link: str, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return True
    anchor = unquote(parts.fragment)
    return bool(anchor) and target in pages and anchor not in pages[target].anchors


def foreign_sources(site: Path) -> Iterator[str]:
    """What pages load from other hosts: the site must work offline."""
    for path, page in _pages(site).items():
        for link in page.loads:
            if urlsplit(link).netloc:
                yield f"{path.relative_to(site.resolve())}: loads {link} from another host"
