// Faults: however a recording ends, luaspy writes what it has, and a recording that it reports as
// complete is complete.

#include "profiles.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "input/raw_reader.h"
#include "support/luaspy.h"
#include "victim.h"

namespace luaspy::faults {
namespace {

constexpr std::array formats = {"flamegraph", "speedscope",  "raw",       "folded",
                                "pprof",      "chrometrace", "callgrind", "firefox"};

std::string format_of(const Campaign& campaign) {
  return formats[static_cast<std::size_t>(campaign.round()) % formats.size()];
}

bool is_whole_folded(const std::string& text) {
  if (!text.ends_with('\n')) return false;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    const std::size_t space = text.rfind(' ', end);
    if (space == text.npos || space < begin || text.find_first_not_of("0123456789", space + 1) != end) return false;
    begin = end + 1;
  }
  return true;
}

// Whether a recording has everything.
bool is_whole(const std::string& format, const std::string& path) {
  const std::string text = read_file(path);
  if (text.empty()) return false;
  if (format == "raw") {
    std::ifstream file(path, std::ios::binary);
    const Result<Profile> profile = read_raw(file, {});
    return profile && profile->about.complete;
  }
  if (format == "flamegraph") return text.ends_with("</html>\n");
  if (format == "folded") return is_whole_folded(text);
  if (format == "pprof") return Child({"sh", "-c", "gzip -t <'" + path + "'"}).wait(10) == 0;
  if (format == "callgrind") return text.ends_with('\n') && text.find("\nsummary: ") != text.npos;
  return nlohmann::json::accept(text);
}

// A recording of a busy target at 5 kHz that has begun.
struct Recording {
  Folder folder;
  std::string format;
  std::unique_ptr<Luaspy> luaspy;
  bool begun = false;

  Recording(Campaign& campaign, Victim& victim, const Words& more = {}, const Child::Files& files = {})
      : format(format_of(campaign)) {
    Words words = {"record", "-r", "5000", "--max-stopped", "100", "-f", format, "--pid", victim.pid()};
    words.insert(words.end(), more.begin(), more.end());
    if (std::ranges::find(more, "-o") == more.end()) words.insert(words.end(), {"-o", "profile"});
    luaspy = std::make_unique<Luaspy>(words, folder, files);
    begun = luaspy->await_recording();
    if (!begun) campaign.lost("the recording does not begin: " + luaspy->errors());
  }
  std::string path() const { return luaspy->profile_path(); }
  // Unexpected files.
  std::optional<std::string> left() const {
    for (const std::string& name : folder.names()) {
      if (name != "profile" && name != "errors" && name != "out") return name;
    }
    return std::nullopt;
  }
};

constexpr int no_samples = 11;    // it was ended that early, and has written nothing
constexpr int reader_gone = 141;  // as if SIGPIPE had ended it

void check_whole(Campaign& campaign, Recording& recording, const std::optional<int>& status) {
  const bool empty = status == no_samples && !std::filesystem::exists(recording.path());
  if (status != 0 && status != no_samples)
    campaign.lost(fmt::format("{}: status {}: {}", recording.format, status.value_or(-1), recording.luaspy->errors()));
  else if (!empty && !is_whole(recording.format, recording.path()))
    campaign.lost(fmt::format("{}: not whole, {} bytes", recording.format, recording.luaspy->profile().size()));
  if (const auto name = recording.left()) campaign.harmed("a file is left: " + *name);
}

// Checks that a failure of the output is reported in the end, by the status and a message.
void check_told(Campaign& campaign, Recording& recording, const std::string& where, std::size_t most_said = 1 << 20) {
  const std::optional<int> status = recording.luaspy->process().wait(30);
  const std::string said = recording.luaspy->errors();
  const bool all_fits = status == 0 && is_whole(recording.format, recording.path());
  const bool nothing = status == no_samples;
  if (all_fits || nothing) return;
  if (status != 8)
    campaign.lost(fmt::format("{}: {}: status {}: {}", where, recording.format, status.value_or(-1), said));
  else if (said.size() < most_said && said.find("Cannot write all of") == said.npos)
    campaign.lost(fmt::format("{}: {}: luaspy says: {}", where, recording.format, said));
}

}  // namespace

void asked_to_end(Campaign& campaign) {
  Victims victims(campaign, "busy");
  while (campaign.next()) {
    Recording recording(campaign, victims.next());
    sleep_ms(campaign.random(1, 60));
    recording.luaspy->process().signal(
        std::array{SIGTERM, SIGHUP, SIGINT}[static_cast<std::size_t>(campaign.round() % 3)]);
    check_whole(campaign, recording, recording.luaspy->process().wait(30));
    victims.check();
  }
}

void asked_twice(Campaign& campaign) {
  Victims victims(campaign, "busy");
  int at_once = 0;
  while (campaign.next()) {
    Recording recording(campaign, victims.next());
    sleep_ms(campaign.random(1, 60));
    recording.luaspy->process().signal(SIGINT);
    sleep_ms(campaign.random(0, 8));
    recording.luaspy->process().signal(SIGINT);
    const std::optional<int> status = recording.luaspy->process().wait(30);
    at_once += status == 130;
    // It may have had no sample until then, and has said so.
    const bool had_none = recording.luaspy->errors().find(" 0 samples") != std::string::npos;
    check_whole(campaign, recording, status != 130 ? status : had_none ? no_samples : 0);
    victims.check();
  }
  campaign.remark(fmt::format("{} ended at once", at_once));
}

// If luaspy is started with SIGHUP ignored, it must continue.
void nohup(Campaign& campaign) {
  Victims victims(campaign, "busy");
  while (campaign.next()) {
    Recording recording(campaign, victims.next(), {}, {.ignored = SIGHUP});
    sleep_ms(campaign.random(1, 30));
    recording.luaspy->process().signal(SIGHUP);
    if (recording.luaspy->process().wait(0.2)) campaign.lost("SIGHUP ended a recording under nohup");
    recording.luaspy->process().signal(SIGTERM);
    check_whole(campaign, recording, recording.luaspy->process().wait(30));
    victims.check();
  }
}

// Its summary cannot be written then.
void terminal_is_closed(Campaign& campaign) {
  Victims victims(campaign, "busy");
  while (campaign.next()) {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) give_up("no terminal");
    Recording recording(campaign, victims.next(), {}, {.errors = ::ptsname(terminal), .terminal = true});
    sleep_ms(campaign.random(1, 700));  // progress is shown twice a second
    ::close(terminal);
    check_whole(campaign, recording, recording.luaspy->process().wait(30));
    victims.check();
  }
}

void killed_while_raw(Campaign& campaign) {
  Victims victims(campaign, "busy");
  std::int64_t samples = 0;
  while (campaign.next()) {
    Victim& victim = victims.next();
    Folder folder;
    Luaspy luaspy({"record", "-r", "5000", "--max-stopped", "100", "--every", "0.1", "-f", "raw", "-o", "profile",
                   "--pid", victim.pid()},
                  folder);
    if (!luaspy.await_recording()) campaign.lost("the recording does not begin: " + luaspy.errors());
    sleep_ms(campaign.random(15, 400));
    const std::size_t flushed = luaspy.profile().size();
    luaspy.process().signal(SIGKILL);
    luaspy.process().wait(10);
    Luaspy report({"report", luaspy.profile_path()}, folder, {.output = folder.path("out")});
    std::ifstream file(luaspy.profile_path(), std::ios::binary);
    const Result<Profile> profile = read_raw(file, {});
    // On a busy machine no thread may have been looked at until then, and report says so; what is there can be read all
    // the same. That is short: 100 ms of samples have more.
    constexpr std::size_t head = 8, without_samples = 4096;
    if (flushed > head && !profile)
      campaign.lost(fmt::format("{} bytes of a raw recording cannot be read: {}", flushed, profile.error().text));
    else if (flushed > without_samples && profile->samples() == 0)
      campaign.lost(fmt::format("{} bytes of a raw recording have no samples", flushed));
    else if (profile) samples += profile->samples();
    const int expected = profile && profile->samples() > 0 ? 0 : no_samples;
    if (const std::optional<int> status = report.process().wait(10); flushed > head && status != expected)
      campaign.lost(fmt::format("report: status {}: {}", status.value_or(-1), report.errors()));
    victims.check();
  }
  campaign.remark(fmt::format("{} samples read", samples));
}

void killed_while_rewriting(Campaign& campaign) {
  Victims victims(campaign, "busy");
  int written = 0;
  while (campaign.next()) {
    Recording recording(campaign, victims.next(), {"--every", "0.1"});
    sleep_ms(campaign.random(5, 400));
    recording.luaspy->process().signal(SIGKILL);
    recording.luaspy->process().wait(10);
    // Nothing yet, or complete; a raw recording is readable up to its last flush, as tested above.
    const bool empty = recording.luaspy->profile().empty();
    written += !empty;
    if (!empty && recording.format != "raw" && !is_whole(recording.format, recording.path()))
      campaign.lost(recording.format + ": the file that was there is not whole");
    victims.check();
  }
  campaign.remark(fmt::format("{} files were there", written));
}

void disk_is_full(Campaign& campaign) {
  Victims victims(campaign, "busy");
  while (campaign.next()) {
    const auto most = static_cast<unsigned long>(campaign.random(1, 900));
    Recording recording(campaign, victims.next(), campaign.chance(0.3) ? Words{"--every", "0.1"} : Words{},
                        {.most_bytes = most});
    sleep_ms(campaign.random(150, 300));  // there are samples by then
    recording.luaspy->process().signal(SIGTERM);
    check_told(campaign, recording, fmt::format("a disk with {} bytes", most), most);  // the message is limited, too
    if (const auto name = recording.left()) campaign.harmed("a file is left: " + *name);
    victims.check();
  }
}

void device_is_full(Campaign& campaign) {
  Victims victims(campaign, "busy");
  while (campaign.next()) {
    const bool to_stdout = campaign.chance(0.5);
    Recording recording(campaign, victims.next(), {"-o", to_stdout ? "-" : "/dev/full"},
                        {.output = to_stdout ? "/dev/full" : "/dev/null"});
    sleep_ms(campaign.random(1, 60));
    recording.luaspy->process().signal(SIGTERM);
    check_told(campaign, recording, "/dev/full");
    victims.check();
  }
}

void pipe_is_closed(Campaign& campaign) {
  Victims victims(campaign, "busy");
  int whole = 0;
  while (campaign.next()) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) give_up("no pipe");
    Recording recording(campaign, victims.next(), {"-o", "-"}, {.output_fd = ends[1]});
    ::close(ends[1]);
    sleep_ms(campaign.random(1, 30));
    const bool early = campaign.chance(0.5);
    if (early) ::close(ends[0]);
    recording.luaspy->process().signal(SIGTERM);
    std::array<char, 200> first;
    if (!early) (void)!::read(ends[0], first.data(), first.size());
    if (!early) ::close(ends[0]);
    const std::optional<int> status = recording.luaspy->process().wait(30);
    // What fits into the pipe was written before its reader closed it.
    const bool in_time = !early && (status == 0 || status == no_samples);
    whole += in_time;
    // Whoever closes it knows: that is no failure, and nothing is said of it.
    if (!in_time && status != reader_gone) check_told(campaign, recording, "a closed pipe");
    victims.check();
  }
  campaign.remark(fmt::format("{} were in the pipe before it was closed", whole));
}

void path_cannot_be_written(Campaign& campaign) {
  Victims victims(campaign, "busy");
  while (campaign.next()) {
    Victim& victim = victims.next();
    Folder folder;
    const std::string path = campaign.chance(0.5) ? folder.path("missing/profile") : folder.path();
    const double begin = now_s();
    Luaspy luaspy({"record", "-d", "30", "-f", format_of(campaign), "-o", path, "--pid", victim.pid()}, folder);
    const std::optional<int> status = luaspy.process().wait(20);
    if (status != 8 || luaspy.errors().find("Cannot write") == std::string::npos)
      campaign.lost(fmt::format("status {}: {}", status.value_or(-1), luaspy.errors()));
    else if (now_s() - begin > 10) campaign.lost("told after the recording, not before");
    victims.check();
  }
}

}  // namespace luaspy::faults
