#include "trainers/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainers/test_files.h"

namespace stoker::trainers {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// As much of g++ as a build asks for. It writes scripts as programs, and its calls to a file beside it.
constexpr const char* kCompiler = R"(
case "$1" in -dumpfullversion) echo 12.2.0; exit ;; esac
echo "$@" >> "$0.calls"
while [ $# -gt 0 ]; do
  case "$1" in -o) out=$2 ;; *broken.cc) echo "broken.cc:3:1: error: 'x' was not declared" >&2; exit 1 ;; esac
  shift
done
printf '#!/bin/sh\n' > "$out"; chmod 755 "$out")";

struct Kit {
  TempDirectory folder;
  BuildRequest request{.kit = folder / "kit",
                       .torch = {write_torch(folder / "torch", "2.10.0"), "2.10.0"},
                       .compiler = (folder / "g++").string(),
                       .target = folder / "out/torch-2.10.0/stoker-train"};

  Kit() {
    write_program(folder / "g++", kCompiler);
    std::filesystem::create_directories(request.kit / "lib");
    (void)write_file(request.kit / "lib/libstoker.a", "");
    units(R"([{"source": "units/a.cc"}, {"source": "units/b.cc", "include": "stub"}])");
  }
  void units(const std::string& text) const {
    (void)write_file(request.kit / "kit.json", R"({"units": )" + text + "}");
  }
  Status build() const {
    NoProgress progress;
    return build_trainer(request, progress).status();
  }
  // Headers of CUDA as in pip's packages beside torch.
  void write_cuda_headers(const Path& folder) const {
    for (const char* header : {"cuda_runtime_api.h", "crt/host_config.h", "nv/target", "nccl.h",
                               "cublas_v2.h", "cusparse.h", "cusolverDn.h"}) {
      std::filesystem::create_directories((folder / header).parent_path());
      (void)write_file(folder / header, "");
    }
  }
  std::string compiler_calls() const { return *read_file(request.compiler + ".calls"); }
};

TEST(BuildTrainer, writes_program_and_library_and_nothing_else) {
  const Kit kit;
  ASSERT_TRUE(kit.build().ok()) << kit.build().to_string();
  auto names = *list_directory(kit.request.target.parent_path());
  EXPECT_THAT(names, testing::UnorderedElementsAre("stoker-train", "libstoker_train.a"));
}

constexpr const char* kWithCuda = R"([{"source": "units/a.cc"}, {"source": "units/cuda.cc", "cuda": true}])";

TEST(BuildTrainer, links_the_gpu_part_for_a_torch_for_cuda) {
  const Kit kit;
  kit.units(kWithCuda);
  kit.write_cuda_headers(kit.folder / "nvidia/cu13/include");
  (void)write_file(kit.request.torch.folder / "lib/libtorch_cuda.so", "");
  NoProgress progress;
  const auto built = build_trainer(kit.request, progress);
  ASSERT_TRUE(built.ok()) << built.status().to_string();
  EXPECT_EQ(*built, GpuPart::linked);
  EXPECT_THAT(kit.compiler_calls(), HasSubstr("-ltorch_cuda -lc10_cuda"));
  EXPECT_THAT(kit.compiler_calls(), HasSubstr("-DSTOKER_CUDA"));
  EXPECT_THAT(kit.compiler_calls(), HasSubstr(format("-isystem {}", kit.folder / "nvidia/cu13/include")));
}

TEST(BuildTrainer, a_torch_for_cuda_needs_the_headers_of_cuda) {
  const Kit kit;
  kit.units(kWithCuda);
  kit.write_cuda_headers(kit.folder / "nvidia/cu13/include");
  (void)remove_tree(kit.folder / "nvidia/cu13/include/crt");
  (void)write_file(kit.request.torch.folder / "lib/libtorch_cuda.so", "");
  EXPECT_EQ(kit.build().to_string(),
            "build-trainer: missing: headers of CUDA beside torch: crt/host_config.h\n"
            "  try: pip install nvidia-cuda-crt nvidia-cuda-cccl, or --cuda-headers /usr/local/cuda/include");
}

TEST(BuildTrainer, a_relocatable_program_has_the_gpu_part_beside_it) {
  Kit kit;
  kit.units(kWithCuda);
  kit.request.is_relocatable = true;
  NoProgress progress;
  const auto without_headers = build_trainer(kit.request, progress);
  ASSERT_TRUE(without_headers.ok()) << without_headers.status().to_string();
  EXPECT_EQ(*without_headers, GpuPart::none);
  EXPECT_THAT(kit.compiler_calls(), Not(HasSubstr("cuda.cc")));
  kit.request.cuda_headers = kit.folder / "cuda";
  kit.write_cuda_headers(kit.request.cuda_headers);
  EXPECT_EQ(*build_trainer(kit.request, progress), GpuPart::library);
  EXPECT_THAT(kit.compiler_calls(), Not(HasSubstr("-DSTOKER_CUDA")));
  EXPECT_THAT(*list_directory(kit.request.target.parent_path()),
              testing::UnorderedElementsAre("stoker-train", "stoker-train-cuda.so"));
}

TEST(BuildTrainer, lists_everything_that_is_missing) {
  Kit kit;
  kit.request.compiler = "/nonexistent/g++";
  kit.request.kit = "/nonexistent/kit";
  (void)remove_tree(kit.request.torch.folder / "include");
  const Status status = kit.build();
  EXPECT_EQ(status.code(), Code::not_found);
  EXPECT_EQ(status.message(),
            format("build-trainer: missing: /nonexistent/kit: no sources of the trainer there; "
                   "/nonexistent/g++: not found (CXX, --compiler); {}: has no headers of torch "
                   "(include/ATen)",
                   kit.request.torch.folder));
}

TEST(BuildTrainer, refuses_a_compiler_without_cpp20) {
  const Kit kit;
  write_program(kit.folder / "g++", "echo 8.5.0");
  EXPECT_THAT(std::string(kit.build().message()),
              HasSubstr("version 8.5.0, at least 11 is required (--compiler)"));
  write_program(kit.folder / "g++", "echo hello");
  EXPECT_THAT(std::string(kit.build().message()), HasSubstr("does not answer like g++ (--compiler)"));
}

TEST(BuildTrainer, reports_the_first_error_and_keeps_an_older_program) {
  const Kit kit;
  ASSERT_TRUE(kit.build().ok());
  kit.units(R"([{"source": "units/broken.cc"}])");
  const Status status = kit.build();
  const Path log = kit.request.target.parent_path() / "build.log";
  EXPECT_EQ(status.to_string(),
            format("build-trainer: units/broken.cc: broken.cc:3:1: error: 'x' was not declared\n"
                   "  try: less {}",
                   log));
  EXPECT_THAT(*read_file(log), HasSubstr("error: 'x' was not declared"));
  EXPECT_TRUE(path_exists(kit.request.target));
}

TEST(BuildTrainer, refuses_a_program_that_does_not_start) {
  const Kit kit;
  write_program(kit.folder / "g++", R"(
case "$1" in -dumpfullversion) echo 12.2.0; exit ;; esac
while [ $# -gt 0 ]; do case "$1" in -o) out=$2 ;; esac; shift; done
printf '#!/bin/sh\necho libgomp.so.1: cannot open >&2\nexit 127\n' > "$out"; chmod 755 "$out")");
  EXPECT_EQ(kit.build().message(), "build-trainer: the program does not start: libgomp.so.1: cannot open");
  EXPECT_FALSE(path_exists(kit.request.target));
}

TEST(BuildTrainer, rejects_a_kit_without_a_list_of_sources) {
  const Kit kit;
  for (const char* text : {"", "[]", "{}", R"([{"source": 3}])", R"([7])"}) {
    kit.units(text);
    EXPECT_THAT(std::string(kit.build().message()), testing::EndsWith("kit.json: is no list of sources"))
        << text;
  }
}

TEST(BuildTrainer, stops_without_a_trace_when_asked) {
  class Stopped final : public Progress {
   public:
    void report(const ProgressState&) override {}
    bool stop_requested() const override { return true; }
  };
  const Kit kit;
  Stopped progress;
  EXPECT_EQ(build_trainer(kit.request, progress).status().code(), Code::cancelled);
  EXPECT_EQ(list_directory(kit.request.target.parent_path())->size(), 0u);
}

}  // namespace
}  // namespace stoker::trainers
