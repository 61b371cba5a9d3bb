#include "sweep/file/sweep_file.h"

#include <array>

#include "base/json/json.h"
#include "sweep/file/node_values.h"
#include "sweep/file/parameters.h"
#include "sweep/space/space_json.h"

namespace stoker::sweep {

namespace {

using config::Member;
using config::Node;
using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 15> kKeys = {
    "name",       "space", "constraints", "objectives", "metric",  "sampler", "seed",        "pruner",
    "skip_tried", "first", "trials",      "warm_start", "storage", "seeds",   "seed_average"};

Objective read_metric(const Node& map, NodeValues& values) {
  Objective objective;
  constexpr std::array<std::string_view, 3> kMetricKeys = {"name", "goal", "target"};
  values.expect_keys(map, kMetricKeys);
  if (const Node* const name = map.find("name")) objective.metric = values.text(*name);
  if (const Node* const goal = map.find("goal")) objective.goal = values.choice<Goal>(*goal);
  if (objective.metric.empty()) values.fail(map, "metric: no name");
  return objective;
}

std::vector<Objective> read_objectives(const Node& root, NodeValues& values) {
  std::vector<Objective> objectives;
  const Node* const map = root.find("objectives");
  const Node* const metric = root.find("metric");
  if (metric != nullptr) objectives.push_back(read_metric(*metric, values));
  if (map == nullptr && metric == nullptr)
    values.fail(root, "no objective (objectives: {val_acc: maximize})");
  if (map == nullptr) return objectives;
  if (metric != nullptr) values.fail(*map, "objectives and metric exclude each other");
  if (map->kind != Node::Kind::map) {
    values.fail(*map, "is not a map (objectives: {val_acc: maximize})");
    return objectives;
  }
  for (const Member& member : map->members)
    objectives.push_back({member.key, values.choice<Goal>(member.value)});
  return objectives;
}

Json json_of_node(const Node& node, NodeValues& values) {
  if (node.kind == Node::Kind::null) return {};
  if (node.kind == Node::Kind::scalar) return json_of(values.value(node));
  Json json = node.kind == Node::Kind::list ? Json::array() : Json::object();
  for (const Node& item : node.items) json.push_back(json_of_node(item, values));
  for (const Member& member : node.members) json[member.key] = json_of_node(member.value, values);
  return json;
}

// "tpe", "optuna.CmaEsSampler", {optuna: CmaEsSampler, sigma0: 0.1}.
void read_sampler(const Node& node, NodeValues& values, Definition& definition) {
  constexpr std::string_view kPrefix = "optuna.";
  if (node.kind == Node::Kind::map) {
    definition.sampler = SamplerKind::optuna;
    Json options = Json::object();
    for (const Member& member : node.members) {
      if (member.key == "seed") values.fail(member, "is the study's seed (seed: 1 beside sampler)");
      if (member.key == "optuna") {
        definition.optuna.name = values.text(member.value);
      } else {
        options[member.key] = json_of_node(member.value, values);
      }
    }
    definition.optuna.options = json_text(options);
  } else if (node.text.starts_with(kPrefix)) {
    definition.sampler = SamplerKind::optuna;
    definition.optuna.name = node.text.substr(kPrefix.size());
  } else {
    definition.sampler = values.choice<SamplerKind>(node);
  }
  if (definition.sampler == SamplerKind::optuna && definition.optuna.name.empty())
    values.fail(node, "names no sampler of Optuna (sampler: optuna.TPESampler)");
}

PrunerOptions read_pruner(const Node& node, NodeValues& values) {
  PrunerOptions options;
  if (node.kind == Node::Kind::scalar) {
    options.kind = values.choice<PrunerKind>(node);
    return options;
  }
  std::vector<std::string_view> keys = {"kind"};
  visit_options(options, [&](std::string_view name, const auto&, double) { keys.push_back(name); });
  values.expect_keys(node, keys);
  if (const Node* const kind = node.find("kind")) {
    options.kind = values.choice<PrunerKind>(*kind);
  } else {
    values.fail(node, "pruner: no kind");
  }
  visit_options(options, [&](std::string_view name, auto& field, double least) {
    const Node* const found = node.find(name);
    if (found == nullptr) return;
    if constexpr (is_whole_option<decltype(field)>) {
      field = values.whole(*found, static_cast<std::int64_t>(least));
    } else {
      field = values.number(*found);
    }
  });
  return options;
}

std::vector<Expression> read_constraints(const Node& node, NodeValues& values) {
  std::vector<Expression> constraints;
  const auto add = [&](const Node& item) {
    auto expression = Expression::parse(values.text(item));
    if (!expression) return values.fail(item, expression.error().message());
    constraints.push_back(*std::move(expression));
  };
  if (node.kind != Node::Kind::list) {
    add(node);
  } else {
    for (const Node& item : node.items) add(item);
  }
  return constraints;
}

// `seeds: 3` is 0, 1, 2.
std::vector<std::uint64_t> read_seeds(const Node& node, NodeValues& values) {
  constexpr std::int64_t kMostSeeds = 1'000;
  constexpr std::uint64_t kLargestSeed = 4'294'967'295;  // of NumPy's generators
  std::vector<std::uint64_t> seeds;
  if (node.kind == Node::Kind::scalar) {
    const std::int64_t count = values.whole(node, 1);
    if (count > kMostSeeds) values.fail(node, format("is over {}", kMostSeeds));
    for (std::int64_t i = 0; i < std::min(count, kMostSeeds); ++i)
      seeds.push_back(static_cast<std::uint64_t>(i));
    return seeds;
  }
  if (node.kind != Node::Kind::list || node.items.empty()) {
    values.fail(node, "is neither a number of seeds nor a list (seeds: [0, 1, 2])");
    return seeds;
  }
  for (const Node& item : node.items) {
    const auto seed = static_cast<std::uint64_t>(values.whole(item));
    if (seed > kLargestSeed) values.fail(item, format("is over {}", kLargestSeed));
    if (std::find(seeds.begin(), seeds.end(), seed) != seeds.end()) values.fail(item, "is a seed twice");
    seeds.push_back(seed);
  }
  return seeds;
}

void read_first(const Node& node, NodeValues& values, Definition& definition) {
  if (node.kind != Node::Kind::list) return values.fail(node, "is not a list of points");
  for (const Node& item : node.items) {
    if (item.kind != Node::Kind::map) {
      values.fail(item, "is not a point ({params.lr: 0.1})");
      continue;
    }
    Assignment assignment;
    for (const Member& member : item.members) assignment.emplace_back(member.key, values.value(member.value));
    auto point = definition.space.encode(assignment);
    if (!point) {
      values.fail(item, point.error().message());
      continue;
    }
    // A value that is not given is the middle of its range.
    definition.first.push_back(definition.space.normalized(*std::move(point)));
  }
}

// W&B: random, grid and bayes.
SamplerKind wandb_method(const Node& node, NodeValues& values) {
  const std::string method = values.text(node);
  if (method == "random") return SamplerKind::random;
  if (method == "grid") return SamplerKind::grid;
  if (method != "bayes")
    values.fail(node, format("method '{}' is unknown (one of: bayes, grid, random)", printable(method)));
  return SamplerKind::automatic;
}

// early_terminate: {type: hyperband, min_iter:, max_iter:, eta:, s:}.
PrunerOptions wandb_pruner(const Node& node, NodeValues& values) {
  constexpr std::array<std::string_view, 5> kTerminateKeys = {"type", "min_iter", "max_iter", "eta", "s"};
  values.expect_keys(node, kTerminateKeys);
  PrunerOptions options{.kind = PrunerKind::asha};
  options.reduction_factor = 3;
  if (const Node* const found = node.find("type"); found == nullptr || found->text != "hyperband")
    values.fail(node, "early_terminate: type is not hyperband");
  if (const Node* const eta = node.find("eta")) options.reduction_factor = values.whole(*eta, 2);
  if (const Node* const least = node.find("min_iter")) options.min_resource = values.whole(*least, 1);
  if (const Node* const most = node.find("max_iter")) {
    // Its first bracket: max / eta^s.
    const Node* const brackets = node.find("s");
    std::int64_t step = values.whole(*most, 1);
    for (std::int64_t i = brackets == nullptr ? 0 : values.whole(*brackets, 0); i > 0 && step > 1; --i)
      step /= options.reduction_factor;
    options.min_resource = std::max<std::int64_t>(step, 1);
  }
  return options;
}

void read_wandb(const Node& root, NodeValues& values, SweepFile& file, std::vector<Parameter>& parameters) {
  constexpr std::array<std::string_view, 12> kWandbKeys = {
      "name",    "parameters", "method",      "metric", "early_terminate", "run_cap",
      "program", "command",    "description", "entity", "project",         "controller"};
  values.expect_keys(root, kWandbKeys);
  parameters = read_wandb_parameters(*root.find("parameters"), values);
  if (const Node* const method = root.find("method")) file.definition.sampler = wandb_method(*method, values);
  if (const Node* const terminate = root.find("early_terminate"))
    file.definition.pruner = wandb_pruner(*terminate, values);
  if (const Node* const cap = root.find("run_cap"))
    file.definition.most_trials = static_cast<std::uint64_t>(values.whole(*cap, 1));
  for (std::string_view key : {"program", "command", "description", "entity", "project", "controller"}) {
    if (root.find(key) != nullptr) file.notes.push_back(format("{}: has no effect", key));
  }
  if (const Node* const metric = root.find("metric"); metric != nullptr && metric->find("target") != nullptr)
    file.notes.emplace_back("metric.target: has no effect");
}

void read_own(const Node& root, NodeValues& values, SweepFile& file, std::vector<Parameter>& parameters) {
  Definition& definition = file.definition;
  std::vector<std::string_view> keys(kKeys.begin(), kKeys.end());
  keys.insert(keys.end(), kTrialPlanKeys.begin(), kTrialPlanKeys.end());
  values.expect_keys(root, keys);
  file.plan = read_trial_plan(root, values);
  if (const Node* const space = root.find("space")) {
    parameters = read_space(*space, values);
  } else {
    values.fail(root, "no space (space: {params.lr: {min: 0.001, max: 1, log: true}})");
  }
  if (const Node* const sampler = root.find("sampler")) read_sampler(*sampler, values, definition);
  if (const Node* const seed = root.find("seed"))
    definition.seed = static_cast<std::uint64_t>(values.whole(*seed));
  if (const Node* const pruner = root.find("pruner")) definition.pruner = read_pruner(*pruner, values);
  if (const Node* const skip = root.find("skip_tried")) definition.skip_tried = values.boolean(*skip);
  if (const Node* const sources = root.find("warm_start")) {
    for (const Value& source : values.values(*sources)) definition.warm_start.push_back(to_text(source));
  }
  if (const Node* const seeds = root.find("seeds")) definition.seeds = read_seeds(*seeds, values);
  if (const Node* const average = root.find("seed_average")) {
    definition.seed_average = values.choice<SeedAverage>(*average);
    if (root.find("seeds") == nullptr) values.fail(*average, "needs seeds (seeds: 3)");
  }
  if (const Node* const trials = root.find("trials"))
    definition.most_trials = static_cast<std::uint64_t>(values.whole(*trials, 1));
}

// "sweeps/lr.yaml" is "lr".
std::string stem(std::string_view name) { return Path(name).stem().string(); }

}  // namespace

Result<SweepFile> parse_sweep(std::string_view name, std::string_view text) {
  config::ErrorList errors;
  const auto source =
      std::make_shared<const config::Source>(config::Layer::file, std::string(name), std::string(text));
  const auto root = config::parse_yaml(source, errors);
  if (!root) return errors.status();
  NodeValues values(source, errors);
  if (root->kind != Node::Kind::map) {
    values.fail(*root, "is not a map of keys (space, objectives, sampler)");
    return errors.status();
  }
  SweepFile file;
  Definition& definition = file.definition;
  std::vector<Parameter> parameters;
  if (const Node* const storage = root->find("storage")) file.storage = values.text(*storage);
  const Node* const given_name = root->find("name");
  definition.name = given_name == nullptr ? stem(name) : values.text(*given_name);
  if (root->find("parameters") != nullptr) {
    read_wandb(*root, values, file, parameters);
  } else {
    read_own(*root, values, file, parameters);
  }
  definition.objectives = read_objectives(*root, values);
  std::vector<Expression> constraints;
  const Node* const conditions = root->find("constraints");
  if (conditions != nullptr) constraints = read_constraints(*conditions, values);
  STOKER_RETURN_IF_ERROR(errors.status());
  auto space = Space::create(std::move(parameters), std::move(constraints));
  if (!space) return std::move(space).error().with_context(name);
  definition.space = *std::move(space);
  if (const Node* const first = root->find("first")) read_first(*first, values, definition);
  STOKER_RETURN_IF_ERROR(errors.status());
  STOKER_RETURN_IF_ERROR(check(definition).with_context(name));
  return file;
}

Result<SweepFile> load_sweep(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(text, config::read_config_file(file));
  return parse_sweep(file.string(), text);
}

}  // namespace stoker::sweep
