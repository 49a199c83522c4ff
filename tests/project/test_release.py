"""What a release is made of agrees with itself; `make release` builds and tries it."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import check_jsonschema
import pytest

import amt_stream
from tools import release

ROOT = Path(__file__).parents[2]


def test_every_file_has_the_version():
    assert set(release.versions().values()) == {amt_stream.__version__}


def test_what_hinders_a_release_is_said(tmp_path):
    for name in release.VERSIONED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    assert release.hindrances(tmp_path) == []
    with (tmp_path / "amt_stream" / "__init__.py").open("w") as file:
        file.write('__version__ = "9.0.0"\n')
    fragment = tmp_path / "docs" / "changes" / "+louder.added.md"
    fragment.parent.mkdir(parents=True)
    fragment.write_text("It is louder.\n")
    version, unreleased = release.hindrances(tmp_path)
    assert "9.0.0 in amt_stream/__init__.py" in version
    assert "+louder.added.md" in unreleased


def test_fragments_have_names_that_towncrier_knows():
    for path in (ROOT / "docs" / "changes").iterdir():
        known = re.fullmatch(r"\+\w+\.(added|changed|removed|fixed)\.md|README\.md", path.name)
        assert known, f"{path.name}: see docs/changes/README.md"


def test_the_page_says_what_an_installation_takes():
    figures, *others = json.loads((ROOT / "docs" / "install.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    whole, compiled = figures["gigabytes"], figures["of_these_compiled"]
    assert f"{whole:.2f} GB by pip and {whole - compiled:.2f} GB by uv" in page
    assert whole - compiled <= 1.2
    *most, last = (one["python"].rpartition(".")[0] for one in others)
    minors = f"{', '.join(most)} and {last}"
    for one in others:
        assert one["readings_passed"] == figures["readings_passed"]
        assert f"Python {minors}, with PyTorch for NVIDIA GPUs ({one['gigabytes']:.1f} GB)" in page


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("dependabot", ".github/dependabot.yml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_forms_of_others_are_what_their_schema_says(schema, pattern, capsys):
    files = [str(path) for path in sorted(ROOT.glob(pattern))]
    assert files
    with pytest.raises(SystemExit) as ended:
        check_jsonschema.main(["--builtin-schema", f"vendor.{schema}", *files])
    assert ended.value.code == 0, capsys.readouterr()


def test_what_workflows_run_is_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    reruns = "reruns" in str(options["tool"]["pytest"]["ini_options"]["addopts"])
    for path in (".ci/oldest", ".github/workflows/tests.yml"):
        assert ("pytest-rerunfailures" in (ROOT / path).read_text(encoding="utf-8")) is reruns, path
    steps = [
        step
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for step in re.findall(r"run: (.+)", path.read_text(encoding="utf-8"))
    ]
    assert len(steps) > 10
    for verb in {verb for step in steps for verb in re.findall(r"\bmake (\w+)", step)}:
        assert re.search(rf"^{verb}\b|\b{verb}\b.*:$", makefile, re.MULTILINE), verb
    for script in {script for step in steps for script in re.findall(r"\bbash (\S+)", step)}:
        assert (ROOT / script).stat().st_mode & 0o100, script
    for file in {file for step in steps for file in re.findall(r"--file (\S+)", step)}:
        assert (ROOT / file).exists(), file


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_metadata_of_the_software_are_those_of_the_package(project):
    metadata = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
    assert metadata["version"] == amt_stream.__version__
    assert metadata["name"] == project["name"]
    assert metadata["description"] == project["description"]
    assert metadata["keywords"] == project["keywords"]
    assert metadata["license"].endswith(f"/{project['license']}")
    assert metadata["runtimePlatform"] == f"Python {project['requires-python']}"
    required = [one for one in project["dependencies"] if ";" not in one]
    assert metadata["softwareRequirements"] == [re.match(r"\w+", one)[0] for one in required]


CONDA = {  # names of packages that conda-forge names differently
    "torch": "pytorch",
    "sounddevice": "python-sounddevice",
    "soundfile": "pysoundfile",
    "PySide6-Essentials": "pyside6",
}


def test_the_recipe_for_conda_asks_for_what_the_package_does(project):
    recipe = (ROOT / "tools" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["app-pyside"]]
    split = [
        re.match(r"([\w-]+)(>=[\d.]+(,(?:<|!=)[\d.]+)?)$", one) for one in wanted if ";" not in one
    ]
    asked = [f"{CONDA.get(one[1], one[1])} {one[2]}" for one in split]
    assert re.findall(r"- (?!python >)(.+)", run) == asked
    assert f'version: "{amt_stream.__version__}"' in recipe
    for name, place in {**project["scripts"], **project["gui-scripts"]}.items():
        assert f"- {name} = {place}\n" in recipe
