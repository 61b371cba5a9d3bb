"""packaging/check_shipped.py refuses programs and archives that would not run or unpack on another machine."""

import io
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
from conftest import REPOSITORY

CHECK = REPOSITORY / "packaging/check_shipped.py"
DATED = 315532800  # 1980, the first year of a zip
GOOD = '#include <stdio.h>\nint main(void) { return puts("good") < 0; }\n'


@pytest.fixture
def compiled(tmp_path):
    """compiled(name, text, *options): a program of C."""

    def build(name, text, *options):
        source = tmp_path / f"{name}.c"
        source.write_text(text)
        target = tmp_path / name
        # The start code of this machine's glibc asks for it: -nostartfiles leaves it out.
        subprocess.run(["gcc", source, "-o", target, "-fPIC", "-nostartfiles", "-Wl,-e,main", *options], check=True)
        return target

    return build


def check(*words):
    done = subprocess.run([sys.executable, CHECK, *map(str, words)], capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_a_program_of_libc_alone_is_accepted(compiled):
    assert check(compiled("good", GOOD)) == (0, [])


def test_a_symbol_newer_than_rhel_8_is_named(compiled):
    new = compiled("new", "#include <stdlib.h>\nint main(void) { return arc4random() == 0; }\n")
    assert check(new) == (1, ["new: new: needs GLIBC_2.36 of libc.so.6; RHEL 8 has GLIBC_2.28 at most"])


def test_a_library_that_a_system_may_lack_is_named(compiled):
    code, lines = check(compiled("zipped", "#include <zlib.h>\nint main(void) { return zlibVersion() == 0; }\n", "-lz"))
    assert (code, lines[0]) == (1, "zipped: zipped: needs libz.so.1, which a system may not have")


def test_a_search_path_of_the_building_machine_is_named(compiled):
    code, lines = check(compiled("path", GOOD, "-Wl,-rpath,/opt/mine/lib:$ORIGIN/../lib"))
    assert (code, lines) == (1, ["path: path: looks for libraries in /opt/mine/lib"])


def test_a_path_of_the_building_machine_is_shown(compiled):
    text = f'#include <stdio.h>\nint main(void) {{ return puts("{REPOSITORY}/src/base/x.cc: wrong") < 0; }}\n'
    code, lines = check(compiled("names", text))
    assert (code, lines) == (
        1,
        [f"names: names: contains a path of the machine that built it: {REPOSITORY}/src/base/x.cc: wrong"],
    )


def test_another_folder_can_be_named(compiled, tmp_path):
    text = '#include <stdio.h>\nint main(void) { return puts("/scratch/me/build") < 0; }\n'
    program = compiled("names", text)
    assert check(program)[0] == 0
    assert check(program, "--path", "/scratch/me")[0] == 1


def test_a_name_without_a_definition_is_shown(compiled):
    module = compiled("module.so", "extern int nowhere(void); int f(void) { return nowhere(); }\n", "-shared")
    assert check(module) == (1, ["module.so: module.so: nowhere is defined nowhere"])


def test_a_copying_function_of_the_compilers_library_is_an_error(compiled):
    large = "const char large[2 << 20] = {1};\n"
    own = "void *memcpy(void *to, const void *from, unsigned long n) { char *t = to; while (n--) t[n] = ((char *)from)[n]; return to; }\n"
    options = ("-shared", "-fno-builtin", "-fno-tree-loop-distribute-patterns")
    assert check(compiled("_core.so", large + own, *options)) == (
        1,
        ["_core.so: _core.so: contains its own memcpy, which is slower than glibc's"],
    )
    used = "#include <string.h>\nvoid *f(void *to, const void *from, unsigned long n) { return memcpy(to, from, n); }\n"
    assert check(compiled("_core.abi3.so", large + used, *options)) == (0, [])


def test_the_gpu_part_leaves_torchs_names_undefined_and_none_of_ours(compiled):
    text = "extern int f(void) __asm__({0}); int g(void) {{ return f(); }}\n"
    of_torch = compiled("stoker-train-cuda.so", text.format('"_ZN3c104cuda12device_countEv"'), "-shared")
    assert check(of_torch) == (0, [])
    of_ours = compiled("stoker-train-cuda.so", text.format('"_ZN6stoker5train1fEv"'), "-shared")
    assert check(of_ours)[1] == ["stoker-train-cuda.so: stoker-train-cuda.so: _ZN6stoker5train1fEv is defined nowhere"]


def test_the_names_of_python_are_left_to_the_interpreter(compiled):
    text = (
        "extern void *PyList_New(long); extern void *_Py_None; void *f(void) { return _Py_None ? PyList_New(0) : 0; }\n"
    )
    assert check(compiled("module.so", text, "-shared")) == (0, [])


def write_tar(path, program, name="stoker/bin/stoker", mode=0o755, kind=tarfile.REGTYPE, time=DATED):
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo(name)
        info.mode, info.type, info.mtime = mode, kind, time
        content = program.read_bytes() if kind == tarfile.REGTYPE else b""
        info.size, info.linkname = len(content), "/etc/passwd"
        tar.addfile(info, io.BytesIO(content))
    return path


def test_a_tarball_is_checked_inside(compiled, tmp_path):
    good, new = (
        compiled("good", GOOD),
        compiled("new", "#include <stdlib.h>\nint main(void) { return arc4random() == 0; }\n"),
    )
    assert check(write_tar(tmp_path / "good.tar.gz", good)) == (0, [])
    code, lines = check(write_tar(tmp_path / "new.tar.gz", new))
    assert (code, lines) == (
        1,
        ["new.tar.gz: stoker/bin/stoker: needs GLIBC_2.36 of libc.so.6; RHEL 8 has GLIBC_2.28 at most"],
    )


@pytest.mark.parametrize(
    ("member", "finding"),
    [
        ({"name": "../stoker"}, "../stoker: leaves the folder it is unpacked in"),
        ({"name": "/usr/bin/stoker"}, "/usr/bin/stoker: leaves the folder it is unpacked in"),
        ({"mode": 0o4755}, "stoker/bin/stoker: has mode 4755"),
        ({"mode": 0o777}, "stoker/bin/stoker: has mode 777"),
        ({"kind": tarfile.SYMTYPE}, "stoker/bin/stoker: is a link, which some archives' readers refuse"),
        ({"time": 1.7e9}, "stoker/bin/stoker: has the time of the build, which differs between two builds"),
    ],
)
def test_a_member_that_harms_where_it_is_unpacked_is_named(compiled, tmp_path, member, finding):
    code, lines = check(write_tar(tmp_path / "bad.tar.gz", compiled("good", GOOD), **member))
    assert code == 1
    assert f"bad.tar.gz: {finding}" in lines


def test_a_wheel_is_checked_inside(compiled, tmp_path):
    wheel = tmp_path / "stoker-1.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(zipfile.ZipInfo("stoker/_core.so"), compiled("good", GOOD).read_bytes())
        archive.writestr(zipfile.ZipInfo("stoker/__init__.py"), "")
    assert check(wheel) == (0, [])
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("stoker-1.dist-info/RECORD", "")
    late = "stoker-1.dist-info/RECORD: has the time of the build, which differs between two builds"
    assert check(wheel) == (1, [f"stoker-1.whl: {late}"])


def test_an_archive_without_a_program_is_an_error(tmp_path):
    wheel = tmp_path / "stoker-1.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(zipfile.ZipInfo("stoker/__init__.py"), "")
    assert check(wheel) == (1, ["stoker-1.whl: contains no program and no library"])


@pytest.mark.parametrize("name", ["cut.whl", "cut.tar.gz", "missing"])
def test_an_unreadable_file_is_named(tmp_path, name):
    if name != "missing":
        (tmp_path / name).write_bytes(b"PK\3\4cut")
    code, lines = check(tmp_path / name)
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith(f"{tmp_path / name}: cannot be read: ")


def test_a_damaged_program_is_an_error(compiled, tmp_path):
    program = compiled("good", GOOD)
    damaged = tmp_path / "damaged"
    shutil.copy(program, damaged)
    damaged.write_bytes(damaged.read_bytes()[:40])
    code, lines = check(damaged)
    assert (code, len(lines)) == (1, 1)
    assert lines[0].startswith("damaged: damaged: not a valid ELF file")
