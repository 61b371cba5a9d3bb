#include "preflight/last_run.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "record/run_events.h"

namespace stoker::preflight {
namespace {

constexpr int kMaxRuns = 20;

struct ModelSize {
  job::ModelKind model;
  std::uint64_t body;      // parameters and running statistics below the classifier
  std::uint64_t features;  // input features of the classifier
};

// Computed from the models.
constexpr ModelSize kSizes[] = {
    {job::ModelKind::resnet18, 11'186'112, 512},   {job::ModelKind::resnet34, 21'301'696, 512},
    {job::ModelKind::resnet50, 23'561'152, 2048},  {job::ModelKind::resnet101, 42'605'504, 2048},
    {job::ModelKind::resnet152, 58'295'232, 2048}, {job::ModelKind::cifar_resnet20, 270'448, 64},
    {job::ModelKind::cifar_resnet32, 465'776, 64}, {job::ModelKind::cifar_resnet44, 661'104, 64},
    {job::ModelKind::cifar_resnet56, 856'432, 64}, {job::ModelKind::cifar_resnet110, 1'735'408, 64},
    {job::ModelKind::vit_s16, 21'665'664, 384},
};

std::optional<std::uint64_t> parameters_of(const job::TrainOptions& train, std::uint64_t classes) {
  if (train.model == job::ModelKind::gpt) {
    const std::uint64_t width = train.gpt.width;
    return 12 * train.gpt.layers * width * width + (classes + train.gpt.length) * width;
  }
  for (const ModelSize& size : kSizes) {
    if (size.model == train.model)
      return size.body + (size.features + 1) * classes * std::max(train.heads, 1u);
  }
  return std::nullopt;
}

}  // namespace

std::optional<record::RunFolder> last_run(const job::Job& job) {
  const auto names = list_directory(job.record.directory);
  if (!names.ok()) return std::nullopt;
  int opened = 0;
  // Names begin with the time, so they sort by age.
  for (auto name = names->rbegin(); name != names->rend() && opened < kMaxRuns; ++name) {
    if (name->find("_" + job.name.substr(0, 48) + "_") == std::string::npos) continue;
    ++opened;
    const auto run = record::RunFolder::open(job.record.directory / *name);
    if (!run.ok() || run->description().name != job.name) continue;
    const auto attempts = run->attempts();
    if (attempts.ok() && !attempts->empty()) return *run;
  }
  return std::nullopt;
}

std::optional<SavedCheckpoint> last_checkpoint(const record::RunFolder& run) {
  const auto attempts = run.attempts();
  if (!attempts.ok()) return std::nullopt;
  for (auto attempt = attempts->rbegin(); attempt != attempts->rend(); ++attempt) {
    const auto log = record::read_attempt_events(attempt->folder());
    if (!log.ok()) continue;
    for (auto event = log->events.rbegin(); event != log->events.rend(); ++event) {
      const auto saved = record::checkpoint_saved(*event);
      if (saved && saved->bytes > 0)
        return SavedCheckpoint{.bytes = static_cast<std::uint64_t>(saved->bytes), .run = run.id()};
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> checkpoint_bytes(const job::TrainOptions& train, std::uint64_t classes) {
  const auto parameters = parameters_of(train, train.classes.value_or(classes));
  if (!parameters) return std::nullopt;
  using Kind = job::OptimizerKind;
  const Kind kind = train.optimizer.kind;
  std::uint64_t copies = 1;
  if (kind == Kind::adamw || kind == Kind::lamb) copies += 2;
  if ((kind == Kind::sgd || kind == Kind::lars) && train.optimizer.momentum > 0) copies += 1;
  if (train.ema) copies += 1;
  return *parameters * copies * sizeof(float);
}

}  // namespace stoker::preflight
