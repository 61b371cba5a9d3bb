// The program is built in a temporary folder beside the target, started once, and then renamed.
#include "trainers/build.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/json/json.h"
#include "base/process.h"

namespace stoker::trainers {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kOldestCompiler = 11;  // C++20
constexpr std::string_view kLibrary = "libstoker_train.a";
constexpr std::string_view kMainSource = "units/train_main.cc";  // not in the library
constexpr std::string_view kGpuLibrary = "stoker-train-cuda.so";
// One of each of the packages that they come from.
constexpr std::array<std::string_view, 7> kCudaHeaders = {
    "cuda_runtime_api.h", "crt/host_config.h", "nv/target",   "nccl.h",
    "cublas_v2.h",        "cusparse.h",        "cusolverDn.h"};
constexpr Duration kCompileTimeout = 30min;

struct SourceUnit {
  std::string source;    ///< in the kit
  std::string include;   ///< a folder of the kit that comes before all others, or empty
  bool is_cuda = false;  ///< compiled with CUDA's headers
};

Result<std::vector<SourceUnit>> read_units(const Path& kit) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(kit / "kit.json", 1_MiB));
  const auto parsed = parse_json<nlohmann::json>(text);
  const auto bad = [&] { return invalid("{}: is no list of sources", (kit / "kit.json").string()); };
  if (!parsed.is_object() || !parsed.contains("units") || !parsed["units"].is_array()) return bad();
  std::vector<SourceUnit> units;
  for (const auto& entry : parsed["units"]) {
    if (!entry.is_object() || !entry.contains("source") || !entry["source"].is_string()) return bad();
    const bool has_include = entry.contains("include") && entry["include"].is_string();
    const bool is_cuda = entry.contains("cuda") && entry["cuda"] == true;
    units.push_back({entry["source"].get<std::string>(),
                     has_include ? entry["include"].get<std::string>() : std::string(), is_cuda});
  }
  if (units.empty()) return bad();
  return units;
}

// What is wrong with the compiler, or nothing.
std::optional<std::string> compiler_problem(const std::string& compiler) {
  const auto asked =
      run_program({.argv = {compiler, "-dumpfullversion", "-dumpversion"}}, Deadline::after(1min), 1_MiB);
  if (!asked.ok()) return format("{}: not found (CXX, --compiler)", printable(compiler));
  std::uint64_t major = 0;
  const std::string version(trim(asked->out));
  if (!asked->exit.ok() || !parse_number(std::string_view(version).substr(0, version.find('.')), &major))
    return format("{}: does not answer like g++ (--compiler)", printable(compiler));
  if (major < kOldestCompiler)
    return format("{}: version {}, at least {} is required (--compiler)", printable(compiler), version,
                  kOldestCompiler);
  return std::nullopt;
}

bool is_torch_for_cuda(const Torch& torch) { return path_exists(torch.folder / "lib/libtorch_cuda.so"); }

// The folders with CUDA's headers, and the headers that no folder has.
struct CudaHeaders {
  std::vector<Path> folders;
  std::vector<std::string> missing;
};

CudaHeaders find_cuda_headers(const BuildRequest& request) {
  std::vector<Path> candidates;
  if (!request.cuda_headers.empty()) candidates.push_back(request.cuda_headers);
  const Path beside = request.torch.folder / "../nvidia";  // where pip installs what torch requires
  if (const auto names = list_directory(beside); names.ok()) {
    for (const std::string& name : *names)
      candidates.push_back((beside / name / "include").lexically_normal());
  }
  CudaHeaders found;
  for (std::string_view header : kCudaHeaders) {
    const auto folder =
        std::ranges::find_if(candidates, [&](const Path& path) { return path_exists(path / header); });
    if (folder == candidates.end())
      found.missing.emplace_back(header);
    else if (std::ranges::find(found.folders, *folder) == found.folders.end())
      found.folders.push_back(*folder);
  }
  return found;
}

Status check_dependencies(const BuildRequest& request, const CudaHeaders& cuda) {
  std::vector<std::string> missing;
  if (!path_exists(request.kit / "kit.json") || !path_exists(request.kit / "lib/libstoker.a"))
    missing.push_back(format("{}: no sources of the trainer there", request.kit.lexically_normal()));
  const auto problem = compiler_problem(request.compiler);
  const bool lacks_compiler = problem.has_value();
  if (problem) missing.push_back(*problem);
  if (!path_exists(request.torch.folder / "include/ATen/core/Tensor.h"))
    missing.push_back(format("{}: has no headers of torch (include/ATen)", request.torch.folder));
  const bool lacks_cuda = is_torch_for_cuda(request.torch) && !cuda.missing.empty();
  if (lacks_cuda) missing.push_back(format("headers of CUDA beside torch: {}", join(cuda.missing, ", ")));
  if (missing.empty()) return {};
  Status status = not_found("build-trainer: missing: {}", join(missing, "; "));
  if (lacks_compiler)
    return std::move(status).cure(
        "module load gcc, or conda install -c conda-forge gxx, or apt-get install g++");
  if (lacks_cuda)
    return std::move(status).cure(
        "pip install nvidia-cuda-crt nvidia-cuda-cccl, or --cuda-headers /usr/local/cuda/include");
  return std::move(status).cure("use a stoker from a package, whose torch was installed by pip");
}

struct Sources {
  std::vector<SourceUnit> units;
  GpuPart gpu_part = GpuPart::none;
  std::vector<Path> cuda_headers;  ///< folders
};

class Build {
 public:
  Build(const BuildRequest& request, Sources sources, Path folder, Progress& progress)
      : request_(request),
        units_(std::move(sources.units)),
        gpu_part_(sources.gpu_part),
        cuda_headers_(std::move(sources.cuda_headers)),
        folder_(std::move(folder)),
        progress_(progress) {}

  Status compile_all() {
    progress_.report({.done = 0, .total = units_.size() + 1, .unit = "sources", .bytes = {}});
    std::vector<std::thread> threads;
    const unsigned count =
        std::min<unsigned>(std::max(1u, request_.jobs), static_cast<unsigned>(units_.size()));
    for (unsigned i = 0; i < count; ++i) threads.emplace_back([this] { compile_some(); });
    for (std::thread& thread : threads) thread.join();
    if (progress_.stop_requested()) return cancelled("build-trainer: stopped; nothing was written");
    return failure_;
  }

  Status link(const Path& target) const {
    std::vector<std::string> words = {request_.compiler, "-o", target.string()};
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (!units_[i].is_cuda || gpu_part_ == GpuPart::linked) words.push_back(object(i).string());
    }
    const std::string libraries = (request_.torch.folder / "lib").string();
    words.push_back((request_.kit / "lib/libstoker.a").string());
    words.push_back("-L" + libraries);
    for (std::string_view option :
         {"-pthread", "-s", "-Wl,--gc-sections", "-Wl,--exclude-libs,ALL", "-Wl,--build-id=none",
          // Also because GNU ld 2.40 leaves an empty entry among the relocations that are resolved lazily.
          "-Wl,-z,now",
          // Before torch: libtorch.so of 2.11 exports parts of std::filesystem that crash when called from
          // outside.
          "-Wl,--no-as-needed", "-lstdc++",
          // What torch's libraries need in turn is found when they are loaded.
          "-Wl,--allow-shlib-undefined", "-ltorch", "-ltorch_cpu", "-lc10"})
      words.emplace_back(option);
    if (gpu_part_ == GpuPart::linked) words.insert(words.end(), {"-ltorch_cuda", "-lc10_cuda"});
    words.emplace_back("-Wl,--as-needed");
    words.emplace_back("-ldl");
    if (!request_.is_relocatable) words.push_back("-Wl,-rpath," + libraries);
    return run(words, "link");
  }

  // The names of torch's libraries for CUDA stay undefined: the torch that loads it has them.
  Status link_gpu_library(const Path& target) const {
    std::vector<std::string> words = {request_.compiler, "-shared", "-o", target.string()};
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (units_[i].is_cuda) words.push_back(object(i).string());
    }
    words.push_back((request_.kit / "lib/libstoker.a").string());
    words.push_back("-L" + (request_.torch.folder / "lib").string());
    for (std::string_view option :
         {"-pthread", "-s", "-Wl,--gc-sections", "-Wl,--exclude-libs,ALL", "-Wl,--build-id=none",
          "-Wl,-z,now", "-Wl,--allow-shlib-undefined", "-ltorch_cpu", "-lc10"})
      words.emplace_back(option);
    return run(words, "link");
  }

  Status archive(const Path& target) const {
    std::vector<std::string> words = {"ar", "rcsD", target.string()};
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (units_[i].source != kMainSource) words.push_back(object(i).string());
    }
    return run(words, "archive");
  }

 private:
  Path object(std::size_t i) const { return folder_ / format("{}.o", i); }

  void compile_some() {
    for (;;) {
      const std::size_t i = next_.fetch_add(1);
      if (i >= units_.size() || progress_.stop_requested()) return;
      {
        const std::lock_guard held(mutex_);
        if (!failure_.ok()) return;
      }
      Status done = run(compile_words(i), units_[i].source);
      const std::lock_guard held(mutex_);
      if (!done.ok() && failure_.ok()) failure_ = std::move(done);
      finished_ += 1;
      progress_.report({.done = finished_, .total = units_.size() + 1, .unit = "sources", .bytes = {}});
    }
  }

  std::vector<std::string> compile_words(std::size_t i) const {
    const Path torch = request_.torch.folder / "include";
    std::vector<std::string> words = {request_.compiler,
                                      "-std=c++20",
                                      "-O3",
                                      "-DNDEBUG",
                                      "-fPIC",
                                      "-g0",
                                      "-ffunction-sections",
                                      "-fdata-sections",
                                      "-w",
                                      format("-ffile-prefix-map={}=.", request_.kit),
                                      format("-ffile-prefix-map={}=torch", request_.torch.folder)};
    for (std::string_view definition :
         {"FMT_HEADER_ONLY", "USE_DISTRIBUTED", "USE_C10D_GLOO", "_GLIBCXX_USE_CXX11_ABI=1"})
      words.push_back(format("-D{}", definition));
    if (gpu_part_ == GpuPart::linked) words.emplace_back("-DSTOKER_CUDA");
    if (units_[i].is_cuda) {
      words.insert(words.end(),
                   {"-DUSE_C10D_NCCL", "-DC10_CUDA_NO_CMAKE_CONFIGURE_FILE", "-fvisibility=hidden"});
      for (const Path& folder : cuda_headers_) words.insert(words.end(), {"-isystem", folder.string()});
    }
    if (!units_[i].include.empty()) words.push_back("-I" + (request_.kit / units_[i].include).string());
    for (const Path& folder : {request_.kit / "include", request_.kit / "src"})
      words.push_back("-I" + folder.string());
    for (const Path& folder : {request_.kit / "libraries", torch, torch / "torch/csrc/api/include"})
      words.insert(words.end(), {"-isystem", folder.string()});
    words.insert(words.end(), {"-c", (request_.kit / units_[i].source).string(), "-o", object(i).string()});
    return words;
  }

  // The compiler's first error is in the message, all of its output in a file beside the target.
  Status run(const std::vector<std::string>& words, const std::string& what) const {
    const auto done = run_program({.argv = words}, Deadline::after(kCompileTimeout), 4_MiB);
    if (!done.ok()) return done.error();
    if (done->exit.ok()) return {};
    const Path log = request_.target.parent_path() / "build.log";
    STOKER_RETURN_IF_ERROR(write_file(log, join(words, " ") + "\n" + done->err));
    std::string first = to_text(done->exit);
    for (std::string_view line : split(done->err, '\n')) {
      if (line.find("error: ") == std::string_view::npos &&
          line.find("undefined reference") == std::string_view::npos)
        continue;
      first = printable(trim(line).substr(0, 300));
      break;
    }
    return invalid("build-trainer: {}: {}", what, first).cure("less {}", shell_quote(log.string()));
  }

  const BuildRequest& request_;
  const std::vector<SourceUnit> units_;
  const GpuPart gpu_part_;
  const std::vector<Path> cuda_headers_;
  const Path folder_;
  Progress& progress_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  Status failure_;  // guarded by mutex_, as is finished_
  std::uint64_t finished_ = 0;
};

// Started once: a library that is missing or does not fit shows now.
Status try_program(const BuildRequest& request, const Path& program) {
  Environment environment = current_environment();
  if (request.is_relocatable) {
    const std::string path = variable(environment, "LD_LIBRARY_PATH");
    set_variable(environment, "LD_LIBRARY_PATH",
                 (request.torch.folder / "lib").string() + (path.empty() ? "" : ":" + path));
  }
  const auto started = run_program({.argv = {program.string(), "--version"}, .environment = environment},
                                   Deadline::after(2min), 1_MiB);
  if (!started.ok()) return started.error();
  if (started->exit.ok()) return {};
  return invalid("build-trainer: the program does not start: {}",
                 started->err.empty() ? to_text(started->exit)
                                      : printable(trim(split(started->err, '\n')[0]).substr(0, 300)));
}

}  // namespace

Path trainer_kit(const Path& program_folder) { return program_folder / "../share/stoker/trainer"; }

Result<GpuPart> build_trainer(const BuildRequest& request, Progress& progress) {
  CudaHeaders cuda = find_cuda_headers(request);
  STOKER_RETURN_IF_ERROR(check_dependencies(request, cuda));
  Sources sources{.cuda_headers = std::move(cuda.folders)};
  STOKER_ASSIGN_OR_RETURN(units, read_units(request.kit));
  sources.units = std::move(units);
  if (request.is_relocatable && cuda.missing.empty()) sources.gpu_part = GpuPart::library;
  if (!request.is_relocatable && is_torch_for_cuda(request.torch)) sources.gpu_part = GpuPart::linked;
  const GpuPart gpu_part = sources.gpu_part;
  if (gpu_part == GpuPart::none)
    std::erase_if(sources.units, [](const SourceUnit& unit) { return unit.is_cuda; });

  const Path folder = request.target.parent_path();
  STOKER_RETURN_IF_ERROR(make_directories(folder));
  const TempDirectory scratch(folder);
  Build build(request, std::move(sources), scratch.path(), progress);
  STOKER_RETURN_IF_ERROR(build.compile_all());
  const Path program = scratch / "stoker-train";
  STOKER_RETURN_IF_ERROR(build.link(program));
  STOKER_RETURN_IF_ERROR(try_program(request, program));
  if (gpu_part == GpuPart::library) {
    STOKER_RETURN_IF_ERROR(build.link_gpu_library(scratch / kGpuLibrary));
    STOKER_RETURN_IF_ERROR(rename_path(scratch / kGpuLibrary, folder / kGpuLibrary));
  }
  if (!request.is_relocatable) {
    STOKER_RETURN_IF_ERROR(build.archive(scratch / kLibrary));
    STOKER_RETURN_IF_ERROR(rename_path(scratch / kLibrary, folder / kLibrary));
  }
  STOKER_RETURN_IF_ERROR(rename_path(program, request.target));
  return gpu_part;
}

}  // namespace stoker::trainers
