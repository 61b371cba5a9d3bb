#include "diagnose/causal_link.h"

#include <gtest/gtest.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

const std::string kMissingModel = "ERROR:root:cannot load\n" + kTraceback +
                                  "FileNotFoundError: [Errno 2] No such file or directory: '/a/model.pt'\n";

TEST(CausalLink, messages_that_name_the_same_thing_are_linked) {
  EXPECT_TRUE(share_a_subject("cannot resolve cn07.cluster", "no answer from cn07.cluster port 29500"));
  EXPECT_TRUE(share_a_subject("UserWarning: the NVIDIA driver is too old", "RuntimeError: no CUDA device"));
  EXPECT_TRUE(share_a_subject("cannot read /data/vocab.json", "OSError: 'vocab.json' is empty"));
  EXPECT_TRUE(share_a_subject("WARNING: vocab was not found", "KeyError: 'vocab'"));
  EXPECT_FALSE(
      share_a_subject("ImportError: No module named 'apex'", "ImportError: No module named 'xformers'"));
  EXPECT_FALSE(share_a_subject("urlopen error [Errno 111] refused", "KeyError: 'val'"));
  EXPECT_FALSE(share_a_subject("train.py:7: UserWarning: slow file", "  train.py:7 failed: slow net"));
  EXPECT_FALSE(share_a_subject("", ""));
}

TEST(CausalLink, a_warning_yields_to_the_exception_that_ends_the_program) {
  const std::string old =
      "/v/x.py:3: UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found "
      "version "
      "11040).\n";
  const std::string dns = "WARNING:root:proxy: Temporary failure in name resolution\n";
  const std::string optional =
      "WARNING: xformers not found, falling back to math\nImportError: No module named 'xformers'\n";
  for (const std::string& warning : {old, dns, optional, old + optional}) {
    EXPECT_EQ(explain_log(warning + kTraceback + "ModuleNotFoundError: No module named 'timm'\n").cause,
              "Python finds no module timm on that node");
    EXPECT_EQ(explain_log(warning + kTraceback + "RuntimeError: the tokenizer is empty\n").rule,
              "python-exception")
        << warning;
  }
  // It is the cause of an error of the GPU, and without a later exception.
  EXPECT_EQ(explain_log(old + kTraceback + "RuntimeError: CUDA backend was not found\n").rule,
            "driver-too-old");
  EXPECT_EQ(explain_log(old).rule, "driver-too-old");
}

TEST(CausalLink, an_error_that_a_retry_survived_yields_to_the_last_exception) {
  const std::string refused = kTraceback +
                              "ConnectionRefusedError: [Errno 111] Connection refused\n\nDuring handling of "
                              "the above exception, another exception occurred:\n\n" +
                              kTraceback +
                              "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>\n";
  const std::string retry = "WARNING fetch failed, retrying in 2 s\n";
  const Diagnosis later = explain_log(refused + retry + refused + retry + "fetched splits.json\n" +
                                      kTraceback + "IndexError: list index out of range\n");
  EXPECT_EQ(later.cause, "the program raised IndexError: list index out of range (train.py:7)");
  const std::string slow =
      "WARNING attempt 1/3 failed: [Errno -3] Temporary failure in name resolution; retrying\n";
  EXPECT_EQ(explain_log(slow + kTraceback + "TypeError: 'NoneType' object is not iterable\n").rule,
            "used-none");
  // The last attempt failed for the same reason.
  EXPECT_EQ(explain_log(refused + retry + refused).rule, "server-refused-url");
  EXPECT_EQ(
      explain_log(
          "WARNING attempt 1/3 failed: cannot read /a/b.json: [Errno 5] Input/output error; retrying\n" +
          kTraceback + "RuntimeError: no config after 3 attempts: /a/b.json\n")
          .rule,
      "file-server-gone");
  EXPECT_EQ(explain_log(kMissingModel + kTraceback + "KeyError: 'model'\n").rule, "data-file-missing");
}

TEST(CausalLink, an_error_after_which_the_count_continued_yields_to_the_last_exception) {
  const std::string first = kTraceback + "OSError: [Errno 5] Input/output error\n";
  const std::string last = kTraceback + "ValueError: empty validation set\n";
  EXPECT_EQ(explain_log("step 5\n" + first + "step 6\nstep 7\n" + last).rule, "python-exception");
  EXPECT_EQ(explain_log("step 5\n" + first + "step 0\nstep 1\n" + last).rule, "file-server-gone");
  EXPECT_EQ(explain_log(first + last).rule, "file-server-gone");
}

}  // namespace
}  // namespace stoker::diagnose
