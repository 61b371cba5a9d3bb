// Programs without Python, servers that a program needs, and signals from outside.
#include <gmock/gmock.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Program, a_signal_from_outside_is_no_crash) {
  const std::string dump =
      "Fatal Python error: Aborted\n\nThread 0x00007efc (most recent call first):\n"
      "  File \"/users/ada/train.py\", line 12 in main\n\n";
  EXPECT_EQ(explain_log(steps(5) + "timeout: sending signal ABRT to command 'python'\n" + dump).rule,
            "timeout-command");
  EXPECT_EQ(explain_log(steps(5) + dump).rule, "dump-of-crash");
  const Diagnosis code = explain_log(steps(5) + "\n--- job epilogue ---\nexit status: 124\n");
  EXPECT_EQ(code.rule, "timeout-exit");
  EXPECT_EQ(code.certainty, Certainty::likely);
  EXPECT_EQ(
      explain_log(kTraceback + "torch.distributed.elastic.multiprocessing.api.SignalException: Process 9 got "
                               "signal: 1\n")
          .rule,
      "torchrun-hangup");
  EXPECT_EQ(
      explain_log(kTraceback + "torch.distributed.elastic.multiprocessing.api.SignalException: Process 9 got "
                               "signal: 15\n")
          .rule,
      "torchrun-terminated");
  EXPECT_EQ(explain_log("job.sh: line 5:  5794 Hangup                  python train.py\n").rule, "hangup");
}

TEST(Program, forked_threads_explain_only_an_end_without_progress) {
  const std::string fork =
      "popen_fork.py:66: RuntimeWarning: os.fork() was called. os.fork() is incompatible with multithreaded "
      "code, "
      "and JAX is multithreaded, so this will likely lead to a deadlock.\n  self.pid = os.fork()\n";
  const Diagnosis hang =
      explain_log("warm-up\n" + fork + "timeout: sending signal TERM to command 'python'\n");
  EXPECT_EQ(hang.rule, "fork-of-threads");
  EXPECT_EQ(hang.certainty, Certainty::likely);
  EXPECT_EQ(explain_log(fork + steps(9) + "timeout: sending signal TERM to command 'python'\n").rule,
            "timeout-command");
  EXPECT_EQ(explain_log(fork + kTraceback + "KeyError: 'lr'\n").rule, "python-exception");
  EXPECT_EQ(explain_log(fork + "Training complete\n").certainty, Certainty::none);
}

TEST(Program, a_refused_connection_names_the_server_that_does_not_run) {
  const auto cause = [](const std::string& line) { return explain_log(line + "\n").cause.english(); };
  EXPECT_EQ(
      cause("requests.exceptions.ConnectionError: HTTPConnectionPool(host='10.1.2.3', port=80): Max retries "
            "exceeded with url: / (Caused by NewConnectionError('[Errno 111] Connection refused'))"),
      "nothing listens on 10.1.2.3:80: the server does not run there");
  EXPECT_EQ(
      cause("requests.exceptions.ConnectionError: HTTPConnectionPool(host='login01', port=8786): Max retries "
            "exceeded with url: / (Caused by NewConnectionError('[Errno 111] Connection refused'))"),
      "nothing listens on login01:8786: the server does not run there");
  EXPECT_EQ(
      cause("redis.exceptions.ConnectionError: Error 111 connecting to redis-0:6379. Connection refused."),
      "nothing listens on redis-0:6379: the server does not run there");
  EXPECT_EQ(cause("ssh: connect to host n2 port 22: Connection refused"),
            "nothing listens on n2:22: the server does not run there");
  EXPECT_EQ(cause("urllib.error.URLError: <urlopen error [Errno 111] Connection refused>"),
            "a server refused the connection: it does not run at that address");
  // The address is in a later exception of the chain.
  const std::string first =
      kTraceback +
      "urllib3.exceptions.NewConnectionError: <urllib3.connection.HTTPConnection object at 0x7>: "
      "Failed to establish a new connection: [Errno 111] Connection refused\n\n" +
      kTraceback;
  EXPECT_EQ(
      cause(first + "urllib3.exceptions.MaxRetryError: HTTPConnectionPool(host='localhost', port=5000): Max "
                    "retries exceeded with url: / (Caused by NewConnectionError('[Errno 111] Connection "
                    "refused'))"),
      "nothing listens on localhost:5000: the server does not run there");
  EXPECT_EQ(
      cause(first + "urllib3.exceptions.MaxRetryError: HTTPSConnectionPool(host='pypi.org', port=443): Max "
                    "retries exceeded with url: / (Caused by NewConnectionError('[Errno 111] Connection "
                    "refused'))"),
      "the program needs the internet, which this node cannot reach");
  // A firewall refuses connections to the internet.
  EXPECT_EQ(
      cause("requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max "
            "retries exceeded with url: / (Caused by NewConnectionError('[Errno 111] Connection refused'))"),
      "the program needs the internet, which this node cannot reach");
  EXPECT_EQ(explain_log(
                "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk "
                "cache and outgoing traffic has been disabled.\n")
                .rule,
            "hub-offline");
}

TEST(Program, a_crash_outside_of_python_has_a_cure_that_fits) {
  for (const char* line :
       {"job.sh: line 5:  5794 Segmentation fault      (core dumped) ./solve a.dat\n",
        "run.sh: line 7: 31 Aborted                 /opt/apps/lammps/bin/lmp -in a.in\n",
        "[n1:05234] Signal: Segmentation fault (11)\n",
        "srun: error: n2: task 1: Segmentation fault (core dumped)\n",
        "terminate called after throwing an instance of 'std::out_of_range'\n  what():  map::at\n"}) {
    const Diagnosis diagnosis = explain_log(line);
    EXPECT_EQ(diagnosis.certainty, Certainty::likely) << line;
    EXPECT_THAT(diagnosis.cure.english(), Not(HasSubstr("python -X"))) << line;
  }
  EXPECT_EQ(
      explain_log("run.sh: line 7: 31 Aborted                 /opt/apps/lammps/bin/lmp -in a.in\n").cause,
      "the program lmp crashed: Aborted");
  EXPECT_THAT(
      explain_log("job.sh: line 5: 12 Segmentation fault      /v/bin/python3.11 train.py\n").cure.english(),
      HasSubstr("python -X faulthandler"));
}

TEST(Program, an_exception_of_cpp_outranks_the_abort_that_it_causes) {
  const Diagnosis diagnosis = explain_log(
      "terminate called after throwing an instance of 'std::out_of_range'\n  what():  map::at\n"
      "job.sh: line 5:  5794 Aborted                 ./vocab vocab.txt\n");
  EXPECT_EQ(diagnosis.cause, "an exception of C++ ended the program: std::out_of_range: map::at");
  EXPECT_EQ(
      explain_log(
          "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n")
          .rule,
      "host-memory-error");
  EXPECT_EQ(
      explain_log("terminate called after throwing an instance of 'std::invalid_argument'\n  what():  stod\n")
          .rule,
      "cpp-not-a-number");
  // An exception of Python came first.
  EXPECT_EQ(explain_log(kTraceback +
                        "KeyError: 'lr'\nterminate called after throwing an instance of 'c10::Error'\n")
                .rule,
            "python-exception");
}

TEST(Program, mpi_names_its_error_and_its_rank) {
  EXPECT_EQ(
      explain_log("[n1:1] *** An error occurred in MPI_Bcast\n[n1:1] *** MPI_ERR_ROOT: invalid root\n").cause,
      "MPI failed: invalid root (ROOT)");
  EXPECT_EQ(explain_log("Fatal error in PMPI_Recv: Message truncated, error stack:\n").rule, "mpi-truncated");
  const Diagnosis crash = explain_log(
      "[n1:5] Signal: Floating point exception (8)\nmpirun noticed that process rank 3 with PID 5 on node n1 "
      "exited "
      "on signal 8 (Floating point exception).\n");
  EXPECT_EQ(crash.cause, "the program crashed: Floating point exception");
  EXPECT_EQ(crash.rank, 3);
}

TEST(Program, dask_that_restarts_its_workers_is_short_of_memory) {
  const std::string restart =
      "2026-11-27 18:26:50,857 - distributed.nanny.memory - WARNING - Worker tcp://127.0.0.1:4 (pid=2) "
      "exceeded 95% "
      "memory budget. Restarting...\n";
  EXPECT_EQ(explain_log(restart + restart).certainty, Certainty::likely);
  EXPECT_EQ(explain_log(restart + "All 12 partitions written\n").certainty, Certainty::none);
}

TEST(Program, a_build_of_an_extension_fails_for_a_reason) {
  const std::string build = kTraceback + "RuntimeError: Error building extension 'fused': [1/2] c++ -o a.o\n";
  EXPECT_EQ(explain_log(build + "FAILED: [code=127] a.o\n/bin/sh: 1: c++: not found\n").rule,
            "compiler-not-found");
  EXPECT_EQ(explain_log(build + "a.cpp:1:10: fatal error: cuda_runtime.h: No such file or directory\n").rule,
            "header-missing");
  EXPECT_EQ(explain_log(build).rule, "extension-build-failed");
  const Diagnosis lock = explain_log(
      "Timeout (0:01:00)!\nThread 0x00007fbd (most recent call first):\n  File "
      "\"/v/lib/python3.11/site-packages/torch/utils/file_baton.py\", line 50 in wait\n  File "
      "\"/users/ada/train.py\", "
      "line 5 in <module>\n");
  EXPECT_EQ(lock.rule, "extension-lock");
  EXPECT_EQ(lock.certainty, Certainty::likely);
}

TEST(Program, jax_without_a_coordinator_lost_no_peer) {
  const Diagnosis diagnosis = explain_log(
      "F1127 18:09:05.632304   23681 client.h:80] Terminating process because the JAX distributed service "
      "detected "
      "fatal errors. This most likely indicates that another task died; see the other task logs.\n\n"
      "RPC: /xla.coordination.CoordinationService/RegisterTask\n");
  EXPECT_EQ(diagnosis.rule, "jax-not-registered");
  EXPECT_EQ(diagnosis.consequences.english(), "");
}

TEST(Program, a_crash_in_a_worker_of_ray_has_its_line) {
  EXPECT_EQ(explain_log(
                "(Env pid=7) *** SIGSEGV received at time=1795804143 on cpu 1 ***\n(Env pid=7) Fatal Python "
                "error: Segmentation fault\n(Env pid=7) \n(Env pid=7) Stack (most recent call first):\n"
                "(Env pid=7)   File \"/usr/lib/python3.11/ctypes/__init__.py\", line 519 in string_at\n"
                "(Env pid=7)   File \"/users/ada/env.py\", line 8 in rollout\n")
                .cause,
            "the program crashed (env.py:8): Segmentation fault");
}

TEST(Program, two_threads_in_the_program_may_wait_for_each_other) {
  const auto thread = [](const std::string& line) {
    return "Thread 0x00007f2f (most recent call first):\n  File \"" + line +
           "\n  File \"/v/lib/python3.11/threading.py\", line 982 in run\n\n";
  };
  const std::string read = thread("/users/ada/pipe.py\", line 7 in read");
  const std::string write = thread("/users/ada/pipe.py\", line 9 in write");
  const std::string join = thread("/v/lib/python3.11/threading.py\", line 1119 in join");
  EXPECT_EQ(explain_log("Timeout (0:00:12)!\n" + read + write + join).cause,
            "the program waited for 0:00:12 in the same place (pipe.py:7); two threads are at pipe.py:7 and "
            "pipe.py:9: perhaps each holds a lock that the other needs");
  EXPECT_EQ(explain_log("Timeout (0:00:12)!\n" + read + join).cause,
            "the program waited for 0:00:12 in the same place (pipe.py:7)");
}

TEST(Program, a_process_that_waited_when_it_was_aborted_hung) {
  const std::string aborted = "Fatal Python error: Aborted\n\n";
  const std::string feeder =
      "Thread 0x00007f01 (most recent call first):\n  File \"/users/ada/feed.py\", line 3 in fill\n\n";
  const std::string current = "Current thread 0x00007f02 (most recent call first):\n";
  const auto waits = [&](const std::string& frame) {
    return aborted + feeder + current + "  File \"/v/lib/python3.11/" + frame +
           "\n  File \"/users/ada/run.py\", line 9 in main\n\n";
  };
  for (const char* frame : {"threading.py\", line 1139 in _wait_for_tstate_lock",
                            "multiprocessing/popen_fork.py\", line 27 in poll",
                            "multiprocessing/connection.py\", line 384 in _recv",
                            "selectors.py\", line 415 in select", "subprocess.py\", line 1264 in wait"}) {
    const Diagnosis hang = explain_log(waits(frame) + "rc=124\n");
    EXPECT_EQ(hang.rule, "aborted-while-waiting") << frame;
    EXPECT_THAT(hang.cause.english(), HasSubstr("(run.py:9)")) << frame;
  }
  // A fork that the log warns of is the usual reason.
  EXPECT_EQ(explain_log("a.py:3: RuntimeWarning: os.fork() was called. JAX is multithreaded, so this will "
                        "likely lead to a deadlock.\n" +
                        waits("threading.py\", line 3 in wait"))
                .rule,
            "fork-of-threads");
  // A crash in the current thread, whatever its peers wait for.
  const Diagnosis crash = explain_log(waits("json/decoder.py\", line 3 in raw_decode"));
  EXPECT_EQ(crash.rule, "dump-of-crash");
  EXPECT_THAT(crash.cause.english(), HasSubstr("(run.py:9)"));
  std::string fault = waits("threading.py\", line 3 in wait");
  fault.replace(0, aborted.size(), "Fatal Python error: Segmentation fault\n\n");
  EXPECT_EQ(explain_log(fault).rule, "dump-of-crash");
}

}  // namespace
}  // namespace stoker::diagnose
