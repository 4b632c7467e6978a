# SPDX-License-Identifier: Apache-2.0
"""The packages of `make dist`, made here of an ordinary build: the same bytes twice, what is in them, and the wheel in an environment."""

import os
import shutil
import subprocess
import sys
import tarfile

import pytest

from conftest import ROOT, run_command
from test_autostart import thread_names, wait_for_agent

pytestmark = pytest.mark.long

JOB = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.05)"
PROGRAMS = ("probing-top", "probing")


@pytest.fixture(scope="module")
def make_packages(build_dir, tmp_path_factory):
    """make_packages(): a folder with packages of what is built, without what only debuggers need."""
    if not shutil.which("strip"):
        pytest.skip("needs strip")
    build, deps = tmp_path_factory.mktemp("build"), tmp_path_factory.mktemp("deps")
    if not os.path.exists(os.path.join(build_dir, "probing-relay")):
        pytest.skip(f"needs static: {build_dir}/probing-relay is not built")
    for name in PROGRAMS + ("libprobing.so", "probing-relay"):
        subprocess.run(["strip", "-o", str(build / name), os.path.join(build_dir, name)], check=True)
    for folder in ("themes", "share"):
        if not os.path.isdir(os.path.join(build_dir, folder)):
            pytest.skip(f"{build_dir}/{folder} is not built")
        os.symlink(os.path.join(build_dir, folder), str(build / folder))
    (build / "THIRD_PARTY.md").write_text("# Third-party software\n", encoding="utf-8")
    (deps / "src").mkdir()
    (deps / "src" / "elfutils-0.tar").write_bytes(b"source")

    def make():
        out = tmp_path_factory.mktemp("dist")
        command = [sys.executable, os.path.join(ROOT, "tools", "dist.py"), "--build", build, "--deps", deps, "--version", "0.0.9",
                   "--commit", "abc", "--epoch", "1700000001", "--out", out]
        run_command(command, timeout=300).ok()
        return out
    return make


@pytest.fixture(scope="module")
def packages(make_packages):
    return make_packages()


def test_two_packages_are_the_same_bytes(make_packages, packages):
    again = make_packages()
    names = sorted(os.listdir(packages))
    assert len(names) == 4
    assert [name for name in names if (packages / name).read_bytes() != (again / name).read_bytes()] == []


def test_the_tarball_is_one_folder_that_belongs_to_root(packages):
    with tarfile.open(packages / "probing-top-0.0.9-x86_64-linux.tar.gz") as tar:
        members = tar.getmembers()
    assert {member.name.split("/")[0] for member in members} == {"probing-top-0.0.9-x86_64-linux"}
    assert {(member.uname, member.uid, member.mtime) for member in members} == {("root", 0, 1700000001)}
    files = {member.name.split("/", 1)[1]: member.mode for member in members if member.isfile()}
    assert {files["probing-top"], files["probing"]} == {0o755}
    assert {"libprobing.so", "probing-relay", "THIRD_PARTY.md", "LICENSE", "themes/nord.theme", "share/man/man1/probing.1"} <= files.keys()


def test_the_sources_have_what_the_lgpl_asks_for(packages):
    with tarfile.open(packages / "probing-top-0.0.9-sources.tar") as tar:
        names = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name}
        assert tar.extractfile("probing-top-0.0.9-sources/COMMIT").read() == b"abc\n"
    assert {"Makefile", "deps-static.lock", "src/cli/main.c", "build/zig/deps/src/elfutils-0.tar"} <= names


def test_dpkg_reads_the_deb(packages):
    if not shutil.which("dpkg-deb"):
        pytest.skip("needs dpkg-deb")
    deb = packages / "probing-top_0.0.9_amd64.deb"
    fields = run_command(["dpkg-deb", "--field", deb]).ok().stdout
    assert "Package: probing-top\n" in fields and "Version: 0.0.9\n" in fields and "Depends: libc6 (>= 2.17)\n" in fields
    listed = run_command(["dpkg-deb", "--contents", deb]).ok().stdout
    for path in ("./usr/bin/probing-top", "./usr/lib/probing/libprobing.so", "./usr/lib/probing/probing-relay", "./usr/share/man/man1/probing.1.gz"):
        assert f" {path}\n" in listed


def all_below(folder):
    """Files and folders, but what Python compiled."""
    return {os.path.join(at, name) for at, folders, names in os.walk(folder) for name in folders + names
            if name != "__pycache__" and not name.endswith(".pyc")}


# How each shell is told of the files of the wheel, as docs/README.md has it, and what it prints then.
SHELLS = {
    "bash": (["bash", "--norc", "-c", "source {share}/bash-completion/completions/{program}; complete -p {program}"], " {program}"),
    "zsh": (["zsh", "-dfc", "fpath=({share}/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D; print $_comps[{program}]"],
            "_{program}"),
    "fish": (["fish", "-c", "source {share}/fish/vendor_completions.d/{program}.fish; complete -C '{program} --vers'"], "--version"),
}


def complete_by_shells(home):
    """With the programs of that environment in PATH."""
    share, env = home / "share", dict(os.environ, PATH=f"{home / 'bin'}:{os.environ['PATH']}")
    for shell, (command, expected) in SHELLS.items():
        for program in PROGRAMS if shutil.which(shell) else ():
            done = run_command([word.format(share=share, program=program) for word in command], env=env).ok()
            assert expected.format(program=program) in done.stdout, (shell, done)


def test_a_wheel_brings_programs_and_agent_and_leaves_nothing(packages, tmp_path):
    home = tmp_path / "env"
    made = subprocess.run(["/usr/bin/python3", "-m", "venv", str(home)], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"needs venv: {made.stdout or made.stderr}")
    python, probing = str(home / "bin" / "python"), str(home / "bin" / "probing")
    before = all_below(home)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    shutil.copy(packages / "probing_top-0.0.9-py3-none-manylinux2014_x86_64.whl", tmp_path)
    run_command(pip + ["install", "--no-index", tmp_path / "probing_top-0.0.9-py3-none-manylinux2014_x86_64.whl"], timeout=120).ok()
    assert run_command([home / "bin" / "probing-top", "--version"]).ok().stdout.startswith("probing-top ")
    complete_by_shells(home)
    job = subprocess.Popen([python, "-c", JOB], stdout=subprocess.PIPE, env=dict(os.environ, PROBING="1"))
    plain = subprocess.Popen([python, "-c", JOB], stdout=subprocess.PIPE, env=dict(os.environ, PROBING="0"))
    try:
        job.stdout.readline()
        plain.stdout.readline()
        wait_for_agent(job.pid)
        assert run_command([probing, job.pid, "status", "--json"]).ok().json()["strategy"] == "probing.pth"
        assert not any(name.startswith("probing-") for name in thread_names(plain.pid))
        assert "<module>" in run_command([probing, plain.pid, "backtrace"], timeout=60).ok().stdout
        with open(f"/proc/{job.pid}/maps", encoding="utf-8") as maps:
            assert str(home / "lib" / "probing" / "libprobing.so") in maps.read()
    finally:
        for process in (job, plain):
            process.kill()
            process.communicate()
    run_command(pip + ["uninstall", "-y", "probing-top"], timeout=120).ok()
    assert all_below(home) - before == set()
