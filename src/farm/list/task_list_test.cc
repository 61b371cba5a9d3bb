#include "farm/list/task_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::farm {
namespace {

Result<TaskList> parsed(const std::string& name, const std::string& text,
                        std::vector<std::string> command = {}) {
  return TaskList::parse(name, text, command, {});
}
std::vector<std::string> commands_of(const TaskList& list) {
  std::vector<std::string> commands;
  for (TaskIndex task = 0; task < list.size(); ++task) commands.push_back(list.command(task));
  return commands;
}
std::string refusal(const std::string& name, const std::string& text, std::vector<std::string> command = {}) {
  const auto list = parsed(name, text, std::move(command));
  return list.ok() ? "accepted" : std::string(list.error().message());
}

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TaskList, each_line_is_a_task) {
  const auto list = parsed("tasks.txt", "# comment\n\n  echo 1\r\nsim 2 > out\nlast");
  EXPECT_THAT(commands_of(*list), ElementsAre("echo 1", "sim 2 > out", "last"));
  EXPECT_EQ(list->name(1), "2");
  EXPECT_EQ(list->find("3"), 2);
  EXPECT_EQ(list->find("4"), std::nullopt);
}

TEST(TaskList, a_first_column_of_numbers_names_the_cases) {
  const auto list = parsed("table.dat", "101 ./a.out 3.5\n7\t./a.out 4\n");
  EXPECT_THAT(commands_of(*list), ElementsAre("./a.out 3.5", "./a.out 4"));
  EXPECT_EQ(list->name(0), "101");
  EXPECT_EQ(list->find("7"), 1);
  EXPECT_EQ(refusal("table.dat", "1 a\nb\n"), "table.dat:2: no case number, unlike the lines before");
}

TEST(TaskList, the_columns_of_a_table_fill_the_command) {
  const auto list =
      parsed("t.csv", "x,y\n1,\"a, b\"\n2,\"line\nend\"\n", {"sim", "{x}", "--y={y}", "{2}", "{#}"});
  EXPECT_THAT(commands_of(*list),
              ElementsAre("sim 1 '--y=a, b' 'a, b' 1", "sim 2 '--y=line\nend' 'line\nend' 2"));
  const auto tabs = parsed("t.tsv", "x\ty\n1\ta b\n", {"sim"});
  EXPECT_THAT(commands_of(*tabs), ElementsAre("sim --x=1 '--y=a b'"));
}

TEST(TaskList, the_words_of_a_line_fill_the_command) {
  const auto list = parsed("in.txt", "a  b\n", {"sim", "{2}", "{}"});
  EXPECT_THAT(commands_of(*list), ElementsAre("sim b 'a  b'"));
  EXPECT_THAT(commands_of(*parsed("in.txt", "7\n", {"sim"})), ElementsAre("sim 7"));
}

TEST(TaskList, mistakes_are_refused) {
  EXPECT_EQ(refusal("t.txt", "\n# only a comment\n"), "t.txt: no task");
  EXPECT_EQ(refusal("t.csv", "width,y\n1,2\n", {"sim", "{widht}"}),
            "t.csv: {widht} is no column; did you mean 'width'?");
  EXPECT_EQ(refusal("t.csv", "x,y\n1\n", {"sim"}), "t.csv: row 1: 1 fields (the header has 2)");
  EXPECT_THAT(refusal("t.csv", "x,y\n1,\"2\n", {"sim"}), HasSubstr("a quote is never closed"));
  EXPECT_EQ(refusal("t.txt", std::string("a\0b\n", 4)), "t.txt:1: a NUL byte");
}

TEST(TaskList, a_task_keeps_its_key_when_lines_move) {
  const auto before = parsed("t.txt", "a\nb\na\n");
  const auto after = parsed("t.txt", "new\nb\na\na\n");
  EXPECT_EQ(before->key(1), after->key(1));
  EXPECT_EQ(before->key(0), after->key(2));
  EXPECT_EQ(before->key(2), after->key(3));
  EXPECT_NE(before->key(0), before->key(2));
  EXPECT_NE(before->digest(), after->digest());
}

TEST(YamlTasks, have_needs_and_an_order) {
  const auto list = parsed("t.yaml", R"(
- {name: mesh, command: ./mesh, makes: mesh.bin}
- {name: solve, command: ./solve, cores: 4, gpus: 1, memory: 2GiB, time: 10m, needs: [./mesh.bin, x.cfg]}
- {command: ./plot, after: [solve, mesh]}
)");
  ASSERT_TRUE(list.ok()) << list.error().to_string();
  EXPECT_EQ(list->needs(1).cores, 4U);
  EXPECT_EQ(list->needs(1).gpus, 1U);
  EXPECT_EQ(list->needs(1).memory, 2_GiB);
  EXPECT_EQ(list->needs(1).time, std::chrono::minutes(10));
  EXPECT_THAT(list->extras(1)->after, ElementsAre(0));
  EXPECT_THAT(list->extras(2)->after, ElementsAre(0, 1));
  EXPECT_EQ(list->name(2), "3");
}

TEST(YamlTasks, mistakes_are_refused_with_their_position) {
  EXPECT_THAT(refusal("t.yaml", "- {command: a, coers: 2}\n"),
              HasSubstr("t.yaml:1:16: unknown key 'coers'; did you mean 'cores'?"));
  EXPECT_THAT(refusal("t.yaml", "- {name: a, command: a, after: b}\n- {name: b, command: b, after: a}\n"),
              HasSubstr("task 'a' waits for itself (after, needs)"));
  EXPECT_THAT(refusal("t.yaml", "- {command: a, after: nowhere}\n"), HasSubstr("after: no task 'nowhere'"));
  EXPECT_THAT(refusal("t.yaml", "- {name: a, command: a}\n- {name: a, command: b}\n"),
              HasSubstr("a second task 'a'"));
  EXPECT_THAT(refusal("t.yaml", "- {name: a}\n"), HasSubstr("a task without a command"));
  EXPECT_THAT(refusal("t.yaml", "a: b\n"), HasSubstr("is not a list of tasks"));
}

}  // namespace
}  // namespace stoker::farm
