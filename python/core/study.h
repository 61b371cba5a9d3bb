// C++ part of python/stoker/studies.py.
#pragma once

#include <nanobind/nanobind.h>

namespace stoker::python {

void define_study(nanobind::module_& m);

}  // namespace stoker::python
