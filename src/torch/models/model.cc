#include "torch/models/model.h"

#include <algorithm>
#include <map>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include "torch/models/resnet.h"

namespace stoker::torch {

namespace {

struct Known {
  std::string_view name;
  ResNetShape shape;
};

// Depths 18 and 50 as torchvision builds them; depth 20 as in "Deep Residual Learning", section 4.2.
const Known kModels[] = {
    {"resnet18", {Block::basic, Stem::imagenet, {2, 2, 2, 2}}},
    {"resnet50", {Block::bottleneck, Stem::imagenet, {3, 4, 6, 3}}},
    {"cifar-resnet20", {Block::basic, Stem::cifar, {3, 3, 3}}},
};

std::string shape_text(const at::Tensor& tensor) {
  std::string text;
  for (std::int64_t size : tensor.sizes()) text += (text.empty() ? "" : "x") + std::to_string(size);
  return format("{} {}", text.empty() ? "scalar" : text, c10::toString(tensor.scalar_type()));
}

}  // namespace

Status Model::load(const NamedTensors& tensors) {
  std::map<std::string_view, const at::Tensor*> given;
  for (const NamedTensor& item : tensors) given.emplace(item.name, &item.tensor);
  for (const NamedTensor& mine : state_.all) {
    const auto found = given.find(mine.name);
    if (found == given.end()) return invalid("model state: '{}' is missing", mine.name);
    const at::Tensor& theirs = *found->second;
    if (theirs.sizes() != mine.tensor.sizes() || theirs.scalar_type() != mine.tensor.scalar_type()) {
      return invalid("model state: '{}' is {} (the model's is {})", mine.name, shape_text(theirs),
                     shape_text(mine.tensor));
    }
    given.erase(found);
  }
  if (!given.empty()) return invalid("model state: '{}' is not part of the model", given.begin()->first);
  const at::NoGradGuard no_grad;
  for (const NamedTensor& mine : state_.all) {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const NamedTensor& item) { return item.name == mine.name; });
    mine.tensor.copy_(found->tensor);
  }
  return {};
}

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  for (const Known& known : kModels) names.push_back(known.name);
  return names;
}

Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec) {
  for (const Known& known : kModels) {
    if (known.name != spec.name) continue;
    const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(spec.seed);
    return make_resnet(known.shape, spec.classes, random);
  }
  return invalid("model '{}': no such model{}", spec.name, suggestion(spec.name, model_names()));
}

}  // namespace stoker::torch
