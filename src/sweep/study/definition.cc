#include "sweep/study/definition.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/enum_names.h"
#include "base/json/json.h"
#include "sweep/space/space_json.h"

namespace stoker::sweep {

namespace {

using Json = nlohmann::ordered_json;

// Reading stops at the first thing that is not as written; its name is kept.
class Reader {
 public:
  explicit Reader(std::string_view subject) : subject_(subject) {}

  const Json* member(const Json& object, const char* name) {
    if (object.is_object()) {
      if (const auto found = object.find(name); found != object.end()) return &*found;
    }
    fail(name);
    return nullptr;
  }
  const Json* optional_member(const Json& object, const char* name) const {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
  }
  std::string text(const Json& object, const char* name) {
    const Json* const found = member(object, name);
    if (found != nullptr && found->is_string()) return found->get<std::string>();
    fail(name);
    return "";
  }
  double number(const Json& object, const char* name) {
    const Json* const found = member(object, name);
    if (found != nullptr && found->is_number()) return found->get<double>();
    fail(name);
    return 0;
  }
  std::int64_t whole(const Json& object, const char* name) {
    const Json* const found = member(object, name);
    if (found != nullptr && found->is_number_integer()) return found->get<std::int64_t>();
    fail(name);
    return 0;
  }
  std::uint64_t unsigned_number(const Json& object, const char* name) {
    const Json* const found = member(object, name);
    if (found != nullptr && found->is_number_unsigned()) return found->get<std::uint64_t>();
    fail(name);
    return 0;
  }
  bool boolean(const Json& object, const char* name) {
    const Json* const found = member(object, name);
    if (found != nullptr && found->is_boolean()) return found->get<bool>();
    fail(name);
    return false;
  }
  template <typename Enum>
  Enum choice(const Json& object, const char* name) {
    const auto found = enum_named<Enum>(text(object, name));
    if (!found) fail(name);
    return found.value_or(Enum{});
  }
  const Json& list(const Json& object, const char* name) {
    static const Json kEmpty = Json::array();
    const Json* const found = member(object, name);
    if (found != nullptr && found->is_array()) return *found;
    fail(name);
    return kEmpty;
  }
  Value value(const Json& json) {
    auto value = value_from_json(json);
    if (!value) fail("values");
    return std::move(value).value_or(false);
  }
  void fail(const char* name) {
    if (fault_.empty()) fault_ = name;
  }
  Status status() const { return fault_.empty() ? Status() : corrupt("{}: no valid '{}'", subject_, fault_); }

 private:
  std::string_view subject_;
  std::string fault_;
};

std::vector<Value> values_from(Reader& reader, const Json& list) {
  std::vector<Value> values;
  for (const Json& item : list) values.push_back(reader.value(item));
  return values;
}

Parameter parameter_from(Reader& reader, const Json& json) {
  Parameter parameter{.name = reader.text(json, "name"), .domain = {}, .when = {}};
  if (reader.optional_member(json, "values") != nullptr) {
    parameter.domain = Choices{values_from(reader, reader.list(json, "values"))};
  } else {
    parameter.domain = NumberRange{.low = reader.number(json, "min"),
                                   .high = reader.number(json, "max"),
                                   .is_integer = reader.boolean(json, "integer"),
                                   .is_log = reader.boolean(json, "log"),
                                   .step = reader.number(json, "step")};
  }
  if (const Json* const when = reader.optional_member(json, "when"))
    parameter.when =
        Activation{reader.text(*when, "name"), values_from(reader, reader.list(*when, "values"))};
  return parameter;
}

Json json_of(const PrunerOptions& options) {
  Json json = {{"kind", stoker::to_text(options.kind)}};
  visit_options(options, [&](const char* name, const auto& field, double) {
    if constexpr (requires { field.has_value(); }) {
      if (field) json[name] = *field;
    } else {
      json[name] = field;
    }
  });
  return json;
}

PrunerOptions pruner_from(Reader& reader, const Json& json) {
  PrunerOptions options;
  options.kind = reader.choice<PrunerKind>(json, "kind");
  visit_options(options, [&](const char* name, auto& field, double) {
    if constexpr (requires { field.has_value(); }) {
      if (reader.optional_member(json, name) == nullptr) return;
    }
    if constexpr (is_whole_option<decltype(field)>) {
      field = reader.whole(json, name);
    } else {
      field = reader.number(json, name);
    }
  });
  return options;
}

// An inactive parameter is null.
Json json_of(const Coordinates& point) {
  Json list = Json::array();
  for (const double coordinate : point) list.push_back(std::isnan(coordinate) ? Json() : Json(coordinate));
  return list;
}

Coordinates point_from(Reader& reader, const Json& list, const Space& space) {
  Coordinates point;
  for (const Json& item : list) point.push_back(item.is_number() ? item.get<double>() : kInactive);
  if (point.size() == space.parameters().size()) return space.normalized(std::move(point));
  reader.fail("first");
  return Coordinates(space.parameters().size(), kInactive);
}

// Each reader of version 1 reads a study that needs nothing newer.
int version_of(const Definition& definition) {
  if (!definition.seeds.empty()) return kStudyFormat;
  return definition.warm_start.empty() && definition.sampler != SamplerKind::optuna ? 1 : 2;
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

}  // namespace

std::vector<Goal> Definition::goals() const {
  std::vector<Goal> goals;
  for (const Objective& objective : objectives) goals.push_back(objective.goal);
  return goals;
}

std::string sampler_name(const Definition& definition) {
  if (definition.sampler == SamplerKind::optuna) return "optuna." + definition.optuna.name;
  return std::string(stoker::to_text(definition.sampler));
}

Status check(const Definition& definition) {
  if (!is_name(definition.name))
    return invalid("study '{}': a name has 1 to 64 letters, digits, '.', '_', '-'", definition.name);
  if (definition.objectives.empty()) return invalid("study {}: no objective", definition.name);
  std::set<std::string> metrics;
  for (const Objective& objective : definition.objectives) {
    if (objective.metric.empty()) return invalid("study {}: an objective without a metric", definition.name);
    if (!metrics.insert(objective.metric).second)
      return invalid("study {}: {} is an objective twice", definition.name, objective.metric);
  }
  if (definition.pruner.kind != PrunerKind::none && definition.objectives.size() > 1)
    return invalid("study {}: pruner {} with {} objectives (a pruner compares one)", definition.name,
                   stoker::to_text(definition.pruner.kind), definition.objectives.size())
        .cure("pruner: none");
  for (const Parameter& parameter : definition.space.parameters()) {
    const std::string& name = parameter.name;
    const bool is_seed = name == "seed" || name == "params.seed" || name == "train.seed";
    if (!definition.seeds.empty() && is_seed)
      return invalid("study {}: {} is a parameter and set by seeds", definition.name, name);
  }
  STOKER_RETURN_IF_ERROR(check(definition.pruner));
  if (definition.sampler == SamplerKind::optuna) return check(definition.optuna);
  return make_sampler(definition.sampler, definition.space, definition.seed).status();
}

std::string to_json(const Definition& definition) {
  Json objectives = Json::array();
  for (const Objective& objective : definition.objectives)
    objectives.push_back({{"metric", objective.metric}, {"goal", stoker::to_text(objective.goal)}});
  Json parameters = Json::array();
  for (const Parameter& parameter : definition.space.parameters()) parameters.push_back(json_of(parameter));
  Json constraints = Json::array();
  for (const Expression& constraint : definition.space.constraints())
    constraints.push_back(constraint.text());
  Json first = Json::array();
  for (const Coordinates& point : definition.first) first.push_back(json_of(point));
  Json json = {{"version", version_of(definition)},
               {"name", definition.name},
               {"id", definition.id},
               {"objectives", objectives},
               {"sampler", stoker::to_text(definition.sampler)},
               {"seed", definition.seed},
               {"pruner", json_of(definition.pruner)},
               {"skip_tried", definition.skip_tried},
               {"most_trials", definition.most_trials},
               {"space", parameters},
               {"constraints", constraints},
               {"first", first}};
  if (!definition.warm_start.empty())
    json["warm_start"] = {{"from", definition.warm_start}, {"trials", definition.prior_trials}};
  if (definition.sampler == SamplerKind::optuna)
    json["optuna"] = {{"sampler", definition.optuna.name},
                      {"options", parse_json<Json>(definition.optuna.options)}};
  if (!definition.seeds.empty()) {
    json["seeds"] = definition.seeds;
    json["seed_average"] = stoker::to_text(definition.seed_average);
  }
  return json_text(json, 2) + "\n";
}

Result<Definition> definition_from_json(std::string_view text, std::string_view subject) {
  const Json json = parse_json<Json>(text);
  if (!json.is_object()) return corrupt("{}: is not a JSON object", subject);
  Reader reader(subject);
  const std::int64_t version = reader.whole(json, "version");
  if (reader.status().ok() && version > kStudyFormat)
    return invalid("{}: version {} of a study (this Stoker reads up to {})", subject, version, kStudyFormat)
        .cure("pip install --upgrade stoker");
  Definition definition;
  definition.name = reader.text(json, "name");
  definition.id = reader.text(json, "id");
  for (const Json& row : reader.list(json, "objectives"))
    definition.objectives.push_back({reader.text(row, "metric"), reader.choice<Goal>(row, "goal")});
  definition.sampler = reader.choice<SamplerKind>(json, "sampler");
  if (definition.sampler == SamplerKind::optuna) {
    if (const Json* const optuna = reader.member(json, "optuna")) {
      definition.optuna.name = reader.text(*optuna, "sampler");
      const Json* const options = reader.member(*optuna, "options");
      if (options != nullptr && options->is_object()) definition.optuna.options = json_text(*options);
      if (options != nullptr && !options->is_object()) reader.fail("options");
    }
  }
  definition.seed = reader.unsigned_number(json, "seed");
  definition.most_trials = reader.unsigned_number(json, "most_trials");
  if (const Json* const pruner = reader.member(json, "pruner"))
    definition.pruner = pruner_from(reader, *pruner);
  definition.skip_tried = reader.boolean(json, "skip_tried");
  std::vector<Parameter> parameters;
  for (const Json& row : reader.list(json, "space")) parameters.push_back(parameter_from(reader, row));
  std::vector<Expression> constraints;
  for (const Json& row : reader.list(json, "constraints")) {
    auto expression =
        row.is_string() ? Expression::parse(row.get<std::string>()) : Result<Expression>(invalid(""));
    if (!expression) {
      reader.fail("constraints");
    } else {
      constraints.push_back(*std::move(expression));
    }
  }
  STOKER_RETURN_IF_ERROR(reader.status());
  auto space = Space::create(std::move(parameters), std::move(constraints));
  if (!space) return corrupt("{}: {}", subject, space.error().message());
  definition.space = *std::move(space);
  for (const Json& point : reader.list(json, "first"))
    definition.first.push_back(point_from(reader, point, definition.space));
  if (const Json* const warm_start = reader.optional_member(json, "warm_start")) {
    definition.prior_trials = reader.unsigned_number(*warm_start, "trials");
    for (const Json& source : reader.list(*warm_start, "from")) {
      if (!source.is_string()) reader.fail("warm_start");
      definition.warm_start.push_back(source.is_string() ? source.get<std::string>() : "");
    }
  }
  if (reader.optional_member(json, "seeds") != nullptr) {
    for (const Json& seed : reader.list(json, "seeds")) {
      if (!seed.is_number_unsigned()) reader.fail("seeds");
      definition.seeds.push_back(seed.is_number_unsigned() ? seed.get<std::uint64_t>() : 0);
    }
    definition.seed_average = reader.choice<SeedAverage>(json, "seed_average");
  }
  STOKER_RETURN_IF_ERROR(reader.status());
  if (const Status checked = check(definition); !checked.ok())
    return corrupt("{}: {}", subject, checked.message());
  return definition;
}

}  // namespace stoker::sweep
