#include "config/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/writer.h"

namespace stoker::config {
namespace {

using testing::ElementsAre;

constexpr Setting kSettings[] = {
    {.key = "name", .unset = "none", .what = "The name."},
    {.key = "run", .type = Type::words, .unset = "none", .what = "The command."},
    {.key = "run.shell", .what = "The shell's command."},
    {.key = "train.epochs", .type = Type::count, .fallback = "10", .at_least = 1, .what = "Epochs."},
    {.key = "train.model", .type = Type::choice, .choices = "big|small", .what = "The model."},
    {.key = "train.rates", .type = Type::numbers, .unset = "none", .what = "Rates."},
    {.key = "params.*", .unset = "none", .what = "Yours."},
    {.key = "variables.*", .unset = "none", .what = "Variables.", .names = Names::as_written},
    {.key = "data.*.source", .type = Type::path, .what = "Where."},
    {.key = "data.*.split", .fallback = "all", .what = "Which."},
};
const Schema kSchema(kSettings);

struct Input {
  std::string file = "";
  std::vector<std::string> environment = {};
  std::vector<std::string> flags = {};
};

struct Outcome {
  Effective effective;
  std::string mistakes;

  std::string text(std::string_view key) const {
    const auto found = effective.entries().find(key);
    return found == effective.entries().end() ? "-" : yaml_text(found->second.value);
  }
  std::string where(std::string_view key) const { return effective.origin(key).where(); }
};

Outcome resolve(const Input& input) {
  Mistakes mistakes;
  Layers layers(kSchema, {{"scratch", "/scratch"}}, mistakes);
  const auto source = std::make_shared<const Source>(Layer::file, "f.yaml", input.file);
  const std::optional<Node> root = parse_yaml(source, mistakes);
  if (root) layers.add_document({source, *root});
  layers.add_environment(input.environment);
  layers.add_flags(input.flags);
  Effective effective = layers.resolve();
  return {std::move(effective), mistakes.status().to_string()};
}

std::string mistakes_in(std::string file) { return resolve({.file = std::move(file)}).mistakes; }

TEST(Layers, a_stronger_layer_wins_and_tells_its_origin) {
  const Outcome all =
      resolve({.file = "name: a\ntrain: {model: big, epochs: 2}\nparams: {lr: 1, mom: 2}\n",
               .environment = {"HOME=/x", "STOKER_SET_TRAIN_MODEL=small", "STOKER_SET_PARAMS_LR=5"},
               .flags = {"params.lr=6", "params.lr=7"}});
  EXPECT_EQ(all.mistakes, "ok");
  EXPECT_EQ(all.text("train.model"), "small");
  EXPECT_EQ(all.where("train.model"), "STOKER_SET_TRAIN_MODEL");
  EXPECT_EQ(all.text("params.lr"), "\"7\"");
  EXPECT_EQ(all.where("params.lr"), "--set params.lr");
  EXPECT_EQ(all.where("train.epochs"), "f.yaml:2:29");
  EXPECT_EQ(all.where("params.mom"), "f.yaml:3:22");
  EXPECT_EQ(resolve({.file = "name: a\n"}).text("train.epochs"), "10");
  EXPECT_EQ(resolve({.file = "name: a\n"}).where("train.epochs"), "default");
}

TEST(Layers, a_name_in_an_environment_variable_is_that_of_the_file_or_as_its_map_has_names) {
  const Outcome all = resolve(
      {.file = "params: {LR: 1}\nvariables: {A: 1, http_proxy: x}\n",
       .environment = {"STOKER_SET_PARAMS_LR=2", "STOKER_SET_PARAMS_MOM=3", "STOKER_SET_VARIABLES_FOO=y",
                       "STOKER_SET_VARIABLES_HTTP_PROXY=z", "STOKER_SET_VARIABLES_Bar=1"}});
  EXPECT_EQ(all.mistakes, "ok");
  EXPECT_THAT(all.effective.names("params"), ElementsAre("LR", "mom"));
  EXPECT_EQ(all.text("params.LR"), "\"2\"");
  EXPECT_THAT(all.effective.names("variables"), ElementsAre("A", "Bar", "FOO", "http_proxy"));
  EXPECT_EQ(all.text("variables.http_proxy"), "z");
}

TEST(Layers, null_takes_back_what_a_weaker_layer_said) {
  const Outcome all =
      resolve({.file = "name: a\ntrain: {model: big, epochs: 2}\n", .flags = {"train.epochs=null"}});
  EXPECT_EQ(all.mistakes, "ok");
  EXPECT_EQ(all.text("train.epochs"), "10");
  const Outcome none = resolve({.file = "name: a\ntrain: {epochs: 2}\n", .flags = {"train=null"}});
  EXPECT_EQ(none.mistakes, "ok") << "train.model is not required where train is not written";
  EXPECT_FALSE(none.effective.has_group("train"));
}

TEST(Layers, a_value_and_a_map_of_the_same_name_replace_each_other) {
  const Outcome shell = resolve({.file = "run: a b\n", .flags = {"run.shell=c | d"}});
  EXPECT_EQ(shell.mistakes, "ok");
  EXPECT_EQ(shell.text("run"), "-");
  EXPECT_EQ(shell.text("run.shell"), "\"c | d\"");
  const Outcome plain = resolve({.file = "run: {shell: x}\n", .flags = {"run=a b"}});
  EXPECT_EQ(plain.mistakes, "ok");
  EXPECT_EQ(plain.text("run"), "a b");
  EXPECT_EQ(plain.text("run.shell"), "-");
}

TEST(Layers, names_people_chose_are_listed_and_get_defaults) {
  const Outcome all =
      resolve({.file = "data: {b: {source: x}, a: {source: y}}\n", .flags = {"data.c.source=z"}});
  EXPECT_EQ(all.mistakes, "ok");
  EXPECT_THAT(all.effective.names("data"), ElementsAre("a", "b", "c"));
  EXPECT_EQ(all.text("data.c.split"), "all");
}

TEST(Layers, references_are_replaced_after_all_layers) {
  const Outcome all = resolve({.file = "name: x-${params.a}-$${params.a}\n"
                                       "params: {a: '${params.b}!', b: one two}\n"
                                       "run: echo ${params.b} '${scratch}/x' ${train.epochs}\n"
                                       "train: {model: big, epochs: \"${params.n}\"}\n",
                               .flags = {"params.b=three  four", "params.n=5"}});
  EXPECT_EQ(all.mistakes, "ok");
  EXPECT_EQ(*all.effective.find<std::string>("name"), "x-three  four!-${params.a}");
  EXPECT_EQ(*all.effective.find<std::vector<std::string>>("run"),
            (std::vector<std::string>{"echo", "three  four", "/scratch/x", "5"}));
  EXPECT_EQ(*all.effective.find<std::int64_t>("train.epochs"), 5);
}

TEST(Layers, bad_references_are_told_at_their_place) {
  EXPECT_EQ(mistakes_in("params: {a: \"${params.b}\", b: \"x${params.a}\"}\n"),
            "f.yaml:1:33: '${params.a}' refers back to itself (params.a -> params.b -> params.a)\n"
            "    1 | params: {a: \"${params.b}\", b: \"x${params.a}\"}\n"
            "      |                                 ^");
  EXPECT_EQ(mistakes_in("name: a ${parms.lr}\nparams: {lr: 1}\n"),
            "f.yaml:1:9: '${parms.lr}' names no setting; did you mean 'params.lr'?\n"
            "    1 | name: a ${parms.lr}\n"
            "      |         ^");
  EXPECT_EQ(mistakes_in("run: {shell: 'echo ${HOME}'}\n"),
            "f.yaml:1:20: '${HOME}' names no setting; write $${ for the characters themselves\n"
            "    1 | run: {shell: 'echo ${HOME}'}\n"
            "      |                    ^");
  EXPECT_EQ(mistakes_in("name: ${params.a\n"),
            "f.yaml:1:7: '${' is never closed; write $${ for the characters themselves\n"
            "    1 | name: ${params.a\n"
            "      |       ^");
  EXPECT_EQ(mistakes_in("name: ${train.model}\n"),
            "f.yaml:1:7: '${train.model}' is not set\n"
            "    1 | name: ${train.model}\n"
            "      |       ^");
  EXPECT_EQ(mistakes_in("name: ${train.rates}\ntrain: {model: big, rates: [1]}\n"),
            "f.yaml:1:7: '${train.rates}' is no single value\n"
            "    1 | name: ${train.rates}\n"
            "      |       ^");
}

TEST(Layers, references_that_grow_without_end_are_refused) {
  std::string file = "params:\n  a0: 0123456789\n";
  for (int i = 1; i < 20; ++i) file += format("  a{}: ${{params.a{}}}${{params.a{}}}\n", i, i - 1, i - 1);
  EXPECT_TRUE(mistakes_in(file).find("longer than 64 KiB once its references are replaced") !=
              std::string::npos);
  std::string chain = "params:\n  a0: x\n";
  for (int i = 1; i < 5000; ++i) chain += format("  z{}: ${{params.z{}}}\n", i, i + 1);
  EXPECT_TRUE(mistakes_in(chain).find("references nested more than 32 deep") != std::string::npos);
}

TEST(Layers, unknown_keys_come_with_a_suggestion) {
  EXPECT_EQ(mistakes_in("trian: {}\nepochs: 3\ntrain: {model: big, nodes: 2}\nzzz: 1\n"),
            "f.yaml:1:1: unknown key 'trian'; did you mean 'train'?\n"
            "    1 | trian: {}\n"
            "      | ^\n"
            "f.yaml:2:1: unknown key 'epochs'; did you mean 'train.epochs'?\n"
            "    2 | epochs: 3\n"
            "      | ^\n"
            "f.yaml:3:21: unknown key 'nodes' (one of: epochs, model, rates)\n"
            "    3 | train: {model: big, nodes: 2}\n"
            "      |                     ^\n"
            "f.yaml:4:1: unknown key 'zzz' (one of: name, run, train, params, variables, data)\n"
            "    4 | zzz: 1\n"
            "      | ^");
  EXPECT_EQ(mistakes_in("train.epochs: 3\n"),
            "f.yaml:1:1: unknown key 'train.epochs'; a path is written as nested keys\n"
            "    1 | train.epochs: 3\n"
            "      | ^");
}

TEST(Layers, wrong_shapes_are_told) {
  EXPECT_EQ(mistakes_in("- a\n"),
            "f.yaml:1:1: wants keys and values, as in 'name: resnet50'\n"
            "    1 | - a\n"
            "      | ^");
  EXPECT_EQ(mistakes_in(""), "f.yaml:1:1: the file is empty");
  EXPECT_EQ(mistakes_in("data: {train: /x}\n"),
            "f.yaml:1:15: data.train: wants keys and values, as in 'train: {source: ...}'\n"
            "    1 | data: {train: /x}\n"
            "      |               ^");
  EXPECT_EQ(mistakes_in("name: {a: b}\n"),
            "f.yaml:1:7: name: wants text, got keys and values\n"
            "    1 | name: {a: b}\n"
            "      |       ^");
  EXPECT_EQ(mistakes_in("params: {a b: 1}\n"),
            "f.yaml:1:10: 'a b' is no name: letters, digits, '_' and '-' only, at most 64\n"
            "    1 | params: {a b: 1}\n"
            "      |          ^");
}

TEST(Layers, a_required_setting_is_missing_where_its_map_is) {
  EXPECT_EQ(mistakes_in("train: {epochs: 3}\ndata: {x: {split: a}}\n"),
            "f.yaml:1:1: train.model is missing: The model.\n"
            "    1 | train: {epochs: 3}\n"
            "      | ^\n"
            "f.yaml:2:8: data.x.source is missing: Where.\n"
            "    2 | data: {x: {split: a}}\n"
            "      |        ^");
}

TEST(Layers, mistakes_in_flags_and_variables_name_them) {
  EXPECT_EQ(
      resolve({.file = "name: a\n",
               .environment = {"STOKER_SET_TRAIN_EPOHCS=3", "STOKER_SET_TRAIN_EPOCHS=x", "STOKER_SET_NAME"},
               .flags = {"train.epochs", "=3", "trian.epochs=3", "train=3", "params.a b=1",
                         "train.model=bigg", "name=a\xff"}})
          .mistakes,
      "STOKER_SET_TRAIN_EPOHCS: no such setting; did you mean 'STOKER_SET_TRAIN_EPOCHS'?\n"
      "STOKER_SET_TRAIN_EPOCHS: train.epochs: 'x' is not a whole number\n"
      "--set train.epochs: wants KEY.PATH=VALUE, as in --set params.lr=0.2\n"
      "--set : wants KEY.PATH=VALUE, as in --set params.lr=0.2\n"
      "--set trian.epochs: unknown key 'trian'; did you mean 'train'?\n"
      "--set train: train has keys of its own; set one of them, as in train.epochs\n"
      "--set params.a b: unknown key 'a b'\n"
      "--set name: byte 0xff is not UTF-8; save the file as UTF-8\n"
      "--set train.model: train.model: unknown value 'bigg'; did you mean 'big'?");
}

TEST(Layers, a_flag_takes_a_list) {
  const Outcome all = resolve({.file = "train: {model: big}\n", .flags = {"train.rates=[0.1, 0.2]"}});
  EXPECT_EQ(all.mistakes, "ok");
  EXPECT_EQ(all.text("train.rates"), "[0.1, 0.2]");
}

TEST(Writer, nests_keys_and_puts_comments_behind) {
  YamlWriter writer;
  writer.put("a", std::string("x"), "default");
  writer.put("b.c", std::int64_t{1}, "f.yaml:1:1");
  writer.put("b.d.e", true);
  writer.put("b.f", std::vector<double>{1, 2});
  EXPECT_EQ(writer.text(),
            "a: x                                        # default\n"
            "b:\n"
            "  c: 1                                      # f.yaml:1:1\n"
            "  d:\n"
            "    e: true\n"
            "  f: [1, 2]\n");
}

TEST(Writer, the_table_comes_from_the_declarations) {
  constexpr Setting kTwo[] = {
      {.key = "a.b",
       .type = Type::choice,
       .fallback = "x",
       .choices = "x|y",
       .what = "First.",
       .see = "See a."},
      {.key = "c", .type = Type::count, .unset = "as many as there are", .at_least = 1, .what = "Second."},
      {.key = "d", .what = "Third."}};
  EXPECT_EQ(text_table(Schema(kTwo)),
            "a.b  First. See a.\n"
            "     one of x, y; default x\n"
            "c    Second.\n"
            "     whole number, at least 1; as many as there are\n"
            "d    Third.\n"
            "     text; required\n");
}

}  // namespace
}  // namespace stoker::config
