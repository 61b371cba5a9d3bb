#include "sweep/file/trial_plan.h"

#include <limits>

#include "sweep/space/expression.h"

namespace stoker::sweep {

namespace {

using config::Member;
using config::Node;

std::uint32_t read_count(const Node& node, NodeValues& values, std::int64_t least) {
  constexpr std::int64_t kMost = 100'000;
  const std::int64_t count = values.whole(node, least);
  if (count > kMost) values.fail(node, format("is over {}", kMost));
  return static_cast<std::uint32_t>(std::min(count, kMost));
}

std::vector<std::string> read_words(const Node& node, NodeValues& values) {
  std::vector<std::string> words;
  for (const Value& value : values.values(node)) words.push_back(to_text(value));
  return words;
}

// {resources.time: 30m} is "resources.time=30m".
std::vector<std::string> read_settings(const Node& node, NodeValues& values) {
  std::vector<std::string> settings;
  if (node.kind != Node::Kind::map) {
    values.fail(node, "is not a map (set: {resources.time: 30m})");
    return settings;
  }
  for (const Member& member : node.members)
    settings.push_back(format("{}={}", member.key, values.text(member.value)));
  return settings;
}

void read_budget(const Node& node, NodeValues& values, TrialPlan& plan) {
  constexpr std::array<std::string_view, 2> kBudgetKeys = {"time", "gpu_hours"};
  values.expect_keys(node, kBudgetKeys);
  if (const Node* const time = node.find("time")) {
    const auto duration = parse_duration(values.text(*time));
    if (!duration) {
      values.fail(*time, duration.error().message());
    } else {
      plan.time = *duration;
    }
  }
  if (const Node* const hours = node.find("gpu_hours")) {
    plan.gpu_hours = values.number(*hours);
    if (!(*plan.gpu_hours > 0)) values.fail(*hours, "is not above 0");
  }
}

}  // namespace

TrialPlan read_trial_plan(const Node& root, NodeValues& values) {
  TrialPlan plan;
  if (const Node* const job = root.find("job")) plan.job = values.text(*job);
  if (const Node* const arguments = root.find("arguments")) plan.arguments = read_words(*arguments, values);
  if (const Node* const set = root.find("set")) plan.set = read_settings(*set, values);
  if (const Node* const place = root.find("place")) plan.place = values.choice<TrialPlace>(*place);
  if (const Node* const count = root.find("at_once")) plan.at_once = read_count(*count, values, 1);
  if (const Node* const count = root.find("retries")) plan.retries = read_count(*count, values, 0);
  if (const Node* const count = root.find("resumes")) plan.resumes = read_count(*count, values, 0);
  if (const Node* const budget = root.find("budget")) read_budget(*budget, values, plan);
  return plan;
}

}  // namespace stoker::sweep
