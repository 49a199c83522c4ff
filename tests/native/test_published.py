"""Published values of Zwicker's model, through its C library and in a browser."""

import shutil
from functools import partial

import pytest

from tests.native.library import Instance
from tests.native.published import assert_published, checks, results
from tests.native.web import in_browser
from tests.service.browser import Browser

CHECKS = [*checks("zwicker", 1)]


@pytest.fixture(scope="module")
def whole(web, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "web"
    shutil.copytree(web, folder)
    with Browser() as browser:
        yield partial(in_browser, browser, folder, "zwicker")


@pytest.mark.cases(3)
@pytest.mark.parametrize("trial", CHECKS, ids=lambda trial: trial.words)
def test_in_c_and_in_an_audio_worklet(trial, library, whole):
    assert_published(trial, Instance(library), whole)


def test_other_numbers_would_be_seen(library):
    one = Instance(library)
    found = results(CHECKS[0], lambda x: 1.01 * one.process(x)[0], library.info.block)
    assert not any(result.passed for result in found)
