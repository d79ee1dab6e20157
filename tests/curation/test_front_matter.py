"""The front matter is YAML that gives back what went in, whatever the names."""

import pytest
import yaml
from huggingface_hub import DatasetCardData

from curation.release.card.front_matter import size_category


@pytest.mark.parametrize("name", ["no", "null", "1.0", 'a: "b" # c', "two\nlines", "– ü 🙂", "---"])
def test_a_name_that_yaml_could_misread_stays_text(name: str) -> None:
    written = DatasetCardData(pretty_name=name, license="other", license_name=name).to_yaml()
    assert yaml.safe_load(written)["pretty_name"] == name


@pytest.mark.parametrize(
    ("rows", "name"), [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (10**7, "10M<n<100M")]
)
def test_the_size_category_changes_at_its_bound(rows: int, name: str) -> None:
    assert size_category(rows) == name
