// Rules for other tools, and lines whose meaning depends on their context.
#include <gmock/gmock.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

using testing::HasSubstr;

TEST(GoodEnds, a_summary_of_tests_decides) {
  const std::string expected =
      "test_b.py::test_a XFAIL (No space left on device)\nXFAIL test_b.py::test_a - CUDA out of memory\n";
  EXPECT_EQ(explain_log(expected + "==== 3 passed, 1 xfailed in 2.11s ====\n").certainty, Certainty::none);
  EXPECT_EQ(explain_log(expected + "7 passed, 2 skipped, 1 warning in 61.20s (0:01:01)\n").certainty,
            Certainty::none);
  const Diagnosis failed = explain_log(expected +
                                       "FAILED test_b.py::test_b - assert 1 == 2\n=== 1 failed, 3 "
                                       "passed, 1 xfailed in 2.11s ===\n");
  EXPECT_EQ(failed.cause, "the test test_b.py::test_b failed: assert 1 == 2");
  EXPECT_EQ(failed.certainty, Certainty::known);
}

TEST(GoodEnds, a_step_that_is_done_is_no_success_before_an_error) {
  const std::string done = "-- Detecting C compiler ABI info - done\n";
  EXPECT_EQ(explain_log(done + "CMake Error at CMakeLists.txt:3 (find_package):\n  Could not find a package "
                               "configuration file provided by \"Eigen3\" with any of\n-- Configuring "
                               "incomplete, errors occurred!\n")
                .rule,
            "cmake-package-missing");
  for (const char* end : {"error: the solver diverged\n", "step 2 failed\n", "Build aborted\n"})
    EXPECT_NE(explain_log("all files converted\n" + std::string(end)).certainty, Certainty::none) << end;
  EXPECT_NE(explain_log(done).certainty, Certainty::none);
}

TEST(GoodEnds, a_way_around_and_an_exit_code_of_0) {
  EXPECT_EQ(
      explain_log("ssh: connect to host n7 port 22: Connection refused\nbackup not reachable, using the "
                  "local copy\nAll stages completed. Exit status 0\n")
          .certainty,
      Certainty::none);
  EXPECT_EQ(explain_log(kTraceback + "EOFError: Ran out of input\ncannot read b.pkl, trying the previous "
                                     "one\nrestored epoch 4\ndone.\n")
                .certainty,
            Certainty::none);
  EXPECT_EQ(explain_log(kTraceback + "EOFError: Ran out of input\nExit status 1\n").rule,
            "checkpoint-unreadable");
}

TEST(Errno, alone_decides_nothing) {
  EXPECT_EQ(explain_log(kTraceback + "BlockingIOError: [Errno 11] Unable to open file (unable to lock file, "
                                     "errno = 11, error message = 'Resource temporarily unavailable')\n")
                .rule,
            "hdf5-locked");
  const Diagnosis open =
      explain_log(kTraceback + "BlockingIOError: [Errno 11] Resource temporarily unavailable\n");
  EXPECT_EQ(open.certainty, Certainty::likely);
  for (const char* cause : {"lock", "pipe", "process"}) EXPECT_THAT(open.cause.english(), HasSubstr(cause));
  EXPECT_EQ(
      explain_log(kTraceback +
                  "  File \"/usr/lib/python3.11/subprocess.py\", line 1835, in _execute_child\n    "
                  "self.pid = _fork_exec(\nBlockingIOError: [Errno 11] Resource temporarily unavailable\n")
          .rule,
      "fork-refused");
  EXPECT_EQ(explain_log("prep.sh: fork: Resource temporarily unavailable\n").rule, "too-many-processes");
}

TEST(Errno, memory_that_cannot_be_allocated_has_several_reasons) {
  for (const std::string& log : {kTraceback + "MemoryError\n",
                                 std::string("terminate called after throwing an instance of "
                                             "'std::bad_alloc'\n  what():  std::bad_alloc\n"),
                                 kTraceback + "OSError: [Errno 12] Cannot allocate memory\n"}) {
    const Diagnosis memory = explain_log(log);
    EXPECT_EQ(memory.certainty, Certainty::likely) << log;
    EXPECT_THAT(memory.cause.english(), HasSubstr("`ulimit -v`")) << log;
  }
}

TEST(ContextOfErrors, a_port_a_proxy_and_a_module_of_python) {
  const Diagnosis port = explain_log(
      "[2026-11-28 01:51:52 +0000] [8] [ERROR] connection to ('0.0.0.0', 8080) failed: [Errno 98] Address "
      "already in use\n");
  EXPECT_EQ(port.rule, "port-of-program-in-use");
  EXPECT_THAT(port.cause.english(), HasSubstr("8080"));
  EXPECT_EQ(explain_log("Error: listen EADDRINUSE: address already in use :::3000\n").rule,
            "port-of-program-in-use");
  EXPECT_EQ(explain_log("[W socket.cpp:426] [c10d] bind failed: EADDRINUSE\n").rule, "port-in-use");
  const Diagnosis proxy = explain_log(
      kTraceback +
      "urllib3.exceptions.NewConnectionError: HTTPSConnection(host='10.0.0.1', port=3128): Failed to "
      "establish a new connection: [Errno 111] Connection refused\n\nDuring handling of the above exception, "
      "another exception occurred:\n\n" +
      kTraceback +
      "requests.exceptions.ProxyError: HTTPSConnectionPool(host='example.org', port=443): Max retries "
      "exceeded "
      "with url: /a (Caused by ProxyError('Unable to connect to proxy', "
      "NewConnectionError(\"HTTPSConnection(host='10.0.0.1', port=3128): refused\")))\n");
  EXPECT_EQ(proxy.cause, "the proxy 10.0.0.1:3128 that the environment names does not answer or refuses");
  const Diagnosis hidden =
      explain_log(kTraceback + "AttributeError: module 'queue' has no attribute 'Queue'\n");
  EXPECT_THAT(hidden.cause.english(), HasSubstr("your own file queue.py"));
  EXPECT_EQ(hidden.certainty, Certainty::likely);
  EXPECT_EQ(explain_log(kTraceback + "AttributeError: module 'time' has no attribute 'clock'\n").rule,
            "removed-from-python");
  EXPECT_EQ(explain_log(kTraceback + "AttributeError: module 'torch' has no attribute 'abc'\n").rule,
            "module-attribute-gone");
}

TEST(Tools, a_crash_by_a_division_is_named) {
  for (const char* line : {"run.sh: line 3: 14808 Floating point exception./cut 10 0\n",
                           "run.sh: line 3: 148 Floating point exception(core dumped) ./cut 10 0\n",
                           "Floating point exception (core dumped)\n"})
    EXPECT_EQ(explain_log(line).rule, "divided-by-zero") << line;
}

TEST(Tools, messages_in_passing_are_no_failure) {
  EXPECT_EQ(explain_log("conftest.c:3:5: error: 'x' undeclared\nchecking for x... no\n" + steps(3) +
                        "Training complete\njob.sh: exit code 0\n")
                .rule,
            "");
  EXPECT_EQ(explain_log("step 3 loss 0.1\nthe server is already running on port 80\n" + steps(3)).rule, "");
}

TEST(Tools, lines_beside_the_error_complete_it) {
  EXPECT_EQ(explain_log("error[E0425]: cannot find value `n` in this scope\n --> src/main.rs:7:9\n  |\n"
                        "error: aborting due to 1 previous error\n")
                .cause,
            "the Rust compiler rejects the program (src/main.rs:7:9): cannot find value `n` in this scope");
  EXPECT_EQ(
      explain_log("a.cpp:3:6: error: 'optional' in namespace 'std' does not name a type\n    3 | x\n"
                  "a.cpp:3:1: note: 'std::optional' is only available from C++17 onwards\n")
          .cause,
      "the compiler rejects a.cpp, line 3: 'optional' in namespace 'std' does not name a type (it needs "
      "`-std=c++17`)");
  EXPECT_EQ(
      explain_log("gzip: /data/a.gz: No such file or directory\n" + kTraceback +
                  "subprocess.CalledProcessError: Command '['gzip', '-d', '/data/a.gz']' returned non-zero "
                  "exit status 1.\n")
          .evidence[0]
          .where,
      "train.log:1");
}

}  // namespace
}  // namespace stoker::diagnose
