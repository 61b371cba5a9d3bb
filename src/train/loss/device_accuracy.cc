#include "train/loss/device_accuracy.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>

namespace stoker::train {

at::Tensor correct_on_device(const at::Tensor& scores, const at::Tensor& labels) {
  const at::Tensor own = labels.unsqueeze(1);
  const at::Tensor mine = scores.gather(1, own);
  const at::Tensor larger = scores.le(mine).logical_not_();  // NaN, too
  const at::Tensor is_before = at::arange(scores.size(1), labels.options()).lt(own);
  const at::Tensor place = larger.logical_or_(scores.eq(mine).logical_and_(is_before)).sum(1);
  return at::stack({place.lt(1).sum(), place.lt(5).sum()}).to(at::kDouble);
}

}  // namespace stoker::train
