#include "launch/start/shell_environment.h"

#include <sys/stat.h>

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::launch {
namespace {

using ::testing::ElementsAre;

Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

// A machine with this fake `module` command and conda.
class Machine {
 public:
  explicit Machine(const std::string& module = "") {
    base = {{"PATH", folder_.path().string() + ":/usr/bin:/bin"}, {"KEPT", "a\nb=c"}, {"SHLVL", "3"}};
    // A shell function that is inherited, like Lmod's.
    if (!module.empty()) base.emplace_back("BASH_FUNC_module%%", "() { " + module + "\n}");
  }
  void add_program(const std::string& name, const std::string& body) {
    ASSERT_TRUE(write_file(folder_ / name, "#!/bin/sh\n" + body).ok());
    ASSERT_EQ(::chmod((folder_ / name).c_str(), 0755), 0);
  }

  Environment base;

 private:
  TempDirectory folder_;
};

TEST(ShellEnvironment, empty_request_starts_no_shell) {
  const Machine machine;
  const auto same = load_environment({}, machine.base, Deadline::at(MonoTime()));
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->variables, machine.base);
}

TEST(ShellEnvironment, modules_are_loaded_in_order_and_all_else_is_kept) {
  const Machine machine("export LOADED=\"$LOADED $2\" PATH=\"/opt/$2:$PATH\"; echo noise");
  const auto loaded = load_environment({.modules = {"gcc/12", "python/3.11"}}, machine.base, soon());
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ(variable(loaded->variables, "LOADED"), " gcc/12 python/3.11");
  EXPECT_TRUE(variable(loaded->variables, "PATH").starts_with("/opt/python/3.11:/opt/gcc/12:"));
  EXPECT_EQ(variable(loaded->variables, "KEPT"), "a\nb=c");
  EXPECT_EQ(variable(loaded->variables, "SHLVL"), "3");
}

TEST(ShellEnvironment, module_replacements_are_reported) {
  const Machine machine(
      "printf '\\nThe following have been reloaded with a version change:\\n  1) python/3.10 => "
      "python/3.11\\n\\n' >&2");
  const auto loaded = load_environment({.modules = {"python/3.11"}}, machine.base, soon());
  ASSERT_TRUE(loaded.ok());
  EXPECT_THAT(loaded->notes, ElementsAre("module python/3.10 was replaced by python/3.11"));
}

TEST(ShellEnvironment, a_module_that_is_not_there_is_named) {
  const Machine machine(
      "[ $2 = gcc ] && return 0; echo 'Lmod has detected the following error:' >&2;"
      " echo 'The following module(s) are unknown: \"pyhton/3.11\"' >&2; return 1");
  EXPECT_EQ(load_environment({.modules = {"gcc", "pyhton/3.11"}}, machine.base, soon()).status().to_string(),
            "environment.modules: 'pyhton/3.11' cannot be loaded (The following module(s) are unknown: "
            "\"pyhton/3.11\")\n"
            "  try: module avail pyhton");
}

TEST(ShellEnvironment, nothing_in_a_modules_name_is_run) {
  const Machine machine("export GOT=\"$2\"");
  const std::string hostile = "$(touch/PWNED)`x`;'\"";
  const auto loaded = load_environment({.modules = {hostile}}, machine.base, soon());
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(variable(loaded->variables, "GOT"), hostile);
}

TEST(ShellEnvironment, conda_is_activated_through_its_hook) {
  Machine machine;
  machine.add_program(
      "conda",
      "echo 'conda() { [ \"$2\" = ml ] || { echo \"EnvironmentNameNotFound: $2\" >&2; return 1; };"
      " export CONDA_DEFAULT_ENV=$2; }'\n");
  const auto active = load_environment({.modules = {}, .conda = "ml"}, machine.base, soon());
  ASSERT_TRUE(active.ok()) << active.status().to_string();
  EXPECT_EQ(variable(active->variables, "CONDA_DEFAULT_ENV"), "ml");
  EXPECT_EQ(
      load_environment({.modules = {}, .conda = "lm"}, machine.base, soon()).status().to_string(),
      "environment.conda: 'lm' cannot be activated (EnvironmentNameNotFound: lm)\n  try: conda env list");
  const Machine bare;
  EXPECT_EQ(load_environment({.modules = {}, .conda = "ml"}, bare.base, soon()).status().message(),
            "environment.conda: there is no conda on this machine");
}

}  // namespace
}  // namespace stoker::launch
