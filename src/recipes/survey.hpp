#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "latchkey/inspect.hpp"
#include "queue/picture.hpp"
#include "recipes/reader.hpp"

namespace latchkey::recipes {

/// Looks at a lock's directory: lists it, reads what is behind each name, and makes a picture of
/// it. With `changed` it keeps watches: on the lists, on the directory's coming into being, on the
/// data of those who hold alone, and, where it matters, on that of the directory. Then later looks
/// read only what they have not seen yet.
///
/// Thread safety: session strand only.
class Survey final : public std::enable_shared_from_this<Survey> {
 public:
  using Done = std::function<void(Result<Queue>)>;

  Survey(std::shared_ptr<Reader> reader, std::string directory, Reader::Changed changed)
      : reader_(std::move(reader)),
        directory_(std::move(directory)),
        changed_(std::move(changed)) {}

  /// One look at a time.
  void look(Done done);

 private:
  using Names = std::vector<std::string>;

  /// `below` is a node below the directory, or empty. No names: there is no such node.
  void list(const std::string& below, session::Sink<std::optional<Names>> done);
  void listed(std::optional<Names> names);
  void await_creation();
  void list_semaphore(const Names& names);
  /// Everything is listed; now what is behind the names.
  void read_all(const Names& holders);
  void read_many(const Names& nodes);
  void read_one(const std::string& node, Reader::Changed changed = {});
  void look_at(const std::string& node);
  void took(const std::string& node, const Result<Node>& result);

  /// Under a lock delay the directory's own data says who holds, in a semaphore how many may.
  [[nodiscard]] bool wants_mark() const;
  void read_mark();

  /// The look under way has one question more, or one less.
  void add() { ++open_; }
  void settle();
  void fail(const Error& error);
  [[nodiscard]] Queue picture() const;

  [[nodiscard]] Reader::Changed watch(const std::string& path);
  [[nodiscard]] std::string path_of(const std::string& below) const;

  const std::shared_ptr<Reader> reader_;
  const std::string directory_;
  const Reader::Changed changed_;
  std::set<std::string> watched_;              ///< By what they are below the directory.
  std::map<std::string, queue::Child> known_;  ///< What has been read, by node.
  std::optional<std::string> mark_;            ///< Of the directory, while it is known.

  // The look under way.
  Done done_;
  int open_ = 0;
  std::optional<Error> error_;
  bool exists_ = false;
  bool semaphore_ = false;
  bool marked_ = false;  ///< The mark has been asked for, or need not be.
  Names nodes_;
};

}  // namespace latchkey::recipes
