#pragma once

#include <string>

#include "doctor/facts.h"

namespace luaspy {

std::string text_of(const DoctorReport& report);

}  // namespace luaspy
