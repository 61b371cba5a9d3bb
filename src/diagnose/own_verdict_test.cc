#include "diagnose/own_verdict.h"

#include <gmock/gmock.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

using testing::HasSubstr;

TEST(OwnVerdict, a_verdict_after_results_is_the_likely_cause) {
  const std::string work = "reading mesh.msh\nstep 1 E=0.52\nstep 2 E=0.61\n";
  for (const std::string result : {"evaluation finished in 2.1 s\n", "F1 = 0.41\n", "Training finished\n",
                                   "wrote forecast.nc\n", "score 0.71\n", ""}) {
    for (const std::string verdict :
         {"momentum drift 12.5% exceeds 1%: aborting", "score 0.41 < 0.80 - not deploying this model",
          "RMSE 4.1 deviates from the published 3.2 by more than 0.3", "STOP: land mask has 90 rows",
          "regression suite: FAIL (3 of 40)", "checksum mismatch between a.bin and b.bin",
          "3 cases passed, 2 failed", "refusing to overwrite the baseline", "residual check: 3e-2 > 1e-6",
          "expected 12 tiles, found 11", "chains not converged, result unusable",
          "permission denied by the licence server",
          "model is worse than the baseline, will not be registered",
          "export to ONNX: opset 19 not supported by the runtime", "2 of 12 cases crashed, see cases/*.log",
          "sha256 differs from the manifest, file discarded"}) {
      const Diagnosis own = explain_log(work + result + verdict + "\n");
      EXPECT_EQ(own.certainty, Certainty::likely) << result << verdict;
      EXPECT_EQ(own.rule, "own-error") << result << verdict;
      EXPECT_THAT(own.cause.english(), HasSubstr(verdict)) << result;
    }
  }
}

TEST(OwnVerdict, an_end_below_a_verdict_is_no_success) {
  for (const std::string end : {"end of run\n", "model stopped\n", "output in result_0002.vtu\n", "Done.\n",
                                "solution saved to best.sol\n"}) {
    const Diagnosis own = explain_log("t = 0.3\n*** no convergence after 40 iterations\n" + end);
    EXPECT_EQ(own.certainty, Certainty::likely) << end;
    EXPECT_THAT(own.cause.english(), HasSubstr("no convergence after 40 iterations")) << end;
  }
}

TEST(OwnVerdict, counts_of_no_failure_are_none) {
  for (const std::string good :
       {"fatal errors: 0", "0 failed, 12 passed", "no check failed",
        "error rate 0.01 is below threshold 0.05", "error norm = 1.2e-09", "drift does not exceed 1%",
        "will abort if the loss exceeds 10", "trial 7 aborted by the pruner", "aborted trajectories: 0",
        "the model exceeds the baseline by 2 points", "12 files copied, 0 errors",
        "Elapsed: 3 s, 1 rejected step", "INFO 2 values exceed the axis"}) {
    EXPECT_FALSE(states_failure(good)) << good;
    EXPECT_EQ(explain_log("step 1 loss 0.5\n" + good + "\nAll tasks done\n").certainty, Certainty::none)
        << good;
  }
}

TEST(OwnVerdict, frames_of_a_stack_are_no_verdict) {
  for (const std::string frame :
       {"frame #38: <unknown function> + 0x2724a (0x7f1e3480d24a in /lib/x86_64-linux-gnu/libc.so.6)",
        "#12 0x00007f1e3480d24a in check_failed () at limit.cc:3"}) {
    EXPECT_NE(explain_log("step 1 loss 0.5\n" + frame + "\n").rule, "own-error") << frame;
  }
}

TEST(OwnVerdict, a_comparison_alone_is_neither_success_nor_failure) {
  EXPECT_TRUE(may_state_failure("accuracy 0.91 is above threshold 0.90"));
  EXPECT_FALSE(states_failure("accuracy 0.91 is above threshold 0.90"));
  EXPECT_NE(explain_log("epoch 1\naccuracy 0.91 is above threshold 0.90\n").certainty, Certainty::none);
  EXPECT_FALSE(may_state_failure("training stopped early at epoch 7"));
}

TEST(OwnVerdict, a_bare_count_is_completed_by_its_reason) {
  const Diagnosis upload = explain_log(
      "[1/3] a.tar ... uploaded\n[2/3] b.tar ... 403 Forbidden (AccessDenied)\n[3/3] c.tar ... uploaded\n"
      "summary: 2 uploaded, 1 failed\n");
  EXPECT_THAT(upload.cause.english(), HasSubstr("403 Forbidden"));
  EXPECT_THAT(upload.cure.english(), HasSubstr("permissions"));
  EXPECT_THAT(
      explain_log("requesting licence FLOW ... denied\nall seats already reached (8 of 8)\n").cause.english(),
      HasSubstr("denied; all seats already reached"));
}

TEST(OwnVerdict, words_without_a_reason_take_the_line_above) {
  EXPECT_EQ(explain_log("assembling\nsingular matrix at row 312\nsolver gave up\n").cause,
            "the program reports: singular matrix at row 312; solver gave up");
  EXPECT_EQ(explain_log("accuracy 0.97\n312 test ids are also in train\nrefused\n").cause,
            "the program reports: 312 test ids are also in train; refused");
}

TEST(OwnVerdict, a_doubtful_line_below_an_end_leaves_it_open) {
  for (const std::string doubt :
       {"the reference file is missing", "plots incomplete", "mesh is invalid, exiting"})
    EXPECT_NE(explain_log("step 1\nTraining finished\n" + doubt + "\n").certainty, Certainty::none) << doubt;
}

TEST(OwnVerdict, what_was_not_found_above_completes_the_verdict) {
  EXPECT_THAT(explain_log("INFO - Found 0 images in data/val\nCRITICAL - nothing to evaluate, exiting\n")
                  .cause.english(),
              HasSubstr("Found 0 images in data/val"));
}

TEST(OwnVerdict, a_verdict_outranks_an_error_that_was_worked_around) {
  const Diagnosis own = explain_log(
      "ERROR cannot read /a/old.json: [Errno 2] No such file or directory: '/a/old.json'\nusing defaults\n"
      "step 1\nstep 2\nBLEU = 21.3\nscore 21.3 deviates from reference 27.8 by more than 0.5\n");
  EXPECT_THAT(own.cause.english(), HasSubstr("deviates from reference"));
  EXPECT_EQ(own.certainty, Certainty::likely);
}

}  // namespace
}  // namespace stoker::diagnose
