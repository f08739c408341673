"""A page taken apart by the standard library's parser, as far as tests ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "img", "br"}
IMPLIED = {"tr": {"td", "th", "tr"}, "td": {"td", "th"}, "th": {"td", "th"}}
"""What a start tag ends, where the page leaves end tags out."""


@dataclass
class Element:
    """One element."""

    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in it, spaces folded."""
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Everything below of this tag, whose class holds `class_`, whose `id` is this."""
        found = []
        for child in self.children:
            if child.tag == tag and child.has(**attributes):
                found.append(child)
            found += child.all(tag, **attributes)
        return found

    def one(self, tag: str, **attributes: str) -> Element:
        """The only one."""
        [found] = self.all(tag, **attributes)
        return found

    def has(self, class_: str = "", id_: str = "") -> bool:
        """Whether it bears this class and id."""
        return (not class_ or class_ in self.attributes.get("class", "").split()) and (
            not id_ or self.attributes.get("id") == id_
        )


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        while self.open[-1].tag in IMPLIED.get(tag, set()):
            self.open.pop()
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag in {element.tag for element in self.open}:
            while self.open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.texts.append(data)


def read(page: str) -> Element:
    """The document."""
    builder = _Builder()
    builder.feed(page)
    builder.close()
    return builder.open[0]
