// Compiled programs: what they print above the last word of the shell or the launcher.
#include <gmock/gmock.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

using testing::HasSubstr;

const std::string kAborted = "run.sh: line 3:   812 Aborted                 (core dumped) ./mesher -n 4\n";
const std::string kMpiAbort =
    "--------------------------------------------------------------------------\n"
    "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n\n"
    "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n";

TEST(Native, the_line_above_the_abort_is_the_cause) {
  const Diagnosis assertion =
      explain_log("mesher: cut.cc:88: void cut(Cell*): Assertion `depth < 9' failed.\n" + kAborted);
  EXPECT_EQ(assertion.cause, "an assertion of the program failed in cut.cc:88: depth < 9");
  EXPECT_EQ(assertion.certainty, Certainty::known);
  EXPECT_EQ(explain_log("malloc(): corrupted top size\n" + kAborted).cause,
            "the program damaged its own memory: malloc(): corrupted top size");
  EXPECT_EQ(explain_log("*** stack smashing detected ***: terminated\n" + kAborted).rule, "heap-damaged");
  EXPECT_EQ(explain_log("thread 'main' panicked at src/io.rs:12:5:\nno input\n").cause,
            "the program panicked at src/io.rs:12:5: no input");
  EXPECT_EQ(explain_log("At line 3 of file a.f90\nFortran runtime error: Bad integer\n").cause,
            "the Fortran program failed: Bad integer (At line 3 of file a.f90)");
  // No rule knows the words.
  const Diagnosis own = explain_log("cell 7 has an invalid volume\n" + kAborted);
  EXPECT_EQ(own.cause, "the program mesher crashed: Aborted: cell 7 has an invalid volume");
  EXPECT_EQ(own.evidence.at(0).where, "train.log:1");
  EXPECT_EQ(explain_log(steps(2) + kAborted).cause, "the program mesher crashed: Aborted");
}

TEST(Native, the_line_above_mpi_abort_is_the_cause) {
  const Diagnosis missing =
      explain_log("flow: cannot read input/grid.h5: No such file or directory\n" + kMpiAbort);
  EXPECT_EQ(missing.cause, "the program cannot open input/grid.h5: No such file or directory");
  const Diagnosis own = explain_log("negative density at cell 4: time step too large\n" + kMpiAbort);
  EXPECT_EQ(own.cause,
            "rank 3 ended all ranks with MPI_Abort: negative density at cell 4: time step too large");
  EXPECT_EQ(own.rank, 3);
  EXPECT_EQ(explain_log(steps(2) + kMpiAbort).cause, "rank 3 ended all ranks with MPI_Abort");
}

TEST(Native, a_bus_error_is_one_of_shared_memory_or_a_mapped_file) {
  for (const char* command : {"python3 load.py", "./solve a.dat"}) {
    const Diagnosis diagnosis =
        explain_log(format("run.sh: line 1:  8 Bus error               {}\n", command));
    EXPECT_THAT(diagnosis.cause.english(), HasSubstr("/dev/shm")) << command;
    EXPECT_EQ(diagnosis.certainty, Certainty::likely);
  }
}

TEST(Native, a_tool_that_prepares_the_environment_yields_to_what_is_then_missing) {
  const std::string module = "job.sh: line 2: module: command not found\n";
  EXPECT_EQ(explain_log(module + "job.sh: line 5: /opt/env/bin/python3: No such file or directory\n").cause,
            "the script uses /opt/env/bin/python3, which does not exist on that node");
  EXPECT_EQ(
      explain_log(module +
                  "job.sh: line 5: mamba: command not found\njob.sh: line 6: trainer: command not found\n")
          .cause,
      "the shell has no command module: the script's shell did not load environment modules");
  EXPECT_EQ(explain_log("job.sh: line 2: nvidia-smi: command not found\njob.sh: line 6: trainer: command not "
                        "found\n")
                .cause,
            "the shell does not find command trainer on that node");
  EXPECT_EQ(explain_log(module).cause,
            "the shell has no command module: the script's shell did not load environment modules");
  EXPECT_EQ(
      explain_log(
          "job.sh: line 2: prepare: command not found\njob.sh: line 3: out/a: No such file or directory\n")
          .cause,
      "the shell does not find command prepare on that node");
}

TEST(Consequences, are_later_than_the_cause) {
  const std::string closed = "RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:314\n";
  const std::string reset =
      "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\", line 5, in f\n[rank1]: ";
  // The exception of the program is no consequence of a different failure, whatever its type.
  const Diagnosis own = explain_log(
      reset + "ConnectionResetError: bucket data: the store closed shard 17\n[rank0]: " + kTraceback +
      "[rank0]: " + closed + "[rank0]: Gloo connectFullMesh failed with [pair.cc:144] no error\n");
  EXPECT_EQ(own.cause,
            "the program raised ConnectionResetError: bucket data: the store closed shard 17 (a.py:5)");
  EXPECT_EQ(own.rank, 1);
  EXPECT_THAT(own.consequences.english(), HasSubstr("rank 0"));
  const Diagnosis before = explain_log("[rank0]: " + closed + reset + "KeyError: 'lr'\n");
  EXPECT_EQ(before.rule, "python-exception");
  EXPECT_EQ(before.consequences.english(), "");
  EXPECT_EQ(explain_log(reset + "BrokenPipeError: [Errno 32] Broken pipe\n").rule, "broken-pipe");
}

TEST(Native, the_signal_in_a_banner_of_mpiexec_is_the_cause) {
  const auto banner = [](const std::string& process, const std::string& signal) {
    return "===================\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   " + process +
           "PID 12 RUNNING AT n2\n=   EXIT CODE: 11\n=   CLEANING UP REMAINING "
           "PROCESSES\n===================\n"
           "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: " +
           signal + "\nThis typically refers to a problem with your application.\n";
  };
  const Diagnosis crash = explain_log(steps(3) + banner("", "Segmentation fault (signal 11)"));
  EXPECT_EQ(crash.cause, "a rank of the program crashed: Segmentation fault (signal 11)");
  EXPECT_EQ(crash.certainty, Certainty::likely);
  EXPECT_FALSE(crash.rank);
  EXPECT_EQ(explain_log(banner("RANK 3 ", "Floating point exception (signal 8)")).rank, 3);
  EXPECT_EQ(explain_log(banner("", "Killed (signal 9)")).rule, "killed-by-signal-9");
}

}  // namespace
}  // namespace stoker::diagnose
