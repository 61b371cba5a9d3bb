// The memory of batches, and the pool of free memory. Only the loader includes it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "dataset/shard_source.h"
#include "stoker/loader.h"

namespace stoker::loader {

/// The memory of one batch. Belongs to one thread at a time.
struct Batch::Memory {
  /// `allocator` keeps the content; null: the heap.
  explicit Memory(std::shared_ptr<BatchAllocator> allocator) : allocator_(std::move(allocator)) {}
  ~Memory() { release(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Allocates at least `size` bytes, uninitialised. False when memory is short.
  bool reserve(std::size_t size);
  /// Moves the undamaged samples to the front.
  void drop_damaged(const std::vector<std::uint8_t>& is_damaged);

  /// The values of one of LoaderOptions::fields. Only the vector of its kind is used.
  struct Column {
    FieldKind kind = FieldKind::number;
    std::vector<double> numbers;
    std::vector<std::int64_t> integers;
    std::vector<std::string> texts;

    void resize(std::size_t count);
    void move(std::size_t from, std::size_t to);
    void set(std::size_t i, FieldValue&& value);
  };

  std::byte* data = nullptr;  // rows, or files one after the other; aligned to 64 bytes
  std::size_t capacity = 0;
  std::size_t row_bytes = 0;  // of one unit; 0 when `data` holds files
  Content content = Content::images;
  DType element = DType::f32;           // of a row
  Shape shape;                          // of a row
  std::vector<std::int64_t> offsets;    // of the files in `data`, and their end; empty when it holds rows
  std::vector<dataset::Locator> files;  // where those are stored
  std::vector<std::int64_t> labels;
  std::vector<float> soft_labels;  // `classes` for each sample, when samples are mixed
  std::uint32_t classes = 0;
  std::vector<Column> columns;
  std::vector<std::uint64_t> samples;
  Epoch epoch;
  OrderState after;

 private:
  void release();

  std::shared_ptr<BatchAllocator> allocator_;
};

/// Memory of destroyed batches. Thread-safe; shared by the loader and its batches.
struct Batch::Pool {
  std::unique_ptr<Memory> acquire() STOKER_EXCLUDES_LOCK(mutex) {
    MutexLock lock(mutex);
    if (free.empty()) return nullptr;
    std::unique_ptr<Memory> memory = std::move(free.back());
    free.pop_back();
    return memory;
  }
  void release(std::unique_ptr<Memory> memory) STOKER_EXCLUDES_LOCK(mutex) {
    MutexLock lock(mutex);
    free.push_back(std::move(memory));
  }

  Mutex mutex;  // taken after Loader::Engine's
  std::vector<std::unique_ptr<Memory>> free STOKER_GUARDED_BY(mutex);
};

}  // namespace stoker::loader
