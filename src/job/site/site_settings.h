// Every key of a site file. The reader, its errors and docs/formats/site.md are derived from this list.
// Constants.
#pragma once

#include "config/schema.h"

namespace stoker::job {

const config::Schema& site_schema();

}  // namespace stoker::job
