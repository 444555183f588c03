#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latchkey/result.hpp"
#include "server/status.hpp"

namespace latchkey::server {

/// "3.8.0-latchkey-0.1.0, built on 2026-01-31 00:00 UTC": the version of the protocol first, in the
/// form in which clients and monitors take it apart.
[[nodiscard]] std::string full_version();

/// For `envi`, if that is answered: asked for once, because whoever knows it may take his time.
[[nodiscard]] Surroundings look_around(const ServerOptions& options);

/// The four-letter words that can be answered: ruok, srvr, stat, mntr, conf, cons, envi, isro,
/// wchs, wchc, wchp and dump.
[[nodiscard]] const std::vector<std::string>& known_words();

/// The list with "all" spelled out. Errors: kInvalidOption for a word that nobody answers.
[[nodiscard]] Result<std::vector<std::string>> settle_words(const std::vector<std::string>& words);

/// What a server says to the four bytes a connection starts with: the word's answer if
/// `status.options.words` has it, a refusal if it is another word of ZooKeeper's (H94). Nothing: it
/// is no word, but the length of a handshake.
///
///     answer_word("ruok", status)  // "imok"
///     answer_word("dump", status)  // "dump is not executed because it is not in the whitelist.\n"
///
/// The answers have the lines of Apache 3.8.0's, except where they tell of Java. One that could
/// take more than `max_output_per_connection` is refused before it is made, and before what is
/// there is gone through (H89).
[[nodiscard]] std::optional<tree::WordAnswer> answer_word(std::string_view word,
                                                          const Status& status);

}  // namespace latchkey::server
