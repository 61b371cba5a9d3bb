// Every key of a site file and the member of Site that it fills. The reader, its errors, the writer and
// docs/formats/site.md are derived from this list. Constants.
#pragma once

#include <span>

#include "config/bound_setting.h"
#include "config/schema.h"
#include "job/site/site.h"

namespace stoker::job {

using SiteSetting = config::BoundSetting<Site>;

/// In the order of a site file.
std::span<const SiteSetting> site_settings();
const config::Schema& site_schema();

}  // namespace stoker::job
