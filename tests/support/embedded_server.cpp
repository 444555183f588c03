#include "support/embedded_server.hpp"

#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "support/eventually.hpp"
#include "support/sockets.hpp"

namespace latchkey::test_support {

EmbeddedServer::EmbeddedServer(std::string command, EmbeddedOptions options)
    : command_(std::move(command)), options_(std::move(options)), port_(free_port()) {}

std::string EmbeddedServer::connect_string() const { return loopback(port_); }

std::filesystem::path EmbeddedServer::data() const {
  return options_.data.empty() ? folder_.path() / "data" : options_.data;
}

std::string EmbeddedServer::log() const {
  std::ifstream file(log_file());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void EmbeddedServer::launch() {
  std::filesystem::remove(log_file());
  std::vector<std::string> words = options_.prefix;
  words.insert(words.end(),
               {command_, "serve", "--listen", connect_string(), "--data", data().string(),
                "--words", "all", "--tick", "250ms", "--min-session-timeout", "500ms",
                "--max-session-timeout", "60s", "--reap-interval", "250ms"});
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  process_ = std::make_unique<Child>(
      words, ChildOptions{.output_file = log_file(), .environment = options_.environment});
}

void EmbeddedServer::start(Deadline deadline) {
  if (running()) return;
  launch();
  const bool serves = eventually([&] { return word("ruok") == "imok" || !running(); }, deadline);
  if (!serves || !running()) {
    throw std::runtime_error("latchkey serve does not come up: " + log());
  }
}

std::size_t EmbeddedServer::most_memory_mb() const {
  std::ifstream status("/proc/" + std::to_string(pid()) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) / 1'024;
  }
  return 0;
}

void EmbeddedServer::kill() {
  if (!process_) return;
  process_->signal(SIGKILL);
  static_cast<void>(process_->wait(deadline_in(std::chrono::seconds(10))));
  process_.reset();
}

void EmbeddedServer::pause() {
  if (running()) process_->pause();
}

void EmbeddedServer::resume() {
  if (running()) process_->resume();
}

std::string EmbeddedServer::word(std::string_view word) const {
  return ask_word(Endpoint(connect_string()), word, deadline_in(std::chrono::seconds(10)));
}

}  // namespace latchkey::test_support
