#include "train/trainer/learn/batch_tensors.h"

#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

namespace stoker::train {

namespace {

at::ScalarType type_of(DType type) {
  switch (type) {
    case DType::boolean:
      return at::kBool;
    case DType::u8:
      return at::kByte;
    case DType::i8:
      return at::kChar;
    case DType::i16:
      return at::kShort;
    case DType::u16:
      return at::kUInt16;
    case DType::f16:
      return at::kHalf;
    case DType::bf16:
      return at::kBFloat16;
    case DType::i32:
      return at::kInt;
    case DType::u32:
      return at::kUInt32;
    case DType::f32:
      return at::kFloat;
    case DType::f64:
      return at::kDouble;
    case DType::i64:
      return at::kLong;
    case DType::u64:
      return at::kUInt64;
  }
  return at::kFloat;
}

at::Tensor tensor_of(const MutableTensorView& view) {
  const std::vector<std::int64_t> sizes(view.shape.begin(), view.shape.end());
  return at::from_blob(view.data.data(), sizes, type_of(view.dtype));
}

at::Tensor images_of(loader::Batch& batch) {
  const at::Tensor images = tensor_of(batch.image());
  // Arrays are the caller's.
  if (batch.content() != loader::Content::images) return images;
  const bool has_colours_last = images.size(3) == 3 && images.size(1) != 3;
  return has_colours_last ? images.permute({0, 3, 1, 2}) : images;
}

// Targets are the tokens shifted by one.
Result<BatchTensors> sequences_of(loader::Batch& batch, std::int64_t vocabulary) {
  const at::Tensor sequences = tensor_of(batch.image());
  for (const std::int64_t token :
       {sequences.min().item<std::int64_t>(), sequences.max().item<std::int64_t>()}) {
    if (token < 0 || token >= vocabulary)
      return invalid("token {} is outside the vocabulary (train.classes: {})", token, vocabulary);
  }
  const std::int64_t length = sequences.size(1) - 1;
  return BatchTensors{sequences.slice(1, 0, length).contiguous(),
                      sequences.slice(1, 1).contiguous().flatten()};
}

// Scalar fields arrive column by column.
at::Tensor columns_of(loader::Batch& batch, std::size_t columns) {
  const at::Tensor numbers = at::empty({batch.count(), static_cast<std::int64_t>(columns)}, at::kFloat);
  auto* out = numbers.mutable_data_ptr<float>();
  for (std::size_t column = 0; column < columns; ++column) {
    const std::span<const double> values = batch.numbers(column);
    for (std::size_t row = 0; row < values.size(); ++row)
      out[row * columns + column] = static_cast<float>(values[row]);
  }
  return numbers;
}

}  // namespace

Result<BatchTensors> tensors_of(loader::Batch& batch, const BatchForm& form) {
  if (form.input == Input::tokens) return sequences_of(batch, form.vocabulary);
  const at::Tensor labels = at::from_blob(batch.labels().data(), {batch.count()}, at::kLong);
  if (form.input == Input::images) return BatchTensors{images_of(batch), labels};
  if (form.columns > 0) return BatchTensors{columns_of(batch, form.columns), labels};
  return BatchTensors{tensor_of(batch.image()).to(at::kFloat).reshape({batch.count(), -1}), labels};
}

at::Tensor rows_of(const at::Tensor& logits) { return logits.to(at::kFloat).flatten(0, -2).contiguous(); }

std::span<const float> scores_of(const at::Tensor& rows) {
  return {rows.const_data_ptr<float>(), static_cast<std::size_t>(rows.numel())};
}

std::span<const std::int64_t> labels_of(const at::Tensor& labels) {
  return {labels.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(labels.numel())};
}

}  // namespace stoker::train
