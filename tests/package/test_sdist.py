"""The sdist: it has every file of the tree and none that a build makes, and builds without the tree."""

import fcntl
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = {"PKG-INFO", "setup.cfg"}  # by setuptools

# The generator and the build file, of the sources beside it; prints what would be compiled.
PLAN = """
import os
import sys
sys.path.insert(0, ".")
from pathlib import Path
import setup
from codegen.ninja_file import Options, write_ninja
root = Path.cwd()
options = Options(root=root, build=Path(sys.argv[1]))
setup.generate_into(options.build / "gen")
write_ninja(options)
for line in (options.build / "build.ninja").read_text().splitlines():
    if line.startswith("build "):
        print(line.replace(os.path.relpath(root, options.build), "ROOT").replace(sys.argv[1], "BUILD"))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A folder outside of the tree, with what the sdist has."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "setup.py", "-q", "egg_info", "-e", folder, "sdist", "-d", folder]
    with open(ROOT / "setup.py") as held:  # sdist gathers the files in a folder of the tree: one at a time
        fcntl.flock(held, fcntl.LOCK_EX)
        subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    archive = next(folder.glob("tensorpy-*.tar.gz"))
    with tarfile.open(archive) as files:
        files.extractall(folder)
    return folder / archive.name.removesuffix(".tar.gz")


def test_sdist_has_every_file_of_the_tree(unpacked):
    if not (ROOT / ".git").exists():
        pytest.skip("what the tree has is git's to say")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tree = {name for name in listing.split("\0") if name and (ROOT / name).exists()}
    files = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    packed = {name for name in files - MADE if ".egg-info/" not in name}
    new = packed - tree
    if new:  # a file that is about to be added is no file that a build makes
        ignored = subprocess.run(["git", "check-ignore", *new], cwd=ROOT, capture_output=True, text=True).stdout
        new = set(ignored.split("\n")) - {""}
    assert tree - packed == set()
    assert new == set()


def test_sdist_plans_the_build_of_the_tree(unpacked, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def plan(folder):
        command = [sys.executable, "-c", PLAN, tmp_path / folder.name]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    planned = plan(unpacked)
    assert planned.count(": cc ") > 400
    assert planned == plan(ROOT)
