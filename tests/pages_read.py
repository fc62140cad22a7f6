"""Pages in tests: a reader of HTML that knows nothing of ours, and episode runs to make pages of.

The reader fails on a page that is not well formed; what it gives is the text a person would see.
"""

from html.parser import HTMLParser

from adaexplore.experiments import attempts, identity, usages
from adaexplore.experiments.attempts import EpisodeKey
from adaexplore.experiments.stored import StoredCell
from adaexplore.models.endpoints import Answer
from adaexplore.models.profiles import ScriptedProfile
from adaexplore.reports.episodes import pages, runs

VOID = {"br", "hr", "link", "meta", "input"}


class Page(HTMLParser):
    """Elements in order, as (tag, attributes, text inside)."""

    def __init__(self, data):
        super().__init__(convert_charrefs=True)
        self.elements, self.open = [], []
        self.feed(data.decode("utf-8") if isinstance(data, bytes) else data)
        self.close()
        assert [] == self.open

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        found = {
            "tag": tag,
            "attrs": dict(attrs),
            "text": "",
            "inside": [e["tag"] for e in self.open],
        }
        self.elements.append(found)
        if tag not in VOID:
            self.open.append(found)

    def handle_endtag(self, tag):
        assert tag == self.open.pop()["tag"]

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag, class_=None):
        """Elements of a kind."""
        return [
            e for e in self.elements
            if e["tag"] == tag and (class_ is None or class_ in e["attrs"].get("class", "").split())
        ]  # fmt: skip

    def table(self, caption):
        """Rows of the one table with a caption that begins so: lists of (text, attributes)."""
        start = [i for i, e in enumerate(self.elements)
                 if e["tag"] == "caption" and e["text"].startswith(caption)]  # fmt: skip
        assert 1 == len(start), caption
        rows = []
        for element in self.elements[start[0] :]:
            if element["tag"] in ("table", "section"):
                break
            if element["tag"] == "tr":
                rows.append([])
            elif element["tag"] in ("th", "td"):
                rows[-1].append((element["text"], element["attrs"]))
        return rows

    def section(self, name):
        """The text of a section, or None."""
        return next((e["text"] for e in self.all("section") if e["attrs"]["id"] == name), None)


def cell_of(setting, protocol, *, model="somebody", **semantic):
    """A cell as a sweep's document would hold it."""
    profile = ScriptedProfile(kind="scripted", agent="random", version=1)
    found = identity.semantic(profile, setting, 0, protocol=protocol, dataset_digest="d" * 64)
    found |= semantic
    return StoredCell(
        label=f"{model}/{setting.name}/0", cell_id=identity.cell_id(found), semantic=found
    )


def key_of(cell, world):
    """What an attempt of a cell at an episode is kept under."""
    return EpisodeKey(
        cell_id=cell.cell_id, episode_id=world.episode.episode_id, hidden_digest=world.digest
    )


def attempt(store, cell, world, replies, record=None):
    """Journal replies as a launch does, and the record if there is one; the open attempt."""
    found = attempts.claim(store, key_of(cell, world))
    for number, reply in enumerate(replies, start=1):
        failed = [{"kind": "overloaded"}] if number == 2 else []
        answer = Answer(reply=reply, seconds=0.25, attempts=failed)
        found.append(number, answer, usages.UNPRICED).result()
    if record is not None:
        found.finish(record).result()
        found.close()
    return found


def kept(store, cell, world, replies, record=None):
    """An episode run as it is read where it was kept, when its writer has gone."""
    attempt(store, cell, world, replies, record).close()
    store.close()
    return runs.read(store, "mine", cell, world)


def page_of(run, **options):
    """The page of a run, read."""
    return Page(pages.page_of(run, **{"report": None, **options}))


def best(utilities):
    """The best of four actions."""
    return max(range(4), key=lambda k: utilities[k])


def notice(page):
    """What keeps a run from being a whole one, as its page says."""
    (found,) = page.all("div", "notice")
    return found["text"]
