#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/thread.h"
#include "dataset/test_dataset.h"
#include "stage/cache/eviction.h"
#include "stage/cache/stage_dataset.h"
#include "stage/cache/use_lease.h"

namespace stoker::stage {
namespace {

using dataset::TestSample;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t kPicture = 9000;

TestSample picture(const std::string& key, char fill) {
  return {.key = key, .label = 0, .files = {{"jpg", std::string(kPicture, fill)}}};
}

// A dataset of three shards, and a cache beside it.
class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    make_dataset("photos", 'a');
    auto opened = CacheFolder::open(box_ / "cache");
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    cache_ = *opened;
  }

  // Shards with different bytes for each `fill`.
  Path make_dataset(const std::string& name, char fill) {
    const Path folder = box_ / name;
    EXPECT_TRUE(make_directories(folder).ok());
    std::vector<std::vector<TestSample>> shards;
    for (char i = 0; i < 3; ++i)
      shards.push_back({picture(format("{}-{}", fill, int{i}), static_cast<char>(fill + i))});
    dataset::write_test_dataset(folder, shards);
    return folder;
  }

  Result<CacheReport> stage(const Path& source, CacheLimits limits = {.quota = {}, .reserve = {}},
                            HitCheck check = HitCheck::sampled) {
    STOKER_ASSIGN_OR_RETURN(opened, dataset::open_dataset(source));
    return stage_dataset(*cache_, opened,
                         {.source = source, .splits = {}, .limits = limits, .check = check, .threads = 2},
                         progress_);
  }
  Result<CacheReport> stage() { return stage(box_ / "photos"); }

  std::string key(const Path& source, std::size_t shard) {
    const auto manifest = dataset::read_manifest(source);
    return shard_key(*manifest, manifest->splits[0].shards[shard]);
  }
  std::uint64_t size_of_dataset() { return dataset::read_manifest(box_ / "photos")->bytes(); }
  // A reader's view: every byte of the shards.
  std::string bytes_of(const Path& folder) {
    std::string all;
    for (const char* name : {"all-000000.tar", "all-000001.tar", "all-000002.tar"})
      all += *read_file(folder / name);
    return all;
  }
  std::vector<std::string> parts() { return *list_directory(cache_->partial()); }

  TempDirectory box_;
  std::optional<CacheFolder> cache_;
  NoProgress progress_;
};

TEST_F(CacheTest, a_reader_may_start_with_the_first_shards_of_its_order) {
  const auto opened = dataset::open_dataset(box_ / "photos");
  std::vector<std::string> calls;
  const auto report = stage_dataset(
      *cache_, *opened,
      {.source = box_ / "photos",
       .splits = {},
       .limits = {.quota = {}, .reserve = {}},
       .threads = 1,
       .order = {2},
       .on_usable =
           [&](const Path& folder) {
             // One thread: nothing else is copied yet, and a reader finds everything.
             for (const char* name : {"all-000000.tar", "all-000001.tar", "all-000002.tar"}) {
               calls.push_back(std::filesystem::read_symlink(folder / name).is_relative() ? "copy"
                                                                                          : "source");
             }
             EXPECT_EQ(bytes_of(folder), bytes_of(box_ / "photos"));
           }},
      progress_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_THAT(calls, ElementsAre("source", "source", "copy"));
}

TEST_F(CacheTest, a_reader_that_starts_early_gets_no_damaged_copy) {
  const auto staged = stage();
  ASSERT_TRUE(staged.ok());
  const Path damaged = cache_->shard(key(box_ / "photos", 0));
  ASSERT_EQ(::chmod(damaged.c_str(), 0644), 0);
  {
    auto file = File::open_read_write(damaged);
    ASSERT_TRUE(file->write_at(700, std::as_bytes(std::span("flipped", 7))).ok());
  }
  const auto opened = dataset::open_dataset(box_ / "photos");
  int calls = 0;
  const auto report = stage_dataset(*cache_, *opened,
                                    {.source = box_ / "photos",
                                     .splits = {},
                                     .limits = {.quota = {}, .reserve = {}},
                                     .check = HitCheck::full,
                                     .order = {1},
                                     .on_usable =
                                         [&](const Path& folder) {
                                           calls += 1;
                                           EXPECT_EQ(bytes_of(folder), bytes_of(box_ / "photos"));
                                         }},
                                    progress_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(report->replaced, 1u);
}

TEST_F(CacheTest, copies_each_shard_once_and_serves_the_same_bytes) {
  const auto first = stage();
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  EXPECT_EQ(first->copied, 3u);
  EXPECT_EQ(first->hits, 0u);
  const auto second = stage();
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  EXPECT_EQ(second->copied, 0u);
  EXPECT_EQ(second->hits, 3u);
  EXPECT_EQ(bytes_of(second->folder), bytes_of(box_ / "photos"));
  EXPECT_THAT(parts(), IsEmpty());
  EXPECT_TRUE(dataset::LocalShardSource::open(second->folder, "").ok());
  // Without the source, too.
  ASSERT_TRUE(rename_path(box_ / "photos", box_ / "gone").ok());
  EXPECT_EQ(bytes_of(second->folder), bytes_of(box_ / "gone"));
}

TEST_F(CacheTest, shares_equal_shards_of_two_versions) {
  ASSERT_TRUE(stage().ok());
  const Path other = box_ / "more";
  ASSERT_TRUE(make_directories(other).ok());
  dataset::write_test_dataset(other, {{picture("a-0", 'a')}, {picture("new", 'z')}});
  const auto report = stage(other);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->hits, 1u);
  EXPECT_EQ(report->copied, 1u);
}

TEST_F(CacheTest, a_new_version_with_the_same_names_is_not_the_old_one) {
  const auto old = stage();
  make_dataset("photos", 'k');
  const auto changed = stage();
  ASSERT_TRUE(changed.ok()) << changed.status().to_string();
  EXPECT_EQ(changed->copied, 3u);
  EXPECT_NE(changed->folder, old->folder);
  EXPECT_EQ(bytes_of(changed->folder), bytes_of(box_ / "photos"));
}

TEST_F(CacheTest, replaces_a_cached_shard_that_was_written_to) {
  ASSERT_TRUE(stage().ok());
  const Path cached = cache_->shard(key(box_ / "photos", 1));
  ASSERT_EQ(::chmod(cached.c_str(), 0644), 0);
  {
    auto file = File::open_read_write(cached);
    ASSERT_TRUE(file->write_at(700, std::as_bytes(std::span("flipped", 7))).ok());
  }
  const auto report = stage(box_ / "photos", {.quota = {}, .reserve = {}}, HitCheck::size);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->replaced, 1u);
  EXPECT_EQ(report->hits, 2u);
  EXPECT_EQ(bytes_of(report->folder), bytes_of(box_ / "photos"));
}

TEST_F(CacheTest, finds_flipped_bits_that_kept_size_and_time) {
  ASSERT_TRUE(stage().ok());
  const Path cached = cache_->shard(key(box_ / "photos", 2));
  struct stat before{};
  ASSERT_EQ(::stat(cached.c_str(), &before), 0);
  ASSERT_EQ(::chmod(cached.c_str(), 0644), 0);
  {
    auto file = File::open_read_write(cached);
    ASSERT_TRUE(file->write_at(700, std::as_bytes(std::span("x", 1))).ok());
  }
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, cached.c_str(), times, 0), 0);
  const auto report = stage();
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->replaced, 1u);
  EXPECT_EQ(bytes_of(report->folder), bytes_of(box_ / "photos"));
}

TEST_F(CacheTest, does_not_keep_a_shard_that_is_damaged_at_the_source) {
  ASSERT_TRUE(File::open_read_write(box_ / "photos/all-000001.tar")
                  ->write_at(600, std::as_bytes(std::span("y", 1)))
                  .ok());
  const auto report = stage();
  ASSERT_EQ(report.status().code(), Code::corrupt);
  EXPECT_THAT(report.status().message(), HasSubstr("photos/all-000001.tar: block 0"));
  EXPECT_FALSE(path_exists(cache_->shard(key(box_ / "photos", 1))));
  EXPECT_THAT(parts(), IsEmpty());
}

TEST_F(CacheTest, leaves_what_does_not_fit_at_the_source) {
  const CacheLimits limits{.quota = {size_of_dataset() - 1}, .reserve = {}};
  const auto report = stage(box_ / "photos", limits);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->copied, 2u);
  ASSERT_THAT(report->left, SizeIs(1));
  EXPECT_THAT(report->left[0].reason, HasSubstr("within its limits"));
  EXPECT_EQ(bytes_of(report->folder), bytes_of(box_ / "photos"));
}

TEST_F(CacheTest, evicts_the_dataset_used_longest_ago) {
  const auto old = stage();
  const Path other = make_dataset("other", 'k');
  ASSERT_TRUE(stage(other).ok());
  const timespec past[] = {{.tv_sec = 5, .tv_nsec = 0}, {.tv_sec = 5, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, cache_->use(old->version).c_str(), past, AT_SYMLINK_NOFOLLOW), 0);
  const CacheLimits limits{.quota = {2 * size_of_dataset()}, .reserve = {}};
  const auto third = stage(make_dataset("third", 'p'), limits);
  ASSERT_TRUE(third.ok()) << third.status().to_string();
  EXPECT_EQ(third->copied, 3u);
  EXPECT_EQ(third->evicted.shards, 3u);
  EXPECT_FALSE(path_exists(cache_->shard(key(box_ / "photos", 0))));
  EXPECT_TRUE(path_exists(cache_->shard(key(other, 0))));
  // Its folder reads from the source now.
  EXPECT_EQ(bytes_of(old->folder), bytes_of(box_ / "photos"));
}

TEST_F(CacheTest, the_folder_of_a_cached_dataset_can_be_staged_again) {
  const auto first = stage();
  const auto again = stage(first->folder);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->hits, 3u);
  EXPECT_EQ(read_use(*cache_, first->version)->source, box_ / "photos");
  ASSERT_TRUE(remove_shard(*cache_, key(box_ / "photos", 0)).ok());
  EXPECT_EQ(bytes_of(first->folder), bytes_of(box_ / "photos"));
  EXPECT_EQ(stage(first->folder)->copied, 1u);
  EXPECT_EQ(bytes_of(first->folder), bytes_of(box_ / "photos"));
}

TEST_F(CacheTest, never_evicts_a_dataset_in_use) {
  const auto used = stage();
  std::optional<OwnLease> lease;
  lease.emplace(*OwnLease::begin(*cache_, used->version));
  const CacheLimits limits{.quota = {size_of_dataset() + 10}, .reserve = {}};
  const Path other = make_dataset("other", 'k');
  const auto report = stage(other, limits);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_THAT(report->left, SizeIs(3));
  EXPECT_EQ(cached_datasets(*cache_)->size(), 2u);
  EXPECT_EQ(purge_dataset(*cache_, cached_datasets(*cache_)->front()).status().code(), Code::unavailable);
  EXPECT_EQ(bytes_of(used->folder), bytes_of(box_ / "photos"));
  lease.reset();
  EXPECT_EQ(stage(other, limits)->copied, 3u);
}

TEST_F(CacheTest, a_lease_ends_with_its_process) {
  const auto report = stage();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_leased = begin_lease(*cache_, report->version, record::this_process()).ok();
    ::_exit(is_leased ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_THAT(*living_leases(*cache_), IsEmpty());
  EXPECT_THAT(*list_directory(cache_->leases()), IsEmpty());
}

TEST_F(CacheTest, a_lease_of_an_invisible_process_lasts_a_day) {
  const auto report = stage();
  record::ProcessIdentity elsewhere = record::this_process();
  elsewhere.boot.replace(elsewhere.boot.find(' '), std::string::npos, " pid:[1]");
  const auto lease = begin_lease(*cache_, report->version, elsewhere);
  EXPECT_THAT(*living_leases(*cache_), SizeIs(1));
  const timespec past[] = {{.tv_sec = 5, .tv_nsec = 0}, {.tv_sec = 5, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, lease->c_str(), past, 0), 0);
  EXPECT_THAT(*living_leases(*cache_), IsEmpty());
}

TEST_F(CacheTest, a_lease_of_a_different_host_with_the_same_boot_lasts_a_day) {
  const auto report = stage();
  record::ProcessIdentity elsewhere = record::this_process();
  elsewhere.host = "n2";
  ASSERT_TRUE(begin_lease(*cache_, report->version, elsewhere).ok());
  EXPECT_THAT(*living_leases(*cache_), SizeIs(1));
}

TEST_F(CacheTest, a_lease_from_before_a_restart_has_ended) {
  const auto report = stage();
  record::ProcessIdentity before = record::this_process();
  before.boot = "11111111-0000 " + before.boot.substr(before.boot.find(' ') + 1);
  ASSERT_TRUE(begin_lease(*cache_, report->version, before).ok());
  EXPECT_THAT(*living_leases(*cache_), IsEmpty());
}

TEST_F(CacheTest, a_damaged_lease_holds_nothing) {
  const auto report = stage();
  ASSERT_TRUE(write_file(cache_->leases() / (report->version + "-x"), "{\"pid\": \"7").ok());
  EXPECT_THAT(*living_leases(*cache_), IsEmpty());
}

TEST_F(CacheTest, purge_keeps_shards_of_other_datasets) {
  const auto report = stage();
  const Path other = box_ / "more";
  ASSERT_TRUE(make_directories(other).ok());
  dataset::write_test_dataset(other, {{picture("a-0", 'a')}, {picture("new", 'z')}});
  ASSERT_TRUE(stage(other).ok());
  const auto datasets = cached_datasets(*cache_);
  for (const CachedDataset& dataset : *datasets) {
    if (dataset.version != report->version) continue;
    const auto purged = purge_dataset(*cache_, dataset);
    ASSERT_TRUE(purged.ok()) << purged.status().to_string();
    EXPECT_EQ(purged->shards, 2u);
  }
  EXPECT_FALSE(path_exists(report->folder));
  EXPECT_TRUE(path_exists(cache_->shard(key(other, 0))));
}

TEST_F(CacheTest, leftovers_of_killed_processes_are_removed) {
  const std::string own = key(box_ / "photos", 0);
  ASSERT_TRUE(write_file(cache_->partial() / (own + ".part"), "half").ok());
  ASSERT_TRUE(write_file(cache_->partial() / (own + ".gone-abc"), "half").ok());
  ASSERT_TRUE(write_file(cache_->partial() / "mine.txt", "not a shard").ok());
  const auto report = stage();
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_THAT(parts(), ElementsAre("mine.txt"));
}

TEST_F(CacheTest, a_reader_finds_each_shard_at_any_time) {
  const auto staged = stage();
  ASSERT_TRUE(staged.ok());
  const Path other = make_dataset("other", 'k');
  std::atomic<int> readings = 0;
  Thread reader([&](const StopToken& stop) {
    while (!stop.stop_requested()) {
      for (const char* name : {"all-000000.tar", "all-000001.tar", "all-000002.tar"}) {
        const auto text = read_file(staged->folder / name);
        EXPECT_TRUE(text.ok()) << text.status().to_string();
      }
      readings += 1;
    }
  });
  for (int round = 0; round < 20 || readings < 100; ++round) {
    // A shard with a different modification time has been changed: it is replaced.
    const timespec now[] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
    (void)::utimensat(AT_FDCWD, cache_->shard(key(box_ / "photos", round % 3)).c_str(), now, 0);
    std::vector<Thread> stagers;
    for (int i = 0; i < 2; ++i) {
      stagers.emplace_back([&](const StopToken&) {
        const auto again = stage();
        EXPECT_TRUE(again.ok()) << again.status().to_string();
      });
    }
    for (Thread& stager : stagers) stager.join();
    if (round % 4 == 0) {
      const auto evicts = stage(other, {.quota = {size_of_dataset() + 10}, .reserve = {}});
      EXPECT_TRUE(evicts.ok()) << evicts.status().to_string();
    }
  }
  reader.join();
}

TEST_F(CacheTest, a_shard_that_is_removed_again_and_again_is_no_error) {
  const Path shard = cache_->shard(key(box_ / "photos", 1));
  Thread remover([&](const StopToken& stop) {
    while (!stop.stop_requested()) (void)remove_file(shard);
  });
  for (int i = 0; i < 20; ++i) {
    const auto report = stage();
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    for (const LeftAtSource& left : report->left)
      EXPECT_EQ(left.reason, "other processes remove it from the cache");
  }
  remover.join();
  EXPECT_EQ(bytes_of(stage()->folder), bytes_of(box_ / "photos"));
}

TEST_F(CacheTest, foreign_files_are_neither_evicted_nor_purged) {
  ASSERT_TRUE(stage().ok());
  ASSERT_TRUE(write_file(cache_->shards() / "notes.txt", std::string(kPicture, 'n')).ok());
  const CacheLimits limits{.quota = {size_of_dataset()}, .reserve = {}};
  ASSERT_TRUE(stage(make_dataset("other", 'k'), limits).ok());
  EXPECT_TRUE(path_exists(cache_->shards() / "notes.txt"));
}

TEST_F(CacheTest, a_folder_of_other_files_is_not_taken_over) {
  ASSERT_TRUE(make_directories(box_ / "home").ok());
  ASSERT_TRUE(write_file(box_ / "home/thesis.txt", "mine").ok());
  const auto opened = CacheFolder::open(box_ / "home");
  EXPECT_EQ(opened.status().code(), Code::invalid);
  EXPECT_THAT(opened.status().message(), HasSubstr("is no cache and not empty"));
}

TEST_F(CacheTest, a_cache_that_others_may_write_to_is_refused) {
  ASSERT_EQ(::chmod(cache_->path().c_str(), 0777), 0);
  const auto opened = CacheFolder::open(cache_->path());
  ASSERT_EQ(opened.status().code(), Code::invalid);
  EXPECT_THAT(opened.status().message(), HasSubstr("other users may write to it"));
}

TEST_F(CacheTest, an_unknown_version_of_the_format_is_refused) {
  ASSERT_TRUE(write_file(cache_->path() / "stoker-cache.json", "{\"format\": 2}").ok());
  EXPECT_THAT(CacheFolder::open(cache_->path()).status().message(), HasSubstr("is a cache of version 2"));
  ASSERT_TRUE(write_file(cache_->path() / "stoker-cache.json", "{\"form").ok());
  EXPECT_THAT(CacheFolder::open(cache_->path()).status().message(), HasSubstr("is damaged"));
}

TEST_F(CacheTest, shards_with_only_a_checksum_are_not_shared_between_versions) {
  dataset::Manifest manifest = dataset::test_manifest();
  const std::string by_hash = shard_key(manifest, manifest.splits[0].shards[0]);
  EXPECT_EQ(by_hash, hex(manifest.splits[0].shards[0].hash));
  manifest.schema.block_hash = dataset::BlockHash::crc32c;
  const std::string first = shard_key(manifest, manifest.splits[0].shards[0]);
  manifest.version = std::string(64, '1');
  EXPECT_NE(shard_key(manifest, manifest.splits[0].shards[0]), first);
}

// Two processes stage the same dataset at once: each shard is copied once.
TEST_F(CacheTest, two_jobs_copy_each_shard_once) {
  std::array<pid_t, 4> children{};
  for (pid_t& child : children) {
    child = ::fork();
    if (child != 0) continue;
    const auto report = stage();
    ::_exit(report.ok() ? static_cast<int>(report->copied) : 99);
  }
  int copied = 0;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    copied += WEXITSTATUS(status);
  }
  EXPECT_EQ(copied, 3);
}

}  // namespace
}  // namespace stoker::stage
