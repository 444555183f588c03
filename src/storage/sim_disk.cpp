#include "storage/sim_disk.hpp"

#include <algorithm>

namespace latchkey::storage {
namespace {

constexpr std::uint64_t kSimSector = 512;

struct Inode {
  std::string cached;
  std::string durable;
  std::set<std::uint64_t> dirty;  ///< Sectors.
  bool resized = false;
};

using Folder = std::map<std::string, std::shared_ptr<Inode>>;

/// A change to the folder: `from` goes, `to` comes.
struct Change {
  std::string from;
  std::string to;
  std::shared_ptr<Inode> inode;
};

void apply(const Change& change, Folder& folder) {
  if (!change.from.empty()) folder.erase(change.from);
  if (!change.to.empty()) folder[change.to] = change.inode;
}

void harden(Inode& inode, std::uint64_t sector) {
  const std::uint64_t at = sector * kSimSector;
  if (inode.cached.size() <= at) return;
  const std::uint64_t size = std::min(kSimSector, inode.cached.size() - at);
  if (inode.durable.size() < at + size) inode.durable.resize(at + size, '\0');
  inode.durable.replace(at, size, inode.cached, at, size);
}

void sync_all(Inode& inode) {
  for (const std::uint64_t sector : inode.dirty) harden(inode, sector);
  inode.dirty.clear();
  inode.durable.resize(inode.cached.size(), '\0');
  inode.resized = false;
}

}  // namespace

struct SimDisk::Machine {
  explicit Machine(std::uint64_t seed) : random(seed) {}

  base::Random random;
  Folder cached;
  Folder durable;
  std::vector<Change> changes;
  bool locked = false;
  std::uint64_t process = 0;  ///< Files of an earlier one are dead.
  std::uint64_t calls = 0;
  std::optional<std::uint64_t> fail_at;
  Fault fault = Fault::kFailBefore;
  bool has_failed = false;
  bool dark = false;
  bool full = false;

  bool coin() { return random.below(2) == 0; }

  void change(const Change& made) {
    apply(made, cached);
    changes.push_back(made);
  }

  /// Runs one call, with a fault if it is its turn.
  template <class Do, class DoPartly>
  Result<void> call(std::uint64_t caller, bool needs_space, Do&& effect, DoPartly&& partly) {
    if (dark || caller != process) return Error{Code::kStorage, "simulated: no power"};
    if (full && needs_space) return Error{Code::kStorage, "simulated: No space left on device"};
    if (calls++ != fail_at) {
      effect();
      return {};
    }
    has_failed = true;
    switch (fault) {
      case Fault::kFailBefore: break;
      case Fault::kFailAfter: effect(); break;
      case Fault::kFailPartly:
      case Fault::kDropDirty: partly(fault); break;
      case Fault::kLosePower:
        if (coin()) effect();
        dark = true;
        break;
    }
    return Error{Code::kStorage, "simulated: Input/output error"};
  }

  template <class Do>
  Result<void> call(std::uint64_t caller, bool needs_space, Do&& effect) {
    return call(caller, needs_space, effect, [](Fault) {});
  }

  void lose_power() {
    for (const Change& made : changes) {
      if (coin()) apply(made, durable);
    }
    changes.clear();
    for (auto& [name, inode] : durable) {
      if (inode->resized && coin()) inode->durable.resize(inode->cached.size(), '\0');
      for (const std::uint64_t sector : inode->dirty) {
        if (coin()) harden(*inode, sector);
      }
      inode->dirty.clear();
      inode->resized = false;
      inode->cached = inode->durable;
    }
    cached = durable;
    dark = false;
  }
};

namespace {

using Machine = SimDisk::Machine;

class SimFile final : public File {
 public:
  SimFile(std::shared_ptr<Machine> machine, std::shared_ptr<Inode> inode)
      : machine_(std::move(machine)), inode_(std::move(inode)), process_(machine_->process) {}

  Result<std::size_t> read(char* to, std::size_t size, std::uint64_t offset) override {
    std::size_t got = 0;
    auto done = machine_->call(process_, false, [&] {
      if (offset >= inode_->cached.size()) return;
      got = inode_->cached.copy(to, size, offset);
    });
    if (!done) return done.error();
    return got;
  }

  Result<void> write(std::string_view bytes, std::uint64_t offset) override {
    return machine_->call(
        process_, offset + bytes.size() > inode_->cached.size(), [&] { put(bytes, offset); },
        [&](Fault fault) {
          if (fault == Fault::kFailPartly) put(bytes.substr(0, bytes.size() / 2), offset);
        });
  }

  Result<void> reserve(std::uint64_t size) override {
    return machine_->call(process_, true, [&] {
      if (inode_->cached.size() >= size) return;
      inode_->cached.resize(size, '\0');
      inode_->resized = true;
    });
  }

  Result<void> sync() override {
    return machine_->call(
        process_, false, [&] { sync_all(*inode_); },
        [&](Fault fault) {
          if (fault != Fault::kDropDirty) return;
          for (const std::uint64_t sector : inode_->dirty) {
            if (machine_->coin()) harden(*inode_, sector);
          }
          inode_->dirty.clear();
        });
  }

  Result<std::uint64_t> size() override { return std::uint64_t{inode_->cached.size()}; }

 private:
  void put(std::string_view bytes, std::uint64_t offset) {
    if (bytes.empty()) return;
    if (inode_->cached.size() < offset + bytes.size()) {
      inode_->cached.resize(offset + bytes.size(), '\0');
      inode_->resized = true;
    }
    inode_->cached.replace(offset, bytes.size(), bytes);
    const std::uint64_t last = (offset + bytes.size() - 1) / kSimSector;
    for (std::uint64_t sector = offset / kSimSector; sector <= last; ++sector) {
      inode_->dirty.insert(sector);
    }
  }

  std::shared_ptr<Machine> machine_;
  std::shared_ptr<Inode> inode_;
  const std::uint64_t process_;
};

class SimLock final : public FolderLock {
 public:
  explicit SimLock(std::shared_ptr<Machine> machine)
      : machine_(std::move(machine)), process_(machine_->process) {}
  ~SimLock() override {
    if (machine_->process == process_) machine_->locked = false;
  }

 private:
  std::shared_ptr<Machine> machine_;
  const std::uint64_t process_;
};

class SimFiles final : public Files {
 public:
  explicit SimFiles(std::shared_ptr<Machine> machine)
      : machine_(std::move(machine)), process_(machine_->process) {}

  Result<std::unique_ptr<FolderLock>> lock() override {
    if (machine_->locked) return Error{Code::kInUse, "the simulated folder is in use"};
    auto done = machine_->call(process_, false, [&] { machine_->locked = true; });
    if (!done) return done.error();
    return std::unique_ptr<FolderLock>(std::make_unique<SimLock>(machine_));
  }

  Result<std::vector<std::string>> list() override {
    std::vector<std::string> names;
    auto done = machine_->call(process_, false, [&] {
      for (const auto& [name, inode] : machine_->cached) names.push_back(name);
    });
    if (!done) return done.error();
    return names;
  }

  Result<std::unique_ptr<File>> open(const std::string& name, Access access) override {
    if (access != Access::kCreate && !machine_->cached.contains(name)) return no_such(name);
    auto done = machine_->call(process_, access == Access::kCreate, [&] {
      if (access == Access::kCreate) machine_->change({{}, name, std::make_shared<Inode>()});
    });
    if (!done) return done.error();
    return std::unique_ptr<File>(std::make_unique<SimFile>(machine_, machine_->cached.at(name)));
  }

  Result<void> rename(const std::string& from, const std::string& to) override {
    if (!machine_->cached.contains(from)) return no_such(from);
    return machine_->call(process_, false, [&] {
      machine_->change({from, to, machine_->cached.at(from)});
    });
  }

  Result<void> remove(const std::string& name) override {
    if (!machine_->cached.contains(name)) return no_such(name);
    return machine_->call(process_, false, [&] { machine_->change({name, {}, nullptr}); });
  }

  Result<void> sync_folder() override {
    return machine_->call(process_, false, [&] {
      for (const Change& made : machine_->changes) apply(made, machine_->durable);
      machine_->changes.clear();
    });
  }

  std::string path_of(const std::string& name) const override { return "sim/" + name; }

 private:
  static Error no_such(const std::string& name) {
    return Error{Code::kStorage, "simulated: no file " + name};
  }

  std::shared_ptr<Machine> machine_;
  const std::uint64_t process_;
};

}  // namespace

SimDisk::SimDisk(std::uint64_t seed) : machine_(std::make_shared<Machine>(seed)) {}

SimDisk::SimDisk(const std::map<std::string, std::string>& files) : SimDisk(1) {
  for (const auto& [name, bytes] : files) {
    auto inode = std::make_shared<Inode>();
    inode->cached = bytes;
    inode->durable = bytes;
    machine_->cached[name] = inode;
    machine_->durable[name] = inode;
  }
}

SimDisk::~SimDisk() = default;

std::unique_ptr<Files> SimDisk::files() { return std::make_unique<SimFiles>(machine_); }

void SimDisk::fail_at(std::uint64_t nth, Fault fault) {
  machine_->fail_at = machine_->calls + nth;
  machine_->fault = fault;
  machine_->has_failed = false;
}

void SimDisk::fill_up() { machine_->full = true; }

void SimDisk::make_room() { machine_->full = false; }

std::uint64_t SimDisk::calls() const { return machine_->calls; }

bool SimDisk::has_failed() const { return machine_->has_failed; }

void SimDisk::lose_power() {
  machine_->lose_power();
  kill_process();
}

void SimDisk::kill_process() {
  ++machine_->process;
  machine_->locked = false;
  machine_->fail_at.reset();
}

std::map<std::string, std::string> SimDisk::content() const {
  std::map<std::string, std::string> content;
  for (const auto& [name, inode] : machine_->cached) content[name] = inode->cached;
  return content;
}

std::uint64_t SimDisk::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, inode] : machine_->cached) bytes += inode->cached.size();
  return bytes;
}

}  // namespace latchkey::storage
