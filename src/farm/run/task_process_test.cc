#include "farm/run/task_process.h"

#include <sys/wait.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/sanitizers.h"

namespace stoker::farm {
namespace {

class TaskStarterTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kHasThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer refuses a child that shares memory";
  }
};

// The output of a line with this variable in its environment.
std::string output_of(const std::string& line, const std::string& name, const std::string& value) {
  const TempDirectory folder;
  auto file = File::open_append(folder / "out");
  auto starter = TaskStarter::create({{"PATH", "/usr/bin:/bin"}, {name, value}}, {}, {});
  EXPECT_TRUE(file.ok() && starter.ok());
  const auto pid = starter->start({.command = line, .variables = {}, .output_fd = file->fd(), .cores = {}});
  EXPECT_TRUE(pid.ok());
  int status = 0;
  EXPECT_EQ(::waitpid(*pid, &status, 0), *pid);
  return *read_file(folder / "out");
}

TEST_F(TaskStarterTest, functions_of_bash_in_the_environment_can_be_used) {
  const std::string name = "BASH_FUNC_module%%";
  const std::string value = "() {  echo loaded $1\n}";
  EXPECT_EQ(output_of("module gcc", name, value), "loaded gcc\n");
  EXPECT_EQ(output_of("module gcc; echo a", name, value), "loaded gcc\na\n");
  EXPECT_EQ(output_of("env | grep -c module", name, value), "1\n");
}

TEST_F(TaskStarterTest, a_function_of_bash_comes_before_a_program) {
  EXPECT_EQ(output_of("true 1", "BASH_FUNC_true%%", "() {  echo function\n}"), "function\n");
}

TEST_F(TaskStarterTest, a_portable_line_passes_on_names_that_are_no_variables) {
  EXPECT_EQ(output_of("env | grep x.y", "x.y", "3"), "x.y=3\n");
}

TEST(TaskProcess, the_own_peak_grows_with_this_process) {
  const ByteCount before = own_peak();
  const std::string filled(before.value + (64U << 20), 'x');
  EXPECT_GT(own_peak().value, filled.size());
  EXPECT_LT(own_peak().value, before.value + filled.size() + (64U << 20));
}

TEST_F(TaskStarterTest, a_wrapper_gets_the_words_or_a_line_for_its_shell) {
  const TempDirectory folder;
  auto file = File::open_append(folder / "out");
  auto starter =
      TaskStarter::create({{"PATH", "/usr/bin:/bin"}}, {}, {.words = {"printf", "[%s]"}, .shell = "ash"});
  for (const char* const line : {"a 'b c'", "a > b"}) {
    const auto pid = starter->start({.command = line, .variables = {}, .output_fd = file->fd(), .cores = {}});
    ASSERT_TRUE(pid.ok());
    EXPECT_EQ(::waitpid(*pid, nullptr, 0), *pid);
  }
  EXPECT_EQ(*read_file(folder / "out"), "[a][b c][ash][-c][a > b]");
}

}  // namespace
}  // namespace stoker::farm
