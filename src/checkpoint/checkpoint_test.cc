#include "stoker/checkpoint.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/manifest.h"
#include "checkpoint/sandbox.h"

namespace stoker::checkpoint {
namespace {

std::string text_of(const Status& status) { return status.to_string(); }

TEST(Checkpoint, a_save_of_two_ranks_loads_on_any_number_of_ranks) {
  Sandbox box;
  box.save_well(2, {10});
  for (int world = 1; world <= 3; ++world) {
    for (int rank = 0; rank < world; ++rank)
      EXPECT_TRUE(box.loads_exactly(10, rank, world)) << rank << "/" << world;
  }
}

TEST(Checkpoint, any_number_of_ranks_saves_the_same_checkpoint) {
  for (const int world : {1, 2, 3, 5, 17}) {
    Sandbox box(world <= 3 ? Storage::disk : Storage::memory);
    box.save_well(world, {10});
    EXPECT_TRUE(box.loads_exactly(10)) << world;
    EXPECT_EQ(box.list(Depth::bytes), "10 valid") << world;
  }
}

TEST(Checkpoint, state_is_restored_and_rank_state_only_for_the_same_world_size) {
  Sandbox box;
  box.save_well(2, {30});
  ToyModel model(0);
  const auto one = load(box.step(30), {Rank{1}, WorldSize{2}}, model.targets());
  ASSERT_TRUE(one.ok()) << text_of(one.status());
  EXPECT_EQ(one->step, Step{30});
  EXPECT_EQ(one->saved_world_size, WorldSize{2});
  EXPECT_EQ(*one->state.integer("epoch"), 3);
  EXPECT_EQ(*one->state.number("lr"), 0.1 * 30);
  EXPECT_EQ(*one->hyper_parameters.number("momentum"), 0.9);
  EXPECT_EQ(*one->rank_state->integer("rank"), 1);
  const auto other = load(box.step(30), {Rank{1}, WorldSize{3}}, model.targets());
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(other->rank_state.has_value());
}

TEST(Checkpoint, shares_are_balanced_and_buffers_come_from_rank_0) {
  Sandbox box;
  box.save_well(2, {10});
  const auto manifest = read_manifest(box.step(10));
  ASSERT_TRUE(manifest.ok());
  std::uint64_t bytes[2] = {};
  for (const TensorFile& file : manifest->files) bytes[file.rank.value] += file.bytes - file.header_bytes;
  EXPECT_LT(bytes[0] > bytes[1] ? bytes[0] - bytes[1] : bytes[1] - bytes[0], 64u << 10);
  EXPECT_EQ(manifest->files.size(), 4u);
  // save_rank() gives the other ranks different buffers, so loads_exactly() detects if one of theirs was
  // stored.
  EXPECT_TRUE(box.loads_exactly(10));
}

TEST(Checkpoint, file_data_starts_on_a_page) {
  Sandbox box;
  box.save_well(2, {10});
  const auto manifest = read_manifest(box.step(10));
  ASSERT_TRUE(manifest.ok());
  for (const TensorFile& file : manifest->files) EXPECT_EQ(file.header_bytes % 4096, 0u);
}

TEST(Checkpoint, the_newest_steps_are_kept) {
  Sandbox box;
  box.keep_last = 2;
  box.save_well(2, {1, 2, 3, 4, 5});
  EXPECT_EQ(box.list(), "4 valid, 5 valid");
  box.keep_last = 0;
  box.writer = "2";
  box.save_well(2, {6, 7});
  EXPECT_EQ(box.list(), "4 valid, 5 valid, 6 valid, 7 valid");
}

TEST(Checkpoint, the_step_a_run_resumed_from_is_not_removed) {
  Sandbox box;
  box.keep_last = 1;
  box.save_well(1, {1});
  box.writer = "2";
  for (const Status& status : box.save(1, {2, 3}, [&](SaverOptions& o) { o.protected_step = box.step(1); })) {
    EXPECT_TRUE(status.ok()) << text_of(status);
  }
  EXPECT_EQ(box.list(), "1 valid, 3 valid");
}

TEST(Checkpoint, invalid_steps_do_not_count_as_kept) {
  Sandbox box;
  box.keep_last = 2;
  box.save_well(1, {1, 2});
  ASSERT_TRUE(remove_file(box.file(2, 0)).ok());
  box.writer = "2";
  box.save_well(1, {3});
  EXPECT_EQ(box.list(),
            "1 valid, 2 torn: model/shard-00001-model-00001-of-00001.safetensors: rank 0's file is missing, "
            "3 valid");
}

TEST(Checkpoint, a_step_older_than_a_damaged_one_is_kept) {
  Sandbox box;
  box.keep_last = 1;
  box.save_well(1, {200});
  box.keep_last = 2;
  box.writer = "2";
  box.save_well(1, {300});
  // One bit, which only a full read detects: the run resumes from step 200.
  std::string bytes = *read_file(box.file(300, 0));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(write_file(box.file(300, 0), bytes).ok());
  ASSERT_EQ(box.list(), "200 valid, 300 valid");
  box.keep_last = 1;
  box.writer = "3";
  box.save_well(2, {250});
  EXPECT_THAT(box.list(Depth::bytes), testing::StartsWith("250 valid, 300 torn: "));
  ToyModel model(0);
  const auto loaded = load_latest(box.directory(), {}, model.targets());
  ASSERT_TRUE(loaded.ok()) << text_of(loaded.status());
  EXPECT_EQ(loaded->step, Step{250});
}

TEST(Checkpoint, a_later_attempt_replaces_valid_and_torn_steps) {
  Sandbox box;
  box.save_well(2, {10, 20});
  ASSERT_TRUE(remove_file(box.file(20, 1)).ok());
  box.writer = "2";
  box.save_well(3, {10, 20});
  EXPECT_EQ(box.list(Depth::bytes), "10 valid, 20 valid");
  EXPECT_EQ(read_manifest(box.step(20))->world_size, WorldSize{3});
  EXPECT_EQ(list_directory(box.directory())->size(), 2u);
}

TEST(Checkpoint, the_step_a_run_resumed_from_is_not_replaced) {
  Sandbox box;
  box.save_well(1, {10});
  box.writer = "2";
  const auto statuses = box.save(1, {10}, [&](SaverOptions& o) { o.protected_step = box.step(10); });
  EXPECT_EQ(text_of(statuses[0]),
            format("checkpoint step 10: {}: is the step this run resumed from", box.step(10).string()));
  EXPECT_EQ(box.list(), "10 valid");
}

TEST(Checkpoint, a_directory_belongs_to_one_run) {
  Sandbox box;
  box.save_well(1, {10});
  const auto statuses = box.save(1, {10}, [](SaverOptions& o) { o.run = "run-b"; });
  EXPECT_EQ(text_of(statuses[0]),
            format("{}: contains checkpoints of run 'run-a', not of 'run-b' (checkpoint.directory)",
                   box.directory().string()));
  EXPECT_EQ(statuses[0].code(), Code::exists);
}

TEST(Checkpoint, options_are_checked) {
  const auto problem = [](const std::function<void(SaverOptions&)>& change) {
    SaverOptions o = Sandbox().options(0, 1);
    change(o);
    return Saver::create(o).status().to_string();
  };
  EXPECT_EQ(problem([](SaverOptions& o) { o.directory.clear(); }),
            "checkpoint: no directory (checkpoint.directory)");
  EXPECT_EQ(problem([](SaverOptions& o) { o.rank = Rank{1}; }), "checkpoint: rank 1 is outside a world of 1");
  EXPECT_EQ(problem([](SaverOptions& o) { o.run = ""; }), "checkpoint: run '' is empty or not plain text");
  EXPECT_EQ(problem([](SaverOptions& o) { o.writer = "a/b"; }),
            "checkpoint: writer 'a/b' is not 1 to 64 letters, digits, '-' or '_'");
}

TEST(Checkpoint, a_missing_rank_is_named) {
  Sandbox box;
  box.limit = 300ms;
  std::vector<Status> statuses(2);
  std::thread other([&] { statuses[1] = Sandbox::save_rank(box.options(1, 3), {10}); });
  statuses[0] = Sandbox::save_rank(box.options(0, 3), {10});
  other.join();
  EXPECT_EQ(text_of(statuses[0]), "checkpoint step 10: rank 2 did not write its share within 300 ms");
  EXPECT_EQ(statuses[0].code(), Code::timeout);
  EXPECT_THAT(text_of(statuses[1]), testing::StartsWith("checkpoint step 10: rank 0"));
  // The missing rank has not read the reason: the note stays until the next attempt removes it.
  EXPECT_EQ(box.list(), "10 torn: given up: rank 2 did not write its share within 300 ms");
  box.writer = "2";
  box.limit = 30s;
  box.save_well(3, {10});
  EXPECT_EQ(box.list(Depth::bytes), "10 valid");
  EXPECT_EQ(list_directory(box.directory())->size(), 1u);
}

TEST(Checkpoint, all_ranks_get_the_reason_of_an_abort_even_if_rank_0_leaves_first) {
  for (int round = 0; round < 6; ++round) {
    Sandbox box;
    const auto statuses = box.save(3, {10}, [](SaverOptions& o) {
      o.observe = [rank = o.rank](CommitPoint point) {
        // Reads the note late, when rank 0 is already in finish().
        if (rank.value == 2 && point == CommitPoint::ready_marker_written) std::this_thread::sleep_for(20ms);
        if (rank.value == 1 && point == CommitPoint::pending_made) std::this_thread::sleep_for(1ms);
      };
      if (o.rank.value == 1) o.run = "run-b";
    });
    EXPECT_EQ(text_of(statuses[0]),
              "checkpoint step 10: rank 1 saves as 'run-b/1/10.0', but rank 0 as 'run-a/1/10.0' (the run "
              "differs)");
    EXPECT_EQ(text_of(statuses[2]),
              "checkpoint step 10: rank 0: rank 1 saves as 'run-b/1/10.0', but rank 0 as 'run-a/1/10.0' (the "
              "run differs)");
    EXPECT_EQ(list_directory(box.directory())->size(), 0u);
  }
}

TEST(Checkpoint, a_missing_rank_0_is_named) {
  Sandbox box;
  box.limit = 200ms;
  EXPECT_EQ(text_of(Sandbox::save_rank(box.options(1, 2), {10})),
            "checkpoint step 10: rank 0 did not commit the step within 200 ms");
}

TEST(Checkpoint, a_rank_with_different_tensors_is_named) {
  Sandbox box;
  std::vector<Status> statuses(2);
  std::thread other([&] {
    auto saver = *Saver::create(box.options(1, 2));
    ToyModel model(1000);
    StepContents contents = model.contents(Step{10});
    contents.parameters.pop_back();
    (void)saver->save(contents);
    statuses[1] = saver->finish(Deadline::after(30s));
  });
  statuses[0] = Sandbox::save_rank(box.options(0, 2), {10});
  other.join();
  EXPECT_EQ(text_of(statuses[0]),
            "checkpoint step 10: rank 1 has different tensors than rank 0 (names, types or shapes differ)");
}

// Only rank 1 is out of memory, or gets contents that cannot be saved.
TEST(Checkpoint, an_early_failure_on_one_rank_affects_only_that_step) {
  Sandbox box;
  auto first = *Saver::create(box.options(0, 2));
  auto second = *Saver::create(box.options(1, 2));
  const auto save = [&](const StepContents& one, const StepContents& other) {
    EXPECT_TRUE(first->save(one).ok());
    const Status status = second->save(other);
    const Status waited = second->wait(Deadline::after(30s));
    return std::pair{first->wait(Deadline::after(30s)), status.ok() ? waited : status};
  };
  const ToyModel old(1), twenty(2000), thirty(3000);
  StepContents twice = old.contents(Step{20});
  twice.parameters.push_back(twice.parameters[0]);
  const auto [missing, refused] = save(old.contents(Step{20}), twice);
  EXPECT_EQ(text_of(missing), "checkpoint step 20: rank 1: checkpoint: tensor 'conv.weight' appears twice");
  EXPECT_EQ(text_of(refused), "checkpoint: tensor 'conv.weight' appears twice");
  // Saved again and resumed: nothing of the first save is in either.
  for (const auto& [model, step] : {std::pair{&twenty, Step{20}}, {&thirty, Step{30}}}) {
    const auto [zero, one] = save(model->contents(step), model->contents(step));
    EXPECT_EQ(text_of(zero), "ok");
    EXPECT_EQ(text_of(one), "ok");
  }
  EXPECT_EQ(read_manifest(box.step(20))->save, "run-a/1/20.1");
  EXPECT_EQ(read_manifest(box.step(30))->save, "run-a/1/30.0");
  EXPECT_TRUE(box.loads_exactly(20));
  EXPECT_TRUE(box.loads_exactly(30));
  EXPECT_EQ(list_directory(box.directory())->size(), 2u);
}

// The contents of one rank cannot even be described.
TEST(Checkpoint, an_abandoned_save_fails_on_all_ranks_at_once) {
  for (const int abandoning : {0, 1}) {
    Sandbox box;
    const ToyModel model(1);
    std::array<std::unique_ptr<Saver>, 2> savers = {*Saver::create(box.options(0, 2)),
                                                    *Saver::create(box.options(1, 2))};
    Saver& leaving = *savers[static_cast<std::size_t>(abandoning)];
    Saver& other = *savers[static_cast<std::size_t>(1 - abandoning)];
    leaving.abandon(Step{10}, invalid("no memory"));
    ASSERT_TRUE(other.save(model.contents(Step{10})).ok());
    EXPECT_EQ(text_of(other.wait(Deadline::after(30s))),
              format("checkpoint step 10: rank {}: no memory", abandoning));
    // The same step is saved in a new folder, and the old one is removed.
    for (const auto& saver : savers) ASSERT_TRUE(saver->save(model.contents(Step{10})).ok());
    for (const auto& saver : savers) EXPECT_EQ(text_of(saver->finish(Deadline::after(30s))), "ok");
    EXPECT_EQ(read_manifest(box.step(10))->save, "run-a/1/10.1");
    EXPECT_EQ(list_directory(box.directory())->size(), 1u);
  }
}

// Rank 0 may be publishing the step: a peer that stops to wait must not remove its files.
TEST(Checkpoint, a_rank_that_stops_to_wait_leaves_its_files) {
  Sandbox box;
  std::vector<Status> statuses(2);
  std::thread other([&] {
    SaverOptions impatient = box.options(1, 2);
    impatient.limit = 200ms;
    statuses[1] = Sandbox::save_rank(impatient, {10});
  });
  SaverOptions slow = box.options(0, 2);
  slow.observe = [&](CommitPoint point) {
    if (point == CommitPoint::all_ready) std::this_thread::sleep_for(600ms);
  };
  statuses[0] = Sandbox::save_rank(slow, {10});
  other.join();
  EXPECT_EQ(text_of(statuses[0]), "ok");
  EXPECT_EQ(text_of(statuses[1]), "checkpoint step 10: rank 0 did not commit the step within 200 ms");
  EXPECT_EQ(box.list(Depth::bytes), "10 valid");
  EXPECT_TRUE(box.loads_exactly(10, 0, 2));
}

TEST(Checkpoint, a_removed_directory_is_created_again) {
  Sandbox box;
  auto saver = *Saver::create(box.options(0, 1));
  const ToyModel model(1);
  for (const std::int64_t step : {10, 20}) {
    ASSERT_TRUE(saver->save(model.contents(Step{step})).ok());
    EXPECT_EQ(text_of(saver->wait(Deadline::after(30s))), "ok");
    EXPECT_EQ(box.list(), format("{} valid", step));
    ASSERT_TRUE(remove_tree(box.directory()).ok());
  }
}

TEST(Checkpoint, errors_are_returned_by_the_next_save_which_still_works) {
  Sandbox box;
  auto saver = *Saver::create(box.options(0, 1));
  ToyModel model(1000);
  ASSERT_TRUE(saver->save(model.contents(Step{10})).ok());
  ASSERT_TRUE(saver->wait(Deadline::after(30s)).ok());
  // A file in place of the next step's folder.
  ASSERT_TRUE(write_file(box.directory() / ".step-20.1.0", "in the way").ok());
  ASSERT_TRUE(saver->save(model.contents(Step{20})).ok());
  while (saver->is_busy()) std::this_thread::yield();
  EXPECT_EQ(text_of(saver->save(model.contents(Step{30}))),
            format("checkpoint step 20: {}: file exists", (box.directory() / ".step-20.1.0").string()));
  EXPECT_TRUE(saver->finish(Deadline::after(30s)).ok());
  EXPECT_EQ(box.list(), "10 valid, 30 valid");
  EXPECT_EQ(text_of(saver->save(model.contents(Step{40}))), "checkpoint: save() after finish()");
}

TEST(Checkpoint, reports_the_times_of_the_last_step) {
  Sandbox box;
  auto saver = *Saver::create(box.options(0, 1));
  ToyModel model(1000);
  EXPECT_FALSE(saver->last_times().has_value());
  ASSERT_TRUE(saver->reserve(model.contents(Step{0})).ok());
  ASSERT_TRUE(saver->save(model.contents(Step{10})).ok());
  ASSERT_TRUE(saver->finish(Deadline::after(30s)).ok());
  ASSERT_TRUE(saver->last_times().has_value());
  EXPECT_EQ(saver->last_times()->step, Step{10});
  EXPECT_GT(saver->last_times()->write_s, 0);
  EXPECT_EQ(saver->last_times()->bytes, read_manifest(box.step(10))->total_bytes());
}

TEST(Checkpoint, rank_0_reports_the_size_of_the_step) {
  Sandbox box;
  auto first = *Saver::create(box.options(0, 2));
  auto second = *Saver::create(box.options(1, 2));
  ToyModel model(1000);
  ASSERT_TRUE(first->save(model.contents(Step{10})).ok());
  ASSERT_TRUE(second->save(model.contents(Step{10})).ok());
  ASSERT_TRUE(first->finish(Deadline::after(30s)).ok());
  ASSERT_TRUE(second->finish(Deadline::after(30s)).ok());
  EXPECT_EQ(first->last_times()->bytes, read_manifest(box.step(10))->total_bytes());
  EXPECT_LT(second->last_times()->bytes, first->last_times()->bytes);
}

TEST(Checkpoint, tensors_may_change_as_soon_as_save_returns) {
  Sandbox box;
  auto saver = *Saver::create(box.options(0, 1));
  for (std::int64_t step = 1; step <= 6; ++step) {
    ToyModel model(static_cast<std::uint64_t>(step) * 100);
    ASSERT_TRUE(saver->save(model.contents(Step{step})).ok());
  }  // each model is destroyed while its step is in flight
  ASSERT_TRUE(saver->finish(Deadline::after(30s)).ok());
  for (std::int64_t step = 4; step <= 6; ++step) EXPECT_TRUE(box.loads_exactly(step));
}

TEST(Checkpoint, a_read_only_directory_is_named) {
  Sandbox box("/proc/stoker-no-such");
  EXPECT_EQ(Saver::create(box.options(0, 1)).error().to_string(),
            "/proc/stoker-no-such: no such file or directory");
}

TEST(Checkpoint, the_folder_of_a_live_writer_with_the_same_name_is_not_touched) {
  Sandbox box;
  ASSERT_TRUE(make_directories(box.directory()).ok());
  const Path theirs = box.directory() / ".step-10.1.0";
  auto saver = *Saver::create(box.options(0, 1));
  ASSERT_TRUE(make_directories(theirs / "model").ok());
  ASSERT_TRUE(write_file(theirs / "lease.json", "theirs").ok());
  ToyModel model(1);
  ASSERT_TRUE(saver->save(model.contents(Step{10})).ok());
  EXPECT_EQ(text_of(saver->finish(Deadline::after(30s))),
            format("checkpoint step 10: {}: file exists", (theirs / "lease.json").string()));
  EXPECT_EQ(*read_file(theirs / "lease.json"), "theirs");
}

}  // namespace
}  // namespace stoker::checkpoint
