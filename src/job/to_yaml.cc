#include <map>
#include <utility>
#include <vector>

#include "config/writer.h"
#include "job/fields.h"
#include "job/job.h"

namespace stoker::job {
namespace {

using config::Value;

// What is set, key by key, in the order of the job file.
class Writer {
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

  // A parameter that is a number is written as one.
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
  static Value value_of(const Every& every) {
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
  Writer write;
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
