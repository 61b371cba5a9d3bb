#include "job/site/site.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "config/layers.h"
#include "config/yaml.h"
#include "job/site/site_fields.h"
#include "job/site/site_settings.h"

namespace stoker::job {
namespace {

using config::EffectiveConfig;
using config::ErrorList;

// Fills members from the file's values.
class SiteReader {
 public:
  explicit SiteReader(const EffectiveConfig& effective) : effective_(effective) {}

  template <typename T>
  void operator()(std::string_view key, T& field) {
    if constexpr (requires { field.has_value(); }) {
      if (effective_.entries().contains(key)) (*this)(key, field.emplace());
    } else if (const T* value = effective_.find<T>(key)) {
      field = *value;
    }
  }
  void operator()(std::string_view key, std::uint64_t& field) {
    if (const auto* value = effective_.find<std::int64_t>(key)) field = static_cast<std::uint64_t>(*value);
  }

 private:
  const EffectiveConfig& effective_;
};

template <typename Entry>
void read_map(const EffectiveConfig& effective, const std::string& group,
              std::map<std::string, Entry>& entries) {
  SiteReader read(effective);
  for (const std::string& name : effective.names(group))
    visit_entry(read, format("{}.{}", group, name), entries[name]);
}

bool is_date(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i != 4 && i != 7 && !is_digit(text[i])) return false;
  }
  return true;
}

// Checks beyond the range of each value: every `from` names a source, every source has a date, the ports form
// a range.
void check(const EffectiveConfig& effective, const Site& site, ErrorList& errors) {
  std::vector<std::string_view> sources;
  for (const auto& [name, source] : site.sources) {
    sources.push_back(name);
    const std::string key = format("sources.{}.date", name);
    if (!source.date.empty() && !is_date(source.date))
      errors.add(effective.origin(key),
                 format("{}: '{}' is not a date (such as 2026-04-18)", key, printable(source.date)));
  }
  for (const auto& [key, entry] : effective.entries()) {
    if (!key.ends_with(".from")) continue;
    const auto* from = std::get_if<std::string>(&entry.value);
    if (from == nullptr || site.sources.contains(*from)) continue;
    errors.add(entry.origin,
               format("{}: unknown source '{}'{}", key, printable(*from), suggestion(*from, sources)));
  }
  if (site.first_port && site.last_port && *site.last_port < *site.first_port) {
    errors.add(
        effective.origin("network.last_port"),
        format("network.last_port: {} is below network.first_port, {}", *site.last_port, *site.first_port));
  }
}

// Writes every set value, key by key, grouped.
class SiteWriter {
 public:
  explicit SiteWriter(const Site& site) : has_account_(site.from.contains("account")) {}

  template <typename T>
  void operator()(std::string_view key, const T& field) {
    if constexpr (requires { field.has_value(); }) {
      if (field) (*this)(key, *field);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      if (!field.empty()) put(key, config::yaml_text(config::Value(field)));
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      put(key, std::to_string(field));
    } else if (key != "account.needed" || has_account_) {
      put(key, config::yaml_text(config::Value(field)));
    }
  }
  std::string text() && {
    std::vector<std::string> groups;
    for (const auto& [path, value] : lines_) groups.push_back(path.substr(0, path.find('.')));
    const auto place = [&](const auto& line) {
      return std::find(groups.begin(), groups.end(), line.first.substr(0, line.first.find('.')));
    };
    std::stable_sort(lines_.begin(), lines_.end(),
                     [&](const auto& left, const auto& right) { return place(left) < place(right); });
    std::string text;
    std::vector<std::string> open;
    for (const auto& [path, value] : lines_) {
      const auto parts = split(path, '.');
      std::size_t same = 0;
      while (same + 1 < parts.size() && same < open.size() && open[same] == parts[same]) ++same;
      open.resize(same);
      for (std::size_t i = same; i + 1 < parts.size(); ++i) {
        text += std::string(2 * i, ' ') + std::string(parts[i]) + ":\n";
        open.emplace_back(parts[i]);
      }
      text += format("{}{}: {}\n", std::string(2 * (parts.size() - 1), ' '), parts.back(), value);
    }
    return text;
  }

 private:
  void put(std::string_view key, std::string value) { lines_.emplace_back(key, std::move(value)); }

  bool has_account_;
  std::vector<std::pair<std::string, std::string>> lines_;
};

template <typename Entry>
void write_map(SiteWriter& write, const std::string& group, const std::map<std::string, Entry>& entries) {
  for (const auto& [name, entry] : entries) visit_entry(write, format("{}.{}", group, name), entry);
}

}  // namespace

Result<Site> read_site(const std::string& name, std::string_view text) {
  const auto source = std::make_shared<const config::Source>(config::Layer::profile, name, std::string(text));
  ErrorList errors;
  const std::optional<config::Node> root = config::parse_yaml(source, errors);
  if (!root) return errors.status();
  config::Layers layers(site_schema(), {}, errors);
  layers.add_document({source, *root});
  const EffectiveConfig effective = layers.resolve();
  Site site;
  SiteReader read(effective);
  visit_site(read, site);
  read_map(effective, "sources", site.sources);
  read_map(effective, "partitions", site.partitions);
  read_map(effective, "qos", site.qos);
  read_map(effective, "nodes", site.nodes);
  read_map(effective, "storage", site.storage);
  read_map(effective, "opinions", site.opinions);
  for (std::string& cluster : site.clusters) cluster = to_lower(cluster);
  check(effective, site, errors);
  if (!errors.empty()) return errors.status();
  // In maps with fixed keys one source applies to all keys.
  for (const auto& [key, entry] : effective.entries()) {
    if (key.ends_with(".from") && std::count(key.begin(), key.end(), '.') == 1)
      site.from[key.substr(0, key.size() - 5)] = std::get<std::string>(entry.value);
  }
  return site;
}

Result<Site> load_site(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(text, config::read_config_file(file));
  STOKER_ASSIGN_OR_RETURN(site, read_site(printable(file.string()), text));
  site.file = file;
  return std::move(site);
}

std::string site_text(const Site& site) {
  SiteWriter write(site);
  visit_site(write, site);
  for (const auto& [group, from] : site.from) write(format("{}.from", group), from);
  write_map(write, "sources", site.sources);
  write_map(write, "partitions", site.partitions);
  write_map(write, "qos", site.qos);
  write_map(write, "nodes", site.nodes);
  write_map(write, "storage", site.storage);
  write_map(write, "opinions", site.opinions);
  return std::move(write).text();
}

}  // namespace stoker::job
