#include "support/tls_files.hpp"

#include <fstream>
#include <string>
#include <vector>

#include "support/child.hpp"

namespace latchkey::test_support {

namespace {

Identity identity_in(const std::filesystem::path& folder, const std::string& name) {
  return {folder / (name + ".crt"), folder / (name + ".key"), folder / (name + ".pem")};
}

std::vector<std::string> request(const Identity& identity, const std::string& common_name) {
  return {"openssl",
          "req",
          "-x509",
          "-newkey",
          "ec",
          "-pkeyopt",
          "ec_paramgen_curve:prime256v1",
          "-nodes",
          "-batch",
          "-days",
          "30",
          "-subj",
          "/CN=" + common_name,
          "-keyout",
          identity.key,
          "-out",
          identity.certificate};
}

Identity make_ca(const std::filesystem::path& folder, const std::string& name) {
  Identity identity = identity_in(folder, name);
  run_to_end(request(identity, "latchkey test " + name), folder);
  return identity;
}

struct Subject {
  std::string name;
  std::string alternative_names;
};

Identity make_leaf(const std::filesystem::path& folder, const Subject& subject,
                   const Identity& signer) {
  Identity identity = identity_in(folder, subject.name);
  std::vector<std::string> command = request(identity, subject.name);
  command.insert(command.end(), {"-CA", signer.certificate, "-CAkey", signer.key, "-addext",
                                 "basicConstraints=critical,CA:FALSE", "-addext",
                                 "subjectAltName=" + subject.alternative_names});
  run_to_end(command, folder);
  std::ofstream both(identity.both);
  both << std::ifstream(identity.certificate).rdbuf() << std::ifstream(identity.key).rdbuf();
  return identity;
}

}  // namespace

TlsFiles make_tls_files(const std::filesystem::path& folder) {
  constexpr const char* kLoopback = "DNS:localhost,IP:127.0.0.1,IP:::1";
  const Identity ca = make_ca(folder, "ca");
  const Identity other_ca = make_ca(folder, "other-ca");
  TlsFiles files;
  files.ca = ca.certificate;
  files.other_ca = other_ca.certificate;
  files.server = make_leaf(folder, {"server", kLoopback}, ca);
  files.wrong_name = make_leaf(folder, {"wrong-name", "DNS:elsewhere.example"}, ca);
  files.client = make_leaf(folder, {"client", kLoopback}, ca);
  files.stranger = make_leaf(folder, {"stranger", kLoopback}, other_ca);
  return files;
}

}  // namespace latchkey::test_support
