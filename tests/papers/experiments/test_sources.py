"""Results in the cache are those of the present code and data."""

from tunefree.papers.experiments import sources
from tunefree.papers.experiments.experiment import Store


def test_a_change_of_anything_that_is_imported_changes_the_digest(tmp_path, monkeypatch):
    files = {"tunefree.one": "from tunefree.two import f\nimport numpy\n", "tunefree.two": "f = 1\n"}

    def digest(**changed):
        for name, text in (files | {f"tunefree.{key}": text for key, text in changed.items()}).items():
            (tmp_path / name).write_text(text)
        sources.code_digest.cache_clear()
        return sources.code_digest("tunefree.one")

    monkeypatch.setattr(sources, "_file_of", lambda name: tmp_path / name if name in files else None)
    first = digest()
    assert digest(two="f = 2\n") != first == digest()
    sources.code_digest.cache_clear()


def test_parts_of_other_sources_are_computed_again(tmp_path):
    point = ("one", 1)
    Store(tmp_path, None, "before").save(point, {})
    assert Store(tmp_path, None, "before").load(point) is not None
    assert Store(tmp_path, None, "now").load(point) is None
