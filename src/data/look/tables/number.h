// A number of a table, by the names that this room has for it. Plain values.
#pragma once

#include "format/parquet/columns/number.h"

namespace stoker::data {

using formats::common_type;
using formats::is_floating;
using formats::load_number;
using formats::Number;
using formats::number_of;
using formats::numpy_name;
using formats::store_number;

}  // namespace stoker::data
