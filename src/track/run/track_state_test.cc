#include "track/run/track_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::track {
namespace {

TrackState example() {
  TrackState state;
  state.delivered = 12;
  state.batch = 3;
  state.done = {{"attempts/1/points-0000.csv", {100, 0}}, {"attempts/1/system-0000.csv", {20, 1001.25}}};
  state.pending = Positions{{"attempts/1/points-0000.csv", {140, 0}}};
  state.values = {{"run_id", "abc"}};
  return state;
}

TEST(TrackStateFile, reads_back_as_written) {
  TempDirectory box;
  ASSERT_TRUE(save_state(box / "mlflow.json", example()).ok());
  const auto state = load_state(box / "mlflow.json");
  ASSERT_TRUE(state.ok()) << state.status().to_string();
  EXPECT_EQ(state->delivered, 12u);
  EXPECT_EQ(state->batch, 3u);
  EXPECT_EQ(state->done, example().done);
  EXPECT_EQ(state->pending, example().pending);
  EXPECT_EQ(state->value("run_id"), "abc");
}

TEST(TrackStateFile, is_empty_without_a_file) {
  TempDirectory box;
  const auto state = load_state(box / "none.json");
  ASSERT_TRUE(state.ok());
  EXPECT_TRUE(state->done.empty());
}

TEST(TrackStateFile, refuses_every_truncated_file) {
  TempDirectory box;
  const Path file = box / "csv.json";
  ASSERT_TRUE(save_state(file, example()).ok());
  const std::string text = *read_file(file);
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    ASSERT_TRUE(write_file(file, text.substr(0, length)).ok());
    ASSERT_EQ(load_state(file).status().code(), Code::corrupt) << length;
  }
}

TEST(TrackStateFile, refuses_wrong_fields_and_versions) {
  TempDirectory box;
  const Path file = box / "csv.json";
  ASSERT_TRUE(save_state(file, example()).ok());
  const std::string text = *read_file(file);
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"\"version\":1", "\"version\":2"},
                                                        {"\"delivered\":12", "\"delivered\":-1"},
                                                        {"\"batch\":3", "\"batch\":\"3\""},
                                                        {"[100,", "[\"\","},
                                                        {"stoker-track", "other"},
                                                        {"\"abc\"", "5"}}) {
    std::string changed = text;
    ASSERT_NE(changed.find(from), std::string::npos) << from;
    changed.replace(changed.find(from), from.size(), to);
    ASSERT_TRUE(write_file(file, changed).ok());
    EXPECT_EQ(load_state(file).status().code(), Code::corrupt) << to;
  }
}

}  // namespace
}  // namespace stoker::track
