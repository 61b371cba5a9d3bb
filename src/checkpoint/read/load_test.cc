// Damages every kind of file of a step in every way, and checks the errors of load and verify.
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/manifest.h"
#include "checkpoint/read/row_reader.h"
#include "checkpoint/sandbox.h"

namespace stoker::checkpoint {
namespace {

constexpr const char* kShard1 = "model/shard-00001-model-00001-of-00001.safetensors";
constexpr const char* kShard2 = "model/shard-00002-model-00001-of-00001.safetensors";

// A sandbox with steps 1 and 2 of two ranks, saved once and copied: saving syncs, copying does not.
class Load : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    saved_ = new Sandbox();
    saved_->save_well(2, {1, 2});
  }
  static void TearDownTestSuite() { delete std::exchange(saved_, nullptr); }
  void SetUp() override {
    std::filesystem::copy(saved_->directory(), box.directory(), std::filesystem::copy_options::recursive);
  }

  // The error of loading step 2, without its folder and cure.
  std::string problem(bool with_optimizer = true) {
    Targets targets = model.targets();
    targets.with_optimizer = with_optimizer;
    const auto loaded = load(box.step(2), {}, targets);
    if (loaded.ok()) return "ok";
    code = loaded.error().code();
    std::string text(loaded.error().message());
    const std::string prefix = box.step(2).string() + ": ";
    EXPECT_THAT(text, testing::StartsWith(prefix.substr(0, prefix.size() - 2)));
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
  }
  void flip(const Path& path, std::uint64_t at) {
    std::string content = *read_file(path);
    ASSERT_LT(at, content.size());
    content[at] = static_cast<char>(content[at] ^ 0x10);
    ASSERT_TRUE(write_file(path, content).ok());
  }
  void cut(const Path& path, std::uint64_t size) { std::filesystem::resize_file(path, size); }

  static Sandbox* saved_;
  Sandbox box;
  ToyModel model{0};
  Code code = Code::ok;
};
Sandbox* Load::saved_ = nullptr;

TEST_F(Load, a_missing_file_is_named_with_its_rank) {
  ASSERT_TRUE(remove_file(box.file(2, 1)).ok());
  EXPECT_EQ(problem(), format("{}: rank 1's file is missing", kShard2));
  EXPECT_EQ(code, Code::corrupt);
  ASSERT_TRUE(remove_file(box.file(2, 0)).ok());
  EXPECT_EQ(problem(), format("{}: rank 0's file is missing (and 1 more files)", kShard1));
}

TEST_F(Load, a_flipped_bit_in_data_is_found_and_its_tensor_named) {
  const std::uint64_t size = std::filesystem::file_size(box.file(2, 1));
  flip(box.file(2, 1), size - 1);
  const std::string what = problem();
  EXPECT_THAT(
      what, testing::MatchesRegex(format("{}: damaged between bytes 0 and {} .crc32c [0-9a-f]{{8}}, expected "
                                         "[0-9a-f]{{8}}.: '.*', '.*', '.*' and 1 more, written by rank 1",
                                         kShard2, size)));
  EXPECT_EQ(code, Code::corrupt);
}

// One bit at the beginning, in the middle and at the end of each file of a step.
TEST_F(Load, a_flipped_bit_in_each_file_is_named_with_file_tensor_and_rank) {
  int files = 0;
  for (const int rank : {0, 1}) {
    for (const char* part : {"model", "optimizer"}) {
      const Path path = box.file(2, rank, part);
      const std::uint64_t size = std::filesystem::file_size(path);
      ++files;
      for (const std::uint64_t at : {std::uint64_t{5000}, size / 2, size - 1}) {
        flip(path, at);
        const auto report = verify_step(box.step(2), Depth::bytes);
        ASSERT_TRUE(report.ok());
        ASSERT_EQ(report->damages.size(), 1u) << path << " byte " << at;
        EXPECT_EQ(report->damages[0].file, path.lexically_relative(box.step(2)).string());
        EXPECT_THAT(report->damages[0].what, testing::HasSubstr("'"));
        EXPECT_THAT(report->damages[0].what, testing::EndsWith(format(", written by rank {}", rank)));
        flip(path, at);
      }
    }
  }
  EXPECT_EQ(files, 4);
  EXPECT_TRUE(verify_step(box.step(2), Depth::bytes)->damages.empty());
}

TEST_F(Load, a_flipped_bit_anywhere_is_found) {
  for (const Path& path : {box.file(2, 0), box.file(2, 1, "optimizer"), box.step(2) / "manifest.json"}) {
    const std::uint64_t size = std::filesystem::file_size(path);
    for (int i = 0; i < 40; ++i) {
      // Dense at the beginning, where lengths and headers are.
      const std::uint64_t at =
          i < 20 ? static_cast<std::uint64_t>(i) * 13 : size * static_cast<std::uint64_t>(i) / 41;
      flip(path, at);
      EXPECT_NE(problem(), "ok") << path << " byte " << at;
      EXPECT_EQ(code, Code::corrupt);
      flip(path, at);
    }
  }
  EXPECT_EQ(problem(), "ok");
}

TEST_F(Load, a_flipped_bit_in_the_header_is_found_by_its_block) {
  flip(box.file(2, 0), 20);
  EXPECT_THAT(problem(), testing::StartsWith(format("{}: damaged between bytes 0 and ", kShard1)));
}

TEST_F(Load, truncated_and_grown_files_are_named) {
  const std::uint64_t size = std::filesystem::file_size(box.file(2, 0));
  cut(box.file(2, 0), size - 1);
  EXPECT_EQ(problem(), format("{}: is {} bytes long, expected {} (truncated)", kShard1, size - 1, size));
  cut(box.file(2, 0), 0);
  EXPECT_EQ(problem(), format("{}: is 0 bytes long, expected {} (truncated)", kShard1, size));
  cut(box.file(2, 0), size + 1);
  EXPECT_EQ(problem(), format("{}: is {} bytes long, expected {}", kShard1, size + 1, size));
}

TEST_F(Load, an_extra_file_is_rejected) {
  std::filesystem::copy_file(box.file(2, 0), box.step(2) / "model/extra.safetensors");
  EXPECT_EQ(problem(),
            "model/extra.safetensors: does not belong to this checkpoint, but other readers would open it");
  ASSERT_TRUE(rename_path(box.step(2) / "model/extra.safetensors", box.step(2) / "model/notes.txt").ok());
  EXPECT_EQ(problem(), "ok");
}

TEST_F(Load, a_file_from_a_different_save_is_rejected) {
  std::filesystem::copy_file(box.file(1, 1), box.file(2, 1),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(problem(), format("{}: belongs to another save (run-a/1/1.0, expected run-a/1/2.0)", kShard2));
}

TEST_F(Load, exchanged_files_are_detected) {
  const Path aside = box.step(2) / "aside";
  ASSERT_TRUE(rename_path(box.file(2, 0), aside).ok());
  ASSERT_TRUE(rename_path(box.file(2, 1), box.file(2, 0)).ok());
  ASSERT_TRUE(rename_path(aside, box.file(2, 1)).ok());
  EXPECT_NE(problem(), "ok");
  EXPECT_EQ(code, Code::corrupt);
}

TEST_F(Load, a_step_without_manifest_is_invalid) {
  ASSERT_TRUE(remove_file(box.step(2) / "manifest.json").ok());
  EXPECT_EQ(problem(), "has no manifest, so it is not a whole checkpoint");
  EXPECT_EQ(code, Code::corrupt);
  EXPECT_EQ(load(box.step(3), {}, model.targets()).error().to_string(),
            box.step(3).string() + ": no such checkpoint");
}

TEST_F(Load, a_manifest_from_a_different_step_is_detected_by_its_files) {
  std::filesystem::copy_file(box.step(1) / "manifest.json", box.step(2) / "manifest.json",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(problem(), testing::HasSubstr("belongs to another save (run-a/1/2.0, expected run-a/1/1.0)"));
  EXPECT_EQ(verify_step(box.step(2), Depth::structure)->damages[0].text(),
            "manifest.json: belongs to step 1");
}

TEST_F(Load, weights_load_despite_a_damaged_optimizer) {
  ASSERT_TRUE(remove_tree(box.step(2) / "optimizer").ok());
  EXPECT_NE(problem(), "ok");
  EXPECT_EQ(problem(false), "ok");
}

TEST_F(Load, differences_to_the_model_are_listed) {
  const auto fit = [&](const std::function<void(Targets&)>& change) {
    Targets targets = model.targets();
    change(targets);
    const auto loaded = load(box.step(2), {}, targets);
    EXPECT_EQ(loaded.status().code(), Code::invalid);
    return std::string(loaded.status().message()).substr(box.step(2).string().size());
  };
  std::byte bytes[8] = {};
  EXPECT_EQ(fit([](Targets& t) { t.model.erase(t.model.begin() + 2); }),
            ": does not fit the model: 'fc.bias' is only in the checkpoint");
  EXPECT_EQ(fit([&](Targets& t) { t.model.push_back({"new", DType::f32, {2}, bytes}); }),
            ": does not fit the model: 'new' is not in the checkpoint");
  EXPECT_EQ(fit([](Targets& t) { t.model[2].dtype = DType::i32; }),
            ": does not fit the model: 'fc.bias' is I32, but F32 in the checkpoint");
  EXPECT_EQ(fit([](Targets& t) { t.model[2].shape = {10, 100}; }),
            ": does not fit the model: 'fc.bias' has shape [10, 100], but [1000] in the checkpoint");
  EXPECT_EQ(fit([](Targets& t) {
              t.optimizer.clear();
              t.model[2].shape = {1, 1000};
            }),
            ": does not fit the model: 'fc.bias' has shape [1, 1000], but [1000] in the checkpoint; "
            "'state.conv.weight.momentum_buffer' is only in the checkpoint; "
            "'state.fc.weight.momentum_buffer' is only in the checkpoint; "
            "'state.fc.weight.step' is only in the checkpoint");
  EXPECT_THAT(fit([&](Targets& t) {
                for (int i = 0; i < 12; ++i) t.model.push_back({format("x{:02}", i), DType::f32, {2}, bytes});
              }),
              testing::EndsWith("'x09' is not in the checkpoint; and 2 more"));
}

TEST_F(Load, optional_tensors_may_be_missing_on_either_side) {
  Targets targets = model.targets();
  std::vector<std::byte> bytes(4, std::byte{7});
  targets.optimizer.push_back({"scaler.scale", DType::f32, {}, bytes});
  const auto outcome = [&] {
    const auto loaded = load(box.step(2), {}, targets);
    return loaded.ok() ? "ok" : loaded.error().to_string();
  };
  EXPECT_EQ(outcome(),
            box.step(2).string() + ": does not fit the model: 'scaler.scale' is not in the checkpoint");
  targets.optional_prefixes = {"ema.", "scaler."};
  const auto loaded = load(box.step(2), {}, targets);
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  EXPECT_THAT(loaded->missing, testing::ElementsAre("scaler.scale"));
  EXPECT_EQ(bytes, std::vector<std::byte>(4, std::byte{7}));
  EXPECT_TRUE(model == ToyModel(200));
  // The reverse: extra tensors in the checkpoint.
  targets.optimizer.resize(1);
  targets.optional_prefixes = {"state.fc."};
  EXPECT_EQ(outcome(), "ok");
  targets.optional_prefixes = {"state."};
  targets.model.pop_back();
  EXPECT_THAT(outcome(), testing::HasSubstr("'mask' is only in the checkpoint"));
}

TEST_F(Load, targets_are_checked_before_anything_is_written_to_them) {
  Targets targets = model.targets();
  targets.model[2].data = targets.model[2].data.first(8);
  EXPECT_EQ(load(box.step(2), {}, targets).error().to_string(),
            "checkpoint: tensor 'fc.bias': has 8 bytes, but shape and dtype require 4000");
  targets = model.targets();
  targets.model.push_back(targets.model[2]);
  EXPECT_EQ(load(box.step(2), {}, targets).error().to_string(), "checkpoint: tensor 'fc.bias' appears twice");
}

TEST_F(Load, damage_leaves_the_targets_unchanged) {
  const ToyModel before(0);
  flip(box.file(2, 1, "optimizer"), std::filesystem::file_size(box.file(2, 1, "optimizer")) - 1);
  EXPECT_THAT(problem(), testing::HasSubstr("damaged between bytes"));
  EXPECT_TRUE(model == before);
  ASSERT_TRUE(remove_file(box.file(2, 0)).ok());
  EXPECT_NE(problem(), "ok");
  EXPECT_TRUE(model == before);
  ASSERT_TRUE(load(box.step(1), {}, model.targets()).ok());
  EXPECT_TRUE(model == ToyModel(100));
}

TEST_F(Load, a_step_removed_after_its_verification_is_still_loaded) {
  const auto reader = [&](ToyModel& to) {
    std::vector<RowTarget> rows;
    const Targets targets = to.targets();
    for (const MutableTensorView& view : targets.model) rows.push_back({.rows = view});
    return *RowReader::create(box.step(2), *read_manifest(box.step(2)), rows);
  };
  NoProgress progress;
  ToyModel to(0);
  RowReader first = reader(to);
  ASSERT_TRUE(first.verify(progress).ok());
  EXPECT_TRUE(to == ToyModel(0));
  RowReader second = reader(to);
  ASSERT_TRUE(second.verify(progress).ok());
  // Changed in place: the second pass notices it.
  const auto change = [&] {
    File file = *File::open_read_write(box.file(2, 0));
    std::array<std::byte, 1> byte{};
    ASSERT_TRUE(file.read_at(5000, byte).ok());
    byte[0] ^= std::byte{1};
    ASSERT_TRUE(file.write_at(5000, byte).ok());
  };
  change();
  EXPECT_THAT(second.fill(progress).to_string(),
              testing::StartsWith("changed while it was loaded, and the targets are partly overwritten: "));
  change();
  RowReader third = reader(to);
  ASSERT_TRUE(third.verify(progress).ok());
  ASSERT_TRUE(remove_tree(box.step(2)).ok());
  EXPECT_TRUE(third.fill(progress).ok());
  EXPECT_FALSE(to == ToyModel(0));
}

TEST_F(Load, the_newest_valid_step_is_loaded_and_skipped_ones_are_named) {
  flip(box.file(2, 1), 5000);
  const auto loaded = load_latest(box.directory(), {}, model.targets());
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ(loaded->step, Step{1});
  EXPECT_TRUE(model == ToyModel(100));
  ASSERT_EQ(loaded->skipped.size(), 1u);
  EXPECT_EQ(loaded->skipped[0].folder, box.step(2));
  EXPECT_THAT(loaded->skipped[0].why, testing::HasSubstr("damaged between bytes"));
  EXPECT_EQ(*latest_valid(box.directory()), box.step(1));
}

TEST_F(Load, without_a_valid_step_the_error_names_each) {
  ASSERT_TRUE(remove_file(box.file(1, 0)).ok());
  ASSERT_TRUE(remove_file(box.step(2) / "manifest.json").ok());
  EXPECT_EQ(
      latest_valid(box.directory()).error().to_string(),
      format("{}: no valid checkpoint (step-2: manifest.json: missing; step-1: {}: rank 0's file is missing)",
             box.directory().string(), kShard1));
  EXPECT_EQ(load_latest(box.directory(), {}, model.targets()).error().code(), Code::not_found);
  EXPECT_EQ(latest_valid(box.directory() / "none").error().to_string(),
            (box.directory() / "none").string() + ": no checkpoint");
}

TEST_F(Load, a_mismatched_model_is_an_immediate_error) {
  Targets targets = model.targets();
  targets.model.pop_back();
  EXPECT_EQ(load_latest(box.directory(), {}, targets).error().code(), Code::invalid);
}

TEST_F(Load, verify_reports_every_damaged_file) {
  flip(box.file(2, 0), 5000);
  flip(box.file(2, 1, "optimizer"), 5000);
  EXPECT_TRUE(verify_step(box.step(2), Depth::structure)->damages.empty());
  const auto report = verify_step(box.step(2), Depth::bytes);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->damages.size(), 2u);
  EXPECT_EQ(report->info.state, StepState::torn);
  EXPECT_EQ(report->files, 4u);
  EXPECT_EQ(report->tensors, 11u);
  EXPECT_EQ(verify_step(box.step(7), Depth::bytes).error().to_string(),
            box.step(7).string() + ": no such checkpoint");
}

TEST_F(Load, pending_and_foreign_folders_are_not_steps) {
  ASSERT_TRUE(make_directory(box.directory() / ".step-9.1.0").ok());
  ASSERT_TRUE(make_directory(box.directory() / "step-x").ok());
  ASSERT_TRUE(write_file(box.directory() / "step-5", "a file").ok());
  EXPECT_EQ(box.list(), "1 valid, 2 valid, 9 writing");
  EXPECT_EQ(*latest_valid(box.directory()), box.step(2));
  EXPECT_EQ(list_steps(box.directory() / "none", Depth::structure, RealClock().wall()).error().to_string(),
            (box.directory() / "none").string() + ": no such file or directory");
}

}  // namespace
}  // namespace stoker::checkpoint
