"""Spack recipe. Copy it to packages/stoker/package.py of a repository of yours; docs/install.md shows the commands."""

import os

from spack.package import *
from spack_repo.builtin.build_systems.cmake import CMakePackage


class Stoker(CMakePackage):
    """Packs training data, runs training jobs under Slurm, explains failures, resumes and reports. This is the command and the
    C++ library without libtorch. Install the Python module from its wheel, and build the trainer against your torch."""

    # The source archive is read from the current folder: spack install --no-checksum stoker
    manual_download = True
    url = f"file://{os.getcwd()}/stoker-0.1.0.tar.gz"

    license("Apache-2.0")

    version("0.1.0")

    variant("hdf5", default=False, description="Read HDF5 files: libhdf5 is loaded when the first one is opened")

    generator("ninja")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("fmt@9:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("cli11@2.1.2:", type="build")
    depends_on("highway@1.0.3:", type="build")
    depends_on("xxhash@0.8:", type="build")
    depends_on("libyaml@0.2.5:")
    depends_on("openssl@1.1.1:")
    depends_on("isa-l@2.30.0:")
    depends_on("libdeflate@1.14:")
    depends_on("c-blosc@1.21:")
    depends_on("lz4@1.9: libs=shared")
    depends_on("snappy@1.1.9: +shared")
    depends_on("zlib-api")
    depends_on("zstd@1.5:")
    depends_on("libsodium@1.0.18:")
    depends_on("libjpeg-turbo@2.1:")
    depends_on("libpng@1.6:")
    depends_on("libwebp@1.2:")
    depends_on("hwloc@2.4:")
    depends_on("re2@:2021-06-01 ~shared +pic")  # with later ones, a static libre2.a needs Abseil
    depends_on("hdf5@1.10.5: +shared", type="run", when="+hdf5")
    depends_on("python@3.10:", type="test")

    conflicts("%gcc@:11", msg="Stoker is C++20: GCC 12 or newer, or clang 19")

    def cmake_args(self):
        # Debian's static libraries go into the command; here the shared ones of Spack, found by their RPATH.
        shared = {"blosc": "c-blosc", "deflate": "libdeflate", "lz4": "lz4", "snappy": "snappy"}
        libraries = {
            name: find_libraries(f"lib{name}", self.spec[package].prefix, shared=True, recursive=True)
            for name, package in shared.items()
        }
        return [
            *(self.define(f"{name}_LIBRARY", found[0]) for name, found in libraries.items()),
            self.define("STOKER_TORCH", False),
            self.define("STOKER_PYTHON", False),
            self.define("STOKER_TESTS", False),
            self.define("STOKER_BENCH", False),
        ]

    def setup_run_environment(self, env):
        if self.spec.satisfies("+hdf5"):
            library = find_libraries("libhdf5", self.spec["hdf5"].prefix, shared=True, recursive=True)
            env.set("STOKER_HDF5_LIBRARY", library[0])

    def test_smoke(self):
        """pack, run two ranks, fail, explain, resume and report"""
        python = self.spec["python"].command
        python(join_path(self.prefix.share.stoker, "smoke.py"), "--command-only", "--stoker", self.prefix.bin.stoker)
