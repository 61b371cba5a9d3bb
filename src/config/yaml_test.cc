#include "config/yaml.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::config {
namespace {

std::shared_ptr<const Source> source_of(std::string_view text) {
  return std::make_shared<const Source>(Layer::file, "job.yaml", std::string(text));
}

std::string mistakes_of(std::string_view text, const Limits& limits = {}) {
  ErrorList errors;
  parse_yaml(source_of(text), errors, limits);
  return errors.status().to_string();
}

Node parsed(std::string_view text) {
  ErrorList errors;
  const std::optional<Node> root = parse_yaml(source_of(text), errors);
  EXPECT_TRUE(errors.empty()) << errors.status().to_string();
  return root.value_or(Node{});
}

TEST(Yaml, keeps_the_position_of_keys_and_values) {
  const std::string_view text = "a: 1\nbö: {c: [x, 'y z']}\n";
  const Node root = parsed(text);
  ASSERT_EQ(root.members.size(), 2u);
  const Member& second = root.members[1];
  EXPECT_EQ(second.key, "bö");
  const Node* list = second.value.find("c");
  ASSERT_NE(list, nullptr);
  const Node& quoted = list->items.at(1);
  EXPECT_EQ(quoted.text, "y z");
  EXPECT_TRUE(quoted.is_quoted);
  EXPECT_FALSE(list->items.at(0).is_quoted);
  const auto source = source_of(text);
  EXPECT_EQ(source->mark(second.offset), (Mark{2, 1}));
  EXPECT_EQ(source->mark(quoted.offset), (Mark{2, 13})) << "columns count characters, not bytes";
  EXPECT_EQ(text.substr(quoted.offset, quoted.end - quoted.offset), "'y z'");
}

TEST(Yaml, plain_empty_is_null_and_quoted_empty_is_text) {
  const Node root = parsed("a:\nb: ~\nc: null\nd: ''\ne: \"null\"\n");
  for (std::string_view key : {"a", "b", "c"}) EXPECT_EQ(root.find(key)->kind, Node::Kind::null) << key;
  for (std::string_view key : {"d", "e"}) EXPECT_EQ(root.find(key)->kind, Node::Kind::scalar) << key;
}

TEST(Yaml, aliases_copy_the_value_of_the_anchor) {
  const Node root = parsed("a: &x {k: [1, 2]}\nb: *x\n");
  EXPECT_EQ(root.find("b")->find("k")->items.at(1).text, "2");
}

TEST(Yaml, windows_line_ends_count_as_one_line) {
  EXPECT_EQ(mistakes_of("a: 1\r\nb: @\r\n"),
            "job.yaml:2:4: a value cannot start with '@'; put it in quotes\n"
            "    2 | b: @\n"
            "      |    ^");
}

TEST(Yaml, an_empty_text_is_null) {
  EXPECT_EQ(parsed("").kind, Node::Kind::null);
  EXPECT_EQ(parsed("# only a comment\n").kind, Node::Kind::null);
}

struct Case {
  const char* name;
  std::string text;
  std::string expected;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class YamlMistake : public testing::TestWithParam<Case> {};

TEST_P(YamlMistake, is_reported_with_position_and_line) {
  EXPECT_EQ(mistakes_of(GetParam().text), GetParam().expected);
}

std::string bomb() {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 8; ++i) {
    text += format("a{}: &a{} [", i, i);
    for (int j = 0; j < 10; ++j) text += format("{}*a{}", j ? ", " : "", i - 1);
    text += "]\n";
  }
  return text;
}

std::string big_text_bomb() {
  std::string text = "a: &a " + std::string(500'000, 'x') + "\nb: [";
  for (int i = 0; i < 20; ++i) text += "*a, ";
  return text + "]\n";
}

INSTANTIATE_TEST_SUITE_P(
    All, YamlMistake,
    testing::Values(Case{"duplicate_key", "a: 1\nb: {c: 1, c: 2}\na: 3\n",
                         "job.yaml:2:11: duplicate key 'c' (first at 2:5)\n"
                         "    2 | b: {c: 1, c: 2}\n"
                         "      |           ^\n"
                         "job.yaml:3:1: duplicate key 'a' (first at 1:1)\n"
                         "    3 | a: 3\n"
                         "      | ^"},
                    Case{"tab_indentation", "a:\n\tb: 1\n",
                         "job.yaml:2:1: tab in the indentation; use spaces\n"
                         "    2 | →b: 1\n"
                         "      | ^"},
                    Case{"tab_behind_blanks", "a:\n  b: 1\n  \tc: 1\n",
                         "job.yaml:3:3: tab in the indentation; use spaces\n"
                         "    3 |   →c: 1\n"
                         "      |   ^"},
                    Case{"not_utf8", "a: 1\nb: caf\xe9\n",
                         "job.yaml:2:7: byte 0xe9 is not UTF-8; save the file as UTF-8\n"
                         "    2 | b: caf\\xe9\n"
                         "      |       ^"},
                    Case{"utf16",
                         std::string("\xff\xfe"
                                     "a\0:\0",
                                     6),
                         "job.yaml:1:1: UTF-16 text; save the file as UTF-8\n"
                         "    1 | \\xff\\xfea\\x00:\\x00\n"
                         "      | ^"},
                    Case{"zero_byte", std::string("a: b\0c\n", 7),
                         "job.yaml:1:5: zero byte: not a text file\n"
                         "    1 | a: b\\x00c\n"
                         "      |     ^"},
                    Case{"escaped_zero_byte", "a: \"b\\0\"\n",
                         "job.yaml:1:4: text contains a zero byte\n"
                         "    1 | a: \"b\\0\"\n"
                         "      |    ^"},
                    Case{"control_character", "a: b\x07\n",
                         "job.yaml:1:5: control character 0x07\n"
                         "    1 | a: b\\x07\n"
                         "      |     ^"},
                    Case{"line_separator", "a: b\xe2\x80\xa8 c\n",
                         "job.yaml:1:5: unexpected invisible character; retype the line\n"
                         "    1 | a: b\xe2\x80\xa8 c\n"
                         "      |     ^"},
                    Case{"two_documents", "a: 1\n---\nb: 1\n",
                         "job.yaml:2:1: a second document starts here; a file must contain exactly one\n"
                         "    2 | ---\n"
                         "      | ^"},
                    Case{"tag", "a: !!python/object:os.system x\n",
                         "job.yaml:1:4: tag '!!python/object:os.system' is not supported; write the value "
                         "plainly, or in quotes "
                         "for text\n"
                         "    1 | a: !!python/object:os.system x\n"
                         "      |    ^"},
                    Case{"merge_key", "a: &a {b: 1}\nc: {<<: *a}\n",
                         "job.yaml:2:5: merge key '<<' is not supported; repeat the keys\n"
                         "    2 | c: {<<: *a}\n"
                         "      |     ^"},
                    Case{"unknown_alias", "a: *b\n",
                         "job.yaml:1:4: alias 'b' refers to no earlier anchor\n"
                         "    1 | a: *b\n"
                         "      |    ^"},
                    Case{"alias_of_itself", "a: &a [*a]\n",
                         "job.yaml:1:8: alias 'a' refers to no earlier anchor\n"
                         "    1 | a: &a [*a]\n"
                         "      |        ^"},
                    Case{"anchor_twice", "a: &x 1\nb: &x 2\n",
                         "job.yaml:2:4: anchor 'x' already exists\n"
                         "    2 | b: &x 2\n"
                         "      |    ^"},
                    Case{"list_as_key", "? [a]\n: b\n",
                         "job.yaml:1:3: a key must be a scalar\n"
                         "    1 | ? [a]\n"
                         "      |   ^"},
                    Case{"missing_key", "'': b\n",
                         "job.yaml:1:1: a key is missing before ':'\n"
                         "    1 | '': b\n"
                         "      | ^"},
                    Case{"open_brace", "a: {b: 1\n",
                         "job.yaml:1:4: this '{' is not closed\n"
                         "    1 | a: {b: 1\n"
                         "      |    ^"},
                    Case{"open_bracket", "a: [b, c\n",
                         "job.yaml:1:4: this '[' is not closed\n"
                         "    1 | a: [b, c\n"
                         "      |    ^"},
                    Case{"open_quote", "a: 'b\nc: d\n",
                         "job.yaml:1:4: this quote is not closed\n"
                         "    1 | a: 'b\n"
                         "      |    ^"},
                    Case{"colon_in_text", "run: echo a: b\n",
                         "job.yaml:1:12: unexpected ':'; put text that contains ': ' in quotes, and "
                         "check the indentation\n"
                         "    1 | run: echo a: b\n"
                         "      |            ^"},
                    Case{"wrong_indentation", "a:\n    b: 1\n  c: 2\n",
                         "job.yaml:3:3: expected a key here; check the indentation\n"
                         "    3 |   c: 2\n"
                         "      |   ^"},
                    Case{"forbidden_start", "a: `b`\n",
                         "job.yaml:1:4: a value cannot start with '`'; put it in quotes\n"
                         "    1 | a: `b`\n"
                         "      |    ^"},
                    Case{"bare_reference_in_braces", "a: {lr: ${params.lr}}\n",
                         "job.yaml:1:9: inside {...} and [...] a reference needs quotes: \"${...}\"\n"
                         "    1 | a: {lr: ${params.lr}}\n"
                         "      |         ^"},
                    Case{"bad_escape", "a: \"C:\\data\"\n",
                         "job.yaml:1:7: unknown escape; in double quotes write \\\\ for a backslash, or use "
                         "single quotes\n"
                         "    1 | a: \"C:\\data\"\n"
                         "      |       ^"},
                    Case{"too_deep", std::string(40, '['),
                         "job.yaml:1:33: nested more than 32 deep\n"
                         "    1 | [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n"
                         "      |                                 ^"},
                    Case{"alias_bomb", bomb(),
                         "job.yaml:5:10: more than 20 000 values\n"
                         "    5 | a4: &a4 [*a3, *a3, *a3, *a3, *a3, *a3, *a3, *a3, *a3, *a3]\n"
                         "      |          ^"},
                    Case{"other_yaml_version", "%YAML 1.3\n---\na: 1\n",
                         "job.yaml:1:1: not valid YAML: found incompatible YAML document\n"
                         "    1 | %YAML 1.3\n"
                         "      | ^"}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(Yaml, aliases_of_a_long_text_are_bounded) {
  EXPECT_TRUE(
      mistakes_of(big_text_bomb())
          .starts_with("job.yaml:2:29: more than 4.00 MB of text once aliases are copied\n    2 | b: [*a, "));
}

TEST(Yaml, refuses_text_over_the_limit_unread) {
  EXPECT_EQ(mistakes_of("abc: d\n", {.bytes = 5}),
            "job.yaml:1:1: longer than 5 B\n"
            "    1 | abc: d\n"
            "      | ^");
}

TEST(Yaml, long_lines_are_cut_around_the_caret) {
  const std::string text = mistakes_of("a: " + std::string(500, 'x') + " b: " + std::string(500, 'y') + "\n");
  EXPECT_EQ(text,
            "job.yaml:1:506: unexpected ':'; put text that contains ': ' in quotes, and check the "
            "indentation\n"
            "    1 | …" +
                std::string(57, 'x') + " b: " + std::string(39, 'y') + "…\n" + "      | " +
                std::string(60, ' ') + "^");
}

TEST(Yaml, refuses_a_hundred_thousand_brackets_at_once) {
  EXPECT_NE(mistakes_of(std::string(100'000, '[')), "ok");
}

TEST(Yaml, shows_at_most_ten_errors) {
  std::string text;
  for (int i = 0; i < 12; ++i) text += "a: 1\n";
  const std::string message = mistakes_of(text);
  EXPECT_TRUE(message.ends_with("\nonly the first 10 errors are shown")) << message;
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 30) << message;
}

TEST(ConfigFile, names_a_path_that_is_not_a_file) {
  TempDirectory folder;
  const std::string at = folder.path().string();
  EXPECT_EQ(read_config_file(folder / "none.yaml").status().to_string(),
            at + "/none.yaml: no such file or directory");
  EXPECT_EQ(read_config_file(folder / "none.yaml").status().code(), Code::not_found);
  EXPECT_EQ(read_config_file(folder.path()).status().to_string(), at + ": expected a file, got a folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_config_file(folder / "pipe").status().to_string(), at + "/pipe: is not a regular file");
  ASSERT_TRUE(write_file(folder / "big.yaml", std::string(101, 'x')).ok());
  EXPECT_EQ(read_config_file(folder / "big.yaml", {.bytes = 100}).status().to_string(),
            at + "/big.yaml: larger than 100 B");
  EXPECT_EQ(*read_config_file(folder / "big.yaml", {.bytes = 101}), std::string(101, 'x'));
}

TEST(ConfigFile, an_unreadable_file_is_named) {
  TempDirectory folder;
  ASSERT_TRUE(write_file(folder / "job.yaml", "a: 1\n").ok());
  ASSERT_EQ(::chmod((folder / "job.yaml").c_str(), 0), 0);
  // Root can read everything, so the test switches to an unprivileged user.
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const std::string message = read_config_file(folder / "job.yaml").status().to_string();
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(message, (folder / "job.yaml").string() + ": permission denied");
}

}  // namespace
}  // namespace stoker::config
