#include "diagnose/exception_message.h"

#include <gmock/gmock.h>

#include "diagnose/scan.h"
#include "diagnose/test_logs.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

std::string cause_of(const std::string& exception) {
  return explain_log(kTraceback + exception).cause.english();
}

TEST(ExceptionMessage, the_position_of_yaml_follows_its_reason) {
  EXPECT_EQ(
      cause_of("yaml.scanner.ScannerError: while scanning for the next token\nfound character '\\t' that "
               "cannot start any token\n  in \"a.yaml\", line 6, column 1\nsrun: error: n1: task 0: Exited "
               "with exit code 1\n"),
      "the program raised yaml.scanner.ScannerError: found character '\\t' that cannot start any token, in "
      "\"a.yaml\", line 6, column 1 (train.py:7)");
  EXPECT_EQ(
      cause_of("yaml.parser.ParserError: while parsing a block mapping\n  in \"a.yaml\", line 1, column "
               "1\nexpected <block end>, but found '-'\n  in \"a.yaml\", line 4, column 1\n"),
      "the program raised yaml.parser.ParserError: expected <block end>, but found '-', in \"a.yaml\", line "
      "4, column 1 (train.py:7)");
  EXPECT_EQ(
      cause_of("yaml.scanner.ScannerError: mapping values are not allowed here\n  in \"a.yaml\", line 3, "
               "column 7\n"),
      "the program raised yaml.scanner.ScannerError: mapping values are not allowed here, in \"a.yaml\", "
      "line 3, column 7 (train.py:7)");
}

TEST(ExceptionMessage, a_rejected_field_is_named) {
  EXPECT_EQ(
      cause_of("pydantic_core._pydantic_core.ValidationError: 1 validation error for ZeroConfig\nstage\n  "
               "Input should be 0, 1, 2 or 3 [type=enum, input_value='two', input_type=str]\n    For "
               "further information visit https://errors.pydantic.dev/2/v/enum\n"),
      "the program raised pydantic_core._pydantic_core.ValidationError: 1 validation error for ZeroConfig: "
      "stage: Input should be 0, 1, 2 or 3 [type=enum, input_value='two', input_type=str] (train.py:7)");
}

TEST(ExceptionMessage, the_reason_is_below_an_announcement) {
  EXPECT_EQ(
      cause_of("ValueError: Exception encountered when calling Dense.call().\n\n\x1b[1mthe input has no "
               "shape\x1b[0m\n\nArguments received by Dense.call():\n"),
      "the program raised ValueError: the input has no shape (train.py:7)");
  EXPECT_EQ(cause_of("RuntimeError: The checkpoint cannot be used:\nits version is 3, expected 4\n"),
            "the program raised RuntimeError: The checkpoint cannot be used: its version is 3, expected 4 "
            "(train.py:7)");
  EXPECT_EQ(
      cause_of("tensorflow.python.framework.errors_impl.InternalError: Graph execution error:\n\nDetected at "
               "node a defined at (most recent call last):\n  File \"train.py\", line 5, in <module>\n\n  "
               "File \"/v/keras/trainer.py\", line 117, in fit\n\nthe kernel has no input\n\t "
               "[[{{node a}}]] [Op:b]\n"),
      "the program raised tensorflow.python.framework.errors_impl.InternalError: the kernel has no input "
      "(train.py:7)");
  // A log record is no part of the message.
  EXPECT_EQ(cause_of("RuntimeError: cannot start:\nINFO:root:closing\n"),
            "the program raised RuntimeError: cannot start: (train.py:7)");
}

TEST(ExceptionMessage, a_rule_matches_a_later_line) {
  const std::string head =
      "InvalidArgumentError: Graph execution error:\n\nDetected at node a defined at (most "
      "recent call last):\n  File \"train.py\", line 5, in <module>\n\n";
  EXPECT_EQ(
      cause_of(head + "Received a label value of 10 which is outside the valid range of [0, 10).  Label "
                      "values: 2 10\n"),
      "a label or an index is out of range: 10");
  EXPECT_EQ(cause_of("DataLossError: Graph execution error:\n\ncorrupted record at 8125\n"),
            "a TFRecord file is damaged: its record at byte 8125");
}

TEST(ExceptionMessage, items_below_a_line_that_announces_them_belong_to_it) {
  ExceptionMessage names("ValueError: The feature names should match the ones passed during fit.");
  for (const char* line : {"Feature names unseen at fit time:", "- minute", "- second",
                           "Feature names seen at fit time, yet now missing:", "- hour"})
    EXPECT_TRUE(names.add(line)) << line;
  EXPECT_FALSE(names.add("done"));
  EXPECT_EQ(names.text(),
            "ValueError: The feature names should match the ones passed during fit: Feature names unseen "
            "at fit time: minute, second; Feature names seen at fit time, yet now missing: hour");
  const Diagnosis two = explain_log(
      kTraceback +
      "ValueError: --load_best_model_at_end requires the save and eval strategy to match, except when "
      "--save_strategy=\"best\", but found\n- Evaluation strategy: IntervalStrategy.NO\n- Save strategy: "
      "SaveStrategy.EPOCH\n");
  EXPECT_EQ(
      two.cause,
      "`load_best_model_at_end` needs one strategy to evaluate and to save (train.py:7): they are NO and "
      "EPOCH");
}

TEST(ExceptionMessage, an_exception_at_the_end_of_a_log_has_the_progress_above_it) {
  std::string block = "Epoch 3: loss 0.25\nsaved\n" + std::string(kTraceback) +
                      "ValueError: the strategies must match, but found\n- Evaluation strategy: NO\n";
  LogScanner scanner;
  scanner.scan(block);
  block.assign(block.size(), '?');  // a reader reuses the memory of its blocks
  const ScanResult result = scanner.finish();
  ASSERT_EQ(result.hits.size(), 1u);
  ASSERT_EQ(result.progress.size(), 1u);
  EXPECT_EQ(result.progress[0].line, 1u);
}

TEST(ExceptionMessage, all_rejected_fields_are_named) {
  const std::string place = "    For further information visit https://errors.pydantic.dev/2/v/enum\n";
  EXPECT_EQ(
      cause_of(
          "pydantic_core._pydantic_core.ValidationError: 2 validation errors for ZeroConfig\nstage\n  Input "
          "should be 0, 1, 2 or 3 [type=enum, input_value='two', input_type=str]\n" +
          place + "optim.lr\n  Field required [type=missing, input_value={}, input_type=dict]\n" + place +
          "closing\n"),
      "the program raised pydantic_core._pydantic_core.ValidationError: 2 validation errors for ZeroConfig: "
      "stage: Input should be 0, 1, 2 or 3; optim.lr: Field required (train.py:7)");
  const Diagnosis unknown = explain_log(
      kTraceback +
      "pydantic_core._pydantic_core.ValidationError: 2 validation errors for ZeroConfig\nstage\n  "
      "Input should be 0 [type=a]\noverlapp\n  Extra inputs are not permitted [type=extra_forbidden, "
      "input_value=True, input_type=bool]\n");
  EXPECT_EQ(unknown.rule, "settings-unknown-key");
  EXPECT_EQ(unknown.cause,
            "the settings of ZeroConfig are not valid (train.py:7): stage: Input should be 0; "
            "overlapp: Extra inputs are not permitted");
}

}  // namespace
}  // namespace stoker::diagnose
