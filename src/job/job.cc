#include "job/job.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "config/bound_setting.h"
#include "config/writer.h"
#include "job/settings.h"

namespace stoker::job {
namespace {

std::vector<std::pair<std::string, config::Value>> values_of(const Job& job) {
  return config::values_of(job_settings(), job);
}

}  // namespace

std::string Origins::where(std::string_view key) const {
  const auto found = where_.find(key);
  return found == where_.end() ? "default" : found->second;
}

void Origins::add(std::string key, std::string where) {
  where_.insert_or_assign(std::move(key), std::move(where));
}

bool Job::is_staged() const {
  return stage.is_enabled() || std::any_of(data.begin(), data.end(), [](const auto& source) {
           return source.second.place != DataPlace::shared;
         });
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
