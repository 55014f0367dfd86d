#pragma once
// A core file: the memory and the threads of a process as they were when it ended, or when gcore
// was run on it (core(5); its contents: Linux, fs/binfmt_elf.c and include/linux/elfcore.h). What a
// core leaves out, mostly code, is read from the files that were mapped. A core is untrusted input.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped.h"
#include "base/memory.h"
#include "base/registers.h"
#include "base/result.h"

namespace luaspy {

struct CoreOptions {
  std::string path;
  std::string executable;  // where the program is now; "": where it was
  std::string root;        // where the other files are: this directory stands for /; "": /
};

class CoreFile : public Memory, public Mapped {
 public:
  // Fails if the file cannot be read, is not the core file of a process of the processor that
  // luaspy is built for, or belongs to another program than options.executable.
  static Result<std::unique_ptr<CoreFile>> open(const CoreOptions& options);

  struct Thread {
    pid_t tid = 0;  // as the process itself knew it
    Registers registers;
    long system_call = -1;  // the call it slept in; -1: none
    std::array<std::uint64_t, 6> arguments{};
    std::int64_t on_cpu_ns = 0;
  };
  // In the order of the file: after a crash, the thread that crashed comes first.
  const std::vector<Thread>& threads() const { return threads_; }
  pid_t pid() const { return pid_; }
  const std::string& command() const { return command_; }  // at most 80 bytes of it; "" if unknown
  int signal() const { return signal_; }                   // what ended the process; 0 if it was alive
  std::optional<Address> signal_address() const { return signal_address_; }  // the address of a failed memory access
  std::uint64_t page_bytes() const { return page_bytes_; }  // of the kernel that it is from: AT_PAGESZ (getauxval(3))
  std::int64_t written_ns() const { return written_ns_; }   // real-time clock
  std::uint64_t missing_bytes() const { return missing_bytes_; }  // of memory, because the file ends too early

  // Files whose contents the core leaves out and that are not available; `differs`: a file exists
  // there, but it is not the one that was mapped.
  struct MissingFile {
    std::string path;
    bool differs = false;
  };
  std::vector<MissingFile> missing_files() const;

  bool read(Address address, std::span<std::byte> into) const override;
  AddressSpace address_space() const override { return space_; }
  FileDescriptor open_mapped(const Mapping& mapping) const override;

 private:
  struct Segment {  // of the core
    Address start = 0, end = 0;
    std::uint64_t offset = 0;  // of its bytes in the file
    std::uint64_t kept = 0;    // how many bytes from `start` on the core should contain; the rest comes from the mapped
                               // file
    std::uint64_t there = 0;   // how many of these it does contain
    bool writable = false, executable = false;
  };
  struct FileRange {  // NT_FILE
    Address start = 0, end = 0;
    std::uint64_t offset = 0;
    std::size_t file = 0;  // index into files_
  };
  struct File {
    std::string path;  // as the process had it
    std::string at;    // where it is looked for
    bool deleted = false;
    enum class State { unknown, usable, missing, differs } state = State::unknown;
    FileDescriptor opened;
  };
  CoreFile() = default;
  Result<void> read_headers(const std::string& path, std::uint64_t size);
  void read_note(std::uint32_t type, std::span<const std::byte> content);
  void read_status(std::span<const std::byte> content);
  void read_files(std::span<const std::byte> content);
  void read_auxiliary(std::span<const std::byte> content);
  Result<void> locate_files(const CoreOptions& options);
  void map();
  Mapping mapping_of(const Segment& segment) const;
  const FileRange* range_at(Address address) const;
  const Segment* segment_at(Address address) const;
  std::size_t read_some(Address address, std::span<std::byte> into) const;
  const File& look_up(const FileRange& range) const;

  FileDescriptor file_;
  std::vector<Segment> segments_;  // ascending, disjoint
  std::vector<FileRange> ranges_;  // ascending, disjoint
  mutable std::vector<File> files_;
  std::vector<Thread> threads_;
  AddressSpace space_;
  pid_t pid_ = 0;
  std::string command_;
  int signal_ = 0;
  std::optional<Address> signal_address_;
  std::uint64_t page_bytes_ = smallest_page;
  Address entry_ = 0, vdso_ = 0, top_of_stack_ = 0;
  std::int64_t written_ns_ = 0;
  std::uint64_t missing_bytes_ = 0;
};

}  // namespace luaspy
