"""Every text the app shows exists in Chinese, with the same placeholders."""

import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from costwatch.messages import shown_texts

ROOT = Path(__file__).resolve().parents[2]
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|\{\w*\}")


@pytest.fixture(scope="module")
def chinese() -> dict[str, str]:
    path = ROOT / "locale/zh_Hans/LC_MESSAGES/django.po"
    with path.open("rb") as file:
        catalog = read_po(file, locale="zh_Hans")
    return {
        (message.id if isinstance(message.id, str) else message.id[0]): (
            message.string if isinstance(message.string, str) else message.string[0]
        )
        for message in catalog
        if message.id
    }


def shown() -> list[str]:
    return [
        message.id if isinstance(message.id, str) else message.id[0]
        for message in shown_texts(ROOT)
        if message.id
    ]


def test_every_shown_text_has_a_chinese_translation(chinese: dict[str, str]) -> None:
    missing = [text for text in shown() if not chinese.get(text)]
    assert missing == [], "run `manage.py extract_messages` and translate these"


def test_no_translation_is_left_of_a_text_that_is_gone(chinese: dict[str, str]) -> None:
    assert sorted(set(chinese) - set(shown())) == []


def test_placeholders_survive_translation(chinese: dict[str, str]) -> None:
    changed = [
        text
        for text, translated in chinese.items()
        if sorted(PLACEHOLDER.findall(text)) != sorted(PLACEHOLDER.findall(translated))
    ]
    assert changed == []


def test_the_catalogue_compiles() -> None:
    with (ROOT / "locale/zh_Hans/LC_MESSAGES/django.po").open("rb") as file:
        catalog = read_po(file, locale="zh_Hans")
    refused = {
        str(message.id): [str(error) for error in errors] for message, errors in catalog.check()
    }
    assert refused == {}, "a percent sign before a letter reads as a placeholder: reword the text"
