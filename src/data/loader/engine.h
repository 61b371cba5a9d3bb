// The loader's machinery: threads that claim pieces of the batches ahead, and the queue from which next()
// takes them in order. Only the loader includes it.
//
// Batches are planned one after the other, so their contents depend on the options alone; which thread lays a
// batch out (lists its samples, finds their files, makes room) and fills which piece does not matter, because
// a sample's bytes are a function of (seed, epoch, sample). Only planning holds the lock.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/stopwatch.h"
#include "base/thread.h"
#include "data/loader/batch.h"
#include "data/loader/batch_mixer.h"
#include "data/loader/contents.h"
#include "data/loader/pixel_cache.h"
#include "data/loader/sample_reader.h"
#include "data/loader/schedule.h"

namespace stoker::data {

class Loader::Engine {
 public:
  Engine(const formats::ShardSource& source, const LoaderOptions& options, Schedule schedule,
         Contents contents, std::optional<BatchMixer> mixer);
  ~Engine();

  void start() EXCLUDES_LOCK(mutex_);
  Result<std::optional<Batch>> next(Deadline deadline) EXCLUDES_LOCK(mutex_);
  void cancel() EXCLUDES_LOCK(mutex_);
  Status restart(const OrderState& state) EXCLUDES_LOCK(mutex_);
  const OrderState& state() const { return state_; }
  std::uint64_t batches_from(std::uint64_t position) const EXCLUDES_LOCK(mutex_);
  LoaderStats stats() const EXCLUDES_LOCK(mutex_);
  const std::vector<SkippedSample>& skipped() const { return skipped_; }

 private:
  // A batch from its plan to its hand-over. `plan` and `memory` belong to the thread that lays it out, and do
  // not change afterwards, but for the memory's contents: each piece is written by the thread that claimed
  // it. The rest is guarded by mutex_.
  struct Item {
    BatchPlan plan;
    std::unique_ptr<Batch::Memory> memory;
    bool is_laid_out = false;
    std::vector<std::uint8_t> is_damaged;  // per sample, once there is one
    std::size_t claimed = 0;
    std::size_t done = 0;
    std::size_t error_at = 0;
    Status error;                                        // of the first sample that stops the loader
    std::vector<std::pair<std::size_t, Status>> faults;  // of those that are left out
    std::vector<SkippedSample> skipped;                  // the same, once it is complete
    bool is_complete = false;

    bool is_epoch_end() const { return plan.count == 0; }
    bool is_claimable() const { return is_laid_out && claimed < plan.count; }
    bool is_full() const { return is_laid_out && done == plan.count; }
    bool is_ready() const { return is_complete || is_epoch_end(); }
  };
  // What a thread does next: lay an item out, or fill the samples begin .. end of it.
  struct Piece {
    Item* item = nullptr;
    std::size_t begin = 0;
    std::size_t end = 0;
    bool is_layout() const { return end == 0; }
  };
  // What a thread is at, for messages.
  struct Worker {
    Piece piece;                          // guarded by mutex_
    std::atomic<std::size_t> current{0};  // place in the batch
    Thread thread;
  };

  void work(Worker& worker, StopToken stop) EXCLUDES_LOCK(mutex_);
  bool await_piece(Worker& worker, Piece& piece) EXCLUDES_LOCK(mutex_);
  bool claim(Piece& piece) REQUIRES_LOCK(mutex_);
  Status plan_next() REQUIRES_LOCK(mutex_);
  Status lay_out(Item& item) const;
  std::size_t find_files(const BatchPlan& plan, Batch::Memory& memory) const;
  void finish_layout(Item& item, Status status) REQUIRES_LOCK(mutex_);
  void finish(const Piece& piece, Filled& filled) REQUIRES_LOCK(mutex_);
  void complete(Item& item) const;
  void rest(double start) REQUIRES_LOCK(mutex_);
  Status await_front(Deadline deadline) REQUIRES_LOCK(mutex_);
  Status describe_wait() const REQUIRES_LOCK(mutex_);
  Result<std::unique_ptr<Item>> take_front(Deadline deadline) EXCLUDES_LOCK(mutex_);
  Status list_skipped(Item& item);
  bool passes_over(const Item& item) const;

  const formats::ShardSource& source_;
  const LoaderOptions options_;
  const Contents contents_;
  const std::optional<BatchMixer> mixer_;
  const std::size_t piece_;  // units a thread claims at once
  const std::shared_ptr<Batch::Pool> pool_ = std::make_shared<Batch::Pool>();  // shared with batches
  PixelCache cache_;                                                           // own synchronisation
  const std::unique_ptr<ShardMemory> memory_;                                  // own synchronisation

  // Of the thread that calls next().
  OrderState state_;
  std::vector<SkippedSample> skipped_;
  std::uint64_t skipped_count_ = 0;

  mutable Mutex mutex_;
  Condition work_;   // something to claim, or stopping
  Condition ready_;  // the front may be ready, or cancelled
  Schedule schedule_ GUARDED_BY(mutex_);
  std::deque<std::unique_ptr<Item>> items_ GUARDED_BY(mutex_);
  Status failure_ GUARDED_BY(mutex_);  // what next() says from now on
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  bool is_restarting_ GUARDED_BY(mutex_) = false;  // nothing more is claimed
  std::size_t busy_ GUARDED_BY(mutex_) = 0;        // threads that have a piece
  LoaderStats stats_ GUARDED_BY(mutex_);

  std::vector<std::unique_ptr<Worker>> workers_;  // last: their threads use all of the above
};

}  // namespace stoker::data
