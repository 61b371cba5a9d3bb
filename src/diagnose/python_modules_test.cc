#include "diagnose/python_modules.h"

#include <gmock/gmock.h>

namespace stoker::diagnose {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string cure(std::string_view module) { return module_cure(module, StartKind::log).english(); }

TEST(PythonModules, packages_have_the_names_of_their_distributions) {
  EXPECT_EQ(cure("PIL"), "activate the environment that has it, or install it there: `pip install pillow`");
  EXPECT_THAT(cure("cv2"), HasSubstr("`pip install opencv-python-headless`"));
  EXPECT_THAT(cure("sklearn"), HasSubstr("`pip install scikit-learn`"));
  EXPECT_THAT(cure("skimage"), HasSubstr("`pip install scikit-image`"));
  EXPECT_THAT(cure("yaml"), HasSubstr("`pip install PyYAML`"));
  EXPECT_THAT(cure("google.protobuf"), HasSubstr("`pip install protobuf`"));
  EXPECT_THAT(cure("einops"), HasSubstr("`pip install einops`"));
}

TEST(PythonModules, unrelated_packages_are_not_suggested) {
  for (const char* module :
       {"apex", "clip", "detectron2", "utils", "models", "_ctypes", "distutils", "a b", ""})
    EXPECT_THAT(cure(module), Not(HasSubstr("pip install"))) << module;
}

TEST(PythonModules, a_missing_part_is_a_different_version_of_its_package) {
  EXPECT_EQ(
      cure("sklearn.externals"),
      "its package has no such part: compare `pip show scikit-learn` with the requirements of the code");
  EXPECT_THAT(cure("torch._six"), HasSubstr("`pip show torch`"));
}

TEST(PythonModules, the_environment_is_set_where_the_program_was_started_from) {
  EXPECT_THAT(module_cure("cv2", StartKind::job_file).english(), HasSubstr("`environment: {venv: FOLDER}`"));
  EXPECT_THAT(module_cure("utils", StartKind::local).english(), HasSubstr("`working_directory: FOLDER`"));
  EXPECT_THAT(module_cure("cv2", StartKind::script).english(), Not(HasSubstr("environment:")));
}

}  // namespace
}  // namespace stoker::diagnose
