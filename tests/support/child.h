#pragma once
// Processes of tests: started, waited for with a time limit, ended by pid. Errors of the machine (failed
// fork or file access) end the test program. harness.h has more for live tests, campaigns have it in their folders.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace luaspy::tests {

using Words = std::vector<std::string>;

// Ends the test program, with a reason.
[[noreturn]] void give_up(const std::string& why);

std::string read_file(const std::string& path);  // empty if the file does not exist
void write_file(const std::string& path, const std::string& text);

class Child {
 public:
  struct Files {
    std::string output = "/dev/null", errors = "/dev/null";
    int input_fd = -1, output_fd = -1, errors_fd = -1;  // instead of nothing, `output` and `errors`
    unsigned long most_bytes = 0;                       // RLIMIT_FSIZE, if not 0
    bool terminal = false;                              // `errors` is a terminal, which becomes the controlling one
    int ignored = 0;                                    // a signal that it ignores, as under nohup
    std::string group{};                                // cgroup.procs of a control group, in which it starts
    uid_t user = 0;                                     // if not 0: it runs as this user, without groups
  };
  Child(const Words& command, const Files& files);
  explicit Child(const Words& command) : Child(command, Files()) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills what has not ended

  pid_t pid() const { return pid_; }
  bool alive() const;
  void signal(int number) const;
  // Its status, in the form of a shell; nullopt if it has not ended after so many seconds.
  std::optional<int> wait(double seconds);

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

// adopt_orphans(): orphans below the campaign become its children (prctl(2),
// PR_SET_CHILD_SUBREAPER). The next function reaps those that have ended, and returns how many run
// a program of this name.
void adopt_orphans();
int orphans_that_run(const std::string& name);

// A new folder below the system's temporary one that other users may read; removed with the object.
class Folder {
 public:
  Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();
  std::string path(const std::string& file = {}) const { return file.empty() ? path_ : path_ + "/" + file; }
  Words names() const;  // names of its entries, sorted
  // Returns the file's path. It gets its name once it is complete: a target may be waiting for it.
  std::string write(const std::string& file, const std::string& text, unsigned mode = 0644) const;

 private:
  std::string path_;
};

void sleep_ms(double ms);  // exact to 1 µs: it polls the clock at the end
double now_s();

}  // namespace luaspy::tests
