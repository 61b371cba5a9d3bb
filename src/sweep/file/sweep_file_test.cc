#include "sweep/file/sweep_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::sweep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SweepFile parsed(std::string_view text) {
  auto file = parse_sweep("lr.yaml", text);
  EXPECT_TRUE(file.ok()) << file.status().to_string();
  return file.ok() ? *std::move(file) : SweepFile{};
}

std::string error_of(std::string_view text) { return parse_sweep("lr.yaml", text).status().to_string(); }

TEST(SweepFile, every_key_is_read) {
  const SweepFile file = parsed(R"(
space:
  train.optimizer.lr: {min: 1.0e-4, max: 1, log: true}
  params.layers: {min: 2, max: 8}
  params.dropout: {min: 0, max: 0.5, step: 0.1}
  params.kind: [sgd, adam]
  params.momentum: {min: 0, max: 1, type: float, when: {params.kind: sgd}}
  params.width: {values: [32, 64], when: {params.kind: [sgd, adam]}}
  params.seed: 7
constraints: ["params.layers * params.width <= 256"]
objectives: {val_acc: maximize, seconds: minimize}
sampler: tpe
seed: 3
trials: 50
first:
  - {train.optimizer.lr: 0.1, params.layers: 3, params.kind: sgd, params.width: 32}
)");
  const Definition& definition = file.definition;
  EXPECT_EQ(definition.name, "lr");
  EXPECT_EQ(definition.sampler, SamplerKind::tpe);
  EXPECT_EQ(definition.seed, 3);
  EXPECT_EQ(definition.most_trials, 50);
  EXPECT_THAT(definition.objectives,
              ElementsAre(Objective{"val_acc", Goal::maximize}, Objective{"seconds", Goal::minimize}));
  const std::vector<Parameter>& parameters = definition.space.parameters();
  ASSERT_EQ(parameters.size(), 7);
  EXPECT_TRUE(std::get<NumberRange>(parameters[0].domain).is_log);
  EXPECT_TRUE(std::get<NumberRange>(parameters[1].domain).is_integer);
  EXPECT_EQ(std::get<NumberRange>(parameters[2].domain).step, 0.1);
  EXPECT_EQ(std::get<Choices>(parameters[3].domain).values.size(), 2);
  EXPECT_FALSE(std::get<NumberRange>(parameters[4].domain).is_integer);
  EXPECT_EQ(parameters[5].when->values.size(), 2);
  EXPECT_EQ(std::get<Choices>(parameters[6].domain).values.size(), 1);
  // Momentum is not given: the middle of its range.
  EXPECT_EQ(to_text(definition.space.decode(definition.first[0])),
            "train.optimizer.lr=0.1 params.layers=3 params.dropout=0.3 params.kind=sgd params.momentum=0.5 "
            "params.width=32 params.seed=7");
}

TEST(SweepFile, pruners_have_options) {
  const std::string head = "space: {a: [1, 2]}\nobjectives: {loss: minimize}\n";
  EXPECT_EQ(parsed(head + "pruner: median\n").definition.pruner.kind, PrunerKind::median);
  const PrunerOptions asha =
      parsed(head + "pruner: {kind: asha, min_resource: 2, reduction_factor: 3}\n").definition.pruner;
  EXPECT_EQ(asha.min_resource, 2);
  EXPECT_EQ(asha.reduction_factor, 3);
  EXPECT_THAT(error_of(head + "pruner: {kind: asha, rungs: 3}\n"),
              HasSubstr("lr.yaml:3:22: 'rungs' is no key here"));
  EXPECT_THAT(error_of(head + "pruner: {min_resource: 2}\n"), HasSubstr("pruner: no kind"));
  EXPECT_THAT(error_of("space: {a: [1]}\nobjectives: {a: minimize, b: minimize}\npruner: median\n"),
              HasSubstr("pruner median with 2 objectives (a pruner compares one)"));
}

TEST(SweepFile, errors_have_their_place) {
  const std::string objective = "objectives: {loss: minimize}\n";
  EXPECT_EQ(error_of(objective + "space:\n  lr: {min: 1}\n"),
            "lr.yaml:3:7: neither values nor min and max\n    3 |   lr: {min: 1}\n      |       ^");
  EXPECT_THAT(error_of(objective + "spaces: {lr: [1]}\n"),
              HasSubstr("'spaces' is no key here; did you mean 'space'?"));
  EXPECT_THAT(error_of(objective + "space: {lr: {min: a, max: 2}}\n"), HasSubstr("'a' is not a number"));
  EXPECT_THAT(error_of(objective + "space: {lr: {values: [1], max: 2}}\n"),
              HasSubstr("lr.yaml:2:27: cannot be beside values"));
  EXPECT_THAT(error_of(objective + "space: {lr: {min: 1, max: 2, type: real}}\n"),
              HasSubstr("'real' is unknown (one of: int, float)"));
  EXPECT_THAT(error_of(objective + "space: {lr: [[1]]}\n"), HasSubstr("is not a single value"));
  EXPECT_THAT(error_of(objective + "space: {lr: }\n"), HasSubstr("has no values"));
  EXPECT_THAT(error_of("space: {lr: [1]}\n"), HasSubstr("no objective (objectives: {val_acc: maximize})"));
  EXPECT_THAT(error_of("space: {lr: [1]}\nobjectives: {loss: down}\n"),
              HasSubstr("'down' is unknown (one of: minimize, maximize)"));
  EXPECT_THAT(error_of(objective + "space: {lr: [1]}\nsampler: bayes\n"),
              HasSubstr("'bayes' is unknown (one of: auto, gp, tpe, "));
  EXPECT_THAT(error_of(objective + "space: {lr: [1]}\nfirst: [{lr: 2}]\n"),
              HasSubstr("lr.yaml:3:9: parameter lr: 2 is none of its values"));
  EXPECT_THAT(error_of(objective + "space: {lr: {min: 2, max: 1}}\n"),
              HasSubstr("lr.yaml: parameter lr: min 2 is above max 1"));
  EXPECT_THAT(error_of(objective + "space: {lr: {min: 0, max: 1, type: float}}\nsampler: grid\n"),
              HasSubstr("sampler grid: lr has infinitely many values"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("is not a map of keys"));
  EXPECT_FALSE(parse_sweep("x.yaml", "").ok());
}

// https://docs.wandb.ai/guides/sweeps/define-sweep-configuration
TEST(SweepFile, wandbs_files_are_read) {
  const SweepFile file = parsed(R"(
program: train.py
name: first-sweep
method: bayes
metric: {name: val_loss, goal: minimize, target: 0.1}
early_terminate: {type: hyperband, min_iter: 3}
run_cap: 20
parameters:
  learning_rate: {min: 0.0001, max: 0.1}
  batch: {values: [16, 32]}
  epochs: {value: 5}
  decay: {distribution: log_uniform_values, min: 1.0e-6, max: 1.0e-2}
  rate: {distribution: log_uniform, min: -2, max: 0}
  units: {distribution: int_uniform, min: 1, max: 9}
  share: {distribution: q_uniform, q: 0.25, min: 0, max: 1}
  optimizer:
    parameters:
      momentum: {min: 0.0, max: 1.0}
)");
  const Definition& definition = file.definition;
  EXPECT_EQ(definition.name, "first-sweep");
  EXPECT_EQ(definition.sampler, SamplerKind::automatic);
  EXPECT_EQ(definition.pruner.kind, PrunerKind::asha);
  EXPECT_EQ(definition.pruner.min_resource, 3);
  EXPECT_EQ(definition.most_trials, 20);
  EXPECT_THAT(file.notes, ElementsAre("program: has no effect", "metric.target: has no effect"));
  const std::vector<Parameter>& parameters = definition.space.parameters();
  EXPECT_TRUE(std::get<NumberRange>(parameters[3].domain).is_log);
  EXPECT_NEAR(std::get<NumberRange>(parameters[4].domain).low, 0.1353, 1e-4);
  EXPECT_EQ(std::get<NumberRange>(parameters[6].domain).step, 0.25);
  EXPECT_EQ(parameters[7].name, "optimizer.momentum");
}

TEST(SweepFile, what_wandb_has_and_stoker_lacks_is_refused) {
  const std::string head = "method: bayes\nmetric: {name: loss}\nparameters:\n";
  EXPECT_THAT(error_of(head + "  a: {distribution: normal, mu: 0, sigma: 1}\n"),
              HasSubstr("distribution normal has no equal here"));
  EXPECT_THAT(error_of(head + "  a: {distribution: uniform, q: 2, min: 0, max: 1}\n"),
              HasSubstr("q: distribution uniform has no step"));
  EXPECT_THAT(error_of(head + "  a: {distribution: beta, min: 0, max: 1}\n"),
              HasSubstr("distribution beta has no equal here"));
  EXPECT_THAT(error_of(head + "  a: {values: [1, 2], probabilities: [0.1, 0.9]}\n"),
              HasSubstr("'probabilities' is no key here"));
}

}  // namespace
}  // namespace stoker::sweep
