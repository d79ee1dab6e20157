"""A choice that the address names: also after Back, and never by what a browser sends late."""

from streamlit.testing.v1 import AppTest

from app.text.languages import DEFAULT, text


def page() -> None:
    from app.kit.choice import choose

    names = ["first", "second", "third"]
    choose("Run", names, key="run", parameter="run", ident=names.index, name=str)


def shown(at: AppTest) -> str | None:
    (box,) = at.selectbox
    value: str | None = box.value
    return value


def test_a_choice_is_written_to_the_address_and_an_older_address_brings_the_older_choice() -> None:
    at = AppTest.from_function(page).run()
    assert shown(at) == "0"
    at.selectbox(key="run").select("first").run()
    at.selectbox(key="run").select("second").run()
    assert at.query_params["run"] in ("1", ["1"]) and shown(at) == "1"
    at.query_params["run"] = "0"
    at.run()
    assert shown(at) == "0"
    at.query_params["run"] = "2"
    at.run()
    assert shown(at) == "2"
    del at.query_params["run"]
    at.run()
    assert shown(at) == "0"


def test_without_an_address_the_choice_stays_when_the_default_changes() -> None:
    def growing() -> None:
        import streamlit as st

        from app.kit.choice import choose

        names = ["old", "new"][: st.session_state.get("runs", 1)]
        choose("Run", names[::-1], key="run", parameter="run", ident=str, name=str)

    at = AppTest.from_function(growing).run()
    at.session_state["runs"] = 2
    at.run()
    assert shown(at) == "old"


def test_an_address_that_names_nothing_leaves_the_first_and_says_so_until_one_is_chosen() -> None:
    at = AppTest.from_function(page)
    at.query_params["run"] = "17"
    for _ in range(2):
        assert shown(at.run()) == "0"
        told = [each.value.replace("\\", "") for each in at.warning]
        assert told == [f"Run 17: {text(DEFAULT, 'refused.not_there')}"]
    at.selectbox(key="run").select("second").run()
    assert shown(at) == "1" and not at.warning


def test_the_box_itself_says_what_it_shows_in_every_drawing() -> None:
    """A busy browser draws only the second of two answers: the value that the session had set was
    in the first, so the box showed its first option, and sent it back as a choice."""
    at = AppTest.from_function(page)
    at.query_params["run"] = "1"
    for _ in range(2):
        at.run()
        (box,) = at.selectbox
        assert box.proto.default == 1 and not box.proto.set_value
    at.query_params["run"] = "2"
    for _ in range(2):
        at.run()
        (box,) = at.selectbox
        assert box.proto.default == 2 and not box.proto.set_value
