"""Modulefiles and recipes under packaging/: they compile, name every library of the build, and have the current version."""

import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
from conftest import REPOSITORY

VERSION = (REPOSITORY / "VERSION").read_text().strip()
PACKAGING = REPOSITORY / "packaging"
SPACK = PACKAGING / "spack/package.py"
EASYBUILD = PACKAGING / f"easybuild/stoker-{VERSION}-GCC-12.3.0.eb"

# Libraries by their name in cmake/libraries.cmake: the packages of Debian, Spack, EasyBuild and Fedora.
LIBRARIES = {
    "fmt": ("libfmt-dev", "fmt", "fmt", "fmt-devel"),
    "json": ("nlohmann-json3-dev", "nlohmann-json", "nlohmann_json", "json-devel"),
    "cli11": ("libcli11-dev", "cli11", "CLI11", "cli11-devel"),
    "hwy": ("libhwy-dev", "highway", "Highway", "highway-devel"),
    "xxhash": ("libxxhash-dev", "xxhash", "xxHash", "xxhash-devel"),
    "yaml": ("libyaml-dev", "libyaml", "libyaml", "libyaml-devel"),
    "crypto": ("libssl-dev", "openssl", "OpenSSL", "openssl-devel"),
    "isal": ("libisal-dev", "isa-l", "ISA-L", "isa-l-devel"),
    "deflate": ("libdeflate-dev", "libdeflate", "libdeflate", "libdeflate-devel"),
    "blosc": ("libblosc-dev", "c-blosc", "Blosc", "blosc-devel"),
    "lz4": ("liblz4-dev", "lz4", "lz4", "lz4-devel"),
    "snappy": ("libsnappy-dev", "snappy", "snappy", "snappy-devel"),
    "zlib": ("zlib1g-dev", "zlib-api", "zlib", "zlib-devel"),
    "zstd": ("libzstd-dev", "zstd", "zstd", "libzstd-devel"),
    "sodium": ("libsodium-dev", "libsodium", "libsodium", "libsodium-devel"),
    "jpeg": ("libjpeg62-turbo-dev", "libjpeg-turbo", "libjpeg-turbo", "libjpeg-turbo-devel"),
    "png": ("libpng-dev", "libpng", "libpng", "libpng-devel"),
    "webp": ("libwebp-dev", "libwebp", "libwebp", "libwebp-devel"),
    "hwloc": ("libhwloc-dev", "hwloc", "hwloc", "hwloc-devel"),
    "re2": ("libre2-dev", "re2", "RE2", "re2-devel"),
}
# What only the build needs, in the recipes.
SPACK_TOOLS = {"c", "cxx", "cmake", "pkgconfig", "hdf5", "python"}
EASYBUILD_TOOLS = {"CMake", "Ninja", "pkgconf"}


def easyconfig(path: Path) -> dict:
    """The parameters of an EasyBuild recipe, which is Python with a few constants."""
    found = {"SYSTEM": {"name": "system"}, "SHLIB_EXT": "so"}
    exec(compile(path.read_text(), path.name, "exec"), found)
    return found


@pytest.fixture
def spack(monkeypatch) -> dict[str, list]:
    """The directives of the Spack recipe, by name: a list of (arguments, keywords)."""
    called: dict[str, list] = {}
    package, builtin = types.ModuleType("spack.package"), types.ModuleType("spack_repo.builtin.build_systems.cmake")
    for name in ("version", "variant", "generator", "depends_on", "conflicts", "license"):
        called[name] = []
        setattr(package, name, lambda *words, name=name, **options: called[name].append((words, options)))
    builtin.CMakePackage = type("CMakePackage", (), {})
    for module in (package, builtin):
        parts = module.__name__.split(".")
        for end in range(1, len(parts)):
            monkeypatch.setitem(sys.modules, ".".join(parts[:end]), types.ModuleType(".".join(parts[:end])))
        monkeypatch.setitem(sys.modules, module.__name__, module)
    space: dict = {}
    exec(compile(SPACK.read_text(), SPACK.name, "exec"), space)
    called["class"] = [space["Stoker"]]
    return called


def test_the_table_has_every_library_of_the_build():
    text = (REPOSITORY / "cmake/libraries.cmake").read_text()
    names = re.findall(r"^\s*stoker_(?:header_|embedded_|command_)?library\((\w+) ", text, re.MULTILINE)
    assert set(names) == set(LIBRARIES)
    packages = {
        line.split()[0] for line in (REPOSITORY / "setup/build.apt").read_text().splitlines() if line[:1] != "#"
    }
    assert {names[0] for names in LIBRARIES.values()} == {name for name in packages if "-dev" in name} - {"python3-dev"}


def test_the_spack_recipe_names_every_library_and_the_version(spack):
    depends = {re.split(r"[@ ]", words[0])[0] for words, _ in spack["depends_on"]}
    assert depends == {names[1] for names in LIBRARIES.values()} | SPACK_TOOLS
    assert spack["version"] == [((VERSION,), {})]
    assert spack["class"][0].url.endswith(f"/stoker-{VERSION}.tar.gz")


def test_the_easybuild_recipe_names_every_library_and_the_version():
    found = easyconfig(EASYBUILD)
    assert (found["name"], found["version"]) == ("stoker", VERSION)
    toolchain = found["toolchain"]
    assert EASYBUILD.name == f"stoker-{VERSION}-{toolchain['name']}-{toolchain['version']}.eb"
    depends = {each[0] for each in found["builddependencies"] + found["dependencies"]}
    assert depends == {names[2] for names in LIBRARIES.values()} | EASYBUILD_TOOLS


def test_the_page_names_every_library_for_dnf_and_the_version():
    page = (REPOSITORY / "docs/install.md").read_text()
    named = re.search(r"^dnf install (fmt-devel .+\n(?:  .+\n)+)", page, re.MULTILINE)[1]
    assert set(named.replace("\\\n", " ").split()) == {names[3] for names in LIBRARIES.values()}
    assert set(re.findall(r"stoker-(\d+\.\d+\.\d+)", page)) == {VERSION}


def test_easybuild_gets_the_build_dependency_that_it_does_not_have():
    (path,) = (PACKAGING / "easybuild").glob("CLI11-*.eb")
    found = easyconfig(path)
    toolchain = found["toolchain"]
    assert path.name == f"CLI11-{found['version']}-{toolchain['name']}-{toolchain['version']}.eb"
    assert ("CLI11", found["version"]) in easyconfig(EASYBUILD)["builddependencies"]


def test_recipes_set_only_options_of_the_build():
    text = (REPOSITORY / "CMakeLists.txt").read_text()
    options = set(re.findall(r"^(?:option|set)\((STOKER_\w+) ", text, re.MULTILINE))
    for recipe in (SPACK, EASYBUILD):
        used = set(re.findall(r'(?:define\("|-D)(STOKER_\w+)', recipe.read_text()))
        assert used
        assert used <= options, recipe.name


@pytest.fixture
def tree(tmp_path):
    """The modules as cmake/install.cmake installs them, in a folder of any name."""
    prefix = tmp_path / "moved"
    modules = prefix / "share/stoker/modulefiles"
    for kind, name in (("lmod", f"{VERSION}.lua"), ("tcl", VERSION)):
        (modules / kind / "stoker").mkdir(parents=True)
        source = PACKAGING / f"modulefiles/stoker.{'lua' if kind == 'lmod' else 'tcl'}"
        shutil.copy(source, modules / kind / "stoker" / name)
    (prefix / "bin").mkdir()
    program = prefix / "bin/stoker"
    program.write_text("#!/bin/sh\necho moved\n")
    program.chmod(0o755)
    return prefix


def test_the_installation_has_these_modules():
    text = (REPOSITORY / "cmake/install.cmake").read_text()
    assert "stoker.lua DESTINATION ${modules}/lmod/stoker RENAME ${PROJECT_VERSION}.lua)" in text
    assert "stoker.tcl DESTINATION ${modules}/tcl/stoker RENAME ${PROJECT_VERSION})" in text


@pytest.mark.needs("lmod")
@pytest.mark.parametrize("kind", ["lmod", "tcl"])
def test_lmod_loads_and_unloads_both_kinds(tree, kind):
    script = f"""
source /usr/share/lmod/lmod/init/bash
module use '{tree}/share/stoker/modulefiles/{kind}'
module load stoker
stoker
module -t list 2>&1
echo "$MANPATH"
echo "$XDG_DATA_DIRS"
module unload stoker
case ":$PATH:" in *":{tree}/bin:"*) ;; *) echo restored ;; esac
"""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("LMOD", "MODULE", "LOADED", "_"))
    }
    environment |= {"MANPATH": "/usr/share/man", "XDG_DATA_DIRS": "/usr/share"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "moved",
        f"stoker/{VERSION}",
        f"{tree}/share/man:/usr/share/man",
        f"{tree}/share:/usr/share",
        "restored",
    ]
    assert done.stderr == ""


# Environment Modules: a modulefile is Tcl with these commands.
TCL = """
foreach command {prepend-path conflict module-whatis} {
    proc $command {args} [string map [list NAME $command] {puts [linsert $args 0 NAME]}]
}
set ModulesCurrentModulefile [lindex $argv 0]
source $ModulesCurrentModulefile
"""


@pytest.mark.needs("tclsh")
@pytest.mark.parametrize("variables", [{}, {"MANPATH": "/usr/share/man", "XDG_DATA_DIRS": "/usr/share"}])
def test_tcl_reads_the_module_of_environment_modules(tree, tmp_path, variables):
    (tmp_path / "run.tcl").write_text(TCL)
    module = tree / f"share/stoker/modulefiles/tcl/stoker/{VERSION}"
    assert module.read_text().startswith("#%Module1.0\n")
    environment = {"PATH": os.environ["PATH"]} | variables
    done = subprocess.run(
        ["tclsh", tmp_path / "run.tcl", module], env=environment, capture_output=True, text=True, check=True
    )
    shown = done.stdout.splitlines()
    assert shown[1:3] == ["conflict stoker", f"prepend-path PATH {tree}/bin"]
    extra = [f"prepend-path MANPATH {tree}/share/man", f"prepend-path XDG_DATA_DIRS {tree}/share"]
    assert shown[3:] == (extra if variables else [])


@pytest.mark.needs("tclsh")
def test_a_copied_module_names_what_to_set(tmp_path):
    copy = tmp_path / "stoker"
    shutil.copy(PACKAGING / "modulefiles/stoker.tcl", copy)
    (tmp_path / "run.tcl").write_text(TCL)
    done = subprocess.run(["tclsh", tmp_path / "run.tcl", copy], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"stoker: set 'prefix' in {copy}\n")
