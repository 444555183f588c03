#pragma once

#include <filesystem>

namespace latchkey::app {

/// Makes a folder and what is missing above it, as std::filesystem::create_directories() does, and
/// makes their names durable: what a server stores below them must not go with one of them in a
/// crash. Says nothing of what it cannot do; whoever goes on in the folder will.
void make_folders(const std::filesystem::path& folder);

/// The name of a folder that was just made, or of a file, survives a crash from now on.
void sync_name_of(const std::filesystem::path& folder);

}  // namespace latchkey::app
