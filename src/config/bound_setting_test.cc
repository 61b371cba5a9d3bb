#include "config/bound_setting.h"

#include <array>
#include <cstdint>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml.h"

namespace stoker::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

enum class Mode { fast, exact };
constexpr std::array<std::string_view, 2> names_of(Mode) { return {"fast", "exact"}; }

struct Limits {
  std::optional<double> rate;
  std::vector<std::string> hosts;
};
struct Volume {
  std::uint32_t count = 0;
  std::optional<Path> path;
};
struct Config {
  std::string name = "unnamed";
  Mode mode = Mode::fast;
  Mode fallback_mode = Mode::fast;
  std::optional<Limits> limits;
  std::map<std::string, Volume> volumes;
  std::map<std::string, std::string> labels;
};

constexpr std::array kBoundSettings = {
    bind<&Config::name>({.key = "name", .unset = "unnamed", .help = "Name."}),
    bind<&Config::mode>({.key = "mode", .fallback = "exact", .help = "Mode."}),
    bind<&Config::fallback_mode>(
        {.key = "fallback_mode", .fallback = "fast", .choices = "fast", .help = "Fallback."}),
    bind<&Config::limits, &Limits::rate>(
        {.key = "limits.rate", .unset = "none", .at_most = 9, .help = "Rate."}),
    bind<&Config::limits, &Limits::hosts>({.key = "limits.hosts", .unset = "none", .help = "Hosts."}),
    bind<&Config::volumes, &Volume::count>({.key = "volumes.*.count", .fallback = "6", .help = "Count."}),
    bind<&Config::volumes, &Volume::path>({.key = "volumes.*.path", .unset = "none", .help = "Path."}),
    bind<&Config::labels>({.key = "labels.*", .unset = "none", .help = "Label."}),
};

std::span<const BoundSetting<Config>> bound_settings() { return kBoundSettings; }

// The config of a file in folder /folder; its errors are in `errors`.
Config read_config(std::string text, ErrorList& errors, bool has_limits = true) {
  static const std::vector<Setting> kDeclarations = declarations(bound_settings());
  static const Schema kSchema(kDeclarations);
  const auto source = std::make_shared<const Source>(Layer::file, "config.yaml", std::move(text));
  const auto root = parse_yaml(source, errors);
  Config config;
  if (!root) return config;
  Layers layers(kSchema, {}, errors);
  layers.add_document({source, *root});
  layers.add_flags(std::array<std::string, 1>{"volumes.second.path=data"});
  const EffectiveConfig effective = layers.resolve();
  if (has_limits) config.limits.emplace();
  read_all(bound_settings(), SettingReader(effective, "/folder", "/here", errors), config);
  return config;
}

constexpr std::string_view kConfigFile =
    "name: night\nmode: fast\nlimits: {rate: 3.5, hosts: [a, b]}\nvolumes: {first: {path: "
    "x/../y}}\nlabels: {no: '7'}\n";

TEST(BoundSetting, the_member_decides_type_and_choices) {
  EXPECT_EQ(kBoundSettings[0].setting.type, Type::text);
  EXPECT_EQ(kBoundSettings[1].setting.type, Type::choice);
  EXPECT_EQ(kBoundSettings[1].setting.choices, "fast|exact");
  EXPECT_EQ(kBoundSettings[2].setting.choices, "fast") << "a setting may allow fewer than all";
  EXPECT_EQ(kBoundSettings[3].setting.type, Type::number);
  EXPECT_EQ(kBoundSettings[4].setting.type, Type::texts);
  EXPECT_EQ(kBoundSettings[5].setting.type, Type::count);
  EXPECT_EQ(kBoundSettings[6].setting.type, Type::path);
}

TEST(BoundSetting, fills_members_at_the_end_of_maps_and_optionals) {
  ErrorList errors;
  const Config config = read_config(std::string(kConfigFile), errors);
  EXPECT_TRUE(errors.empty()) << errors.status().message();
  EXPECT_EQ(config.name, "night");
  EXPECT_EQ(config.mode, Mode::fast);
  EXPECT_EQ(config.limits->rate, 3.5);
  EXPECT_THAT(config.limits->hosts, ElementsAre("a", "b"));
  EXPECT_EQ(config.volumes.at("first").count, 6u) << "the default";
  EXPECT_THAT(config.labels, ElementsAre(Pair("no", "7")));
}

TEST(BoundSetting, a_path_starts_where_it_was_written) {
  ErrorList errors;
  const Config config = read_config(std::string(kConfigFile), errors);
  EXPECT_EQ(config.volumes.at("first").path, Path("/folder/y"));
  EXPECT_EQ(config.volumes.at("second").path, Path("/here/data"));
}

TEST(BoundSetting, a_path_with_a_tilde_is_an_error) {
  ErrorList errors;
  read_config("volumes: {first: {path: ~/data}}\n", errors);
  EXPECT_THAT(errors.status().message(), ::testing::HasSubstr("volumes.first.path: '~' is not expanded"));
}

TEST(BoundSetting, an_invalid_value_leaves_the_initial_one) {
  ErrorList errors;
  const Config config = read_config("mode: slow\nlimits: {rate: 10}\n", errors);
  EXPECT_FALSE(errors.empty());
  EXPECT_EQ(config.mode, Mode::fast);
  EXPECT_EQ(config.limits->rate, std::nullopt);
}

TEST(BoundSetting, an_absent_part_is_neither_filled_nor_written) {
  ErrorList errors;
  const Config config = read_config(std::string(kConfigFile), errors, /*has_limits=*/false);
  EXPECT_FALSE(config.limits);
  for (const auto& [key, value] : values_of(bound_settings(), config))
    EXPECT_FALSE(key.starts_with("limits")) << key;
}

TEST(BoundSetting, values_are_written_in_order_with_one_name_together) {
  ErrorList errors;
  const Config config = read_config(std::string(kConfigFile), errors);
  std::vector<std::string> lines;
  for (const auto& [key, value] : values_of(bound_settings(), config))
    lines.push_back(key + "=" + yaml_text(value));
  EXPECT_THAT(lines,
              ElementsAre("name=night", "mode=fast", "fallback_mode=fast", "limits.rate=3.5",
                          "limits.hosts=a b", "volumes.first.count=6", "volumes.first.path=/folder/y",
                          "volumes.second.count=6", "volumes.second.path=/here/data", "labels.no=\"7\""));
}

TEST(BoundSetting, a_name_without_a_value_is_not_written) {
  Config config;
  config.volumes["only"].count = 4;
  std::vector<std::string> keys;
  for (const auto& [key, value] : values_of(bound_settings(), config)) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("name", "mode", "fallback_mode", "volumes.only.count"));
}

}  // namespace
}  // namespace stoker::config
