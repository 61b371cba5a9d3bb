#include "config/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/writer.h"

namespace stoker::config {
namespace {

using testing::ElementsAre;

constexpr Setting kSettings[] = {
    {.key = "name", .unset = "none", .help = "The name."},
    {.key = "run", .type = Type::words, .unset = "none", .help = "The command."},
    {.key = "run.shell", .help = "The shell's command."},
    {.key = "train.epochs", .type = Type::count, .fallback = "10", .at_least = 1, .help = "Epochs."},
    {.key = "train.model", .type = Type::choice, .choices = "big|small", .help = "The model."},
    {.key = "train.rates", .type = Type::numbers, .unset = "none", .help = "Rates."},
    {.key = "params.*", .unset = "none", .help = "Yours."},
    {.key = "variables.*", .unset = "none", .help = "Variables.", .names = Names::as_written},
    {.key = "data.*.source", .type = Type::path, .help = "Where."},
    {.key = "data.*.split", .fallback = "all", .help = "Which."},
};
const Schema kSchema(kSettings);

struct Input {
  std::string file = "";
  std::vector<std::string> environment = {};
  std::vector<std::string> flags = {};
};

struct Outcome {
  EffectiveConfig effective;
  std::string errors;

  std::string text(std::string_view key) const {
    const auto found = effective.entries().find(key);
    return found == effective.entries().end() ? "-" : yaml_text(found->second.value);
  }
  std::string where(std::string_view key) const { return effective.origin(key).where(); }
};

Outcome resolve(const Input& input) {
  ErrorList errors;
  Layers layers(kSchema, {{"scratch", "/scratch"}}, errors);
  const auto source = std::make_shared<const Source>(Layer::file, "f.yaml", input.file);
  const std::optional<Node> root = parse_yaml(source, errors);
  if (root) layers.add_document({source, *root});
  layers.add_environment(input.environment);
  layers.add_flags(input.flags);
  EffectiveConfig effective = layers.resolve();
  return {std::move(effective), errors.status().to_string()};
}

std::string mistakes_in(std::string file) { return resolve({.file = std::move(file)}).errors; }

TEST(Layers, a_later_layer_overrides_and_has_its_origin) {
  const Outcome all =
      resolve({.file = "name: a\ntrain: {model: big, epochs: 2}\nparams: {lr: 1, mom: 2}\n",
               .environment = {"HOME=/x", "STOKER_SET_TRAIN_MODEL=small", "STOKER_SET_PARAMS_LR=5"},
               .flags = {"params.lr=6", "params.lr=7"}});
  EXPECT_EQ(all.errors, "ok");
  EXPECT_EQ(all.text("train.model"), "small");
  EXPECT_EQ(all.where("train.model"), "STOKER_SET_TRAIN_MODEL");
  EXPECT_EQ(all.text("params.lr"), "\"7\"");
  EXPECT_EQ(all.where("params.lr"), "--set params.lr");
  EXPECT_EQ(all.where("train.epochs"), "f.yaml:2:29");
  EXPECT_EQ(all.where("params.mom"), "f.yaml:3:22");
  EXPECT_EQ(resolve({.file = "name: a\n"}).text("train.epochs"), "10");
  EXPECT_EQ(resolve({.file = "name: a\n"}).where("train.epochs"), "default");
}

TEST(Layers, names_in_environment_variables_match_the_names_in_the_file) {
  const Outcome all = resolve(
      {.file = "params: {LR: 1}\nvariables: {A: 1, http_proxy: x}\n",
       .environment = {"STOKER_SET_PARAMS_LR=2", "STOKER_SET_PARAMS_MOM=3", "STOKER_SET_VARIABLES_FOO=y",
                       "STOKER_SET_VARIABLES_HTTP_PROXY=z", "STOKER_SET_VARIABLES_Bar=1"}});
  EXPECT_EQ(all.errors, "ok");
  EXPECT_THAT(all.effective.names("params"), ElementsAre("LR", "mom"));
  EXPECT_EQ(all.text("params.LR"), "\"2\"");
  EXPECT_THAT(all.effective.names("variables"), ElementsAre("A", "Bar", "FOO", "http_proxy"));
  EXPECT_EQ(all.text("variables.http_proxy"), "z");
}

TEST(Layers, null_removes_the_value_of_an_earlier_layer) {
  const Outcome all =
      resolve({.file = "name: a\ntrain: {model: big, epochs: 2}\n", .flags = {"train.epochs=null"}});
  EXPECT_EQ(all.errors, "ok");
  EXPECT_EQ(all.text("train.epochs"), "10");
  const Outcome none = resolve({.file = "name: a\ntrain: {epochs: 2}\n", .flags = {"train=null"}});
  EXPECT_EQ(none.errors, "ok") << "train.model is not required where train is not written";
  EXPECT_FALSE(none.effective.has_group("train"));
}

TEST(Layers, a_value_and_a_map_of_the_same_name_replace_each_other) {
  const Outcome shell = resolve({.file = "run: a b\n", .flags = {"run.shell=c | d"}});
  EXPECT_EQ(shell.errors, "ok");
  EXPECT_EQ(shell.text("run"), "-");
  EXPECT_EQ(shell.text("run.shell"), "\"c | d\"");
  const Outcome plain = resolve({.file = "run: {shell: x}\n", .flags = {"run=a b"}});
  EXPECT_EQ(plain.errors, "ok");
  EXPECT_EQ(plain.text("run"), "a b");
  EXPECT_EQ(plain.text("run.shell"), "-");
}

TEST(Layers, user_defined_names_are_listed_and_get_defaults) {
  const Outcome all =
      resolve({.file = "data: {b: {source: x}, a: {source: y}}\n", .flags = {"data.c.source=z"}});
  EXPECT_EQ(all.errors, "ok");
  EXPECT_THAT(all.effective.names("data"), ElementsAre("a", "b", "c"));
  EXPECT_EQ(all.text("data.c.split"), "all");
}

TEST(Layers, expands_references_after_all_layers) {
  const Outcome all = resolve({.file = "name: x-${params.a}-$${params.a}\n"
                                       "params: {a: '${params.b}!', b: one two}\n"
                                       "run: echo ${params.b} '${scratch}/x' ${train.epochs}\n"
                                       "train: {model: big, epochs: \"${params.n}\"}\n",
                               .flags = {"params.b=three  four", "params.n=5"}});
  EXPECT_EQ(all.errors, "ok");
  EXPECT_EQ(*all.effective.find<std::string>("name"), "x-three  four!-${params.a}");
  EXPECT_EQ(*all.effective.find<std::vector<std::string>>("run"),
            (std::vector<std::string>{"echo", "three  four", "/scratch/x", "5"}));
  EXPECT_EQ(*all.effective.find<std::int64_t>("train.epochs"), 5);
}

TEST(Layers, reports_bad_references_with_their_position) {
  EXPECT_EQ(mistakes_in("params: {a: \"${params.b}\", b: \"x${params.a}\"}\n"),
            "f.yaml:1:33: '${params.a}' is a circular reference (params.a -> params.b -> params.a)\n"
            "    1 | params: {a: \"${params.b}\", b: \"x${params.a}\"}\n"
            "      |                                 ^");
  EXPECT_EQ(mistakes_in("name: a ${parms.lr}\nparams: {lr: 1}\n"),
            "f.yaml:1:9: '${parms.lr}' is not a setting; did you mean 'params.lr'?\n"
            "    1 | name: a ${parms.lr}\n"
            "      |         ^");
  EXPECT_EQ(mistakes_in("run: {shell: 'echo ${HOME}'}\n"),
            "f.yaml:1:20: '${HOME}' is not a setting; write $${ for a literal ${\n"
            "    1 | run: {shell: 'echo ${HOME}'}\n"
            "      |                    ^");
  EXPECT_EQ(mistakes_in("name: ${params.a\n"),
            "f.yaml:1:7: '${' has no closing '}'; write $${ for a literal ${\n"
            "    1 | name: ${params.a\n"
            "      |       ^");
  EXPECT_EQ(mistakes_in("name: ${train.model}\n"),
            "f.yaml:1:7: '${train.model}' is not set\n"
            "    1 | name: ${train.model}\n"
            "      |       ^");
  EXPECT_EQ(mistakes_in("name: ${train.rates}\ntrain: {model: big, rates: [1]}\n"),
            "f.yaml:1:7: '${train.rates}' is not a single value\n"
            "    1 | name: ${train.rates}\n"
            "      |       ^");
}

TEST(Layers, refuses_references_that_grow_without_bound) {
  std::string file = "params:\n  a0: 0123456789\n";
  for (int i = 1; i < 20; ++i) file += format("  a{}: ${{params.a{}}}${{params.a{}}}\n", i, i - 1, i - 1);
  EXPECT_TRUE(mistakes_in(file).find("longer than 64 KiB after its references are expanded") !=
              std::string::npos);
  std::string chain = "params:\n  a0: x\n";
  for (int i = 1; i < 5000; ++i) chain += format("  z{}: ${{params.z{}}}\n", i, i + 1);
  EXPECT_TRUE(mistakes_in(chain).find("references nested more than 32 deep") != std::string::npos);
}

TEST(Layers, unknown_keys_have_a_suggestion) {
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
            "f.yaml:1:1: unknown key 'train.epochs'; write a path as nested keys\n"
            "    1 | train.epochs: 3\n"
            "      | ^");
}

TEST(Layers, reports_wrong_shapes) {
  EXPECT_EQ(mistakes_in("- a\n"),
            "f.yaml:1:1: expected keys and values, such as 'name: resnet50'\n"
            "    1 | - a\n"
            "      | ^");
  EXPECT_EQ(mistakes_in(""), "f.yaml:1:1: the file is empty");
  EXPECT_EQ(mistakes_in("data: {train: /x}\n"),
            "f.yaml:1:15: data.train: expected keys and values, such as 'train: {source: ...}'\n"
            "    1 | data: {train: /x}\n"
            "      |               ^");
  EXPECT_EQ(mistakes_in("name: {a: b}\n"),
            "f.yaml:1:7: name: expected text, got keys and values\n"
            "    1 | name: {a: b}\n"
            "      |       ^");
  EXPECT_EQ(mistakes_in("params: {a b: 1}\n"),
            "f.yaml:1:10: 'a b' is not a name: letters, digits, '_' and '-' only, at most 64\n"
            "    1 | params: {a b: 1}\n"
            "      |          ^");
}

TEST(Layers, reports_a_missing_setting_at_its_map) {
  EXPECT_EQ(mistakes_in("train: {epochs: 3}\ndata: {x: {split: a}}\n"),
            "f.yaml:1:1: train.model is missing: The model.\n"
            "    1 | train: {epochs: 3}\n"
            "      | ^\n"
            "f.yaml:2:8: data.x.source is missing: Where.\n"
            "    2 | data: {x: {split: a}}\n"
            "      |        ^");
}

TEST(Layers, errors_in_flags_and_variables_name_them) {
  EXPECT_EQ(
      resolve({.file = "name: a\n",
               .environment = {"STOKER_SET_TRAIN_EPOHCS=3", "STOKER_SET_TRAIN_EPOCHS=x", "STOKER_SET_NAME"},
               .flags = {"train.epochs", "=3", "trian.epochs=3", "train=3", "params.a b=1",
                         "train.model=bigg", "name=a\xff"}})
          .errors,
      "STOKER_SET_TRAIN_EPOHCS: unknown setting; did you mean 'STOKER_SET_TRAIN_EPOCHS'?\n"
      "STOKER_SET_TRAIN_EPOCHS: train.epochs: 'x' is not a whole number\n"
      "--set train.epochs: expected KEY.PATH=VALUE, such as --set params.lr=0.2\n"
      "--set : expected KEY.PATH=VALUE, such as --set params.lr=0.2\n"
      "--set trian.epochs: unknown key 'trian'; did you mean 'train'?\n"
      "--set train: train is a group; set one of its keys, such as train.epochs\n"
      "--set params.a b: unknown key 'a b'\n"
      "--set name: byte 0xff is not UTF-8; save the file as UTF-8\n"
      "--set train.model: train.model: unknown value 'bigg'; did you mean 'big'?");
}

TEST(Layers, a_flag_accepts_a_list) {
  const Outcome all = resolve({.file = "train: {model: big}\n", .flags = {"train.rates=[0.1, 0.2]"}});
  EXPECT_EQ(all.errors, "ok");
  EXPECT_EQ(all.text("train.rates"), "[0.1, 0.2]");
}

TEST(Writer, nests_keys_and_appends_comments) {
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

TEST(Writer, generates_the_table_from_the_declarations) {
  constexpr Setting kTwo[] = {
      {.key = "a.b",
       .type = Type::choice,
       .fallback = "x",
       .choices = "x|y",
       .help = "First.",
       .note = "See a."},
      {.key = "c", .type = Type::count, .unset = "as many as there are", .at_least = 1, .help = "Second."},
      {.key = "d", .help = "Third."}};
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
