#include "job/job.h"

#include <map>
#include <utility>
#include <vector>

#include "config/writer.h"
#include "job/fields.h"

namespace stoker::job {
namespace {

using config::Value;

// Writes every set value, key by key, in job file order.
class ValueWriter {
 public:
  template <typename T>
  void operator()(std::string_view key, const T& field) {
    if constexpr (requires { field.has_value(); }) {
      if (field) (*this)(key, *field);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>> ||
                         std::is_same_v<T, std::vector<double>>) {
      if (!field.empty()) values_.emplace_back(key, value_of(field));
    } else {
      values_.emplace_back(key, value_of(field));
    }
  }

  // A parameter that is a number is written as a number.
  void param(std::string_view key, const std::string& text) {
    double number = 0;
    if (parse_number(text, &number) && format("{}", number) == text) return (*this)(key, number);
    (*this)(key, text);
  }

  std::vector<std::pair<std::string, Value>> take() { return std::move(values_); }

 private:
  static Value value_of(const Path& path) { return path.string(); }
  static Value value_of(const std::string& text) { return text; }
  static Value value_of(bool value) { return value; }
  static Value value_of(double value) { return value; }
  static Value value_of(std::uint32_t value) { return std::int64_t{value}; }
  static Value value_of(std::uint64_t value) { return static_cast<std::int64_t>(value); }
  static Value value_of(Duration value) { return value; }
  static Value value_of(ByteCount value) { return value; }
  static Value value_of(const std::vector<double>& values) { return values; }
  static Value value_of(const std::vector<std::string>& words) { return words; }
  static Value value_of(const SaveInterval& every) {
    config::Period period{.count = 0, .unit = "", .time = every.time};
    if (every.steps > 0) period = {static_cast<std::int64_t>(every.steps), "steps", Duration::zero()};
    if (every.epochs > 0) period = {static_cast<std::int64_t>(every.epochs), "epochs", Duration::zero()};
    if (every.is_automatic) period.unit = "auto";
    return period;
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  static Value value_of(Enum value) {
    return std::string(to_text(value));
  }

  std::vector<std::pair<std::string, Value>> values_;
};

std::vector<std::pair<std::string, Value>> values_of(const Job& job) {
  ValueWriter write;
  write("name", job.name);
  write("working_directory", job.working_directory);
  if (job.command && job.command->is_shell) {
    write("run.shell", job.command->arguments.back());
  } else if (job.command) {
    write("run", job.command->arguments);
  }
  if (job.train) visit_train(write, *job.train);
  for (const auto& [name, text] : job.params) write.param(format("params.{}", name), text);
  write("environment.modules", job.environment.modules);
  write("environment.conda", job.environment.conda);
  write("environment.venv", job.environment.venv);
  write("environment.container", job.environment.container);
  write("environment.wheelhouse", job.environment.wheelhouse);
  for (const auto& [name, text] : job.environment.variables)
    write(format("environment.variables.{}", name), text);
  for (const auto& [name, source] : job.data) {
    write(format("data.{}.source", name), source.source);
    write(format("data.{}.split", name), source.split);
  }
  visit_job(write, job);
  return write.take();
}

}  // namespace

std::string_view to_text(ModelKind model) {
  switch (model) {
    case ModelKind::resnet18:
      return "resnet18";
    case ModelKind::resnet34:
      return "resnet34";
    case ModelKind::resnet50:
      return "resnet50";
    case ModelKind::resnet101:
      return "resnet101";
    case ModelKind::resnet152:
      return "resnet152";
    case ModelKind::cifar_resnet20:
      return "cifar-resnet20";
    case ModelKind::cifar_resnet32:
      return "cifar-resnet32";
    case ModelKind::cifar_resnet44:
      return "cifar-resnet44";
    case ModelKind::cifar_resnet56:
      return "cifar-resnet56";
    case ModelKind::cifar_resnet110:
      return "cifar-resnet110";
    case ModelKind::vit_s16:
      return "vit-s16";
    case ModelKind::gpt:
      return "gpt";
    case ModelKind::mlp:
      return "mlp";
    case ModelKind::torchscript:
      return "torchscript";
  }
  return "";
}

std::string_view to_text(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::adamw:
      return "adamw";
    case OptimizerKind::lamb:
      return "lamb";
    case OptimizerKind::lars:
      return "lars";
  }
  return "";
}

std::string_view to_text(LrScaling scaling) {
  switch (scaling) {
    case LrScaling::none:
      return "none";
    case LrScaling::linear:
      return "linear";
    case LrScaling::square_root:
      return "square-root";
  }
  return "";
}

std::string_view to_text(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::one_cycle:
      return "one-cycle";
    case ScheduleKind::cosine:
      return "cosine";
    case ScheduleKind::step:
      return "step";
    case ScheduleKind::constant:
      return "constant";
  }
  return "";
}

std::string_view to_text(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
  }
  return "";
}

std::string_view to_text(GradientCompression compression) {
  switch (compression) {
    case GradientCompression::none:
      return "none";
    case GradientCompression::fp16:
      return "fp16";
    case GradientCompression::bf16:
      return "bf16";
  }
  return "";
}

std::string_view to_text(TokenType type) {
  switch (type) {
    case TokenType::u8:
      return "u8";
    case TokenType::u16:
      return "u16";
    case TokenType::u32:
      return "u32";
    case TokenType::i32:
      return "i32";
    case TokenType::i64:
      return "i64";
  }
  return "";
}

std::string_view to_text(Anneal anneal) { return anneal == Anneal::cosine ? "cosine" : "linear"; }

std::string_view to_text(ShuffleKind kind) {
  switch (kind) {
    case ShuffleKind::every_epoch:
      return "every_epoch";
    case ShuffleKind::full:
      return "full";
    case ShuffleKind::by_shard:
      return "by_shard";
    case ShuffleKind::by_chunk:
      return "by_chunk";
    case ShuffleKind::none:
      return "none";
  }
  return "";
}

std::string_view to_text(Crop crop) {
  switch (crop) {
    case Crop::none:
      return "none";
    case Crop::pad:
      return "pad";
    case Crop::resize:
      return "resize";
  }
  return "";
}

std::string_view to_text(Backend backend) {
  switch (backend) {
    case Backend::automatic:
      return "auto";
    case Backend::shm:
      return "shm";
    case Backend::gloo:
      return "gloo";
  }
  return "";
}

std::string_view to_text(Launcher launcher) {
  switch (launcher) {
    case Launcher::srun:
      return "srun";
    case Launcher::torchrun:
      return "torchrun";
    case Launcher::single:
      return "single";
  }
  return "";
}

std::string_view to_text(Until until) { return until == Until::done ? "done" : ""; }

std::string Origins::where(std::string_view key) const {
  const auto found = where_.find(key);
  return found == where_.end() ? "default" : found->second;
}

void Origins::add(std::string key, std::string where) {
  where_.insert_or_assign(std::move(key), std::move(where));
}

std::string to_yaml(const Job& job) {
  config::YamlWriter yaml;
  for (const auto& [key, value] : values_of(job)) yaml.put(key, value, job.origins.where(key));
  return yaml.text();
}

std::vector<Difference> differences(const Job& before, const Job& after) {
  std::vector<Difference> found;
  std::map<std::string, std::string> old;
  for (const auto& [key, value] : values_of(before)) old.emplace(key, config::yaml_text(value));
  for (const auto& [key, value] : values_of(after)) {
    const auto same = old.extract(key);
    Difference difference{key, same.empty() ? "" : same.mapped(), config::yaml_text(value)};
    if (difference.before != difference.after) found.push_back(std::move(difference));
  }
  for (auto& [key, text] : old) found.push_back({key, std::move(text), ""});
  return found;
}

}  // namespace stoker::job
