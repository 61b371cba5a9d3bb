#include "preflight/placement.h"

#include <gmock/gmock.h>

#include "dataset/test_dataset.h"

namespace stoker::preflight {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

// The facts about a dataset and a file that are copied to these nodes.
std::vector<std::string> forecasts(std::uint32_t nodes, bool is_broadcast) {
  const TempDirectory box;
  const Path photos = box / "photos";
  EXPECT_TRUE(make_directories(photos).ok());
  dataset::write_test_dataset(photos, {{{.key = "one", .label = 0, .files = {{"jpg", "picture"}}}}});
  EXPECT_TRUE(write_file(box / "vocabulary.txt", "one two").ok());
  job::Job job;
  job.resources.nodes = nodes;
  job.data["train"].source = photos;
  job.data["train"].place = job::DataPlace::local;
  job.stage.copy = {(box / "vocabulary.txt").string()};
  job.stage.directory = box.path();
  job.stage.broadcast = is_broadcast;
  Notes notes(job);
  check_placement(job, HostContext(), notes);
  check_staged_files(job, notes);
  std::vector<std::string> texts;
  for (const Fact& fact : notes.take().facts) texts.push_back(fact.text.english());
  return texts;
}

TEST(CheckPlacement, the_forecast_names_how_often_the_source_is_read) {
  const auto one = forecasts(1, true);
  ASSERT_EQ(one.size(), 2u);
  EXPECT_THAT(one[0], EndsWith("train: staging takes about 0 s"));
  EXPECT_THAT(one[1], StartsWith("7 B, number of files 1: about "));
  const auto together = forecasts(4, true);
  EXPECT_THAT(together.at(0), EndsWith(", 4 nodes read it once"));
  EXPECT_THAT(together.at(1), EndsWith(", 4 nodes read them once"));
  const auto each = forecasts(4, false);
  EXPECT_THAT(each.at(0), EndsWith(", each of 4 nodes reads it"));
  EXPECT_THAT(each.at(1), EndsWith(", each of 4 nodes reads them"));
}

}  // namespace
}  // namespace stoker::preflight
