#include "trainers/find.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/version.h"
#include "trainers/test_files.h"

namespace stoker::trainers {
namespace {

using testing::ElementsAre;

Deadline soon() { return Deadline::after(std::chrono::minutes(1)); }

// An installed prefix, a home folder and a virtual environment with a torch.
struct Machine {
  TempDirectory folder;
  Path prefix = folder / "prefix";
  Path torch = write_torch(folder / "venv/lib/python3.11/site-packages/torch", "2.12.1+cpu");
  TrainerSearch search{
      prefix / "bin", folder / "venv", {{"HOME", (folder / "home").string()}, {"PATH", "/usr/bin:/bin"}}};

  Machine() {
    write_python(folder / "venv/bin/python", torch);
    std::filesystem::create_directories(prefix / "bin");
  }
  Path package(const std::string& version) const {
    write_program(prefix / "libexec/stoker" / ("torch-" + version) / "stoker-train", "");
    return prefix / "libexec/stoker" / ("torch-" + version) / "stoker-train";
  }
};

TEST(FindTrainer, prefers_the_one_that_was_built_with_stoker) {
  const Machine machine;
  write_program(machine.prefix / "bin/stoker-train", "");
  const auto found = find_trainer(machine.search, soon());
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->program, machine.prefix / "bin/stoker-train");
  EXPECT_EQ(found->libraries, Path());
}

TEST(FindTrainer, chooses_the_packaged_one_for_the_torch_of_the_environment) {
  const Machine machine;
  (void)machine.package("2.9");
  const Path fitting = machine.package("2.12");
  const auto found = find_trainer(machine.search, soon());
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->program, fitting);
  EXPECT_EQ(found->libraries, machine.torch / "lib");
}

TEST(FindTrainer, prefers_one_that_the_user_built_for_exactly_this_torch) {
  const Machine machine;
  (void)machine.package("2.12");
  const Path own = machine.folder / "home/.local/share/stoker/trainers" / std::string(version()) /
                   "torch-2.12.1+cpu/stoker-train";
  write_program(own, "");
  const auto found = find_trainer(machine.search, soon());
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->program, own);
}

TEST(FindTrainer, names_the_torch_that_none_is_for) {
  const Machine machine;
  (void)machine.package("2.13");
  (void)machine.package("2.9");
  const std::string python = (machine.folder / "venv/bin/python").string();
  EXPECT_EQ(find_trainer(machine.search, soon()).status().to_string(),
            format("stoker-train: none is for torch 2.12.1+cpu of {} (there are: 2.9, 2.13)\n"
                   "  try: stoker build-trainer --python {}",
                   python, python));
}

TEST(FindTrainer, reports_an_environment_without_torch) {
  const Machine machine;
  write_python(machine.folder / "venv/bin/python", {});
  const std::string python = (machine.folder / "venv/bin/python").string();
  EXPECT_EQ(find_trainer(machine.search, soon()).status().to_string(),
            format("stoker-train: requires torch: {}: has no torch\n  try: {} -m pip install torch", python,
                   python));
}

TEST(FindTrainer, searches_the_active_environment_before_the_one_beside_stoker) {
  Machine machine;
  machine.search.venv.reset();
  write_python(machine.prefix / "bin/python3", {});
  machine.search.environment.emplace_back("VIRTUAL_ENV", (machine.folder / "venv").string());
  const auto found = find_torch(machine.search, soon());
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->torch.version, "2.12.1+cpu");
  EXPECT_THAT(pythons_of(machine.search), ElementsAre((machine.folder / "venv/bin/python").string(),
                                                      (machine.prefix / "bin/python3").string(), "python3"));
}

TEST(FindTrainer, lists_packaged_ones_by_number) {
  const Machine machine;
  for (const char* version : {"2.9", "2.13", "2.10"}) (void)machine.package(version);
  EXPECT_THAT(packaged_torches(machine.prefix / "bin"), ElementsAre("2.9", "2.10", "2.13"));
  EXPECT_THAT(packaged_torches("/nonexistent/bin"), ElementsAre());
}

TEST(InspectTorch, rejects_what_is_no_torch_and_a_version_that_is_no_folder_name) {
  const TempDirectory folder;
  EXPECT_EQ(inspect_torch(folder.path()).status().code(), Code::not_found);
  for (const char* version : {"", "../../x", "2", "2.1/3", "two.one"}) {
    write_torch(folder / "torch", version);
    EXPECT_EQ(inspect_torch(folder / "torch").status().code(), Code::invalid) << version;
  }
  write_torch(folder / "torch", "2.13.0a0+git1234");
  const auto torch = inspect_torch(folder / "torch");
  ASSERT_TRUE(torch.ok());
  EXPECT_EQ(torch->minor(), "2.13");
}

}  // namespace
}  // namespace stoker::trainers
