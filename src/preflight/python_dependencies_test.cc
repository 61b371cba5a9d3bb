#include "preflight/python_dependencies.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::preflight {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Project {
 public:
  void add(const std::string& name, const std::string& text) {
    STOKER_CHECK(make_directories((folder_ / name).parent_path()).ok() &&
                 write_file(folder_ / name, text).ok());
  }
  std::vector<std::string> missing(const std::string& yaml) const {
    STOKER_CHECK(write_file(folder_ / "job.yaml", yaml).ok());
    const auto job = job::load(folder_ / "job.yaml", {.current_directory = folder_.path()});
    STOKER_CHECK(job.ok());
    std::vector<std::string> found;
    for (const Finding& each : check_python_dependencies(*job, {{"PATH", "/usr/bin:/bin"}},
                                                         Deadline::after(std::chrono::seconds(60)))) {
      const std::string where = each.evidence[0].where;
      found.push_back(
          format("{} {}: {}", each.rule, where.substr(where.rfind('/') + 1), each.what.english()));
    }
    return found;
  }

 private:
  TempDirectory folder_;
};

TEST(PythonDependencies, the_script_is_found_after_python_options) {
  EXPECT_EQ(python_script({"python", "-u", "train.py", "--lr", "1"}), "train.py");
  EXPECT_EQ(python_script({"/opt/bin/python3.11", "-W", "ignore", "a.py"}), "a.py");
  EXPECT_EQ(python_script({"python", "-m", "train"}), "");
  EXPECT_EQ(python_script({"python", "-c", "1"}), "");
  EXPECT_EQ(python_script({"bash", "a.py"}), "");
}

TEST(PythonDependencies, missing_imports_are_reported_with_their_line) {
  Project project;
  project.add("own.py", "");
  project.add("train.py",
              "import os, own\n"
              "from json import loads\n"
              "try:\n  import perhaps_there\nexcept ImportError:\n  perhaps_there = None\n"
              "import surely_not_there.part\n"
              "def later():\n  from nor_this import x\n");
  EXPECT_THAT(
      project.missing("run: python3 train.py\n"),
      ElementsAre(
          "no-import train.py:7: run: imports 'surely_not_there', which is missing in this environment",
          "no-import train.py:9: run: imports 'nor_this', which is missing in this environment"));
  EXPECT_THAT(project.missing("run: python3 -m train\n"), IsEmpty());
}

TEST(PythonDependencies, a_script_that_python_cannot_parse_is_reported) {
  Project project;
  project.add("train.py", "x = 1\nif x\n  pass\n");
  const auto found = project.missing("run: python3 train.py\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("bad-script train.py:2: run: Python cannot parse it: ")) << found[0];
}

TEST(PythonDependencies, all_requirements_without_a_wheel_are_reported) {
  Project project;
  project.add("requirements.txt",
              "# what we need\n"
              "Good_Package==1.2\n"
              "old>=2.0  # too old there\n"
              "missing\n"
              "-e .\n"
              "other-python\n"
              "sdist~=3.1\n");
  for (const char* wheel : {"good_package-1.2-py3-none-any.whl", "old-1.9.1-py3-none-any.whl",
                            "other_python-1.0-cp27-cp27mu-linux_x86_64.whl", "sdist-3.4.tar.gz"})
    project.add(std::string("wheels/") + wheel, "");
  EXPECT_THAT(
      project.missing("run: sleep 1\nenvironment: {venv: requirements.txt, wheelhouse: wheels}\n"),
      ElementsAre("no-wheel requirements.txt:3: environment.wheelhouse: no wheel for 'old>=2.0' (found "
                  "old-1.9.1-py3-none-any.whl)",
                  "no-wheel requirements.txt:4: environment.wheelhouse: no wheel for 'missing'",
                  "no-wheel requirements.txt:6: environment.wheelhouse: no wheel for 'other-python' (found "
                  "other_python-1.0-cp27-cp27mu-linux_x86_64.whl)"));
}

TEST(PythonDependencies, packages_from_other_indexes_are_not_checked) {
  Project project;
  project.add("requirements.txt", "anything\n");
  project.add("train.py", "import anything\n");
  EXPECT_THAT(project.missing("run: python3 train.py\nenvironment: {venv: requirements.txt}\n"), IsEmpty());
}

}  // namespace
}  // namespace stoker::preflight
