#include "stoker/model.h"

#include <algorithm>
#include <map>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/relu.h>
#include <c10/core/GradMode.h>

#include "train/models/resnet.h"
#include "train/models/script_model.h"
#include "train/models/transformer.h"

namespace stoker::train {

namespace {

struct NamedResNet {
  std::string_view name;
  ResNetShape shape;
};

// torchvision's architectures, and the CIFAR variants of "Deep Residual Learning", section 4.2.
const NamedResNet kResNets[] = {
    {"resnet18", {Block::basic, Stem::imagenet, {2, 2, 2, 2}}},
    {"resnet34", {Block::basic, Stem::imagenet, {3, 4, 6, 3}}},
    {"resnet50", {Block::bottleneck, Stem::imagenet, {3, 4, 6, 3}}},
    {"resnet101", {Block::bottleneck, Stem::imagenet, {3, 4, 23, 3}}},
    {"resnet152", {Block::bottleneck, Stem::imagenet, {3, 8, 36, 3}}},
    {"cifar-resnet20", {Block::basic, Stem::cifar, {3, 3, 3}}},
    {"cifar-resnet32", {Block::basic, Stem::cifar, {5, 5, 5}}},
    {"cifar-resnet44", {Block::basic, Stem::cifar, {7, 7, 7}}},
    {"cifar-resnet56", {Block::basic, Stem::cifar, {9, 9, 9}}},
    {"cifar-resnet110", {Block::basic, Stem::cifar, {18, 18, 18}}},
};
constexpr std::string_view kVision = "vit-s16";
constexpr std::string_view kGpt = "gpt";
constexpr std::string_view kMlp = "mlp";
constexpr std::string_view kScript = "torchscript";

// torch.nn.Sequential(Linear, ReLU, Linear, ReLU, ..., Linear) for tables: `widths` are the number of columns
// and the hidden layers. Weights are drawn as in PyTorch.
class Mlp final : public Model {
 public:
  Mlp(const std::vector<std::int64_t>& widths, std::int64_t classes, const at::Generator& random) {
    for (std::size_t i = 0; i < widths.size(); ++i)
      layers_.emplace_back(widths[i], i + 1 < widths.size() ? widths[i + 1] : classes, random);
    // nn.Sequential also numbers the activations.
    for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i].add_to(state_, format("{}", 2 * i));
  }

  at::Tensor forward(const at::Tensor& numbers) override {
    at::Tensor x = layers_[0](numbers);
    for (std::size_t i = 1; i < layers_.size(); ++i) x = layers_[i](at::relu(x));
    return x;
  }
  Input input() const override { return Input::numbers; }

 private:
  std::vector<Linear> layers_;
};

std::string shape_text(const at::Tensor& tensor) {
  std::string text;
  for (std::int64_t size : tensor.sizes()) text += format("{}{}", text.empty() ? "" : "x", size);
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
  for (const NamedResNet& named : kResNets) names.push_back(named.name);
  for (std::string_view name : {kVision, kGpt, kMlp, kScript}) names.push_back(name);
  return names;
}

Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec) {
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(spec.seed);
  for (const NamedResNet& named : kResNets) {
    if (named.name == spec.name)
      return make_resnet(named.shape, {spec.classes, spec.heads, spec.drop}, random);
  }
  if (spec.name == kVision) {
    const VisionShape shape{.image = spec.image_size};
    if (shape.image % shape.patch != 0) {
      return invalid("model '{}': an image size of {} pixels is not a multiple of the patch size {}",
                     spec.name, shape.image, shape.patch);
    }
    return make_vision_transformer(shape, spec.classes, random);
  }
  if (spec.name == kGpt) {
    if (spec.gpt.width % spec.gpt.heads != 0) {
      return invalid("model '{}': a width of {} is not divisible by {} heads", spec.name, spec.gpt.width,
                     spec.gpt.heads);
    }
    return make_gpt(spec.gpt, spec.classes, random);
  }
  if (spec.name == kMlp) return std::make_unique<Mlp>(spec.mlp, spec.classes, random);
  if (spec.name == kScript) return load_script_model(spec.file, spec.classes);
  return invalid("model '{}': no such model{}", spec.name, suggestion(spec.name, model_names()));
}

}  // namespace stoker::train
