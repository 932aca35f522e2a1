"""What can be said of an HTML page without a browser."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})


class Page(HTMLParser):
    """Reads a page; raises AssertionError where tags do not nest.

    ``tags`` counts elements, ``attributes`` are all that were seen, ``text`` is what a reader reads.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: dict[str, int] = {}
        self.attributes: set[str] = set()
        self.values: list[str] = []
        self._text: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == [], f"not closed: {self._open}"

    @property
    def text(self) -> str:
        """The text, style sheets left out."""
        return "\n".join(self._text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.attributes.update(name for name, _ in attrs)
        self.values += [value or "" for _, value in attrs]
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element without content, as in SVG."""
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag, f"</{tag}> does not fit"

    def handle_data(self, data: str) -> None:
        """Text."""
        if "style" not in self._open:
            self._text.append(data)
