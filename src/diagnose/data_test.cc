// Data that is empty, broken or has a different shape.
#include <gmock/gmock.h>

#include "diagnose/line_signs.h"
#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

using testing::HasSubstr;

TEST(Data, an_empty_set_that_the_program_reported_is_the_cause) {
  const std::string empty = "WARNING:root:found 0 videos in /data/test\n";
  for (const char* exception :
       {"ZeroDivisionError: float division by zero\n", "IndexError: list index out of range\n",
        "ValueError: num_samples should be a positive integer value, but got num_samples=0\n",
        "StopIteration\n", "ValueError: max() arg is an empty sequence\n"}) {
    const Diagnosis diagnosis = explain_log(empty + steps(3) + kTraceback + exception);
    EXPECT_EQ(diagnosis.cause, "the data is empty (train.py:7): found 0 videos in /data/test") << exception;
    EXPECT_EQ(diagnosis.evidence.at(0).where, "train.log:1");
  }
  EXPECT_EQ(explain_log(empty + kTraceback + "KeyError: 'lr'\n").rule, "python-exception");
  EXPECT_EQ(
      explain_log("found 0 corrupt files\n" + kTraceback + "IndexError: list index out of range\n").rule,
      "python-exception");
  const Diagnosis silent = explain_log(kTraceback + "ZeroDivisionError: division by zero\n");
  EXPECT_EQ(silent.rule, "empty-sequence");
  EXPECT_EQ(silent.certainty, Certainty::likely);
  EXPECT_TRUE(reports_nothing_found("INFO data: loaded 0 training samples from a.json"));
  EXPECT_FALSE(reports_nothing_found("loaded 10 samples, 0 bad files"));
}

TEST(Data, the_installation_that_failed_is_the_cause_of_a_missing_module) {
  const std::string pip =
      "ERROR: Could not find a version that satisfies the requirement flashy==7.1 (from versions: 1.0, 2.0)\n"
      "ERROR: No matching distribution found for flashy==7.1\n";
  EXPECT_EQ(explain_log(pip + kTraceback + "ModuleNotFoundError: No module named 'flashy'\n").rule,
            "pip-no-version");
  EXPECT_EQ(explain_log(pip + kTraceback + "ModuleNotFoundError: No module named 'yaml'\n").rule,
            "module-missing");
}

TEST(Data, the_step_of_a_missing_checkpoint_is_named) {
  EXPECT_EQ(explain_log(kTraceback + "FileNotFoundError: Checkpoint at /s/run/4000 not found.\n").cause,
            "/s/run has no checkpoint of step 4000");
}

TEST(Data, well_known_exceptions_have_cures) {
  const auto check = [](const char* exception, std::string_view rule, const char* cure) {
    const Diagnosis diagnosis = explain_log(kTraceback + exception + "\n");
    EXPECT_EQ(diagnosis.rule, rule) << exception;
    EXPECT_THAT(diagnosis.cure.english(), HasSubstr(cure)) << exception;
  };
  check("json.decoder.JSONDecodeError: Unterminated string starting at: line 8 column 3 (char 90)",
        "json-malformed", "correct that place");
  check("json.decoder.JSONDecodeError: Extra data: line 3 column 1 (char 61)", "json-several",
        "line by line");
  check("simplejson.errors.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", "json-empty",
        "`head FILE`");
  check("ValueError: could not convert string to float: '3,5'", "number-with-comma", "decimal");
  check("ValueError: could not convert string to float: 'label'", "text-no-number", "header");
  check("pyarrow.lib.ArrowInvalid: Parquet file size is 0 bytes", "parquet-damaged", "write it again");
  check("ValueError: cannot reshape array of size 70001 into shape (512,2)", "reshape-differs", "last part");
  check(
      "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 30 but got size 31 for "
      "tensor number 1 in the list.",
      "parts-differ", "stride");
  check("TypeError: can't convert np.ndarray of type numpy.object_. The only supported types are: float64",
        "array-of-objects", "astype");
}

}  // namespace
}  // namespace stoker::diagnose
