// The threads and the queue of the loader: threads claim pieces of the batches ahead, and next() takes the
// batches in order. Only the loader includes it.
//
// Batches are planned one after the other, so their contents depend on the options alone. A thread then
// prepares the batch: it lists the samples, locates their files and allocates memory. Which thread prepares
// a batch and fills which piece does not matter, because a sample's bytes are a function of (seed, epoch,
// sample). Only planning holds the lock.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/stopwatch.h"
#include "base/thread.h"
#include "loader/batch.h"
#include "loader/batch_mixer.h"
#include "loader/contents.h"
#include "loader/pixel_cache.h"
#include "loader/sample_reader.h"
#include "loader/schedule.h"

namespace stoker::loader {

class Loader::Engine {
 public:
  Engine(const dataset::ShardSource& source, const LoaderOptions& options, Schedule schedule,
         Contents contents, std::optional<BatchMixer> mixer);
  ~Engine();

  void start() STOKER_EXCLUDES_LOCK(mutex_);
  Result<std::optional<Batch>> next(Deadline deadline) STOKER_EXCLUDES_LOCK(mutex_);
  void cancel() STOKER_EXCLUDES_LOCK(mutex_);
  Status restart(const OrderState& state) STOKER_EXCLUDES_LOCK(mutex_);
  const OrderState& state() const { return state_; }
  std::uint64_t batches_from(std::uint64_t position) const STOKER_EXCLUDES_LOCK(mutex_);
  LoaderStats stats() const STOKER_EXCLUDES_LOCK(mutex_);
  const std::vector<SkippedSample>& skipped() const { return skipped_; }

 private:
  // A batch from its plan to its return by next(). `plan` and `memory` belong to the thread that prepares
  // it, and do not change afterwards. The contents of the memory are written by the threads that claimed its
  // pieces. The rest is guarded by mutex_.
  struct Item {
    BatchPlan plan;
    std::unique_ptr<Batch::Memory> memory;
    bool is_prepared = false;
    std::vector<std::uint8_t> is_damaged;  // per sample, allocated at the first damage
    std::size_t claimed = 0;
    std::size_t done = 0;
    std::size_t error_at = 0;
    Status error;                                        // of the first sample that stops the loader
    std::vector<std::pair<std::size_t, Status>> faults;  // of samples that are skipped
    std::vector<SkippedSample> skipped;                  // the same, once the batch is complete
    bool is_complete = false;

    bool is_epoch_end() const { return plan.count == 0; }
    bool is_claimable() const { return is_prepared && claimed < plan.count; }
    bool is_full() const { return is_prepared && done == plan.count; }
    bool is_ready() const { return is_complete || is_epoch_end(); }
  };
  // The next work of a thread: prepare an item, or fill its samples begin .. end.
  struct Piece {
    Item* item = nullptr;
    std::size_t begin = 0;
    std::size_t end = 0;
    bool is_preparation() const { return end == 0; }
  };
  // The current work of a thread, for messages.
  struct Worker {
    Piece piece;                          // guarded by mutex_
    std::atomic<std::size_t> current{0};  // index in the batch
    Thread thread;
  };

  void work(Worker& worker, StopToken stop) STOKER_EXCLUDES_LOCK(mutex_);
  bool await_piece(Worker& worker, Piece& piece) STOKER_EXCLUDES_LOCK(mutex_);
  bool claim(Piece& piece) STOKER_REQUIRES_LOCK(mutex_);
  Status plan_next() STOKER_REQUIRES_LOCK(mutex_);
  Status prepare(Item& item) const;
  std::size_t find_files(const BatchPlan& plan, Batch::Memory& memory) const;
  void finish_preparation(Item& item, Status status) STOKER_REQUIRES_LOCK(mutex_);
  void finish(const Piece& piece, PieceResult& result) STOKER_REQUIRES_LOCK(mutex_);
  void complete(Item& item) const;
  void finish_claim(double start) STOKER_REQUIRES_LOCK(mutex_);
  Status await_front(Deadline deadline) STOKER_REQUIRES_LOCK(mutex_);
  Status deadline_status() const STOKER_REQUIRES_LOCK(mutex_);
  Result<std::unique_ptr<Item>> pop_front_item(Deadline deadline) STOKER_EXCLUDES_LOCK(mutex_);
  Status record_skipped(Item& item);
  bool drops_batch(const Item& item) const;

  const dataset::ShardSource& source_;
  const LoaderOptions options_;
  const Contents contents_;
  const std::optional<BatchMixer> mixer_;
  const std::size_t piece_;  // units a thread claims at once
  const std::shared_ptr<Batch::Pool> pool_ = std::make_shared<Batch::Pool>();  // shared with batches
  PixelCache cache_;                                                           // own synchronisation
  const std::unique_ptr<ShardMemory> memory_;                                  // own synchronisation

  // Owned by the thread that calls next().
  OrderState state_;
  std::vector<SkippedSample> skipped_;
  std::uint64_t skipped_count_ = 0;

  mutable Mutex mutex_;
  Condition work_;   // something to claim, or stopping
  Condition ready_;  // the front may be ready, or cancelled
  Schedule schedule_ STOKER_GUARDED_BY(mutex_);
  std::deque<std::unique_ptr<Item>> items_ STOKER_GUARDED_BY(mutex_);
  Status failure_ STOKER_GUARDED_BY(mutex_);  // returned by next() from now on
  bool is_stopping_ STOKER_GUARDED_BY(mutex_) = false;
  bool is_restarting_ STOKER_GUARDED_BY(mutex_) = false;  // no claims meanwhile
  std::size_t busy_ STOKER_GUARDED_BY(mutex_) = 0;        // threads with a piece
  LoaderStats stats_ STOKER_GUARDED_BY(mutex_);

  std::vector<std::unique_ptr<Worker>> workers_;  // last: their threads use all of the above
};

}  // namespace stoker::loader
