"""`amt-stream export`: a program that goes on from block to block as a stream does."""

import json

import numpy as np
import pytest
import torch

from amt_stream import Moore2016, Stream
from amt_stream.cli.command import run_command
from amt_stream.dsp.stages import GammatoneFilterbank

RUN = """
import sys, numpy as np, torch
from amt_stream.dsp.stages import *
about = {"amt_stream.json": ""}
program = torch.export.load(sys.argv[1], extra_files=about).module()
blocks = torch.from_numpy(np.load(sys.argv[2]))
with torch.no_grad():
    given = [program(block) for block in blocks]
first = [one if isinstance(one, torch.Tensor) else one[0] for one in given]
np.save(sys.argv[3], torch.stack(first).numpy())
print(about["amt_stream.json"])
"""


def ran(forks, tmp_path, blocks):
    """What the program in p.pt2 gives of blocks in another process, and what it says it is."""
    (tmp_path / "run.py").write_text(RUN)
    np.save(tmp_path / "x.npy", blocks.numpy())
    names = [str(tmp_path / name) for name in ("p.pt2", "x.npy", "y.npy")]
    done = forks.run(tmp_path / "run.py", *names, options=["program"])
    assert done.returncode == 0, done.stderr
    return torch.from_numpy(np.load(tmp_path / "y.npy")), json.loads(done.stdout)


def test_a_model_goes_on_in_another_process(forks, tmp_path, capsys):
    path = tmp_path / "p.pt2"
    assert run_command(["export", "moore2016", str(path)]) == 0
    assert "torch.export.load after from amt_stream.dsp.stages import *" in capsys.readouterr().err
    blocks = 0.02 * torch.randn(6, 1, 2, 480, generator=torch.Generator().manual_seed(3))
    live = Stream(Moore2016(48000), (1, 2))
    with torch.no_grad():
        expected = torch.stack([live(block)[0] for block in blocks])
    given, about = ran(forks, tmp_path, blocks)
    torch.testing.assert_close(given, expected, rtol=1e-5, atol=1e-7)
    assert (about["stage"], about["fs"], about["shape"]) == ("Moore2016", 48000, [1, 2, 480])
    assert about["outputs"]["stl"] == [1, 10]
    assert run_command(["export", "moore2016", str(path)]) == 1
    assert "exists: --force overwrites it" in capsys.readouterr().err


CHAIN = """
[model]
name = "chain"

[[model.stages]]
type = "GammatoneFilterbank"
fc = { low = 200.0, high = 2000.0 }
"""


def test_a_chain_goes_on_too(forks, tmp_path):
    preset, path = tmp_path / "own.toml", tmp_path / "p.pt2"
    preset.write_text(CHAIN)
    asked = ["export", str(preset), str(path), "--shape", "2", "-r", "16000"]
    assert run_command(asked) == 0
    blocks = torch.randn(3, 2, 160)
    live = Stream(GammatoneFilterbank(fc=(200.0, 2000.0), fs=16000), (2,))
    with torch.no_grad():
        expected = torch.stack([live(block) for block in blocks])
    given, about = ran(forks, tmp_path, blocks)
    torch.testing.assert_close(given, expected, rtol=1e-5, atol=1e-7)
    assert (about["stage"], about["shape"]) == ("Chain", [2, 160])


@pytest.mark.quick
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["banana", "p.pt2"], "banana is neither a stage nor a preset"),
        (
            ["GammatoneFilterbank", "p.pt2"],
            "give the arguments in a preset with a chain of this stage",
        ),
        (["noise-control", "p.pt2"], "has several models"),
        (["moore2016", "p.pt2", "-c", "3"], "cannot be exported"),
        (["moore2016", "nowhere/p.pt2"], "cannot be written: there is no folder nowhere"),
        (["moore2016", ".", "--force"], ". exists and is a folder: name another one"),
        (["spl", "--c", __file__], f"{__file__} is a file: --c and --wasm need a folder"),
        (["spl", "--wasm", f"{__file__}/page"], f"{__file__} is a file: --c and"),
    ],
)
def test_what_cannot_be_exported_is_said(tmp_path, monkeypatch, capsys, asked, said):
    monkeypatch.chdir(tmp_path)
    assert run_command(["export", *asked]) == 1
    err = capsys.readouterr().err
    assert said in err
    assert "compiling" not in err
    assert not list(tmp_path.iterdir())
