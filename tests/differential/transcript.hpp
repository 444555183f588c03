#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "differential/step.hpp"
#include "wire/frame.hpp"

namespace latchkey::differential {

/// One thing that a client saw, as text that two servers must agree on.
struct Line {
  enum class Kind : std::uint8_t { kReply, kEvent, kPing, kConnection };
  Kind kind = Kind::kReply;
  std::string text;
  wire::Op op = wire::Op::kNotification;  ///< kReply: what was asked.
  wire::Err err = wire::Err::kOk;
  std::size_t step = 0;
};

/// What becomes of a connection whose session comes back over another one.
inline constexpr const char* kOldConnectionKept = "old connection kept";
inline constexpr const char* kOldConnectionClosed = "old connection closed";

/// What each actor saw, in the order it arrived, by step.
struct Transcript {
  using Lines = std::array<std::vector<Line>, kActors>;
  std::vector<Lines> steps;
};

/// Makes what a server says comparable with what another one says: zxids count from the start of
/// the script, sessions have the names of their actors, clock times are left out (whether a node
/// was modified since its creation is not), children stand in order. Thread safety: one thread at a
/// time.
class Names {
 public:
  void set_base(std::int64_t zxid) { base_ = zxid; }
  [[nodiscard]] std::int64_t base() const { return base_; }
  /// The versions of a system node count from here on too: it outlives scripts.
  void set_base(const std::string& path, const wire::WireStat& stat) { system_[path] = stat; }
  void add_session(std::int64_t id, std::string name) { sessions_[id] = std::move(name); }

  [[nodiscard]] std::string session(std::int64_t id) const;
  [[nodiscard]] std::string zxid(std::int64_t zxid) const;
  [[nodiscard]] std::string stat(const std::string& path, const wire::WireStat& stat) const;

  [[nodiscard]] std::string reply(const Request& request, const wire::ReplyHeader& header,
                                  std::string_view body) const;

 private:
  [[nodiscard]] std::optional<std::string> reply_body(const Request& request,
                                                      std::string_view body) const;
  [[nodiscard]] std::optional<std::string> multi_body(const Request& request,
                                                      std::string_view body) const;

  std::int64_t base_ = 0;
  std::map<std::int64_t, std::string> sessions_;
  std::map<std::string, wire::WireStat> system_;
};

/// Where two transcripts part.
struct Difference {
  std::size_t step = 0;
  std::string expected;
  std::string actual;
};

/// A difference that is meant: ours is not to do as Apache 3.8.0 does.
struct KnownDifference {
  const char* what;
  const char* why;
  /// Which pair of lines it makes of one; nothing: the generator does not write scripts that show
  /// it.
  bool (*accepts)(const Line& apache, const Line& ours);
};
[[nodiscard]] const std::vector<KnownDifference>& known_differences();

/// kSteps: each step shows the same. kStreams: each actor sees the same, whenever it arrives,
/// barriers aside.
enum class Grain : std::uint8_t { kSteps, kStreams };
[[nodiscard]] std::optional<Difference> compare(const Transcript& apache, const Transcript& ours,
                                                Grain grain);

}  // namespace latchkey::differential
