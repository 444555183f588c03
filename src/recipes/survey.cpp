#include "recipes/survey.hpp"

#include <algorithm>
#include <utility>

#include "queue/delay_note.hpp"

namespace latchkey::recipes {
namespace {

/// Stands for the directory's data among what is watched below it; no node has this name.
constexpr const char* kMark = ".";

}  // namespace

void Survey::look(Done done) {
  done_ = std::move(done);
  error_.reset();
  exists_ = false;
  semaphore_ = false;
  marked_ = false;
  nodes_.clear();
  add();
  list({}, [self = shared_from_this()](Result<std::optional<Names>> names) {
    if (!names) {
      self->fail(names.error());
    } else {
      self->listed(std::move(*names));
    }
    self->settle();
  });
}

// Lists.

std::string Survey::path_of(const std::string& below) const {
  if (below.empty()) return directory_;
  return directory_ == "/" ? "/" + below : directory_ + "/" + below;
}

/// What to call when something changes there; nothing if somebody watches already.
Reader::Changed Survey::watch(const std::string& below) {
  if (!changed_ || !watched_.insert(below).second) return {};
  return [self = weak_from_this(), below] {
    const auto survey = self.lock();
    if (!survey) return;
    survey->watched_.erase(below);
    survey->changed_();
  };
}

void Survey::list(const std::string& below, session::Sink<std::optional<Names>> done) {
  Reader::Changed changed = watch(below);
  const bool watches = bool(changed);
  reader_->ask(
      Children{path_of(below)},
      [self = shared_from_this(), below, watches, done = std::move(done)](Result<ChildList> list) {
        if (list) return done(std::optional(std::move(list->names)));
        if (watches) self->watched_.erase(below);
        if (list.error() == Code::kNoNode) return done(std::optional<Names>());
        done(list.error());
      },
      std::move(changed));
}

void Survey::listed(std::optional<Names> names) {
  if (!names) return changed_ ? await_creation() : void();
  exists_ = true;
  semaphore_ = queue::is_semaphore(*names);
  if (semaphore_) return list_semaphore(*names);
  nodes_ = std::move(*names);
  read_all(changed_ ? queue::sole_holders(nodes_) : Names{});
}

void Survey::await_creation() {
  add();
  const auto key = std::make_shared<Reader::Key>(0);
  *key = reader_->ask(
      Exists{directory_},
      [self = shared_from_this(), key](Result<std::optional<Stat>> stat) {
        if (!stat) self->fail(stat.error());
        if (stat && *stat) {
          // It has come into being in between.
          self->reader_->forget(*key);
          self->look(std::exchange(self->done_, {}));
        }
        self->settle();
      },
      [self = weak_from_this()] {
        if (const auto survey = self.lock()) survey->changed_();
      });
}

void Survey::list_semaphore(const Names& names) {
  for (const std::string& name : names) {
    if (name != "leases" && name != "locks") {
      nodes_.push_back(name);
      continue;
    }
    add();
    list(name, [self = shared_from_this(), name](Result<std::optional<Names>> found) {
      if (!found) self->fail(found.error());
      if (found && *found) {
        for (const std::string& child : **found) self->nodes_.push_back(name + "/" + child);
      }
      // The last one to be listed goes on.
      if (self->open_ == 1) self->read_all({});
      self->settle();
    });
  }
}

// Nodes.

void Survey::read_all(const Names& holders) {
  if (error_) return;
  const std::set<std::string> present(nodes_.begin(), nodes_.end());
  std::erase_if(known_, [&](const auto& item) { return !present.contains(item.first); });
  const std::set<std::string> watched(holders.begin(), holders.end());
  for (const std::string& holder : watched) {
    // One that is watched already has not changed since it was read.
    if (Reader::Changed changed = watch(holder)) read_one(holder, std::move(changed));
  }
  Names batch;
  std::size_t bytes = 0;
  const std::size_t most = reader_->nodes_per_reply();
  const std::size_t most_bytes = reader_->machine().max_request_bytes() / 2;
  for (const std::string& node : nodes_) {
    if (watched.contains(node) || known_.contains(node)) continue;
    const std::size_t more = path_of(node).size() + reader_->machine().chroot().size() + 16;
    if (!batch.empty() && (batch.size() == most || bytes + more > most_bytes)) {
      read_many(std::exchange(batch, {}));
      bytes = 0;
    }
    batch.push_back(node);
    bytes += more;
  }
  read_many(batch);
}

void Survey::read_many(const Names& nodes) {
  if (nodes.empty()) return;
  if (nodes.size() == 1) return read_one(nodes.front());
  MultiRead read;
  for (const std::string& node : nodes) read.parts.emplace_back(Get{path_of(node)});
  add();
  reader_->ask(std::move(read), [self = shared_from_this(), nodes](Result<MultiRead::Value> value) {
    if (!value && value.error() == Code::kUnimplemented) {
      // A server before 3.6.
      for (const std::string& node : nodes) self->read_one(node);
    } else if (!value) {
      self->fail(value.error());
    } else {
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        auto& part = (*value)[i];
        if (part) {
          self->took(nodes[i], std::get<Node>(std::move(*part)));
        } else {
          self->took(nodes[i], part.error());
        }
      }
    }
    self->settle();
  });
}

void Survey::read_one(const std::string& node, Reader::Changed changed) {
  const bool watches = bool(changed);
  add();
  reader_->ask(
      Get{path_of(node)},
      [self = shared_from_this(), node, watches](Result<Node> result) {
        if (!result && watches) self->watched_.erase(node);
        self->took(node, result);
        self->settle();
      },
      std::move(changed));
}

void Survey::took(const std::string& node, const Result<Node>& result) {
  if (result) {
    known_[node] = {node, result->stat, result->data};
  } else if (result.error() == Code::kNotAuthorized) {
    look_at(node);
  } else if (result.error() != Code::kNoNode) {
    fail(result.error());
  } else {
    known_.erase(node);
  }
}

/// What may not be read may still be looked at.
void Survey::look_at(const std::string& node) {
  add();
  reader_->ask(Exists{path_of(node)},
               [self = shared_from_this(), node](Result<std::optional<Stat>> stat) {
                 if (!stat) {
                   self->fail(stat.error());
                 } else if (*stat) {
                   self->known_[node] = {node, **stat, {}};
                 } else {
                   self->known_.erase(node);
                 }
                 self->settle();
               });
}

bool Survey::wants_mark() const {
  if (semaphore_) return true;
  return std::any_of(nodes_.begin(), nodes_.end(), [this](const std::string& node) {
    const auto child = known_.find(node);
    return child != known_.end() && queue::has_delay_note(child->second.data);
  });
}

void Survey::read_mark() {
  Reader::Changed changed = watch(kMark);
  if (changed_ && !changed) return;  // Still watched, so it is as it was read.
  add();
  reader_->ask(
      Get{directory_},
      [self = shared_from_this()](Result<Node> node) {
        self->mark_.reset();
        if (node) {
          self->mark_ = std::move(node->data);
        } else {
          self->watched_.erase(kMark);
          // One that may not be read counts for nothing; one that is gone is looked for anew.
          const bool unknown =
              node.error() == Code::kNotAuthorized || node.error() == Code::kNoNode;
          if (!unknown) self->fail(node.error());
        }
        self->settle();
      },
      std::move(changed));
}

// The end of a look.

void Survey::fail(const Error& error) {
  if (!error_) error_ = error;
}

void Survey::settle() {
  if (--open_ > 0 || !done_) return;
  if (!error_ && !std::exchange(marked_, true) && wants_mark()) {
    read_mark();
    if (open_ > 0 || !done_) return;
  }
  const Done done = std::exchange(done_, {});
  if (error_) return done(*error_);
  done(picture());
}

Queue Survey::picture() const {
  if (!exists_) {
    Queue none;
    none.directory = directory_;
    return none;
  }
  std::vector<queue::Child> leases;
  std::vector<queue::Child> front;
  std::vector<queue::Child> others;
  for (const std::string& node : nodes_) {
    const auto child = known_.find(node);
    if (child == known_.end()) continue;
    const bool lease = semaphore_ && node.starts_with("leases/");
    const bool waits = semaphore_ && node.starts_with("locks/");
    (lease ? leases : waits ? front : others).push_back(child->second);
  }
  if (!semaphore_) return queue::picture(directory_, std::move(others), mark_);
  return queue::semaphore_picture(directory_, std::move(leases), std::move(front),
                                  std::move(others), mark_);
}

}  // namespace latchkey::recipes
