#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "latchkey/election.hpp"
#include "session_tenure.hpp"

namespace latchkey::app {

/// Leadership as a tenure: granted again and again, until it is closed. A session that ends is
/// replaced, for as long as it takes; only the first has to be had in time.
class ElectTenure final : public SessionTenure {
 public:
  enum class Remarks { kNo, kYes };

  ElectTenure(ServiceOptions service, std::string path, std::string id, Remarks remarks);
  ~ElectTenure() override;

  void contend(std::function<void(News)> tell) override;
  void withdraw() override;
  void all_gone() override;
  std::optional<Refusal> release(const std::optional<keeping::Ending>& ending) override;
  void close() override;

 private:
  /// Shared with the end of the term, which waits for the last process.
  struct Term {
    std::mutex mutex;
    bool granted = false;  ///< And not lost since.
    bool is_over = false;  ///< By our wish; what is told of it is no loss.
    Departure departure;
    std::optional<std::stop_callback<std::function<void()>>> on_over;
  };

  void open();
  void hear(const ElectionNews& news);
  void lead(const ElectionNews& news);
  void answer(News news);
  /// Empty if the service does not say so for very long, or `over` comes first.
  [[nodiscard]] std::string node_of(const Token& token, const std::stop_token& over);

  const std::string path_;
  const std::string id_;
  const Remarks remarks_;

  // With the mutex.
  std::function<void(News)> tell_;
  bool wanted_ = false;             ///< contend() has not been answered.
  std::optional<Refusal> refused_;  ///< For good.
  bool closed_ = false;
  bool opening_ = false;
  bool was_open_ = false;
  std::optional<Election> election_;
  std::shared_ptr<Term> term_;
  std::condition_variable closing_;
};

}  // namespace latchkey::app
