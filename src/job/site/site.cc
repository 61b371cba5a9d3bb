#include "job/site/site.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "config/bound_setting.h"
#include "config/layers.h"
#include "config/writer.h"
#include "config/yaml.h"
#include "job/site/site_settings.h"

namespace stoker::job {
namespace {

using config::EffectiveConfig;
using config::ErrorList;

bool is_date(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i != 4 && i != 7 && !is_digit(text[i])) return false;
  }
  return true;
}

void check_default_qos(const EffectiveConfig& effective, const Site& site, ErrorList& errors) {
  std::vector<std::string_view> known;
  for (const auto& [name, qos] : site.qos) known.push_back(name);
  for (const auto& [name, partition] : site.partitions) {
    if (!partition.default_qos || site.qos.contains(*partition.default_qos)) continue;
    const std::string key = format("partitions.{}.default_qos", name);
    const std::string& wanted = *partition.default_qos;
    errors.add(effective.origin(key),
               format("{}: unknown QoS '{}'{}", key, printable(wanted), suggestion(wanted, known)));
  }
}

// Checks beyond the range of each value: every `from` names a source, every source has a date, every default
// QoS is known, the ports form a range.
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
  check_default_qos(effective, site, errors);
  if (site.first_port && site.last_port && *site.last_port < *site.first_port) {
    errors.add(
        effective.origin("network.last_port"),
        format("network.last_port: {} is below network.first_port, {}", *site.last_port, *site.first_port));
  }
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
  config::read_all(site_settings(), config::SettingReader(effective, {}, {}, errors), site);
  for (std::string& cluster : site.clusters) cluster = to_lower(cluster);
  check(effective, site, errors);
  if (!errors.empty()) return errors.status();
  return site;
}

Result<Site> load_site(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(text, config::read_config_file(file));
  STOKER_ASSIGN_OR_RETURN(site, read_site(printable(file.string()), text));
  site.file = file;
  return std::move(site);
}

std::string site_text(const Site& site) {
  config::YamlWriter yaml;
  for (const auto& [key, value] : config::values_of(site_settings(), site)) yaml.put(key, value);
  return yaml.text();
}

}  // namespace stoker::job
