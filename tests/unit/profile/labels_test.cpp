// Labels of samples: each of a profile, a raw recording and the formats of others keeps them apart and gives them back.

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "events/span.h"
#include "input/raw_reader.h"
#include "output/raw.h"
#include "profile/profile_builder.h"
#include "profile/raw_format.h"
#include "report/report_text.h"
#include "support/foreign_files.h"
#include "support/otlp_samples.h"
#include "support/raw_file.h"

namespace luaspy::profile_labels_test {
namespace {

constexpr std::int64_t tick_ns = 1'000'000;

// Five samples of one stack: two of coroutine a, one of b, one without a label, one of a again, on another CPU.
struct Labelled {
  Labelled() {
    const ThreadId thread = tables.threads.intern({7, "lua", 7, "lua5.4 a.lua"});
    Sample sample;
    sample.stack = tables.stacks.intern(Stack{{Frame::Kind::lua, "work", "a.lua", 3, 4}});
    sample.cpu = 2;
    const auto add = [&](const Labels& labels) {
      sample.labels = tables.labels.intern(labels);
      tick.at_ns += 10 * tick_ns, tick.weight = 10 * tick_ns;
      (void)built.add(thread, tick, sample);
      raw.sample(thread, tick, sample);
    };
    add(a), add(a), add(b), add({});
    sample.cpu = 5;
    add(a);
    raw.flush();
  }

  static std::map<std::string, std::int64_t> of(const Profile& profile) {
    std::map<std::string, std::int64_t> samples;
    for (const auto& [at, amount] : profile.counts()) {
      const std::string* const value = profile.labels().find(profile.situations()[at.situation].labels, "coroutine");
      samples[value != nullptr ? *value : "none"] += amount.samples;
    }
    return samples;
  }

  const Labels a = {{"coroutine", "a (a.lua:1)"}}, b = {{"coroutine", "b (a.lua:9)"}, {"request", "GET /"}};
  const std::map<std::string, std::int64_t> expected = {{"a (a.lua:1)", 3}, {"b (a.lua:9)", 1}, {"none", 1}};
  EventTables tables;
  std::ostringstream out;
  RawWriter raw{tables, Unit::nanoseconds, out};
  ProfileBuilder built{tables, {}, true};
  Tick tick;
};

}  // namespace

TEST_CASE("samples are counted apart by their labels", "[unit]") {
  Labelled labelled;
  CHECK(Labelled::of(labelled.built.profile()) == labelled.expected);
  Profile all(false);
  all.add_all(labelled.built.profile(), {});
  all.add_all(labelled.built.profile(), {});
  CHECK(Labelled::of(all) == std::map<std::string, std::int64_t>{{"a (a.lua:1)", 6}, {"b (a.lua:9)", 2}, {"none", 2}});
}

TEST_CASE("a raw recording keeps labels, and the CPU before them", "[unit]") {
  Labelled labelled;
  std::istringstream in(labelled.out.str());
  ViewOptions shape;
  shape.cpus = true;
  const Result<Profile> read = read_raw(in, shape);
  REQUIRE(read);
  CHECK(Labelled::of(*read) == labelled.expected);
  std::map<int, std::int64_t> by_cpu;
  for (const auto& [at, amount] : read->counts()) by_cpu[read->situations()[at.situation].cpu] += amount.samples;
  CHECK(by_cpu == std::map<int, std::int64_t>{{2, 4}, {5, 1}});
}

TEST_CASE("a raw recording tells no CPU for a label", "[unit]") {
  EventTables tables;
  std::ostringstream out;
  RawWriter raw(tables, Unit::nanoseconds, out);
  const ThreadId thread = tables.threads.intern({7, "lua", 7, "lua5.4 a.lua"});
  Sample sample;
  sample.labels = tables.labels.intern({{"coroutine", "a"}});
  raw.sample(thread, {tick_ns, tick_ns}, sample);  // its CPU is not known
  sample.state = Sample::State::waiting;
  raw.sample(thread, {2 * tick_ns, tick_ns}, sample);
  raw.flush();
  std::istringstream in(out.str());
  ViewOptions shape;
  shape.cpus = true;
  const Result<Profile> read = read_raw(in, shape);
  REQUIRE(read);
  CHECK(read->samples() == 2);
  CHECK(read->waiting() == 1);
  for (const Profile::Situation& situation : read->situations()) CHECK(situation.cpu == -1);
  CHECK(Labelled::of(*read) == std::map<std::string, std::int64_t>{{"a", 2}});
}

TEST_CASE("pprof and OTLP carry labels", "[unit]") {
  Labelled labelled;
  Profile& profile = labelled.built.profile();
  profile.about.command = "lua5.4 a.lua", profile.about.pid = 7, profile.about.rate = 100;
  profile.about.duration_ns = 50 * tick_ns, profile.about.started_s = 1'000;
  CHECK(Labelled::of(foreign::profile_of(foreign::written("pprof", profile))) == labelled.expected);
  std::map<std::string, std::int64_t> samples;
  for (const otlp_samples::OtlpProfile& each : otlp_samples::profiles_of(foreign::written("otlp", profile))) {
    for (const otlp_samples::OtlpSample& sample : each.samples) {
      const auto value = sample.attributes.find("coroutine");
      samples[value != sample.attributes.end() ? value->second : "none"] += sample.value;
    }
  }
  CHECK(samples == labelled.expected);
}

TEST_CASE("labels of which each request has another value fill no table for others", "[unit]") {
  LabelTable labels;
  const auto with = [&](const std::string& user, const std::string& trace) {
    return labels.intern({{"user", user}, {std::string(trace_label), trace}});
  };
  for (int i = 0; i < 20'000; ++i) (void)with("a", std::to_string(i));
  const LabelsId late = with("b", "x");
  CHECK(*labels.find(late, "user") == "b");
  CHECK(*labels.find(late, trace_label) == other_values);
  CHECK(with("b", "y") == late);
  CHECK(*labels.find(with("a", "5"), trace_label) == "5");
  for (int i = 0; i < 20'000; ++i) (void)with(std::to_string(i), std::to_string(i));
  CHECK(labels.size() <= LabelTable::most + LabelTable::most_of_requests + 257);
}

TEST_CASE("the text of a span is read as it is written, and nothing else is one", "[unit]") {
  const std::string text = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
  const std::optional<Span> span = span_of_text(text);
  REQUIRE(span);
  CHECK(text_of(*span) == text);
  for (const char* const wrong :
       {"", "-", "4bf92f3577b34da6a3ce929d0e0e4736", "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b",
        "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7",
        "00000000000000000000000000000000-00f067aa0ba902b7", "4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000",
        "(unknown)"})
    CHECK_FALSE(span_of_text(wrong));
}

TEST_CASE("OTLP links a sample to the span that its label names", "[unit]") {
  EventTables tables;
  ProfileBuilder built(tables, {}, true);
  const ThreadId thread = tables.threads.intern({7, "lua", 7, "lua5.4 a.lua"});
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736", span = "00f067aa0ba902b7";
  Tick tick;
  for (const std::string& value : {trace + '-' + span, trace + '-' + span, std::string(unknown_value)}) {
    Sample sample;
    sample.stack = tables.stacks.intern(Stack{{Frame::Kind::lua, "work", "a.lua", 3, 4}});
    sample.labels = tables.labels.intern({{std::string(trace_label), value}});
    tick.at_ns += 10 * tick_ns, tick.weight = 10 * tick_ns;
    (void)built.add(thread, tick, sample);
  }
  Profile& profile = built.profile();
  profile.about.pid = 7, profile.about.rate = 100;
  const nlohmann::json json = nlohmann::json::parse(foreign::written("otlp-json", profile));
  const nlohmann::json& links = json.at("dictionary").at("linkTable");
  REQUIRE(links.size() == 2);  // the first one is none
  CHECK(links[1].at("traceId") == trace);
  CHECK(links[1].at("spanId") == span);
  std::map<std::string, std::int64_t> by_link, by_span;
  for (const nlohmann::json& sample : json.at("/resourceProfiles/0/scopeProfiles/0/profiles/0/samples"_json_pointer))
    by_link[links.at(sample.value("linkIndex", 0)).value("spanId", "")] += std::stoll(
        sample.at("values")[0].get<std::string>());
  CHECK(by_link == std::map<std::string, std::int64_t>{{span, 2}, {"", 1}});
  for (const otlp_samples::OtlpProfile& each : otlp_samples::profiles_of(foreign::written("otlp", profile))) {
    for (const otlp_samples::OtlpSample& sample : each.samples) {
      by_span[sample.span] += sample.value;
      CHECK(sample.attributes.count(std::string(trace_label)) == (sample.span.empty() ? 1 : 0));
    }
  }
  CHECK(by_span == std::map<std::string, std::int64_t>{{trace + '-' + span, 2}, {"", 1}});
}

TEST_CASE("values without end become (other)", "[unit]") {
  LabelTable labels;
  for (int i = 0; i < 20'000; ++i) (void)labels.intern({{"request", std::to_string(i)}});
  CHECK(labels.size() <= LabelTable::most + 1);
  const LabelsId late = labels.intern({{"request", "x"}});
  CHECK(*labels.find(late, "request") == other_values);
  CHECK(*labels.find(labels.intern({{"request", "5"}}), "request") == "5");
}

TEST_CASE("report has a row for each value of a label, with what cost most in it", "[unit]") {
  Labelled labelled;
  const std::optional<std::string> text = labels_text(labelled.built.profile(), "coroutine", {});
  REQUIRE(text);
  CHECK(*text ==
        "  Share   Samples  coroutine, and what cost most in it\n"
        "   60.0         3  a (a.lua:1)\n"
        "                     100.0  work (a.lua:3)\n"
        "   20.0         1  (none)\n"
        "                     100.0  work (a.lua:3)\n"
        "   20.0         1  b (a.lua:9)\n"
        "                     100.0  work (a.lua:3)\n");
  CHECK_FALSE(labels_text(labelled.built.profile(), "fiber", {}));
}

TEST_CASE("a sample with labels that are not there ends the recording", "[unit]") {
  const auto fields = [](std::initializer_list<std::uint64_t> numbers) {
    std::string bytes;
    for (const std::uint64_t number : numbers) put_varint(bytes, number);
    return bytes;
  };
  const std::string head = raw_record(raw::about, raw_text("unit") + raw_text("nanoseconds")) +
                           raw_record(raw::string, "lua") + raw_record(raw::thread, fields({7, 7, 0, 0})) +
                           raw_record(raw::labels, fields({1, 0, 0})) + raw_record(raw::tick, fields({5}));
  const auto samples_of = [&](std::uint64_t labels) {
    std::istringstream in(raw_head() + raw_block(head + raw_record(raw::sample, fields({0, 0, 0, 0, 1, labels}))));
    const Result<Profile> read = read_raw(in, {});
    REQUIRE(read);
    return read->samples();
  };
  CHECK(samples_of(1) == 1);
  CHECK(samples_of(2) == 0);
}

}  // namespace luaspy::profile_labels_test
