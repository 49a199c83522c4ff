"""Whether browsers and Qt can draw an SVG file."""

import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

SVG = "{http://www.w3.org/2000/svg}"
HREFS = "href", "{http://www.w3.org/1999/xlink}href"
DEEPEST, MOST_DRAWN = 100, 100_000
"""Largest depth of elements in each other, and number of elements with all their copies."""

_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")


class NotDrawn(ValueError):
    """A picture cannot be drawn; the message says why."""


def is_svg(data: bytes) -> bool:
    """Whether a file is, or may be meant to be, SVG."""
    return b"<svg" in data[:4096].replace(b"\0", b"")


def refuse_undrawn(data: bytes) -> None:
    """Raise NotDrawn for SVG that a browser shows as a broken picture, or never finishes."""
    if b"<!ENTITY" in data:
        raise NotDrawn("it declares entities, which can grow without bound: save it without")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise NotDrawn(f"it is cut off or damaged ({error})") from error
    if root.tag != f"{SVG}svg":
        raise NotDrawn('it does not begin with <svg xmlns="http://www.w3.org/2000/svg">')
    for name in ("width", "height"):
        if name in root.attrib and not _positive(root.attrib[name]):
            raise NotDrawn(f"its {name} is {root.attrib[name][:50]!r}")
    box = root.attrib.get("viewBox")
    if box is not None:
        numbers = box.replace(",", " ").split()
        if len(numbers) != 4 or not all(map(_positive, numbers[2:])):
            raise NotDrawn(f"its viewBox is {box[:50]!r}")
    _refuse_depth(root)
    named = {one.attrib["id"]: one for one in root.iter() if "id" in one.attrib}
    _Counted(named).drawn(root)
    for link in _links(root):
        if not link.startswith(("#", "data:image/")):
            raise NotDrawn(f"it needs another file ({link[:50]}): embed it in the SVG file")


def _positive(text: str) -> bool:
    found = _NUMBER.match(text)
    return found is not None and float(found[1]) > 0


def _refuse_depth(root: Element) -> None:
    level = [root]
    for _ in range(DEEPEST):
        level = [child for one in level for child in one]
    if level:
        raise NotDrawn(f"its elements stand in each other more than {DEEPEST} deep")


def _links(root: Element) -> Iterator[str]:
    """What elements that draw refer to; a link for a click is not among them."""
    for one in root.iter():
        if one.tag in (f"{SVG}image", f"{SVG}use"):
            yield from (one.attrib[name].strip() for name in HREFS if name in one.attrib)


class _Counted:
    """Counts elements as drawn: `use` draws another one again, which may have `use` inside."""

    def __init__(self, named: dict[str, Element]) -> None:
        self._named = named
        self._known: dict[Element, int] = {}
        self._inside: set[Element] = set()

    def drawn(self, element: Element) -> int:
        """The number of elements that drawing one draws. Raises NotDrawn for far too many."""
        if element in self._inside or len(self._inside) > DEEPEST * 2:
            raise NotDrawn("an element contains itself by <use>")
        if element not in self._known:
            self._inside.add(element)
            parts = [*element]
            if element.tag == f"{SVG}use":
                names = [element.attrib.get(name, "").strip().removeprefix("#") for name in HREFS]
                parts += [self._named[name] for name in names if name in self._named]
            self._known[element] = 1 + sum(map(self.drawn, parts))
            self._inside.remove(element)
        if self._known[element] > MOST_DRAWN:
            raise NotDrawn(f"it draws more than {MOST_DRAWN} elements by <use>")
        return self._known[element]
