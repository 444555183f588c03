#include "integration/own_server.hpp"

#include <stdexcept>
#include <vector>

namespace latchkey::test_support {
namespace {

class OwnApache final : public OwnServer {
 public:
  explicit OwnApache(const std::optional<OwnTls>& tls) : server_(options(tls)), tls_(tls) {}

  void start() override { server_.start(); }
  void launch() override { server_.launch(); }
  void pause() override { server_.pause(); }
  void resume() override { server_.resume(); }
  void wipe() override { server_.wipe(); }
  void seed(const SeededData& data) override { data.save_for_apache(server_.folder() / "data"); }
  std::string connect_string() const override {
    return tls_ ? server_.secure_connect_string() : server_.connect_string();
  }
  std::string word(std::string_view word) const override { return server_.word(word); }

 private:
  static ApacheOptions options(const std::optional<OwnTls>& tls) {
    ApacheOptions options;
    options.java_flags.emplace_back("-Dzookeeper.snapshot.trust.empty=true");  // For seed().
    if (tls) options.tls = ApacheTls{tls->identity.both, tls->client_ca, tls->clients};
    return options;
  }

  ApacheServer server_;
  const std::optional<OwnTls> tls_;
};

class OwnEmbedded final : public OwnServer {
 public:
  explicit OwnEmbedded(const std::optional<OwnTls>& tls)
      : server_(LATCHKEY_COMMAND, {.arguments = arguments(tls, socket())}),
        has_tls_(tls.has_value()) {}

  void start() override {
    if (!server_.running()) server_.launch();
    const auto serves = [&] { return word("ruok") == "imok"; };
    const bool done = eventually([&] { return serves() || !server_.running(); }, deadline_in(60s));
    if (done && server_.running()) return;
    throw std::runtime_error("latchkey serve does not come up: " + server_.log());
  }
  void launch() override { server_.launch(); }
  void pause() override { server_.pause(); }
  void resume() override { server_.resume(); }
  void wipe() override {
    server_.kill();
    std::filesystem::remove_all(server_.data());
  }
  void seed(const SeededData& data) override { data.save_for_embedded(server_.data()); }
  std::string connect_string() const override { return server_.connect_string(); }
  /// With TLS every TCP port has it, and words are asked for in plain.
  std::string word(std::string_view word) const override {
    if (!has_tls_) return server_.word(word);
    return ask_word(Endpoint("unix:" + socket()), word, deadline_in(10s));
  }

 private:
  static std::vector<std::string> arguments(const std::optional<OwnTls>& tls,
                                            const std::string& socket) {
    if (!tls) return {};
    std::vector<std::string> words{
        "--unix", socket, "--tls-cert", tls->identity.certificate, "--tls-key", tls->identity.key};
    if (tls->clients != ClientAuth::kNone) {
      words.insert(words.end(), {"--tls-client-ca", tls->client_ca});
    }
    if (tls->clients == ClientAuth::kNeed) words.emplace_back("--tls-require-client-cert");
    return words;
  }
  [[nodiscard]] std::string socket() const { return (folder_.path() / "plain").string(); }

  const TempDir folder_;
  EmbeddedServer server_;
  const bool has_tls_;
};

}  // namespace

std::unique_ptr<OwnServer> own_server(ServiceKind kind, const std::optional<OwnTls>& tls) {
  if (kind == ServiceKind::kEmbedded) return std::make_unique<OwnEmbedded>(tls);
  return std::make_unique<OwnApache>(tls);
}

}  // namespace latchkey::test_support
