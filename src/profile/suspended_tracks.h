#pragma once
// Keeps when each coroutine that has a number, and each slow request, was seen waiting, in a profile of what ran.

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "events/suspended.h"
#include "profile/profile_builder.h"

namespace luaspy {

class SuspendedTracks {
 public:
  // `tables`: what the numbers of looks stand for. Both must outlive it.
  SuspendedTracks(const EventTables& tables, ProfileBuilder& into) : tables_(tables), into_(into) {}

  void add(const SuspendedLook& look);

 private:
  void add_to_request(const SuspendedLook& look, const SuspendedGroup& group, const std::string& request);

  const EventTables& tables_;
  ProfileBuilder& into_;
  std::map<std::tuple<int, std::uint64_t, std::uint32_t>, std::size_t> tracks_;  // by process, program and number
  std::map<std::pair<int, std::string>, std::size_t> requests_;                  // by process and name
};

}  // namespace luaspy
