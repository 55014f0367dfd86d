#pragma once
// The recordings that `report` shows, read as it was asked to show them.

#include <deque>
#include <string>

#include "base/result.h"
#include "input/recording_events.h"
#include "profile/profile.h"
#include "report/recording_file.h"
#include "report/report_options.h"

namespace luaspy {

// Each is read several times, also if it is a pipe.
using RecordingFiles = std::deque<RecordingFile>;
RecordingFiles files_of(const ReportOptions& options);

// A part of a recording, or not all of its samples, is shown.
bool is_narrowed(const ReportOptions& options);

Error no_allocations(const std::string& path);

// One file, with its names resolved. An Error if it has no samples of what was asked for. `keeps_order`: see Profile;
// `events`: see read_recording().
Result<Profile> read_for(const ReportOptions& options, RecordingFile& file, const ViewOptions& shape, bool keeps_order,
                         RawEvents* events = nullptr);

// All of them, as one profile. Several have no order of time.
Result<Profile> read_all(const ReportOptions& options, RecordingFiles& files, const ViewOptions& shape,
                         bool keeps_order);

}  // namespace luaspy
