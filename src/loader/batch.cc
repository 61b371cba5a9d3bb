#include "loader/batch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace stoker::loader {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

bool Batch::Memory::reserve(std::size_t size) {
  if (size <= capacity && data != nullptr) return true;
  release();
  const std::size_t bytes = std::max<std::size_t>(1, (size + kAlignment - 1) / kAlignment) * kAlignment;
  data = allocator_ ? allocator_->allocate(bytes)
                    : static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes));
  capacity = data != nullptr ? bytes : 0;
  return data != nullptr;
}

void Batch::Memory::release() {
  if (data == nullptr) return;
  if (allocator_) {
    allocator_->release(data, capacity);
  } else {
    std::free(data);
  }
  data = nullptr;
  capacity = 0;
}

void Batch::Memory::drop_damaged(const std::vector<std::uint8_t>& is_damaged) {
  std::size_t kept = 0;
  std::int64_t end = 0;  // of the files kept
  for (std::size_t i = 0; i < is_damaged.size(); ++i) {
    if (is_damaged[i]) continue;
    if (row_bytes > 0 && kept != i) {
      std::memcpy(data + kept * row_bytes, data + i * row_bytes, row_bytes);
    } else if (row_bytes == 0) {
      const std::int64_t begin = offsets[i];
      const std::int64_t length = offsets[i + 1] - begin;
      if (begin != end) std::memmove(data + end, data + begin, static_cast<std::size_t>(length));
      offsets[kept] = end;
      end += length;
    }
    labels[kept] = labels[i];
    for (Column& column : columns) column.move(i, kept);
    samples[kept] = samples[i];
    ++kept;
  }
  labels.resize(kept);
  samples.resize(kept);
  for (Column& column : columns) column.resize(kept);
  if (row_bytes == 0) {
    offsets.resize(kept + 1);
    offsets[kept] = end;
  }
}

void Batch::Memory::Column::resize(std::size_t count) {
  numbers.resize(kind == FieldKind::number ? count : 0);
  integers.resize(kind == FieldKind::integer ? count : 0);
  texts.resize(kind == FieldKind::text ? count : 0);
}

void Batch::Memory::Column::move(std::size_t from, std::size_t to) {
  if (from == to) return;
  if (kind == FieldKind::number) numbers[to] = numbers[from];
  if (kind == FieldKind::integer) integers[to] = integers[from];
  if (kind == FieldKind::text) texts[to] = std::move(texts[from]);
}

void Batch::Memory::Column::set(std::size_t i, FieldValue&& value) {
  if (kind == FieldKind::number) numbers[i] = std::get<double>(value);
  if (kind == FieldKind::integer) integers[i] = std::get<std::int64_t>(value);
  if (kind == FieldKind::text) texts[i] = std::get<std::string>(std::move(value));
}

Batch::Batch(std::unique_ptr<Memory> memory, std::shared_ptr<Pool> pool)
    : memory_(std::move(memory)), pool_(std::move(pool)) {}

Batch::Batch(Batch&&) noexcept = default;

Batch& Batch::operator=(Batch&& other) noexcept {
  if (memory_) pool_->release(std::move(memory_));
  memory_ = std::move(other.memory_);
  pool_ = std::move(other.pool_);
  return *this;
}

Batch::~Batch() {
  if (memory_) pool_->release(std::move(memory_));
}

std::uint32_t Batch::count() const { return static_cast<std::uint32_t>(memory_->samples.size()); }
Content Batch::content() const { return memory_->content; }
MutableTensorView Batch::image() {
  Shape shape{static_cast<std::int64_t>(count())};
  shape.insert(shape.end(), memory_->shape.begin(), memory_->shape.end());
  return {"image", memory_->element, std::move(shape), {memory_->data, memory_->row_bytes * count()}};
}
std::span<float> Batch::images() {
  return {reinterpret_cast<float*>(memory_->data), memory_->row_bytes / sizeof(float) * count()};
}
std::span<std::byte> Batch::bytes() {
  const bool has_files = !memory_->offsets.empty();
  return {memory_->data, has_files ? static_cast<std::size_t>(memory_->offsets.back()) : 0};
}
std::span<std::int64_t> Batch::offsets() { return memory_->offsets; }
std::span<std::int64_t> Batch::labels() { return memory_->labels; }
MutableTensorView Batch::soft_labels() {
  return {"soft_labels",
          DType::f32,
          {static_cast<std::int64_t>(count()), static_cast<std::int64_t>(memory_->classes)},
          std::as_writable_bytes(std::span(memory_->soft_labels))};
}
std::span<double> Batch::numbers(std::size_t i) { return memory_->columns[i].numbers; }
std::span<std::int64_t> Batch::integers(std::size_t i) { return memory_->columns[i].integers; }
std::span<std::string> Batch::texts(std::size_t i) { return memory_->columns[i].texts; }
std::span<std::uint64_t> Batch::samples() { return memory_->samples; }
std::span<const std::uint64_t> Batch::samples() const { return memory_->samples; }
Epoch Batch::epoch() const { return memory_->epoch; }
const OrderState& Batch::after() const { return memory_->after; }

}  // namespace stoker::loader
