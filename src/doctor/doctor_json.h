#pragma once

#include <string>

#include "doctor/facts.h"

namespace luaspy {

// One object, which docs/doctor.schema.json describes.
std::string json_of(const DoctorReport& report);

}  // namespace luaspy
