// Shuts a process in, as `belljar.lockdown` does for workers; the filters themselves are made there and passed in.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace belljar {

// For the template, once, when all files are read: an empty room for all its children. Gives the layers that hold.
std::string EnterNamespaces();

// For a forked process, before anything of a guest: no descriptors but `keep`, limits, Landlock, the filter. Ends the
// process if a layer that must hold does not. Gives the layers that hold.
std::string Seal(std::set<int> keep, std::string_view filter);

// fork(2) without the C library's handlers: libuv's would close descriptors that by now may be ours.
int PlainFork();

// Tries what must not work, and ends the process if it does.
void Prove();

void LimitMemory(size_t bytes);

}  // namespace belljar
