#include "sweep/file/parameters.h"

#include <array>
#include <cmath>

namespace stoker::sweep {

namespace {

using config::Member;
using config::Node;

bool is_whole_text(const Node& node) {
  std::int64_t number = 0;
  return node.kind == Node::Kind::scalar && !node.is_quoted && parse_number(node.text, &number);
}

// {params.kind: sgd} or {params.kind: [sgd, adam]}.
std::optional<Activation> read_when(const Node& node, NodeValues& values) {
  if (node.kind != Node::Kind::map || node.members.size() != 1) {
    values.fail(node, "when: expected one parameter and its values ({params.kind: sgd})");
    return std::nullopt;
  }
  return Activation{node.members[0].key, values.values(node.members[0].value)};
}

NumberRange read_range(const Node& map, NodeValues& values) {
  const Node* const low = map.find("min");
  const Node* const high = map.find("max");
  if (low == nullptr || high == nullptr) {
    values.fail(map, "neither values nor min and max");
    return {};
  }
  NumberRange range{.low = values.number(*low), .high = values.number(*high)};
  range.is_integer = is_whole_text(*low) && is_whole_text(*high);
  if (const Node* const step = map.find("step")) {
    range.step = values.number(*step);
    range.is_integer = range.is_integer && is_whole_text(*step);
  }
  if (const Node* const type = map.find("type")) {
    const std::string name = values.text(*type);
    if (name != "int" && name != "float")
      values.fail(*type, format("'{}' is unknown (one of: int, float)", printable(name)));
    range.is_integer = name == "int";
  }
  if (const Node* const log = map.find("log")) range.is_log = values.boolean(*log);
  return range;
}

Parameter read_parameter(const Member& member, NodeValues& values) {
  Parameter parameter{.name = member.key, .domain = Choices{}, .when = {}};
  const Node& node = member.value;
  if (node.kind == Node::Kind::null) {
    values.fail(member, "has no values");
  } else if (node.kind != Node::Kind::map) {
    parameter.domain = Choices{values.values(node)};
  } else {
    constexpr std::array<std::string_view, 7> kKeys = {"values", "min", "max", "log", "step", "type", "when"};
    values.expect_keys(node, kKeys);
    if (const Node* const list = node.find("values")) {
      parameter.domain = Choices{values.values(*list)};
      for (const Member& other : node.members) {
        if (other.key != "values" && other.key != "when") values.fail(other, "cannot be beside values");
      }
    } else {
      parameter.domain = read_range(node, values);
    }
    if (const Node* const when = node.find("when")) parameter.when = read_when(*when, values);
  }
  return parameter;
}

// Distributions of https://docs.wandb.ai/guides/sweeps/sweep-config-keys, the ones over a range.
struct WandbDistribution {
  std::string_view name;
  bool is_integer;
  bool is_log;
  bool is_exponent;  // min and max are natural logarithms
  bool has_step;     // q
};
constexpr std::array<WandbDistribution, 5> kDistributions = {{
    {"uniform", false, false, false, false},
    {"int_uniform", true, false, false, false},
    {"q_uniform", false, false, false, true},
    {"log_uniform", false, true, true, false},
    {"log_uniform_values", false, true, false, false},
}};

NumberRange read_wandb_range(const Node& map, NodeValues& values) {
  const Node* const name = map.find("distribution");
  if (name == nullptr) return read_range(map, values);
  const auto found = std::find_if(kDistributions.begin(), kDistributions.end(),
                                  [&](const WandbDistribution& known) { return known.name == name->text; });
  if (found == kDistributions.end()) {
    values.fail(*name, format("distribution {} has no equal here", printable(name->text)));
    return {};
  }
  NumberRange range = read_range(map, values);
  range.is_integer = found->is_integer;
  range.is_log = found->is_log;
  if (found->is_exponent) {
    range.low = std::exp(range.low);
    range.high = std::exp(range.high);
  }
  const Node* const step = map.find("q");
  if (found->has_step) range.step = step == nullptr ? 1 : values.number(*step);
  if (!found->has_step && step != nullptr)
    values.fail(*step, format("q: distribution {} has no step", name->text));
  return range;
}

void read_wandb_parameter(const std::string& name, const Member& member, NodeValues& values,
                          std::vector<Parameter>& all) {
  const Node& node = member.value;
  constexpr std::array<std::string_view, 7> kKeys = {"value",        "values", "min",       "max",
                                                     "distribution", "q",      "parameters"};
  values.expect_keys(node, kKeys);
  if (node.kind != Node::Kind::map) return;
  if (const Node* const nested = node.find("parameters")) {
    if (nested->kind != Node::Kind::map) return values.fail(*nested, "is not a map");
    for (const Member& inner : nested->members)
      read_wandb_parameter(name + "." + inner.key, inner, values, all);
    return;
  }
  Parameter parameter{.name = name, .domain = Choices{}, .when = {}};
  if (const Node* const one = node.find("value")) {
    parameter.domain = Choices{{values.value(*one)}};
  } else if (const Node* const list = node.find("values")) {
    parameter.domain = Choices{values.values(*list)};
  } else {
    parameter.domain = read_wandb_range(node, values);
  }
  all.push_back(std::move(parameter));
}

}  // namespace

std::vector<Parameter> read_space(const Node& map, NodeValues& values) {
  std::vector<Parameter> parameters;
  if (map.kind != Node::Kind::map) {
    values.fail(map, "is not a map of parameters");
    return parameters;
  }
  for (const Member& member : map.members) parameters.push_back(read_parameter(member, values));
  return parameters;
}

std::vector<Parameter> read_wandb_parameters(const Node& map, NodeValues& values) {
  std::vector<Parameter> parameters;
  if (map.kind != Node::Kind::map) {
    values.fail(map, "is not a map of parameters");
    return parameters;
  }
  for (const Member& member : map.members) read_wandb_parameter(member.key, member, values, parameters);
  return parameters;
}

}  // namespace stoker::sweep
