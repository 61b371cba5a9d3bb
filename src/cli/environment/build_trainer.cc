// `stoker build-trainer`: docs/commands/build-trainer.md
#include <algorithm>

#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/run_request.h"
#include "loader/advice.h"
#include "trainers/build.h"
#include "trainers/find.h"

namespace stoker::cli {
namespace {

struct BuildOptions {
  std::string python;
  std::string torch;
  std::string kit;
  std::string out;
  std::string cuda_headers;
  std::string compiler = environment_value("CXX").value_or("g++");
  std::optional<std::int64_t> jobs;
  bool is_relocatable = false;
};

// As many as cores and memory of this process allow.
std::int64_t default_jobs() {
  const loader::Machine machine = loader::detect_machine("/", current_environment());
  const auto fitting = static_cast<std::int64_t>(machine.memory.value / trainers::kMemoryPerJob.value);
  return std::max<std::int64_t>(1, std::min<std::int64_t>(machine.cores, fitting));
}

}  // namespace

int build_trainer(std::span<const std::string> words, Output& out) {
  BuildOptions o;
  Arguments arguments("build-trainer", "Build the trainer for the PyTorch of an environment.");
  arguments.option("--python", &o.python, "PROGRAM",
                   "Build for the torch of this Python (default: as for a run)");
  arguments.option("--torch", &o.torch, "DIR", "Build for the torch in this directory");
  arguments.option("--compiler", &o.compiler, "PROGRAM", "C++ compiler: g++ 11 or later");
  arguments.option("-j,--jobs", &o.jobs, "N",
                   "Run this many compilers at once (default: as cores and memory allow)");
  arguments.option("--out", &o.out, "FILE", "Write this program instead of the one that stoker finds");
  arguments.flag("--relocatable", &o.is_relocatable, "Do not store the directory of torch in the program");
  arguments.option("--cuda-headers", &o.cuda_headers, "DIR",
                   "Directory of CUDA's and NCCL's headers (default: beside torch)");
  arguments.option("--kit", &o.kit, "DIR", "Directory of the trainer's sources (default: beside stoker)");
  arguments.example("stoker build-trainer --python .venv/bin/python");
  if (const auto code = arguments.parse(words, out)) return *code;
  const std::int64_t jobs = o.jobs.value_or(default_jobs());
  if (jobs < 1 || jobs > 1024)
    return out.fail(invalid("build-trainer: -j,--jobs: {} is not between 1 and 1024", jobs));
  if (!o.python.empty() && !o.torch.empty())
    return out.fail(invalid("build-trainer: --python and --torch: give one of them"));
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  const trainers::TrainerSearch search{program->parent_path(), std::nullopt, current_environment()};
  const auto torch = trainers::choose_torch(o.torch, o.python, search);
  if (!torch.ok()) return out.fail(torch.error());
  const Path target = o.out.empty() ? trainers::own_trainer(current_environment(), *torch) / "stoker-train"
                                    : std::filesystem::absolute(o.out).lexically_normal();
  const Path kit = o.kit.empty() ? trainers::trainer_kit(program->parent_path()).lexically_normal()
                                 : std::filesystem::absolute(o.kit).lexically_normal();
  const ScopedStopSignals signals;
  const MonoTime began = RealClock().mono();
  const auto progress = out.progress("compiling");
  const auto built = trainers::build_trainer({.kit = kit,
                                              .torch = *torch,
                                              .cuda_headers = o.cuda_headers,
                                              .compiler = o.compiler,
                                              .target = target,
                                              .jobs = static_cast<unsigned>(jobs),
                                              .is_relocatable = o.is_relocatable},
                                             *progress);
  if (!built.ok()) return out.fail(built.error());
  const Duration took = RealClock().mono() - began;
  out.line("built {} for torch {} of {} in {}", target, torch->version, torch->folder,
           rounded_duration(took));
  out.json(json_text(nlohmann::ordered_json{{"program", target.string()},
                                            {"torch", torch->version},
                                            {"torch_directory", torch->folder.string()},
                                            {"gpus", *built != trainers::GpuPart::none},
                                            {"seconds", Seconds(took).count()}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
