#include "push/push.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>

#include "base/say.h"
#include "base/text.h"
#include "output/print_text.h"
#include "profile/recorded.h"
#include "report/read_recordings.h"
#include "sending/connection.h"
#include "sending/delivery.h"
#include "system/calls.h"
#include "system/signals.h"

namespace luaspy {
namespace {

// Those that know one profile by its labels, and not what its message says of its process.
OtlpAttributes with_service(OtlpAttributes attributes, const Profile& profile) {
  const bool has_name = std::ranges::any_of(attributes, [](const auto& each) { return each.first == "service.name"; });
  const std::string program = base_name(profile.about.executable);
  if (!has_name) attributes.emplace_back("service.name", program.empty() ? program_in(profile.about.command) : program);
  return attributes;
}

// False: a signal asks luaspy to end.
bool sleep(RetryPause::Duration duration) {
  const system::Clock::time_point end = system::Clock::now() + duration;
  while (system::Clock::now() < end && system::end_requested() == 0) (void)system::sleep_until(end);
  return system::end_requested() == 0;
}

class Pushing {
 public:
  Pushing(Connection connection, double patience)
      : to_(std::move(connection.to)),
        attributes_(std::move(connection.attributes)),
        client_(std::move(connection.client)) {
    delivery_.patience = std::chrono::seconds(static_cast<std::int64_t>(patience));
    delivery_.sleep = sleep;
    delivery_.say = [](const std::string& text) { say("luaspy: {}\n", text); };
  }

  Result<void> push(const std::string& path) {
    ReportOptions options;
    options.files = {path};
    RecordingFiles files = files_of(options);
    ViewOptions shape;
    shape.lines = true;
    const Result<Profile> profile = read_all(options, files, shape, false);
    if (!profile) return profile.error();
    const KnownProfile known = {&*profile,
                                to_.engine == Engine::otlp ? attributes_ : with_service(attributes_, *profile)};
    const std::vector<HttpRequest> requests = requests_for(to_, {&known, 1});
    std::size_t sent = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Result<void> delivered = deliver(*client_, requests[i], retry_pause_, delivery_);
      const std::string part = requests.size() > 1 ? fmt::format("Part {} of {} of ", i + 1, requests.size()) : "";
      if (!delivered)
        return Error{delivered.error().cause, fmt::format("{}{} was not sent. {}", part, path, delivered.error().text)};
      sent += requests[i].body.size();
    }
    return print_text(fmt::format("{}: {} samples, {:.1f} kB sent to {}{}\n", path, profile->samples(),
                                  static_cast<double>(sent) / 1e3, to_.url,
                                  requests.size() > 1 ? fmt::format(" in {} parts", requests.size()) : ""));
  }

 private:
  const Destination to_;
  const OtlpAttributes attributes_;
  const std::unique_ptr<HttpClient> client_;
  RetryPause retry_pause_{std::random_device{}()};
  DeliveryOptions delivery_;
};

}  // namespace

Result<int> push(const PushOptions& options) {
  Result<Connection> connection = prepare_connection(options.engine);
  if (!connection) return connection.error();
  OtlpAttributes& attributes = connection->attributes;
  if (!options.service.empty()) attributes.emplace(attributes.begin(), "service.name", options.service);
  system::watch_signals();
  Pushing pushing(std::move(*connection), options.patience);
  for (const std::string& file : options.files) {
    if (const Result<void> pushed = pushing.push(file); !pushed) return pushed.error();
  }
  return 0;
}

}  // namespace luaspy
