#include <atomic>
#include <csignal>
#include <map>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/thread.h"
#include "image/encode.h"
#include "record/media/media.h"
#include "record/points/points.h"
#include "record/test_fsync.h"
#include "stoker/metrics.h"

namespace stoker::record {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class MetricLogTest : public ::testing::Test {
 protected:
  MetricLogOptions options() {
    return {.attempt = box_.path(), .rank = 3, .report = [this](std::string_view problem) {
              MutexLock lock(mu_);
              problems_.emplace_back(problem);
            }};
  }
  std::vector<std::string> problems() {
    MutexLock lock(mu_);
    return problems_;
  }
  std::map<std::int64_t, double> points(std::string_view metric = "loss") {
    std::map<std::int64_t, double> found;
    const RankPoints all = read_points(list_point_files(Attempt(box_.path(), 1)));
    if (const auto at = all.metrics.find(metric); at != all.metrics.end()) {
      for (const Point& point : at->second) found[point.step] = point.value;
    }
    return found;
  }
  /// Of all processes.
  std::vector<MediaRecord> media() {
    std::vector<MediaRecord> found;
    for (const MediaFile& file : list_media_files(Attempt(box_.path(), 1))) {
      damaged_media_ +=
          visit_media(file.path, [&](MediaRecord&& record) { found.push_back(std::move(record)); });
    }
    return found;
  }
  std::vector<std::string> files() { return *list_directory(box_.path()); }

  TempDirectory box_;
  std::size_t damaged_media_ = 0;
  Mutex mu_;
  std::vector<std::string> problems_ STOKER_GUARDED_BY(mu_);
};

/// Exit status of a child that runs `body` and ends without exit handlers.
int in_child(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

TEST_F(MetricLogTest, values_are_in_the_file_of_the_rank) {
  MetricLog log(options());
  ASSERT_TRUE(log.log({{"loss", 0.5}, {"accuracy", 0.25}}, 7).ok());
  ASSERT_TRUE(log.summary({{"best", 0.75}}).ok());
  ASSERT_TRUE(log.flush().ok());
  EXPECT_THAT(files(), ElementsAre("points-0003.csv"));
  EXPECT_THAT(points(), ElementsAre(std::pair(7, 0.5)));
  EXPECT_THAT(points("accuracy"), ElementsAre(std::pair(7, 0.25)));
  EXPECT_EQ(read_points(list_point_files(Attempt(box_.path(), 1))).summary.at("best").value, 0.75);
}

TEST_F(MetricLogTest, a_missing_step_is_the_last_one_plus_one) {
  MetricLogOptions resumed = options();
  resumed.last_step = 100;
  MetricLog log(resumed);
  (void)log.log({{"loss", 1}});
  (void)log.log({{"loss", 2}}, 200);
  (void)log.log({{"loss", 3}});
  (void)log.flush();
  EXPECT_THAT(points(), ElementsAre(std::pair(101, 1.0), std::pair(200, 2.0), std::pair(201, 3.0)));
}

TEST_F(MetricLogTest, bad_names_and_steps_are_refused_as_a_whole) {
  MetricLog log(options());
  EXPECT_EQ(log.log({{"loss", 1}, {"", 2}}, 1).message(), "metric '': a name is required");
  EXPECT_EQ(log.log({{"loss", 1}}, -1).message(), "step -1: must not be negative");
  (void)log.flush();
  EXPECT_THAT(points(), SizeIs(0));
}

TEST_F(MetricLogTest, outside_a_run_only_the_check_remains) {
  MetricLog log(MetricLogOptions{});
  EXPECT_FALSE(log.is_recording());
  EXPECT_TRUE(log.log({{"loss", 1}}).ok());
  EXPECT_FALSE(log.log({{"", 1}}).ok());
  EXPECT_TRUE(log.flush().ok());
}

TEST_F(MetricLogTest, a_second_process_of_the_rank_has_its_own_file) {
  MetricLog first(options());
  MetricLog second(options());
  (void)first.log({{"loss", 1}}, 1);
  (void)first.flush();
  (void)second.log({{"loss", 2}}, 2);
  (void)second.flush();
  EXPECT_THAT(files(), ElementsAre("points-0003-2.csv", "points-0003.csv"));
  EXPECT_THAT(points(), SizeIs(2));
}

TEST_F(MetricLogTest, the_destructor_writes_the_rest) {
  {
    MetricLog log(options());
    for (int step = 1; step <= 1000; ++step) (void)log.log({{"loss", 1.0 * step}}, step);
  }
  EXPECT_THAT(points(), SizeIs(1000));
}

TEST_F(MetricLogTest, a_checkpoint_and_the_end_sync_the_file) {
  const int before = synced_files();
  {
    MetricLog log(options());
    ASSERT_TRUE(log.sync().ok()) << "nothing to sync";
    EXPECT_EQ(synced_files(), before);
    ASSERT_TRUE(log.log({{"loss", 1}}, 1).ok());
    ASSERT_TRUE(log.sync().ok());
    EXPECT_EQ(synced_files(), before + 1);
    EXPECT_THAT(points(), SizeIs(1));
    ASSERT_TRUE(log.log({{"loss", 2}}, 2).ok());
    ASSERT_TRUE(log.flush().ok());
    EXPECT_EQ(synced_files(), before + 1);
  }
  EXPECT_EQ(synced_files(), before + 2);
  EXPECT_THAT(points(), SizeIs(2));
}

TEST_F(MetricLogTest, a_background_checkpoint_syncs_the_file_without_waiting) {
  const int before = synced_files();
  MetricLog log(options());
  log.sync_later();
  ASSERT_TRUE(log.log({{"loss", 1}}, 1).ok());
  log.sync_later();
  const Deadline deadline = Deadline::after(std::chrono::seconds(30));
  while (synced_files() == before && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(synced_files(), before + 1);
  EXPECT_THAT(points(), SizeIs(1));
}

TEST_F(MetricLogTest, values_reach_the_kernel_without_a_flush) {
  const int status = in_child([&] {
    MetricLog log(options());
    (void)log.log({{"loss", 1}}, 1);
    // Until the values are there, as long as it takes; then no exit handler runs.
    while (points().empty()) ::usleep(1000);
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_THAT(points(), SizeIs(1));
}

TEST_F(MetricLogTest, a_forked_child_repeats_nothing_and_has_its_own_file) {
  MetricLog log(options());
  (void)log.log({{"loss", 1}}, 1);
  in_child([] {});
  in_child([&] { (void)log.log({{"child", 5}}); });
  (void)log.log({{"loss", 2}});
  (void)log.flush();
  EXPECT_THAT(points(), ElementsAre(std::pair(1, 1.0), std::pair(2, 2.0)));
  EXPECT_THAT(points("child"), ElementsAre(std::pair(2, 5.0)));
  std::size_t lines = 0;
  for (const std::string& name : files()) {
    const std::string text = *read_file(box_.path() / name);
    lines += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  EXPECT_EQ(lines, 2u + 3u) << "a header for each file, and a line for each value";
}

TEST_F(MetricLogTest, a_child_forked_during_writes_can_log) {
  MetricLog log(options());
  std::atomic<bool> is_over = false;
  std::thread busy([&] {
    for (int step = 0; !is_over; ++step) (void)log.log({{"busy", 1.0 * step}}, step);
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(in_child([&] { (void)log.log({{"loss", 1.0 * i}}, i); }), 0);
  is_over = true;
  busy.join();
  EXPECT_THAT(points(), SizeIs(20));
}

TEST_F(MetricLogTest, a_full_disk_is_reported_once_and_nothing_is_lost) {
  // With RLIMIT_FSIZE, write(2) fails as on a full disk, in the middle of a line too.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  MetricLog log(options());
  (void)log.log({{"loss", 1}}, 1);
  ASSERT_TRUE(log.flush().ok());
  const rlimit full{64, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &full);
  for (int step = 2; step <= 100; ++step) EXPECT_TRUE(log.log({{"loss", 1.0 * step}}, step).ok());
  EXPECT_FALSE(log.flush().ok());
  ::setrlimit(RLIMIT_FSIZE, &before);
  while (!log.flush().ok()) ::usleep(10'000);
  EXPECT_THAT(points(), SizeIs(100));
  EXPECT_EQ(read_points(list_point_files(Attempt(box_.path(), 1))).damaged, 0u);
  ASSERT_THAT(problems(), SizeIs(1));
  EXPECT_THAT(problems()[0], HasSubstr("points-0003.csv: file too large; metrics wait in memory until they "
                                       "can be written"));
}

TEST_F(MetricLogTest, a_folder_that_appears_late_is_found) {
  MetricLogOptions late = options();
  late.attempt = box_ / "later";
  MetricLog log(late);
  (void)log.log({{"loss", 1}}, 1);
  EXPECT_FALSE(log.flush().ok());
  ASSERT_TRUE(make_directory(box_ / "later").ok());
  while (!log.flush().ok()) ::usleep(10'000);
  EXPECT_TRUE(path_exists(box_ / "later" / "points-0003.csv"));
}

TEST_F(MetricLogTest, threads_may_log_at_once) {
  {
    MetricLog log(options());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int step = 0; step < 500; ++step) (void)log.log({{format("m{}", t), 1.0 * step}}, step);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (int t = 0; t < 4; ++t) EXPECT_THAT(points(format("m{}", t)), SizeIs(500));
}

const std::vector<double> kWeights = {1, 2, 3};
const std::vector<std::byte> kPixels(4 * 4 * 3, std::byte{9});
constexpr std::uint32_t kSide = 4;

TEST_F(MetricLogTest, images_and_histograms_have_the_last_step) {
  MetricLog log(options());
  ASSERT_TRUE(log.log_histogram("w", kWeights).ok());
  ASSERT_TRUE(log.log({{"loss", 1}}, 7).ok());
  ASSERT_TRUE(log.log_histogram("w", kWeights, std::nullopt, 3).ok());
  ASSERT_TRUE(log.log_image("picture", PixelImage{kSide, kSide, 3, kPixels}).ok());
  const std::vector<std::byte> png = *image::encode_png(kSide, kSide, 3, kPixels);
  ASSERT_TRUE(log.log_image("picture", png, 9).ok());
  ASSERT_TRUE(log.flush().ok());
  EXPECT_THAT(files(), ElementsAre("media-0003.jsonl", "points-0003.csv"));
  const std::vector<MediaRecord> found = media();
  ASSERT_THAT(found, SizeIs(4));
  EXPECT_THAT((std::vector{found[0].step, found[1].step, found[2].step, found[3].step}),
              ElementsAre(0, 7, 7, 9));
  EXPECT_THAT(found[1].histogram()->counts, ElementsAre(1, 1, 1));
  EXPECT_EQ(found[2].image()->bytes, found[3].image()->bytes);
  EXPECT_GT(found[3].time, 1e9);
}

TEST_F(MetricLogTest, images_and_histograms_that_cannot_be_recorded_are_refused) {
  MetricLog log(options());
  EXPECT_FALSE(log.log_histogram("", kWeights).ok());
  EXPECT_FALSE(log.log_histogram("w", kWeights, -1).ok());
  EXPECT_FALSE(log.log_histogram("w", kWeights, 1, 513).ok());
  EXPECT_EQ(log.log_image("p", PixelImage{kSide, kSide, 4, kPixels}).message(),
            "image 'p': has 48 bytes, 4 x 4 pixels with 4 channels need 64");
  EXPECT_EQ(log.log_image("p", PixelImage{kSide, kSide, 5, kPixels}).message(),
            "image 'p': has 5 channels, must be from 1 to 4");
  EXPECT_EQ(log.log_image("p", PixelImage{0, 0, 3, {}}).message(), "image 'p': has no pixels");
  EXPECT_THAT(std::string(log.log_image("p", PixelImage{9000, 1, 1, kPixels}).message()),
              HasSubstr("9000 x 1 pixels, at most 8192"));
  EXPECT_FALSE(log.log_image("p", kPixels).ok());
  EXPECT_TRUE(log.flush().ok());
  EXPECT_THAT(files(), SizeIs(0));
}

TEST_F(MetricLogTest, images_reach_the_kernel_without_a_flush) {
  const int status = in_child([&] {
    MetricLog log(options());
    (void)log.log_histogram("w", kWeights, 1);
    while (media().empty()) ::usleep(1000);
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_THAT(media(), SizeIs(1));
}

TEST_F(MetricLogTest, a_kill_in_the_middle_of_images_leaves_whole_records) {
  const std::vector<std::byte> noise = [] {
    std::vector<std::byte> bytes(300 * 300);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i >> 7);
    return bytes;
  }();
  for (int round = 0; round < 5; ++round) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      MetricLog log(options());
      for (int step = 0;; ++step) {
        (void)log.log_image("noise", PixelImage{300, 300, 1, noise}, step);
        ::usleep(20'000);  // a slow reader does not have to follow a file of gigabytes
      }
    }
    const std::size_t before = media().size();
    while (media().size() < before + 3) ::usleep(1000 * (round + 1));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  EXPECT_THAT(media(), ::testing::Each(::testing::Field(&MediaRecord::name, "noise")));
  EXPECT_EQ(damaged_media_, 0u);
}

TEST_F(MetricLogTest, beyond_the_limit_further_images_are_left_out_and_reported_once) {
  MetricLogOptions small = options();
  small.max_media_bytes = 1000;
  {
    MetricLog log(small);
    for (int step = 1; step <= 10; ++step) EXPECT_TRUE(log.log_histogram("w", kWeights, step).ok());
    EXPECT_TRUE(log.log({{"loss", 1}}, 1).ok());
  }
  EXPECT_THAT(media(), SizeIs(::testing::AllOf(::testing::Gt(0u), ::testing::Lt(10u))));
  EXPECT_THAT(points(), SizeIs(1));
  EXPECT_THAT(problems(),
              ElementsAre(HasSubstr("media-0003.jsonl: 1.00 kB of images and histograms are recorded, the "
                                    "most of one process; further ones are left out")));
}

TEST_F(MetricLogTest, a_full_disk_keeps_images_in_memory) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  MetricLog log(options());
  (void)log.log_histogram("w", kWeights, 0);
  ASSERT_TRUE(log.flush().ok());
  const rlimit full{200, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &full);
  for (int step = 1; step <= 20; ++step) EXPECT_TRUE(log.log_histogram("w", kWeights, step).ok());
  EXPECT_FALSE(log.flush().ok());
  ::setrlimit(RLIMIT_FSIZE, &before);
  while (!log.flush().ok()) ::usleep(10'000);
  EXPECT_THAT(media(), SizeIs(21));
  EXPECT_EQ(damaged_media_, 0u);
  EXPECT_THAT(problems(),
              ElementsAre(HasSubstr("images and histograms wait in memory until they can be written")));
}

TEST_F(MetricLogTest, a_forked_child_has_its_own_file_of_images) {
  MetricLog log(options());
  (void)log.log_histogram("w", kWeights, 1);
  in_child([&] { (void)log.log_histogram("child", kWeights); });
  ASSERT_TRUE(log.flush().ok());
  EXPECT_THAT(media(), SizeIs(2));
}

}  // namespace
}  // namespace stoker::record
