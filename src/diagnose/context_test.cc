// Cures that fit the context of a message: what asked for the name, the port, the module or the option.
#include <gmock/gmock.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Context, a_name_that_does_not_resolve_has_the_cure_of_what_asked_for_it) {
  for (const char* line : {"requests.exceptions.ConnectionError: "
                           "HTTPSConnectionPool(host='data.example.org', port=443): Max retries "
                           "exceeded with url: /a (Caused by NameResolutionError(\"Failed to resolve "
                           "'data.example.org' ([Errno -2] Name or "
                           "service not known)\"))\n",
                           "curl: (6) Could not resolve host: data.example.org\n",
                           "socket.gaierror: [Errno -2] Name or service not known\n",
                           "ssh: Could not resolve hostname gpu9: Name or service not known\n"}) {
    const Diagnosis diagnosis = explain_log(line);
    EXPECT_THAT(diagnosis.cure.english(), Not(HasSubstr("MASTER_ADDR"))) << line;
    EXPECT_THAT(diagnosis.cause.english(), HasSubstr("resolve")) << line;
  }
  EXPECT_EQ(
      explain_log(
          "[W socket.cpp:464] [c10d] The IPv6 network addresses of (n1, 29500) cannot be retrieved (gai "
          "error: -2 - Name or service not known).\n")
          .rule,
      "name-not-resolved");
}

TEST(Context, a_port_in_use_is_that_of_the_program_or_of_the_rendezvous) {
  EXPECT_EQ(explain_log(kTraceback + "OSError: [Errno 98] Address already in use\n").rule,
            "port-of-program-in-use");
  EXPECT_EQ(
      explain_log("ERROR: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address "
                  "already in use\n" +
                  kTraceback +
                  "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): "
                  "address already in use\n")
          .cause,
      "the port 8000 that the program opens is in use, by another job or a leftover process (train.py:7)");
  EXPECT_EQ(explain_log(kTraceback + "RuntimeError: Address already in use\n").rule, "port-in-use");
}

TEST(Context, a_module_of_a_pickled_object_is_not_on_the_package_index) {
  const Diagnosis diagnosis = explain_log(
      "Traceback (most recent call last):\n  File \"eval.py\", line 3, in <module>\n"
      "  File \"/v/lib/python3.11/site-packages/torch/serialization.py\", line 2210, in find_class\n"
      "    return super().find_class(mod_name, name)\nModuleNotFoundError: No module named 'segnet'\n");
  EXPECT_EQ(diagnosis.rule, "pickled-class-missing");
  EXPECT_THAT(diagnosis.cure.english(), Not(HasSubstr("pip install")));
  EXPECT_EQ(
      explain_log(kTraceback +
                  "AttributeError: Can't get attribute 'Net' on <module '__main__' (built-in)>\n")
          .cause,
      "the file holds an object of the class Net of __main__, which the program does not have (train.py:7)");
}

TEST(Context, options_and_variables_of_launchers_are_known) {
  EXPECT_EQ(explain_log("main.py: error: the following arguments are required: --data, --local-rank\n").rule,
            "local-rank-required");
  EXPECT_EQ(explain_log("main.py: error: unrecognized arguments: --local-rank=3\n").rule,
            "local-rank-unknown");
  EXPECT_EQ(explain_log("main.py: error: unrecognized arguments: --locale=3\n").rule,
            "unrecognised-argument");
  const Diagnosis rank = explain_log(kTraceback + "KeyError: 'WORLD_SIZE'\n");
  EXPECT_EQ(rank.cause, "WORLD_SIZE is not set: the program was started without a launcher (train.py:7)");
  EXPECT_THAT(rank.cure.english(), HasSubstr("torchrun"));
}

TEST(Context, an_option_is_no_command) {
  EXPECT_EQ(explain_log("run.sh: line 9: --batch-size=4: command not found\n").rule, "broken-continuation");
  EXPECT_EQ(explain_log("run.sh: 9: -n: not found\n").rule, "broken-continuation");
  EXPECT_EQ(explain_log("run.sh: line 9: trainer: command not found\n").rule, "command-not-found");
}

TEST(Context, a_parameter_of_a_checkpoint_has_no_cure_for_arrays) {
  const Diagnosis diagnosis = explain_log(
      kTraceback +
      "RuntimeError: Error(s) in loading state_dict for Net:\n    size mismatch for head.bias: copying a "
      "param with shape torch.Size([5]) from checkpoint, the shape in current model is torch.Size([7]).\n");
  EXPECT_EQ(diagnosis.cause,
            "the parameter head.bias has the shape [5] in the checkpoint and [7] in the model");
  EXPECT_THAT(diagnosis.cure.english(), HasSubstr("strict=False"));
}

TEST(Context, only_a_container_has_the_cure_of_containers) {
  for (const char* line : {"FATAL:   could not open image a.sif: no such file or directory\n",
                           "FATAL:   \"torchrun\": executable file not found in $PATH\n",
                           "FATAL:   While making image from oci registry: error fetching image\n"})
    EXPECT_EQ(explain_log(line).rule, "container-missing") << line;
  for (const char* line :
       {"FATAL: the number of cells must be even\n", "[solver] FATAL:   dt is too large for this mesh\n",
        " ** FATAL: nx=6 is not divisible by px=4\n"})
    EXPECT_THAT(explain_log(line).cause.english(), Not(HasSubstr("container"))) << line;
  const Diagnosis abort =
      explain_log("** FATAL: ny=9 is not divisible by py=2\n" + std::string(60, '-') +
                  "\nMPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 17.\n");
  EXPECT_THAT(abort.cause.english(), HasSubstr("ny=9 is not divisible"));
}

TEST(Context, a_name_is_that_of_the_command_that_asked_for_it) {
  EXPECT_EQ(
      explain_log("Resolving data.example.org (data.example.org)... failed: Name or service not known.\n")
          .cause,
      "the name of a server, data.example.org does not resolve on that node");
  for (const char* line : {"wget: unable to resolve host address 'data.example.org'\n",
                           "E: Temporary failure resolving 'deb.example.org'\n",
                           "ping: data.example.org: Name or service not known\n"})
    EXPECT_THAT(explain_log(line).cure.english(), HasSubstr("login node")) << line;
  EXPECT_THAT(
      explain_log("ssh: Could not resolve hostname forge: Name or service not known\nfatal: Could not "
                  "read from remote repository.\n")
          .cure.english(),
      HasSubstr("repository"));
}

}  // namespace
}  // namespace stoker::diagnose
