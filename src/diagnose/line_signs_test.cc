#include "diagnose/line_signs.h"

#include <gmock/gmock.h>

namespace stoker::diagnose {
namespace {

TEST(LineSigns, levels_of_logging_libraries_are_read) {
  for (const char* line :
       {"INFO:root:loading", "2025-11-21 10:03:11,082 INFO train: ERROR-corrected labels", "[INFO] start",
        "I0000 00:00:1795793120.006631   11941 tf_record_dataset_op.cc:390] buffer", "DEBUG a",
        "I1121 10:03:11.250000 7 distributed.py:148] Connecting",
        "2025-11-21 10:03:11.1: I tensorflow/core/util/port.cc:153] oneDNN", "{\"level\": \"INFO\"}",
        "2025-11-21 10:03:11.082 | INFO     | train:main:3 - text"})
    EXPECT_EQ(level_of(line), LogLevel::info) << line;
  for (const char* line : {"WARNING:root:retry", "[ERROR] it failed", "2025-11-21 10:03:11 CRITICAL end",
                           "(raylet) A worker died", "[E1121 10:03:11.93 ProcessGroupGloo.cpp:67] Gloo"})
    EXPECT_EQ(level_of(line), LogLevel::warning) << line;
  for (const char* line :
       {"RuntimeError: [ERROR] the value", "n1:4711:4711 [0] NCCL INFO NET/IB", "step 5 loss 0.1", "",
        "UserWarning: INFO is deprecated", "INFORMATION about errors"})
    EXPECT_EQ(level_of(line), LogLevel::none) << line;
}

TEST(LineSigns, progress_has_an_epoch_a_step_or_a_loss) {
  for (const char* line : {"iter    5 loss 0.3833 lr 0.1", "step 5: train_error=0.1", "Epoch: [0][ 10/100]",
                           "{'loss': 2.3, 'epoch': 1}", "4/4 - 1s - 253ms/step - accuracy: 0.07"})
    EXPECT_TRUE(is_progress(line)) << line;
  for (const char* line : {"slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED", "wandb: loss 0.1",
                           " 42%|####    | 42/100 [00:10<00:20, 4.2it/s]", "stepping down", "shard 2 done"})
    EXPECT_FALSE(is_progress(line)) << line;
}

TEST(LineSigns, the_end_of_a_program_is_distinguished_from_the_end_of_a_part) {
  for (const char* line : {"INFO train: Training complete. Best error 0.28",
                           "Job finished successfully",
                           "done in 9s, exit code 0",
                           "exit=0",
                           "rc = 0",
                           "2026-11-27 20:13:29,799 INFO done",
                           "INFO:absl:Final eval: error=0.091. Saved to a",
                           "All shards processed",
                           "finished training",
                           "`Trainer.fit` stopped: `max_epochs=3` reached.",
                           "{'train_runtime': 12.1}",
                           "INFO main: done.",
                           "training finished: 30 steps, final checkpoint written",
                           "All 5 folds trained. AUC 0.9",
                           "max steps reached, exiting",
                           "Reached max_steps=1000",
                           "PASSED wrote model.txt, 0 errors",
                           "Model exported to served/. Done.",
                           "training complete: 30 steps, 2 batches skipped, 0 failures",
                           "Early stopping triggered",
                           "all 12 shards were written"})
    EXPECT_TRUE(reports_success(line)) << line;
  for (const char* line :
       {"epoch 3 done", "checkpoint saved successfully to a", "loading complete",
        "Training finished with errors", "the run will exit when training is done", "run 7 was not completed",
        "step 5 finished", "==== done ====", "Loading dataset... Done", "training complete, 3 failures",
        "All folds will be trained", "EarlyStopping(patience=3)", "max_steps=1000",
        "All model layers were used"})
    EXPECT_FALSE(reports_success(line)) << line;
}

TEST(LineSigns, a_result_is_distinguished_from_a_checkpoint) {
  for (const char* line : {"saved model to out/model.npz", "INFO:train:wrote predictions.csv (1000 rows)",
                           "Training time: 0:12:33", "Best model at epoch 12: 0.913", "total time 31.2 s",
                           "2026-11-27 10:03:11,082 INFO train: Results saved to results/", "Best trial: 7"})
    EXPECT_TRUE(reports_result(line)) << line;
  for (const char* line :
       {"could not save model to a", "saved model to ckpt/step-100.pt", "Saved best model to b.pt",
        "loading weights", "saved checkpoint", "resuming the best model of epoch 3"})
    EXPECT_FALSE(reports_result(line)) << line;
}

TEST(LineSigns, a_retry_is_distinguished_from_giving_up) {
  for (const char* line : {"retrying in 5 s (1/3)", "Task f failed. It will be retried.", "skipping batch 4",
                           "attempt 2 of 5", "ERROR:train:ignoring a.jpg"})
    EXPECT_TRUE(reports_retry(line)) << line;
  for (const char* line :
       {"giving up after 3 retries", "Max retries exceeded with url: /", "no more retries", "loss 3"})
    EXPECT_FALSE(reports_retry(line)) << line;
}

TEST(LineSigns, a_failed_end_has_an_exit_code_or_a_signal) {
  for (const char* line : {"train.py exited with code 1", "exit code: 137", "job.sh: line 4: 9 Killed",
                           "Segmentation fault (core dumped)", "d.py FAILED", "exited with exit code -9",
                           "exit=1", "rc: 143", "return_code=-9"})
    EXPECT_TRUE(reports_failed_end(line)) << line;
  for (const char* line : {"exit code 0", "exit=0", "arc=3", "0 failed batches", "top-5 error 0.1"})
    EXPECT_FALSE(reports_failed_end(line)) << line;
}

TEST(LineSigns, ends_of_a_training_by_its_own_rules_are_successes) {
  for (const char* line : {"`Trainer.fit` stopped: `max_epochs=3` reached.",
                           "| End of training | test loss  4.61 | test ppl  100.48",
                           "Monitored metric val/acc did not improve in the last 3 records. Best score: "
                           "0.380. Signaling Trainer to stop.",
                           "Stopping threshold reached: val_loss = 0.1 < 0.2. Signaling Trainer to stop.",
                           "Epoch 12: early stopping"})
    EXPECT_TRUE(reports_success(line)) << line;
  EXPECT_FALSE(reports_success("Monitored metric val_loss = nan is not finite. Signaling Trainer to stop."));
  // Rich draws its bar once more at the end.
  EXPECT_FALSE(is_progress("Epoch 2/2  ━━━━━━━━━ 25/25 0:00:00 707.12it/s train_loss: 1.056"));
}

}  // namespace
}  // namespace stoker::diagnose
