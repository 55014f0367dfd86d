#include "attach/switch_log.h"

#include <linux/perf_event.h>

#include "system/kernel_registers.h"

namespace luaspy {
namespace {

perf_event_attr attributes() {
  perf_event_attr attributes = RecordRing::attributes(PERF_COUNT_SW_CONTEXT_SWITCHES);
  attributes.sample_period = 1;
  attributes.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER;
  for (const auto& each : system::perf_registers()) attributes.sample_regs_user |= std::uint64_t{1} << each.bit;
  attributes.context_switch = 1;  // PERF_RECORD_SWITCH, after the sample
  attributes.sample_id_all = 1;
  return attributes;
}

}  // namespace

std::unique_ptr<SwitchLog> SwitchLog::open(pid_t tid) {
  system::Failure failure;
  constexpr int every_cpu = -1;
  std::optional<RecordRing> ring = RecordRing::open(attributes(), tid, every_cpu, failure);
  if (!ring) return nullptr;
  return std::unique_ptr<SwitchLog>(new SwitchLog(*std::move(ring)));
}

// PERF_RECORD_SWITCH: the header; then, by sample_type, the time and the CPU.
SwitchLog::Switch SwitchLog::last() const {
  constexpr int tries = 4;
  for (int i = 0; i < tries; ++i) {
    const RecordView records = ring_.view();
    Switch last;
    last.place = records.head;
    if (last.place == 0) return last;
    const RecordHeader header = records.header(last.place);
    const std::uint64_t time = records.word(last.place + 8), cpu = records.word(last.place + 16);
    if (!is_last(last)) continue;  // it is just being switched
    if (header.type != PERF_RECORD_SWITCH) continue;
    const bool is_out = (header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0,
               could_run = (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
    last.kind = !is_out ? Switch::Kind::given : could_run ? Switch::Kind::taken : Switch::Kind::given_up;
    last.at = system::Clock::time_point(std::chrono::nanoseconds(static_cast<std::int64_t>(time)));
    last.cpu = static_cast<int>(static_cast<std::uint32_t>(cpu));
    return last;
  }
  return {};
}

// PERF_RECORD_SAMPLE, noted right before: time, CPU, which registers these are, the registers.
std::optional<Registers> SwitchLog::registers(const Switch& lost, bool& at_system_call) const {
  const RecordView records = ring_.view();
  const std::uint64_t sample = lost.place + records.header(lost.place).size;
  constexpr std::uint64_t values = 4 * 8;
  const RecordHeader header = records.header(sample);
  const std::span noted = system::perf_registers();
  if (header.type != PERF_RECORD_SAMPLE || header.size != values + 8 * noted.size()) return std::nullopt;
  if (records.word(sample + 24) != PERF_SAMPLE_REGS_ABI_64) return std::nullopt;
  Registers registers;
  for (std::size_t i = 0; i < noted.size(); ++i) registers.set(noted[i].number, records.word(sample + values + 8 * i));
  if (!is_last(lost)) return std::nullopt;
  at_system_call = system::is_after_system_call(registers);
  return registers;
}

}  // namespace luaspy
