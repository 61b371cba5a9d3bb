#include "train/models/script_model.h"

#include <set>
#include <string>
#include <utility>

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include "base/file.h"
#include "base/language/counted.h"
#include "stoker/exceptions.h"

namespace stoker::train {

namespace {

std::string sizes_text(const at::Tensor& tensor) {
  std::string text;
  for (const std::int64_t size : tensor.sizes()) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "no dimension" : text;
}

class ScriptModel final : public Model {
 public:
  ScriptModel(::torch::jit::Module module, Path file, std::int64_t classes)
      : module_(std::move(module)), file_(std::move(file)), classes_(classes) {
    module_.train();
    add_state();
  }

  at::Tensor forward(const at::Tensor& batch) override {
    if (mode_ != module_mode_) module_.train(mode_ == Mode::train);
    module_mode_ = mode_;
    const c10::IValue output = module_.forward({batch});
    if (!output.isTensor())
      throw StatusError(
          invalid("train.file: {}: forward() returns {}, not a tensor of logits", shown(), output.tagKind()));
    at::Tensor logits = output.toTensor();
    if (logits.dim() == 2 && logits.size(0) == batch.size(0) && logits.size(1) >= classes_) return logits;
    throw StatusError(
        invalid("train.file: {}: forward() returns {} for {}, not {} x at least {} logits (train.classes)",
                shown(), sizes_text(logits), counted(static_cast<std::uint64_t>(batch.size(0)), "image"),
                batch.size(0), classes_));
  }

  bool has_parameters() const { return !state_.parameters.empty(); }

 private:
  std::string shown() const { return printable(file_.string()); }

  // A tensor with two names is trained once, under its first name. Frozen parameters are kept with the
  // buffers.
  void add_state() {
    std::set<const void*> seen;
    for (const auto& item : module_.named_parameters()) add(item.name, item.value, seen);
    for (const auto& item : module_.named_buffers()) add(item.name, item.value, seen);
  }

  void add(const std::string& name, at::Tensor tensor, std::set<const void*>& seen) {
    if (!seen.insert(tensor.unsafeGetTensorImpl()).second) return;
    if (!tensor.is_contiguous()) tensor.set_data(tensor.detach().contiguous());
    state_.all.push_back({name, tensor});
    (tensor.requires_grad() ? state_.parameters : state_.buffers).push_back({name, tensor});
  }

  ::torch::jit::Module module_;
  const Path file_;
  const std::int64_t classes_;
  Mode module_mode_ = Mode::train;
};

}  // namespace

Result<std::unique_ptr<Model>> load_script_model(const Path& file, std::int64_t classes) {
  const std::string subject = format("train.file: {}", printable(file.string()));
  if (!path_exists(file)) return not_found("{}: no such file", subject);
  return catch_exceptions(Code::invalid, subject, [&]() -> Result<std::unique_ptr<Model>> {
    std::unique_ptr<ScriptModel> model;
    try {
      model = std::make_unique<ScriptModel>(::torch::jit::load(file.string(), at::kCPU), file, classes);
    } catch (const c10::Error&) {
      return invalid("{}: is not a file written by torch.jit.save", subject)
          .cure("torch.jit.script(model).save(\"model.pt\") in Python");
    }
    if (!model->has_parameters()) return invalid("{}: has no parameters to train", subject);
    return std::unique_ptr<Model>(std::move(model));
  });
}

}  // namespace stoker::train
