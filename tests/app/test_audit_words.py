"""The audit log shows the detail of an entry in words, not as JSON."""

from app.people.audit_words import in_words


def test_a_detail_is_words() -> None:
    assert in_words({"kind": "project"}) == "kind: project"
    assert in_words(None) == in_words({}) == ""
    found = in_words({"content_sha256": "94f59298bc8db281f7c1", "groups": 5, "offline": False})
    assert found == "content sha256: 94f59298bc8d, groups: 5, offline: no"
    assert in_words({"from": None, "items": ["a", "b"], "of": {"a": 1}, "new": []}) == (
        'from: –, items: a b, of: {"a": 1}, new: –'
    )
