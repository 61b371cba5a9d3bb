#include "preflight/production/history.h"

#include "base/file.h"
#include "base/process.h"
#include "stoker/text.h"

namespace stoker::preflight {
namespace {

constexpr int kMaxRuns = 50;
constexpr std::size_t kMaxRows = 200'000;

std::vector<PastRun> runs_of(const job::Job& job) {
  std::vector<PastRun> runs;
  const auto names = list_directory(job.record.directory);
  if (!names.ok()) return runs;
  // Names begin with the time, so they sort by age.
  for (auto name = names->rbegin(); name != names->rend() && runs.size() < kMaxRuns; ++name) {
    if (name->find("_" + job.name.substr(0, 48) + "_") == std::string::npos) continue;
    auto folder = record::RunFolder::open(job.record.directory / *name);
    if (!folder.ok() || folder->description().name != job.name) continue;
    record::RunState state = record::derive_state(*folder);
    if (state.attempts == 0) continue;
    const int world_size = folder->description().world_size;
    record::Capsule capsule = record::read_capsule(*folder);
    runs.push_back({std::move(*folder), std::move(state), std::move(capsule), world_size});
  }
  return runs;
}

// Steps in Stoker's format, or any files in the checkpoint folder.
std::uint64_t count_checkpoints(const job::Job& job, const record::RunFolder& run) {
  const Path folder =
      job.checkpoint.directory ? *job.checkpoint.directory / run.id() : run.folder() / "checkpoints";
  const auto names = list_directory(folder);
  return names.ok() ? names->size() : 0;
}

}  // namespace

std::string PastRun::commit() const {
  return capsule.code && !capsule.code->dirty ? capsule.code->commit : "";
}

std::optional<std::string> rank_variable(const job::Job& job, const std::string& name) {
  const auto set = job.environment.variables.find(name);
  return set == job.environment.variables.end() ? environment_value(name) : std::optional(set->second);
}

ProductionFacts collect_facts(const job::Job& job, const std::optional<job::Site>& site, double now) {
  ProductionFacts facts{.job = job, .site = site, .now = now, .runs = runs_of(job)};
  for (const auto& [name, source] : job.data) {
    JobDataset data{.name = name, .source = source.source, .manifest = {}};
    if (auto manifest = dataset::read_manifest(source.source); manifest.ok())
      data.manifest = std::move(*manifest);
    facts.data.push_back(std::move(data));
  }
  if (auto hello = record::read_hello(job.record.directory); hello.ok() && hello->job == job.name)
    facts.hello = std::move(*hello);
  if (const PastRun* newest = facts.newest()) {
    if (const auto attempt = newest->folder.last_attempt(); attempt.ok()) {
      const record::MetricLimits limits{.columns = 1024, .rows = kMaxRows, .line_bytes = 1u << 20};
      if (auto steps = record::read_metrics(attempt->metrics(0), limits); steps.ok() && steps->rows() > 0)
        facts.steps = std::move(*steps);
      facts.logged = record::read_last_values(*attempt);
      if (auto system = record::read_metrics(attempt->system(0), limits); system.ok() && system->rows() > 0)
        facts.system = std::move(*system);
    }
    facts.checkpoints = count_checkpoints(job, newest->folder);
  }
  return facts;
}

}  // namespace stoker::preflight
