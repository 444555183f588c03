#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "queue/node_name.hpp"

namespace latchkey::queue {

/// Those of one session who want one lock, in the order of their entries. Whoever has another of
/// them ahead waits for that one and needs to know nothing else; a list that one of them was given
/// is good for everybody whose entry is in it, for nobody comes to stand ahead of an entry later
/// (P2). So a thousand of them need about as many bytes each as one of ten, and not a thousand
/// names each.
///
///     if (!company.enters(me)) list();
///     company.is_at(me, place);                             // The answer to its create.
///     for (Company::Id one : company.take_due()) look(one, company.known_to(one));
///
/// An entry that was made in the very transaction that deleted another of them, one which that list
/// had shown, and that has the number right behind the last one known, is known as well: between
/// the two there is nobody (queue/estate.hpp has the reasons). So those who come back at once, as
/// loops do, need no further list as long as nobody else comes.
///
/// All of them exclude each other: readers and permits are no company. What it does not promise:
/// that an entry which a list shows is still there. Thread safety: one thread at a time.
class Company {
 public:
  using Id = std::uint64_t;

  explicit Company(std::vector<std::string> extra_tags = {}) : extra_tags_(std::move(extra_tags)) {}

  /// Its create is about to leave. True: others wait already, so it need not look before it is due.
  /// It may enter again, which forgets its place.
  [[nodiscard]] bool enters(Id id);
  /// `replaced`: the entry that the same transaction has deleted; empty: none.
  void is_at(Id id, const Place& place, const std::string& replaced = {});
  /// It no longer waits to be due: it looks by itself, or not at all.
  void goes_alone(Id id);
  void holds(Id id);
  /// Its entry is being given up, or it was told that it is gone.
  void leaves(Id id);

  /// What the server answered to one of them, and what it said of a name later. A writer of a
  /// read-write lock that is gone stays in: it may have become a reader, and only a look tells
  /// (H44).
  void listed(const std::vector<std::string>& children);
  void gone(const std::string& name);

  /// Those who have to look now, each once: nobody of the company is ahead of it any more, or only
  /// the holder, who may be followed any moment.
  [[nodiscard]] std::vector<Id> take_due();
  /// Those whose turn is near, each once. They should watch their own entries by now: whoever is
  /// due and has not would have to wait for that, and everybody behind as well.
  [[nodiscard]] std::vector<Id> take_near();
  /// Its own entry and those ahead of it, as far as the last list goes; nothing if its entry is not
  /// in there, and only the server can tell.
  [[nodiscard]] std::optional<std::vector<std::string>> known_to(Id id) const;

  /// Entries that were known and are given up, or gone: those of theirs are for is_at(). The last
  /// one last.
  [[nodiscard]] const std::vector<std::string>& left() const { return left_; }

  /// The nearest of the company that is ahead; nothing if there is none.
  [[nodiscard]] std::optional<std::string> ahead_of(Id id) const;
  /// What it is known by; empty: it has no place.
  [[nodiscard]] std::string entry_of(Id id) const;
  /// Whose entry is this? Nothing: of none of them.
  [[nodiscard]] std::optional<Id> owner_of(const std::string& name) const;
  /// For tests: all that decides what it does next.
  [[nodiscard]] std::string describe() const;

 private:
  using Entry = std::pair<std::int32_t, std::string>;  ///< Number and name.
  struct Member {
    std::optional<Entry> entry;
    bool waits = false;  ///< To be due.
    bool holds = false;
    bool near = false;  ///< And was told so.
  };
  using Line = std::set<std::pair<std::int32_t, Id>>;  ///< By number.

  [[nodiscard]] std::optional<Entry> parse(const std::string& child) const;
  void forget_place(Id id, Member& member);
  void keep_left(const std::string& name);
  /// Has `replaced` been in the directory since before the last list?
  [[nodiscard]] bool take_known(const std::string& replaced);
  /// The one at `at` may have become due.
  void consider(Line::const_iterator at);

  std::vector<std::string> extra_tags_;
  std::map<Id, Member> members_;
  Line line_;               ///< Those who have a place.
  std::set<Entry> listed_;  ///< By the last list, and not known to be gone.
  std::int32_t last_ = 0;   ///< The largest number known: nobody up to it is not.
  std::vector<std::string> left_;
  std::vector<Id> due_;
  std::size_t holders_ = 0;
};

}  // namespace latchkey::queue
