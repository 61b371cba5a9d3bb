// stoker.log and stoker.summary. Used by module.cc.
#pragma once

#include <nanobind/nanobind.h>

namespace stoker::python {

void define_metrics(nanobind::module_& m);

}  // namespace stoker::python
