#include "diagnose/exception_chain.h"

#include <gmock/gmock.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

// Two exceptions, the second one raised while the first was handled.
std::string chain(const std::string& inner, const std::string& outer) {
  return kTraceback + inner + "\n\nDuring handling of the above exception, another exception occurred:\n\n" +
         kTraceback + outer + "\n";
}

std::string cause_of(const std::string& inner, const std::string& outer) {
  return explain_log(chain(inner, outer)).cause.english();
}

TEST(ExceptionChain, the_last_separate_message_is_the_cause) {
  EXPECT_EQ(cause_of("KeyError: 'adamx'", "ValueError: unknown optimizer 'adamx', use 'adam'"),
            "the program raised ValueError: unknown optimizer 'adamx', use 'adam' (train.py:7)");
  EXPECT_EQ(
      cause_of("_pickle.UnpicklingError: invalid load key, '\\x00'.", "ValueError: no raw files in raw/"),
      "the program raised ValueError: no raw files in raw/ (train.py:7)");
  EXPECT_EQ(
      cause_of("UnicodeDecodeError: 'utf-8' codec can't decode byte 0x89 in position 1: invalid start byte",
               "ValueError: expected a path to a configuration, got conf/a.json"),
      "the program raised ValueError: expected a path to a configuration, got conf/a.json (train.py:7)");
}

TEST(ExceptionChain, an_exception_that_only_names_what_failed_yields_to_the_inner_one) {
  EXPECT_EQ(cause_of("KeyError: 'lr'", "RuntimeError: setup of run_7 failed"),
            "the program raised KeyError: 'lr' (train.py:7)");
  EXPECT_EQ(cause_of("KeyError: 'lr'", "SystemError: no data"),
            "the program raised KeyError: 'lr' (train.py:7)");
}

TEST(ExceptionChain, an_error_of_the_system_is_the_cause) {
  EXPECT_EQ(cause_of("FileNotFoundError: [Errno 2] No such file or directory: '/data/a.h5'",
                     "RuntimeError: could not load the dataset of the job"),
            "/data/a.h5 does not exist on that node");
  EXPECT_EQ(
      cause_of("OSError: [Errno 28] No space left on device", "ValueError: file 'a.pt' has 7 of 9 parts"),
      "the disk is full");
}

TEST(ExceptionChain, an_error_in_a_handler_is_named_beside_the_first_one) {
  for (const char* broken :
       {"AttributeError: 'NoneType' object has no attribute 'close'", "NameError: name 'log' is not defined",
        "UnboundLocalError: cannot access local variable 'f' where it is not associated with a value",
        "AttributeError: 'OSError' object has no attribute 'response'"}) {
    const Diagnosis first = explain_log(chain("OSError: [Errno 28] No space left on device", broken));
    EXPECT_EQ(first.cause, "the disk is full") << broken;
    ASSERT_EQ(first.notes.size(), 1u) << broken;
    EXPECT_THAT(first.notes[0].english(), testing::HasSubstr(broken));
    EXPECT_THAT(cause_of("ZeroDivisionError: division by zero", broken),
                testing::HasSubstr("division by zero"))
        << broken;
  }
  // After a look-up that failed, the handler tried something else.
  EXPECT_THAT(cause_of("KeyError: 'model'", "AttributeError: 'NoneType' object has no attribute 'items'"),
              testing::HasSubstr("None"));
}

TEST(ExceptionChain, a_timeout_outranks_the_cancellation_that_it_made) {
  const std::string cancelled = kTraceback + "asyncio.exceptions.CancelledError\n";
  for (const char* timeout : {"TimeoutError", "asyncio.exceptions.TimeoutError"}) {
    EXPECT_EQ(
        explain_log(cancelled + "\nThe above exception was the direct cause of the following exception:\n\n" +
                    kTraceback + timeout + "\n")
            .cause.english(),
        format("the program raised {} (train.py:7)", timeout));
  }
}

TEST(ExceptionChain, a_warning_above_does_not_change_the_end) {
  const std::string warning =
      "/v/torch/cuda/__init__.py:129: UserWarning: CUDA initialization: Found no NVIDIA driver on your "
      "system.\n"
      "  return f()\n";
  const std::string info =
      "I2025-11-21 09:51:48,122 Unable to open libfoo.so: cannot open shared object file\n";
  const std::string tool =
      "2025-11-21 10:00:00.123456: W tf/dso_loader.cc:64] Could not load libcudart.so.11.0: "
      "libcudart.so.11.0: cannot open shared object file\n";
  for (const std::string& noise : {warning, info, tool, warning + info + tool}) {
    EXPECT_EQ(explain_log(noise + kTraceback + "KeyError: 'lr'\n").rule, "python-exception") << noise;
    EXPECT_EQ(explain_log(noise + "run.sh: line 4: 27 Killed                  python a.py\n").rule,
              "batch-killed")
        << noise;
    EXPECT_EQ(explain_log(noise + "srun: error: n1: task 0: Segmentation fault (core dumped)\n").rule,
              "srun-signal")
        << noise;
    EXPECT_EQ(explain_log(noise + steps(3)).certainty, Certainty::unknown) << noise;
    EXPECT_EQ(explain_log(noise + steps(3) + "Training complete\n").certainty, Certainty::none) << noise;
  }
}

TEST(ExceptionChain, a_warning_that_names_the_reason_of_the_end_is_the_cause) {
  EXPECT_EQ(
      explain_log("[W1121 10:00:00.1 7 socket.cpp:767] [c10d] The IPv6 network addresses of (gpu-01.site, "
                  "29500) cannot be retrieved (gai error: -2 - Name or service not known).\n" +
                  kTraceback +
                  "torch.distributed.DistNetworkError: The client socket has timed out after 8000ms while "
                  "trying to connect to (gpu-01.site, 29500).\n")
          .rule,
      "name-not-resolved");
}

}  // namespace
}  // namespace stoker::diagnose
