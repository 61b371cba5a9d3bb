// Limits of the system, programs that cannot start, and reports of sanitizers.
#include <gmock/gmock.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

using testing::HasSubstr;

TEST(Limits, of_the_system_are_named) {
  EXPECT_EQ(explain_log(steps(3) + "job.sh: line 2: 99 CPU time limit exceeded ./solve\nrc=152\n").rule,
            "cpu-time-limit");
  EXPECT_EQ(explain_log(kTraceback + "OSError: [Errno 7] Argument list too long: 'rm'\n").cause,
            "too many arguments for rm: the list of files or the environment is too long");
  EXPECT_EQ(explain_log("a.sh: line 4: bin/solve: cannot execute binary file: Exec format error\n").cause,
            "bin/solve cannot run on that node: it was built for a different processor, or it is damaged or "
            "no program");
  EXPECT_EQ(explain_log(kTraceback + "OSError: [Errno 8] Exec format error: 'bin/prep'\n").rule,
            "exec-format");
}

TEST(Limits, a_report_in_a_box_has_its_headline) {
  const std::string box = "--------------------------------\n";
  EXPECT_EQ(
      explain_log(
          box + "prterun has detected an attempt to run as root.\n\nRunning as root is discouraged.\n" + box)
          .rule,
      "mpirun-as-root");
  const Diagnosis unknown =
      explain_log(box + "The launcher saw a thing.\n\nThis is text.\nMore text.\nEven more text.\n" + box);
  EXPECT_EQ(unknown.certainty, Certainty::unknown);
  EXPECT_EQ(unknown.evidence.at(0).text.english(), "The launcher saw a thing.");
}

TEST(Limits, a_sanitizer_names_the_line) {
  const Diagnosis diagnosis = explain_log(
      "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x60 at pc 0x55 bp 0x7f sp 0x7f\nWRITE "
      "of size 8 at 0x60 "
      "thread T0\n    #0 0x55 in std::copy /usr/include/c++/12/bits/stl_algobase.h:9\n    #1 0x55 in "
      "grow(int) "
      "/users/ada/mesh.cpp:41:3\n    #2 0x7f in main /users/ada/mesh.cpp:90\n==7==ABORTING\n");
  EXPECT_EQ(diagnosis.cause, "AddressSanitizer stopped the program (mesh.cpp:41): heap-use-after-free");
  EXPECT_EQ(explain_log("a.cpp:9:2: runtime error: division by zero\n").cause,
            "undefined behaviour in a.cpp:9: division by zero");
}

TEST(Limits, a_tool_that_the_program_runs_is_named) {
  const auto failed = [](const std::string& what) {
    return kTraceback + "subprocess.CalledProcessError: Command '" + what + "\n";
  };
  EXPECT_EQ(explain_log("xz: (stdin): Unexpected end of input\n" +
                        failed("['tar', '-xJf', 'a.tar.xz']' returned non-zero exit status 2."))
                .rule,
            "archive-cut-off");
  const Diagnosis other = explain_log(failed("['sox', 'a.wav']' returned non-zero exit status 2."));
  EXPECT_EQ(other.cause, "the command sox, which the program runs, failed with exit code 2 (train.py:7)");
  EXPECT_EQ(other.certainty, Certainty::likely);
  EXPECT_EQ(explain_log(failed("['/v/bin/python', 'a.py']' returned non-zero exit status 1.")).rule, "");
}

TEST(Limits, stacks_and_the_code_of_timeout_show_where_the_program_waited) {
  const std::string stacks =
      "Thread 0x00007f01 (most recent call first):\n  File \"/users/ada/a.py\", line 3 in write\n\n"
      "Current thread 0x00007f02 (most recent call first):\n  File \"/v/lib/python3.11/queue.py\", line 171 "
      "in get\n"
      "  File \"/users/ada/a.py\", line 9 in main\n";
  const Diagnosis diagnosis = explain_log(steps(2) + stacks + "rc: 124\n");
  EXPECT_EQ(diagnosis.rule, "dump-on-signal");
  EXPECT_THAT(diagnosis.cause.english(), HasSubstr("(a.py:9)"));
  EXPECT_EQ(explain_log("task 3 ended with 124\n").rule, "timeout-exit");
  EXPECT_EQ(explain_log("batch 124 ended\nstep 124\n").rule, "");
  EXPECT_EQ(explain_log(stacks + steps(3) + "Training complete\n").certainty, Certainty::none);
}

}  // namespace
}  // namespace stoker::diagnose
